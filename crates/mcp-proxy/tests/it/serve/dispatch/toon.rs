//! Results that are kept as TOON.

use serde_json::{Value, json};

use super::{handle, start, text};

fn rows() -> String {
    let rows: Vec<Value> = (1..=50)
        .map(|number| json!({"id": number, "name": format!("name {number}")}))
        .collect();
    json!({"message": "all of them", "rows": rows}).to_string()
}

#[test]
fn toon_is_read_and_chained_like_json() {
    let hub = start(&["--spill-threshold", "1K", "--spill-toon"]);
    let call = json!({"action": "call", "tool": "echo", "arguments": {"message": rows()}});
    let result = hub.dispatch(&call);
    let facts = &result["_meta"]["mcp-proxy/dispatch"];
    assert_eq!(facts["resultFormat"], "toon", "{facts}");
    assert_eq!(facts["autoSpilled"], true);
    let file = handle(&result);
    assert!(file.ends_with(".toon"), "{file}");
    assert!(facts["byteSize"].as_u64().unwrap() < rows().len() as u64);

    let read = |op: Value| {
        let mut call = json!({"action": "readresult", "resultFile": file});
        let members = op.as_object().unwrap().clone();
        call.as_object_mut().unwrap().extend(members);
        hub.dispatch(&call)
    };
    let head = read(json!({"op": "head", "lines": 3}));
    assert_eq!(text(&head).lines().last(), Some("  1,name 1"), "{head}");
    let found = read(json!({"op": "grep", "pattern": "name 50"}));
    assert_eq!(found["_meta"]["mcp-proxy/dispatch"]["matchCount"], 1);
    let jq = read(json!({"op": "jq", "filter": ".rows | length"}));
    assert_eq!(text(&jq), "50");

    let call = json!({"action": "call", "tool": "echo", "argumentsFile": file});
    assert_eq!(text(&hub.dispatch(&call)), "all of them");
    let resource = hub.ask("resources/read", &json!({"uri": file}));
    assert_eq!(resource["contents"][0]["mimeType"], "text/toon");
}

#[test]
fn what_is_not_smaller_as_toon_stays_json() {
    let hub = start(&["--spill-toon"]);
    assert!(hub.spill(r#"{"a":"b"}"#).ends_with(".toon"));
    assert!(hub.spill("[[1],[2],[3]]").ends_with(".json"));
}
