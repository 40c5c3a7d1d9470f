//! Stored results in conversations: as parts of arguments, and as texts.

use std::sync::Arc;
use std::time::Duration;

use mcp_proxy_hub::SpillThreshold;
use serde_json::{Value, json};

use crate::dispatch::{called, dispatch, last, ready, ready_in_front_of, storing};
use crate::transcript::{Transcript, server};

/// Has a result of these contents stored, and returns its handle. The server knows the call as `number`.
fn stored(hub: &mut Transcript, number: u32, result: &Value) -> String {
    let call =
        json!({"action": "call", "tool": "read_file", "arguments": {}, "resultToFile": true});
    let kept = called(hub, &dispatch(1, &call), number, &result.to_string());
    let handle = &kept["_meta"]["mcp-proxy/dispatch"]["resultFile"];
    handle.as_str().unwrap().to_owned()
}

fn text_result(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn facts(result: &Value) -> &Value {
    &result["_meta"]["mcp-proxy/dispatch"]
}

#[test]
fn m3_a_stored_result_can_be_a_part_of_the_arguments() {
    let (settings, _folder) = storing(SpillThreshold::Never, Duration::from_secs(60));
    let mut hub = ready(settings, 2);
    let rows = stored(&mut hub, 3, &text_result(r#"{"rows": [1, 2.50], "n": 1}"#));
    let lines = stored(&mut hub, 4, &text_result("one\ntwo\n"));
    assert!(lines.ends_with(".txt"), "{lines}");

    let arguments = json!({
        "rows": {"$resultFile": rows, "jq": ".rows"},
        "deep": [{"whole": {"$resultFile": rows}}],
        "text": {"$resultFile": lines},
        "count": {"$resultFile": lines, "jq": "split(\"\n\") | length"},
    });
    let call = json!({"action": "call", "tool": "write_file", "arguments": arguments});
    hub.client_says(1, &dispatch(2, &call));
    let sent = last(&hub.take(), "S1");
    let expected = json!({
        "rows": [1, 2.50],
        "deep": [{"whole": {"rows": [1, 2.50], "n": 1}}],
        "text": "one\ntwo\n",
        "count": 3,
    });
    assert_eq!(sent["params"]["arguments"], expected);

    for (reference, client) in [
        (json!({"$resultFile": rows, "jq": ".rows[]"}), 1),
        (json!({"$resultFile": rows, "jq": "empty"}), 1),
        (json!({"$resultFile": rows, "jq": ".rows | .a"}), 1),
        (json!({"$resultFile": rows, "jq": "|"}), 1),
        (json!({"$resultFile": 1}), 1),
        (json!({"$resultFile": rows, "filter": ".rows"}), 1),
        (json!({"$resultFile": rows, "jq": ".rows", "name": "x"}), 1),
        (json!({"$resultFile": "spill:nothing.json"}), 1),
        (json!({"$resultFile": "/etc/hostname"}), 1),
        (json!({"$resultFile": rows}), 2),
    ] {
        let arguments = json!({"a": [reference]});
        let call = json!({"action": "call", "tool": "write_file", "arguments": arguments});
        hub.client_says(client, &dispatch(3, &call));
        let said = hub.take();
        assert!(!said.contains("S1<"), "{said}");
        let refused = last(&said, &format!("C{client}"))["result"].clone();
        assert_eq!(facts(&refused)["code"], "invalid-result-reference");
        let text = refused["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with("arguments.a[0]: "), "{text}");
    }
}

#[test]
fn m3_fixed_and_hidden_arguments_count_after_the_replacement() {
    let (settings, _folder) = storing(SpillThreshold::Never, Duration::from_secs(60));
    let mut a = server("a");
    let tool = || "write_file".to_owned();
    let fixed = [("safe".to_owned(), "true".to_owned())];
    let naming = Arc::make_mut(&mut a.naming);
    naming.fixed_arguments.insert(tool(), fixed.into());
    naming
        .hidden_arguments
        .insert(tool(), vec!["hidden".to_owned()]);
    let mut hub = ready_in_front_of(a, settings, 1);
    let whole = stored(
        &mut hub,
        3,
        &text_result(r#"{"hidden": 1, "safe": false, "a": 2}"#),
    );
    let call = json!({"action": "call", "tool": "write_file", "arguments": {"$resultFile": whole}});
    hub.client_says(1, &dispatch(2, &call));
    let sent = last(&hub.take(), "S1");
    assert_eq!(sent["params"]["arguments"], json!({"a": 2, "safe": true}));
}

#[test]
fn d2_d27_a_stored_text_is_text_for_every_reader() {
    let (settings, _folder) = storing(SpillThreshold::Never, Duration::from_secs(60));
    let mut hub = ready(settings, 1);
    let text: String = (1..=20_000).map(|line| format!("{line}\n")).collect();
    let mut result = text_result(&text);
    result["structuredContent"] = json!({"content": text});
    let handle = stored(&mut hub, 3, &result);
    let mut read = |arguments: Value| {
        let mut all = json!({"action": "readresult", "resultFile": handle});
        all.as_object_mut()
            .unwrap()
            .extend(arguments.as_object().unwrap().clone());
        hub.client_says(1, &dispatch(2, &all));
        last(&hub.take(), "C1")["result"].clone()
    };
    let found = read(json!({"op": "grep", "pattern": "^1999$"}));
    assert_eq!(found["content"][0]["text"], "1999: 1999");
    assert_eq!(facts(&found)["totalLines"], 20_000);
    let tail = read(json!({"op": "tail", "lines": 1}));
    assert_eq!(tail["content"][0]["text"], "20000");

    // Programs know the first text of a search that found nothing.
    let literal = read(json!({"op": "grep", "pattern": "((("}));
    assert_eq!(literal["content"][0]["text"], "(no matches)");
    assert_eq!(literal["content"].as_array().unwrap().len(), 2);
    assert_eq!(facts(&literal)["readLiterally"], true);

    let resource =
        json!({"jsonrpc": "2.0", "id": 3, "method": "resources/read", "params": {"uri": handle}});
    hub.client_says(1, &resource.to_string());
    let contents = last(&hub.take(), "C1")["result"]["contents"][0].clone();
    assert_eq!(contents["mimeType"], "text/plain");
    assert_eq!(contents["text"], *text);
}

#[test]
fn a_part_with_nothing_in_it_says_so() {
    let (settings, _folder) = storing(SpillThreshold::Never, Duration::from_secs(60));
    let mut hub = ready(settings, 1);
    let handle = stored(&mut hub, 3, &text_result(r#"{"rows": [], "text": ""}"#));
    for (part, text) in [
        (json!({"op": "jq", "filter": ".rows[]"}), "(no output)"),
        (json!({"op": "jq", "filter": ".text"}), "\"\""),
        (
            json!({"op": "slice", "fromLine": 99}),
            "(no lines: the file has 1 line)",
        ),
    ] {
        let mut arguments = part.clone();
        arguments["action"] = "readresult".into();
        arguments["resultFile"] = handle.clone().into();
        hub.client_says(1, &dispatch(2, &arguments));
        let result = last(&hub.take(), "C1")["result"].clone();
        assert_eq!(result["content"][0]["text"], text, "{part}");
        assert_eq!(result["isError"], false);
    }
}

#[test]
fn an_error_that_is_stored_stays_an_error() {
    let (settings, _folder) = storing(SpillThreshold::Never, Duration::from_secs(60));
    let mut hub = ready(settings, 1);
    let mut failed = text_result("line 1\nline 2");
    failed["isError"] = json!(true);
    let call = json!({"action": "call", "tool": "read_file", "arguments": {"path": "x"}, "resultToFile": true});
    let kept = called(&mut hub, &dispatch(1, &call), 3, &failed.to_string());
    assert_eq!(kept["isError"], true);
    assert_eq!(facts(&kept)["resultFormat"], "text");
}
