//! The `proxy-read` tool, `search` of the `proxy` tool, and how the hub's own tools get to a model's notice.

use mcp_proxy_hub::proxy_tool::{ProxyToolOptions, defaults_of};
use mcp_proxy_hub::{HubSettings, OwnTool, OwnToolUse, ReadToolOptions};
use serde_json::{Value, json};

use crate::transcript::{Transcript, server, settings};

const TOOLS: &str = r#"[{"name":"look","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},{"name":"wipe","inputSchema":{"type":"object"}}]"#;

fn reading_settings() -> HubSettings {
    let mut settings = settings();
    settings.profiles[0].read_tool = OwnToolUse::Offered;
    settings
}

fn hub(settings: HubSettings) -> Transcript {
    let mut hub = Transcript::new(settings, vec![server("a")]);
    hub.start_server(1, TOOLS);
    hub.client();
    hub.initialize(1, "{}");
    hub.take();
    hub
}

/// What the client gets, and whether the server got something.
fn read(hub: &mut Transcript, arguments: &Value) -> (Value, bool) {
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call",
        "params": {"name": "proxy-read", "arguments": arguments}});
    hub.client_says(1, &call.to_string());
    let text = hub.take();
    let answer = text.lines().find_map(|line| line.strip_prefix("C1< "));
    let answer = answer.map_or(Value::Null, |answer| serde_json::from_str(answer).unwrap());
    (answer["result"].clone(), text.contains("S1< "))
}

fn error_code(result: &Value) -> &Value {
    &result["_meta"]["mcp-proxy/proxy"]["error"]
}

#[test]
fn g2_proxy_read_calls_only_tools_that_are_marked_read_only() {
    let mut hub = hub(reading_settings());
    let call = |tool: &str| json!({"action": "call", "type": "tool", "path": tool});
    let (_, is_sent) = read(&mut hub, &call("a_look"));
    assert!(is_sent);
    let (result, is_sent) = read(&mut hub, &call("a_wipe"));
    assert!(!is_sent);
    assert_eq!(error_code(&result), "not-read-only");
    assert!(
        result["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("'proxy'")
    );
    // Nothing is known about a tool that is not listed.
    let (_, is_sent) = read(&mut hub, &call("a_unlisted"));
    assert!(!is_sent);
    let batch = json!({"action": "batch", "operations": [call("a_wipe"), call("wipe")]});
    let (_, is_sent) = read(&mut hub, &batch);
    assert!(!is_sent);
    let list = json!({"action": "list", "type": "tool"});
    assert_ne!(read(&mut hub, &list).0["isError"], true);
}

#[test]
fn g8_proxy_read_accepts_properties_that_are_filled_in_with_nothing() {
    let mut hub = hub(reading_settings());
    let call = json!({"action": "call", "type": "tool", "path": "a_look", "args": {},
        "query": null, "operations": null, "resultFile": null, "op": null, "lines": null, "filter": null});
    assert!(read(&mut hub, &call).1);
    let stored = json!({"action": "readresult", "resultFile": "spill:x.txt", "op": "head",
        "type": null, "path": null, "args": null, "query": "", "operations": null, "filter": null});
    let (result, _) = read(&mut hub, &stored);
    assert_eq!(
        result["_meta"]["mcp-proxy/dispatch"]["code"],
        "file-refused"
    );
}

/// What a client fills in that knows the default of a parameter, or takes something empty of its type for one.
fn filled_in(name: &str, schema: &Value) -> Vec<Value> {
    let defaults = defaults_of(name).iter();
    let defaults = defaults.map(|text| serde_json::from_str(text).unwrap_or(json!(text)));
    let empty = match schema["type"].as_str() {
        Some("object") => json!({}),
        Some("array") => json!([]),
        _ => Value::Null,
    };
    defaults.chain([Value::Null, empty]).collect()
}

#[test]
fn g8_every_property_of_proxy_read_may_be_filled_in_for_every_action() {
    let mut hub = hub(reading_settings());
    let definition = OwnTool::Read(ReadToolOptions::alone(ProxyToolOptions::default()));
    let definition: Value = serde_json::from_slice(&definition.definition("")).unwrap();
    let properties = definition["inputSchema"]["properties"].as_object().unwrap();
    let calls = [
        json!({"action": "search", "query": "look"}),
        json!({"action": "list", "type": "tool"}),
        json!({"action": "info", "type": "tool", "path": "a_look"}),
        json!({"action": "call", "type": "tool", "path": "a_look"}),
        json!({"action": "batch", "operations": [{"action": "list", "type": "tool"}]}),
        json!({"action": "readresult", "resultFile": "spill:x.txt", "op": "tail"}),
    ];
    for call in calls {
        let mut all = call.clone();
        for (name, schema) in properties {
            if call.get(name).is_some() {
                continue;
            }
            for value in filled_in(name, schema) {
                let mut one = call.clone();
                one[name] = value.clone();
                all[name] = value;
                assert_is_understood(&mut hub, &one);
            }
        }
        assert_is_understood(&mut hub, &all);
    }
}

/// The call is sent to its server, or has a result, or fails only because there is no such file.
fn assert_is_understood(hub: &mut Transcript, call: &Value) {
    let (result, is_sent) = read(hub, call);
    let refused = &result["_meta"]["mcp-proxy/dispatch"]["code"];
    let is_answered = result["isError"] == false || refused == "file-refused";
    assert!(is_sent || is_answered, "{call}: {result}");
}

#[test]
fn a_stored_result_is_not_read_in_a_batch_and_the_error_says_so() {
    let mut hub = hub(reading_settings());
    let read_it = json!({"action": "readresult", "resultFile": "spill:x.txt"});
    let batch = json!({"action": "batch", "operations": [read_it]});
    let (result, _) = read(&mut hub, &batch);
    assert!(result.to_string().contains("not-in-batch"), "{result}");
}

#[test]
fn proxy_read_names_all_its_actions() {
    let mut hub = hub(reading_settings());
    let wrong = [
        (json!({"action": "run"}), "invalid-value"),
        (json!({"action": "nothing-like-it"}), "invalid-value"),
        (json!({}), "missing-parameter"),
    ];
    for (arguments, code) in wrong {
        let (result, _) = read(&mut hub, &arguments);
        assert_eq!(error_code(&result), code);
        assert_eq!(result["_meta"]["mcp-proxy/proxy"]["parameter"], "action");
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("'batch' or 'readresult'"), "{text}");
        let result = proxy(&mut hub, &arguments);
        assert!(!result.to_string().contains("readresult"), "{result}");
    }
}

#[test]
fn g2_no_form_of_arguments_lets_proxy_read_call_another_tool() {
    let mut hub = hub(reading_settings());
    for arguments in [
        r#"{"action":"readresult","action":"call","tool":"wipe","path":"a_wipe","type":"tool"}"#,
        r#"{"action":"call","action":"readresult","tool":"wipe"}"#,
        r#"{"action":"readresult","tool":"wipe","arguments":{"action":"call"}}"#,
        r#"{"action":"readresult","\u0061ction":"call","tool":"wipe"}"#,
    ] {
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"proxy-read","arguments":{arguments}}}}}"#
        );
        hub.client_says(1, &call);
        assert!(!hub.take().contains("S1< "), "{arguments}");
    }
}

#[test]
fn g2_proxy_read_names_the_tool_that_is_exposed_next_to_it() {
    let mut settings = reading_settings();
    settings.profiles[0].proxy_tool = OwnToolUse::Absent;
    let mut hub = hub(settings);
    let wipe = json!({"action": "call", "type": "tool", "path": "wipe"});
    let (result, _) = read(&mut hub, &wipe);
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("'proxy-dispatch'"), "{text}");
}

#[test]
fn g2_g4_own_tools_are_annotated_and_loaded() {
    let proxy = ProxyToolOptions::default();
    let alone = ReadToolOptions::alone(proxy.clone());
    let beside = ReadToolOptions {
        with_proxy: true,
        dispatch: Some("proxy-dispatch".to_owned()),
        ..alone.clone()
    };
    let tools = [
        OwnTool::Proxy(proxy),
        OwnTool::Dispatch(Default::default()),
        OwnTool::Read(alone),
        OwnTool::Read(beside),
    ];
    let definitions = tools
        .map(|tool| -> Value { serde_json::from_slice(&tool.definition("Servers: a.")).unwrap() });
    for definition in &definitions {
        assert_eq!(definition["_meta"], json!({"anthropic/alwaysLoad": true}));
        let is_read = definition["name"] == "proxy-read";
        assert_eq!(definition["annotations"]["readOnlyHint"] == true, is_read);
    }
    let [proxy, dispatch, alone, beside] = &definitions;
    for parameter in ["path", "args", "resultFile", "op", "filter"] {
        assert!(beside["inputSchema"]["properties"].get(parameter).is_some());
    }
    let size = |definition: &Value| definition.to_string().len();
    assert!(size(beside) < size(proxy) && size(beside) < size(dispatch));
    assert!(size(beside) < size(alone));
}

#[test]
fn g4_instructions_begin_with_the_tool_and_the_servers() {
    let mut hub = Transcript::new(reading_settings(), vec![server("a"), server("b")]);
    hub.start_server(1, TOOLS);
    hub.start_server(2, TOOLS);
    hub.client();
    hub.initialize(1, "{}");
    let text = hub.take();
    let answer = text.lines().find_map(|line| line.strip_prefix("C1< "));
    let answer: Value = serde_json::from_str(answer.unwrap()).unwrap();
    let instructions = answer["result"]["instructions"].as_str().unwrap();
    let first = instructions.lines().next().unwrap();
    for name in ["`proxy`", "`proxy-read`", "a, b"] {
        assert!(first.contains(name), "{first}");
    }
}

#[test]
fn instructions_promise_of_the_dispatcher_alone_only_what_it_does() {
    let mut settings = settings();
    settings.profiles[0].proxy_tool = OwnToolUse::Absent;
    let mut hub = Transcript::new(settings, vec![server("a")]);
    hub.start_server(1, TOOLS);
    hub.client();
    hub.initialize(1, "{}");
    let text = hub.take();
    let line = "Use `proxy-dispatch` to find and call the tools of these servers: a.";
    assert!(text.contains(line), "{text}");
}

fn proxy(hub: &mut Transcript, arguments: &Value) -> Value {
    let call = json!({"jsonrpc": "2.0", "id": 8, "method": "tools/call",
        "params": {"name": "proxy", "arguments": arguments}});
    hub.client_says(1, &call.to_string());
    let text = hub.take();
    let answer = text.lines().find_map(|line| line.strip_prefix("C1< "));
    let answer: Value = serde_json::from_str(answer.unwrap()).unwrap();
    answer["result"].clone()
}

#[test]
fn d1_proxy_searches_and_lists_briefly() {
    let mut hub = hub(settings());
    let text = |result: &Value| result["content"][0]["text"].as_str().unwrap().to_owned();
    let found = proxy(&mut hub, &json!({"action": "search", "query": "look"}));
    assert_eq!(text(&found), "a  a_look()");
    let facts = &found["_meta"]["mcp-proxy/proxy"];
    assert_eq!(
        (&facts["proxyAction"], &facts["totalCount"]),
        (&json!("search"), &json!(1))
    );
    let brief = json!({"action": "list", "type": "tool", "detail": "brief", "limit": 1});
    let listed = proxy(&mut hub, &brief);
    assert_eq!(listed["_meta"]["mcp-proxy/proxy"]["nextOffset"], 1);
    assert!(text(&listed).starts_with("a  a_look()\n"));
    let full = proxy(
        &mut hub,
        &json!({"action": "list", "type": "tool", "detail": "full"}),
    );
    assert_eq!(full["content"][0]["type"], "resource");
}

#[test]
fn d25_an_unknown_server_is_answered_with_the_servers() {
    let mut hub = hub(settings());
    for action in [
        json!({"action": "list", "type": "tool"}),
        json!({"action": "search", "query": "look"}),
    ] {
        let mut arguments = action;
        arguments["filter_server"] = json!("nowhere");
        let result = proxy(&mut hub, &arguments);
        assert_eq!(error_code(&result), "unknown-server");
        assert!(
            result["content"][0]["text"]
                .as_str()
                .unwrap()
                .contains("'a'")
        );
    }
}

#[test]
fn d38_search_shows_the_names_that_the_instructions_describe() {
    let mut hub = hub(settings());
    let call = json!({"jsonrpc": "2.0", "id": 8, "method": "tools/call",
        "params": {"name": "proxy-dispatch", "arguments": {"action": "search", "query": "look"}}});
    hub.client_says(1, &call.to_string());
    // The index is not there yet, so the search is done elsewhere, or it is answered at once.
    let text = hub.take();
    assert!(text.contains("a  a_look()"), "{text}");
}
