//! The `proxy-dispatch` tool in conversations.

use std::sync::Arc;
use std::time::Duration;

use insta::assert_snapshot;
use mcp_proxy_hub::{
    HubSettings, NewServer, OwnToolUse, ServerChange, ServerSettings, SpillSettings, SpillThreshold,
};
use mcp_proxy_spill::{JqRunner, SpillOptions, SpillStore};
use serde_json::{Value, json};

use crate::transcript::{Transcript, server, settings};

pub(crate) const TOOLS: &str = r#"[{"name":"read_file","description":"Read a file. All of it.","inputSchema":{"type":"object","properties":{"path":{"type":"string"},"head":{"type":"integer"}},"required":["path"]},"annotations":{"readOnlyHint":true}},{"name":"write_file","description":"Write a file.","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}}]"#;

/// Settings with a store of its own for large results.
pub(crate) fn storing(
    threshold: SpillThreshold,
    ttl: Duration,
) -> (HubSettings, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let store = SpillStore::open(SpillOptions {
        directory: folder.path().join("spill"),
        quota: 1 << 20,
        ttl,
        roots: Vec::new(),
        spawn_sweeper: None,
        jq: JqRunner::InProcess,
    });
    let mut settings = settings();
    settings.spill = SpillSettings {
        store: Some(Arc::new(store.unwrap())),
        threshold,
        ..SpillSettings::default()
    };
    (settings, folder)
}

/// A hub in front of one server, with clients that have said hello.
pub(crate) fn ready(settings: HubSettings, clients: usize) -> Transcript {
    ready_in_front_of(server("a"), settings, clients)
}

pub(crate) fn ready_in_front_of(
    server: ServerSettings,
    settings: HubSettings,
    clients: usize,
) -> Transcript {
    let mut hub = Transcript::new(settings, vec![server]);
    hub.start_server(1, TOOLS);
    for client in 1..=clients {
        hub.client();
        hub.initialize(client, "{}");
    }
    hub.take();
    hub
}

pub(crate) fn call_tool(id: u32, tool: &str, arguments: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
        .to_string()
}

pub(crate) fn dispatch(id: u32, arguments: &Value) -> String {
    call_tool(id, "proxy-dispatch", arguments)
}

/// The last message that this client or server got.
pub(crate) fn last(transcript: &str, to: &str) -> Value {
    let begin = format!("{to}< ");
    let line = transcript
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix(&begin));
    serde_json::from_str(line.unwrap()).unwrap()
}

/// A client's call, the server's result for it, and what the client gets.
pub(crate) fn called(hub: &mut Transcript, call: &str, number: u32, result: &str) -> Value {
    hub.client_says(1, call);
    hub.server_says(
        1,
        &format!(r#"{{"jsonrpc":"2.0","id":{number},"result":{result}}}"#),
    );
    last(&hub.take(), "C1")["result"].clone()
}

#[test]
fn connections_and_tools_are_listed_found_and_counted() {
    let mut hub = Transcript::ready(TOOLS);
    hub.client_says(1, &dispatch(1, &json!({"action": "list"})));
    hub.client_says(
        1,
        &dispatch(
            2,
            &json!({"action": "search", "query": "load a document", "limit": 1}),
        ),
    );
    let search = hub.take();
    hub.client_says(1, &dispatch(3, &json!({"action": "status"})));
    let status = last(&hub.take(), "C1")["result"]["content"][0]["text"].clone();
    let status: Value = serde_json::from_str(status.as_str().unwrap()).unwrap();
    assert_eq!(
        (&status["totalConnections"], &status["totalTools"]),
        (&json!(1), &json!(2))
    );
    assert_eq!(status["catalogHash"].as_str().unwrap().len(), 8);
    assert_snapshot!(search);
}

#[test]
fn a_call_reaches_the_server_with_its_own_meta_and_that_of_the_request() {
    let mut hub = Transcript::ready(TOOLS);
    hub.client_says(1, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"proxy-dispatch","arguments":{"action":"call","tool":"read_file","connection":"a-alias","arguments":{"path":"x"},"meta":{"trace":"t1","progressToken":"mine"}},"_meta":{"progressToken":5}}}"#);
    hub.server_says(1, r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":3,"progress":1}}"#);
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"hello"}],"structuredContent":{"n":1},"_meta":{"k":2}}}"#);
    assert_snapshot!(hub.take());
}

#[test]
fn what_cannot_be_called_is_refused_with_a_code() {
    let mut hub = Transcript::new(settings(), vec![server("a"), server("b")]);
    hub.start_server(1, TOOLS);
    hub.start_server(2, TOOLS);
    hub.client();
    hub.initialize(1, "{}");
    let refusals = [
        (json!({"action": "call", "tool": "read_file"}), "ambiguous"),
        (json!({"action": "call", "tool": "read_flie"}), "not-found"),
        (
            json!({"action": "call", "tool": "read_file", "connection": "z"}),
            "unknown-connection",
        ),
        (
            json!({"action": "list", "connection": "z"}),
            "unknown-connection",
        ),
        (
            json!({"action": "readresult", "resultFile": "spill:X.json"}),
            "file-refused",
        ),
        (
            json!({"action": "call", "tool": "a_read_file", "argumentsFile": "/etc/hosts"}),
            "file-refused",
        ),
    ];
    for (arguments, code) in refusals {
        hub.client_says(1, &dispatch(1, &arguments));
        let result = last(&hub.take(), "C1")["result"].clone();
        assert_eq!(
            result["_meta"]["mcp-proxy/dispatch"]["code"], code,
            "{arguments}"
        );
        assert_eq!(result["isError"], true, "{arguments}");
    }
    hub.client_says(
        1,
        &dispatch(
            1,
            &json!({"action": "call", "tool": "read_file", "connection": "b"}),
        ),
    );
    hub.server_says(
        2,
        r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32099,"message":"no such file"}}"#,
    );
    let failed = last(&hub.take(), "C1")["result"]["_meta"]["mcp-proxy/dispatch"].clone();
    assert_eq!(
        (&failed["code"], &failed["serverCode"]),
        (&json!("server-error"), &json!(-32099))
    );
}

#[test]
fn a_result_in_a_file_belongs_to_the_session_that_got_it() {
    let (settings, folder) = storing(SpillThreshold::Never, Duration::from_secs(60));
    let mut hub = ready(settings, 2);
    let kept = dispatch(
        1,
        &json!({"action": "call", "tool": "read_file", "arguments": {"path": "x"}, "resultToFile": true}),
    );
    let text = json!({"content": [{"type": "text", "text": r#"{"rows": [1, 2], "n": 12345678901234567890}"#}]});
    let kept = called(&mut hub, &kept, 3, &text.to_string());
    let handle = kept["_meta"]["mcp-proxy/dispatch"]["resultFile"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        kept["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains(&handle)
    );

    let read = json!({"action": "readresult", "resultFile": handle, "op": "read"});
    hub.client_says(1, &dispatch(2, &read));
    let own = last(&hub.take(), "C1")["result"].clone();
    assert_eq!(
        own["content"][0]["text"],
        r#"{"rows":[1,2],"n":12345678901234567890}"#
    );
    hub.client_says(2, &dispatch(2, &read));
    let other = last(&hub.take(), "C2")["result"].clone();
    assert_eq!(other["_meta"]["mcp-proxy/dispatch"]["code"], "file-refused");

    let resource =
        json!({"jsonrpc": "2.0", "id": 3, "method": "resources/read", "params": {"uri": handle}})
            .to_string();
    hub.client_says(1, &resource);
    let contents = last(&hub.take(), "C1")["result"]["contents"][0].clone();
    assert_eq!(contents["mimeType"], "application/json");
    assert_eq!(
        contents["text"],
        r#"{"rows":[1,2],"n":12345678901234567890}"#
    );
    hub.client_says(2, &resource);
    assert_eq!(last(&hub.take(), "C2")["error"]["code"], -32602);
    let through_proxy = json!({"action": "call", "type": "resource", "path": handle});
    hub.client_says(1, &call_tool(4, "proxy", &through_proxy));
    assert_eq!(
        last(&hub.take(), "C1")["result"]["content"][0]["resource"]["uri"],
        *handle
    );

    hub.client_says(
        1,
        &dispatch(
            5,
            &json!({"action": "call", "tool": "write_file", "argumentsFile": handle}),
        ),
    );
    let sent = last(&hub.take(), "S1");
    assert_eq!(sent["params"]["arguments"]["rows"], json!([1, 2]));

    hub.wait(Duration::from_secs(61));
    hub.client_says(1, &dispatch(6, &read));
    let late = last(&hub.take(), "C1")["result"].clone();
    assert_eq!(late["content"], other["content"]);
    drop(hub);
    assert_eq!(folder.path().join("spill").read_dir().unwrap().count(), 0);
}

#[test]
fn d11_wrong_arguments_come_back_with_the_signature() {
    let mut hub = Transcript::ready(TOOLS);
    let wrong = json!({"file": "x"});
    let failed = r#"{"content":[{"type":"text","text":"1 validation error\n"}],"isError":true}"#;
    let expected = "read_file(path: string, head?: integer)";

    let call = json!({"action": "call", "tool": "read_file", "arguments": wrong});
    let answer = called(&mut hub, &dispatch(1, &call), 3, failed);
    let text = format!("1 validation error\nExpected: {expected}");
    assert_eq!(answer["content"][0]["text"], text);

    let call = json!({"action": "call", "type": "tool", "path": "a_read_file", "args": wrong});
    let answer = called(&mut hub, &call_tool(2, "proxy", &call), 4, failed);
    let text = format!("1 validation error\nExpected: a_{expected}");
    assert_eq!(answer["content"][0]["text"], text);

    hub.client_says(1, &call_tool(3, "proxy", &call));
    let error = r#"{"jsonrpc":"2.0","id":5,"error":{"code":-32602,"message":"bad arguments"}}"#;
    hub.server_says(1, error);
    let answer = last(&hub.take(), "C1")["result"].clone();
    let text = answer["content"][0]["text"].as_str().unwrap();
    assert!(text.ends_with(&format!("Expected: a_{expected}")), "{text}");

    // An error of another kind, and a call by the tool's own name, stay as they are.
    let call = json!({"action": "call", "tool": "read_file", "arguments": {"path": "x"}});
    let answer = called(&mut hub, &dispatch(4, &call), 6, failed);
    assert_eq!(answer["content"][0]["text"], "1 validation error\n");
    let answer = called(&mut hub, &call_tool(5, "a_read_file", &wrong), 7, failed);
    assert_eq!(answer["content"][0]["text"], "1 validation error\n");
}

/// The handle is in the only text and in `_meta`.
#[track_caller]
fn assert_preview(result: &Value) {
    let content = result["content"].as_array().unwrap();
    let handle = result["_meta"]["mcp-proxy/spill"]["resultFile"].as_str();
    let text = content[0]["text"].as_str().unwrap();
    assert!(text.contains(handle.unwrap()), "{result}");
    assert_eq!(content.len(), 1, "{result}");
}

#[test]
fn a_preview_names_a_tool_that_its_client_has() {
    use OwnToolUse::{Absent, Offered};
    let result = json!({"content": [{"type": "text", "text": "x".repeat(300)}]}).to_string();
    let parts = |tool: &str| format!(r#"`{tool}` {{"action":"readresult","resultFile":"HANDLE","#);
    let whole = r#"`proxy` {"action":"call","type":"resource","path":"HANDLE"}"#.to_owned();
    for (proxy_tool, dispatch_tool, read_tool, hint) in [
        (Offered, Offered, Offered, parts("proxy-read")),
        (Absent, Absent, Offered, parts("proxy-read")),
        (Offered, Offered, Absent, parts("proxy-dispatch")),
        (Offered, Absent, Absent, whole),
        (Absent, Absent, Absent, "resources/read".to_owned()),
    ] {
        let (mut settings, _folder) = storing(SpillThreshold::Above(200), Duration::from_secs(60));
        let profile = &mut settings.profiles[0];
        profile.proxy_tool = proxy_tool;
        profile.dispatch_tool = dispatch_tool;
        profile.read_tool = read_tool;
        let mut hub = ready(settings, 1);
        let call = call_tool(1, "a_read_file", &json!({}));
        let preview = called(&mut hub, &call, 3, &result);
        assert_preview(&preview);
        let handle = preview["_meta"]["mcp-proxy/spill"]["resultFile"].as_str();
        let hint = hint.replace("HANDLE", handle.unwrap());
        let text = preview["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(&hint), "{text}");
    }
}

#[test]
fn g5_large_results_of_other_tools_become_a_preview_with_a_handle() {
    let (settings, _folder) = storing(SpillThreshold::Above(200), Duration::from_secs(60));
    let mut hub = ready(settings, 1);
    let long = "x".repeat(300);
    let result = json!({"content": [{"type": "text", "text": long}], "structuredContent": {"text": long}, "_meta": {"k": 1}}).to_string();

    let plain = called(
        &mut hub,
        &call_tool(1, "a_read_file", &json!({})),
        3,
        &result,
    );
    assert_preview(&plain);
    assert!(plain.get("structuredContent").is_none());
    assert!(plain["_meta"]["mcp-proxy/spill"]["structuredContent"].is_string());
    assert_eq!(plain["_meta"]["k"], 1);

    // Clients check the results of a tool that declares an output schema.
    let declared = called(
        &mut hub,
        &call_tool(2, "a_write_file", &json!({})),
        4,
        &result,
    );
    assert_eq!(declared["structuredContent"]["text"], *long);
    assert_preview(&declared);

    let proxied = json!({"action": "call", "type": "tool", "path": "a_read_file"});
    let proxied = called(&mut hub, &call_tool(3, "proxy", &proxied), 5, &result);
    assert_preview(&proxied);
    assert_eq!(
        proxied["content"][0]["annotations"]["proxyPath"],
        "a_read_file"
    );

    // `proxy` declares none, so it need not carry what another tool declares.
    let proxied = json!({"action": "call", "type": "tool", "path": "a_write_file"});
    let proxied = called(&mut hub, &call_tool(5, "proxy", &proxied), 6, &result);
    assert!(proxied.get("structuredContent").is_none());

    let small = called(
        &mut hub,
        &call_tool(4, "a_read_file", &json!({})),
        7,
        r#"{"content":[]}"#,
    );
    assert_eq!(small, json!({"content": []}));
    let unlimited = json!({"action": "call", "tool": "read_file", "resultSizeThreshold": 0});
    let unlimited = called(&mut hub, &dispatch(6, &unlimited), 8, &result);
    assert_eq!(unlimited["content"][0]["text"], *long);
}

#[test]
fn a_refresh_waits_until_the_servers_have_listed_again() {
    let mut hub = Transcript::ready(TOOLS);
    hub.client_says(
        1,
        &dispatch(
            1,
            &json!({"action": "list", "format": "compact", "refresh": true, "includeTools": false}),
        ),
    );
    let asked = hub.take();
    assert_eq!(last(&asked, "S1")["method"], "tools/list");
    assert!(!asked.contains("C1<"));
    hub.server_says(1, r#"{"jsonrpc":"2.0","id":3,"result":{"tools":[]}}"#);
    let listed = last(&hub.take(), "C1")["result"]["content"][0]["text"].clone();
    assert!(
        listed.as_str().unwrap().contains(r#""toolCount":0"#),
        "{listed}"
    );

    hub.client_says(
        1,
        &dispatch(2, &json!({"action": "status", "refresh": true})),
    );
    hub.client_says(
        1,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#,
    );
    hub.client_says(
        1,
        &dispatch(3, &json!({"action": "status", "refresh": true})),
    );
    hub.take();
    hub.wait(Duration::from_secs(11));
    let answers = hub.take();
    assert_eq!(last(&answers, "C1")["id"], 3);
    assert_eq!(answers.matches("C1< ").count(), 1);
}

#[test]
fn a_call_by_a_name_that_is_not_known_yet_waits_for_servers_that_are_starting() {
    let mut hub = Transcript::new(settings(), vec![server("a")]);
    hub.client();
    hub.wait(Duration::from_secs(1));
    hub.initialize(1, "{}");
    hub.take();
    hub.client_says(
        1,
        &dispatch(
            1,
            &json!({"action": "call", "tool": "read_file", "arguments": {}}),
        ),
    );
    assert!(!hub.take().contains("C1<"));
    hub.start_server(1, TOOLS);
    assert_eq!(last(&hub.take(), "S1")["method"], "tools/call");
}

#[test]
fn a_server_that_is_switched_off_stays_off_when_lists_are_refreshed() {
    let mut hub = Transcript::ready(TOOLS);
    hub.change(ServerChange::Disable);
    hub.take();
    hub.client_says(
        1,
        &dispatch(1, &json!({"action": "status", "refresh": true})),
    );
    let answered = hub.take();
    assert!(!answered.contains("! dial"), "{answered}");
    assert_eq!(last(&answered, "C1")["id"], 1);
}

#[test]
fn a_call_to_a_server_that_is_down_says_so() {
    let mut hub = Transcript::ready(TOOLS);
    hub.change(ServerChange::Disable);
    hub.take();
    let call = json!({"action": "call", "tool": "read_file", "connection": "a"});
    hub.client_says(1, &dispatch(1, &call));
    let failed = last(&hub.take(), "C1")["result"]["_meta"]["mcp-proxy/dispatch"].clone();
    assert_eq!(failed["code"], "server-unavailable", "{failed}");
}

#[test]
fn g9_s6_the_dispatcher_spills_and_reads_what_fits_its_client() {
    let (settings, _folder) = storing(SpillThreshold::ByClient, Duration::from_secs(60));
    let mut hub = ready(settings, 1);
    let result = |length: usize| {
        json!({"content": [{"type": "text", "text": format!("[\"{}\"]", "x".repeat(length))}]})
            .to_string()
    };
    let call = json!({"action": "call", "tool": "read_file"});
    let small = called(&mut hub, &dispatch(1, &call), 3, &result(8_000));
    assert!(
        small["_meta"]["mcp-proxy/dispatch"]
            .get("resultFile")
            .is_none()
    );
    let large = called(&mut hub, &dispatch(2, &call), 4, &result(20_000));
    let facts = &large["_meta"]["mcp-proxy/dispatch"];
    assert_eq!(facts["autoSpilled"], true, "{large}");
    let read = json!({"action": "readresult", "resultFile": facts["resultFile"], "op": "read"});
    hub.client_says(1, &dispatch(3, &read));
    let part = last(&hub.take(), "C1")["result"].clone();
    let shown = part["content"][0]["text"].as_str().unwrap().len();
    assert!((7_000..=8_192).contains(&shown), "{shown}");
    // Tools that are called by name, and `proxy`, return what the server sent.
    let plain = called(
        &mut hub,
        &call_tool(4, "a_read_file", &json!({})),
        5,
        &result(20_000),
    );
    assert!(plain.get("_meta").is_none());
}

#[test]
fn a_result_that_does_not_fit_into_the_quota_is_returned_whole() {
    let (settings, _folder) = storing(SpillThreshold::Never, Duration::from_secs(60));
    let mut hub = ready(settings, 1);
    let long = "x".repeat(2 << 20);
    let result = json!({"content": [{"type": "text", "text": long}]}).to_string();
    let call = json!({"action": "call", "tool": "read_file", "resultToFile": true});
    hub.client_says(1, &dispatch(1, &call));
    hub.server_says(
        1,
        &format!(r#"{{"jsonrpc":"2.0","id":3,"result":{result}}}"#),
    );
    let said = hub.take();
    let answer = last(&said, "C1")["result"].clone();
    assert_eq!(answer["content"][0]["text"], *long);
    assert!(answer["_meta"]["mcp-proxy/dispatch"]["resultNotStored"].is_string());
    assert_eq!(said.matches("! log: ").count(), 1);
}

#[test]
fn a_client_whose_profile_is_gone_gets_nothing_of_another() {
    let mut hub = Transcript::ready(TOOLS);
    hub.client_says(1, &dispatch(1, &json!({"action": "list", "refresh": true})));
    let mut other = settings();
    other.profiles[0].name = "other".to_owned();
    hub.reconfigure(other, vec![NewServer::Unchanged("a".to_owned())]);
    let said = hub.take();
    assert!(said.contains("! disconnect"), "{said}");
    assert!(!said.contains("C1<"), "{said}");
}
