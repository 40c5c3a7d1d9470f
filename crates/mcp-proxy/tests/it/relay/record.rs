//! A client's conversation is in the record, and its token is not.

use serde_json::{Value, json};

use super::TestRelay;
use crate::programs::record_lines;

#[test]
fn conversations_are_recorded_without_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("relay.jsonl");
    let record = record.to_str().unwrap();
    let relay = TestRelay::start(&["--session-file", record]);
    let mut extension = relay.extension("ada", "c");
    let mut client = relay.client("ada", "laptop");
    client.connect(2, "ext-c");
    client.say(&json!({"id": 3, "method": "getTabs"}));
    let asked = extension.hear_command();
    extension.say(&json!({"id": asked["id"], "result": {"tabs": []}}));
    client.hear_answer(&json!(3));
    let renewed = relay.token("ada");
    client.ask(4, "mcp_handshake", &json!({"accessToken": renewed}));
    for message in [
        format!(r#"[{{"id":5,"method":"mcp_handshake","params":{{"accessToken":"{renewed}"}}}}]"#),
        format!(r#"{{"id":6,"method":"mcp_handshake","params":{{"accessToken":"{renewed}"}}"#),
        format!(r#"{{"id":7,"method":"mcp_Handshake","params":{{"access_token":"{renewed}"}}}}"#),
        format!(r#"{{"id":"proxy:1","result":{{"accessToken":"{renewed}"}}}}"#),
    ] {
        client.say_text(&message);
    }
    client.ask(8, "list_extensions", &json!({}));
    drop((client, extension));
    let _ = relay.program.end("-TERM");
    let text = std::fs::read_to_string(record).unwrap();
    assert!(!text.contains(&renewed) && !text.contains("mcp_handshake"));
    assert!(text.contains("getTabs"), "{text}");
    let transports: Vec<Value> = record_lines(&text)
        .into_iter()
        .filter(|line| line["client"]["name"] == "laptop")
        .map(|line| line["client"]["transport"].clone())
        .collect();
    assert_eq!(transports, [json!("websocket")], "{text}");
}
