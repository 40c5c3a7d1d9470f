//! What the record holds after a conversation.

use std::sync::{Arc, Mutex};

use mcp_proxy_core::{HoldOptions, ProxyRun, RunOptions};
use mcp_proxy_session::{RecordOptions, SessionRecord};
use mcp_proxy_wire::Transport;
use serde_json::Value;

use crate::transcript::{holding, play_on, proxy_run, recorder};

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

on_both_runtimes!(stray_lines_are_warned_of_once);
async fn stray_lines_are_warned_of_once() {
    let warnings: Arc<Mutex<Vec<String>>> = Arc::default();
    let warned = Arc::clone(&warnings);
    let run = ProxyRun::new(RunOptions {
        recorder: None,
        warn: Arc::new(move |text| warned.lock().unwrap().push(text.to_owned())),
        pass_noise: false,
        hold: HoldOptions::default(),
    });
    for _ in 0..2 {
        let connection = run.connect(Transport::Stdio, Transport::Stdio);
        play_on(
            &connection,
            r#"
            C> {"jsonrpc":"2.0","id":1,"method":"ping"}
            S< ~ping
            S>
            S> Listening on port 7
            S> and again
            S> {"jsonrpc":"2.0","id":1,"result":{}}
            C< ~result
            C.
            S|
            "#,
        )
        .await;
    }
    let warnings = warnings.lock().unwrap();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("Listening on port 7"), "{warnings:?}");
}

on_both_runtimes!(a_held_request_has_its_hold_apart_from_the_latency);
async fn a_held_request_has_its_hold_apart_from_the_latency() {
    let folder = tempfile::tempdir().unwrap();
    let recorder = recorder(folder.path(), RecordOptions::default());
    let path = recorder.path().to_owned();
    let run = holding(Some(recorder), HoldOptions::default());
    let connection = run.connect(Transport::Stdio, Transport::Stdio);
    play_on(
        &connection,
        r#"
        ! break .kind == "request" and .tool == "slow"
        C> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow"}}
        ! held 1
        C> {"jsonrpc":"2.0","id":2,"method":"ping"}
        S< ~ping
        S> {"jsonrpc":"2.0","id":2,"result":{}}
        C< ~"id":2
        ! forward 1
        S< ~slow
        S> {"jsonrpc":"2.0","id":1,"result":{}}
        C< ~"id":1
        C.
        S|
        "#,
    )
    .await;
    run.end("done");
    let session = SessionRecord::open(&path).unwrap();
    let messages: Vec<_> = session.messages(0).map(Result::unwrap).collect();
    let (request, ping, answer) = (&messages[0], &messages[2], &messages[3]);
    assert_eq!((ping.request_held, request.answers), (None, None));
    let (latency, held) = (answer.latency.unwrap(), answer.request_held.unwrap());
    let total = answer.mono - request.mono;
    assert!(held >= ping.mono - request.mono, "{held:?}");
    let sum = latency + held;
    // Each of the two is cut to microseconds.
    assert!(
        total - sum < std::time::Duration::from_micros(3),
        "{total:?} {sum:?}"
    );
    assert!(request.held.is_some() && session.row(0).unwrap().is_held());
}
