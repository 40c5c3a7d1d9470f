//! What the record holds after a conversation.

use mcp_proxy_session::{RecordOptions, SessionRecord};
use mcp_proxy_wire::Transport;
use serde_json::Value;

use crate::transcript::{play_on, proxy_run, recorder};

on_both_runtimes!(every_message_is_there_with_its_bytes_and_its_request);
async fn every_message_is_there_with_its_bytes_and_its_request() {
    let folder = tempfile::tempdir().unwrap();
    let recorder = recorder(folder.path(), RecordOptions::default());
    let path = recorder.path().to_owned();
    let run = proxy_run(Some(recorder));
    let connection = run.connect(Transport::Stdio, Transport::Stdio);
    play_on(
        &connection,
        r#"
        C> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}
        S< ~echo
        S> {"result":{"b":1,"a":1e2},"jsonrpc":"2.0","id":1}
        C< ~1e2
        S> {"broken":
        C< {"broken":
        S> stray
        C.
        S|
        "#,
    )
    .await;
    run.end("done");
    let session = SessionRecord::open(&path).unwrap();
    let messages: Vec<_> = session.messages(0).map(Result::unwrap).collect();
    assert_eq!(messages.len(), 3);
    assert_eq!(messages[0].method.as_deref(), Some("tools/call"));
    assert_eq!(
        messages[1].raw.bytes().unwrap(),
        br#"{"result":{"b":1,"a":1e2},"jsonrpc":"2.0","id":1}"#
    );
    assert_eq!(messages[1].correlated_id, Some(messages[0].id));
    assert_eq!(messages[2].raw.bytes().unwrap(), br#"{"broken":"#);
    let text = std::fs::read_to_string(&path).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let strays = lines.filter(|line: &Value| line["kind"] == "stray");
    assert_eq!(strays.count(), 1, "{text}");
    assert!(session.end().is_some());
}
