//! What a mock plays of records in which requests were open at the same time.

use std::fmt::Write as _;
use std::sync::Arc;

use mcp_proxy_core::mock::{Match, Mock, Recording, RedactedAnswers, Reply};
use mcp_proxy_session::Session;
use mcp_proxy_wire::Message;

/// One line a message: who, connection, exchange, the request answered or 0, the body.
fn recorded(lines: &str) -> Arc<Recording> {
    let time = r#""timestamp":"2026-01-01T00:00:00Z""#;
    let mut record = String::from(
        r#"{"t":"session","format":1,"id":"01a1e4a1-c4a9-7190-a07d-bd0bd8088c4e","started_at":"2026-01-01T00:00:00Z","transport":"http","listen":"http","server_command":null,"server_url":null,"argv":[],"cwd":null,"version":"0","metadata":{}}"#,
    );
    let lines = lines.lines().map(str::trim).filter(|line| !line.is_empty());
    for (index, line) in lines.enumerate() {
        let mut words = line.splitn(5, ' ');
        let mut word = || words.next().unwrap();
        let direction = match word() {
            "C" => "client_to_server",
            _ => "server_to_client",
        };
        let (conn, exchange, answers, body) = (word(), word(), word(), word());
        let answers = match answers {
            "0" => String::new(),
            number => format!(r#""answers":{number},"#),
        };
        let sequence = index + 1;
        write!(
            record,
            "\n{{\"t\":\"msg\",{time},\"sequence\":{sequence},\"id\":\"01a1e4a1-c4cb-764c-a966-3bec{sequence:08x}\",\"mono_ns\":1,\"direction\":\"{direction}\",\"transport\":\"http\",\"conn\":\"{conn}\",\"exchange\":{exchange},{answers}\"len\":{},\"raw\":{body}}}",
            body.len()
        )
        .unwrap();
    }
    record.push('\n');
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.jsonl");
    std::fs::write(&file, record).unwrap();
    let session = Session::open(&file).unwrap();
    Arc::new(Recording::read(session).unwrap())
}

fn played(recording: &Arc<Recording>, request: &str) -> Vec<String> {
    let mut mock = Mock::new(
        Arc::clone(recording),
        Match::default(),
        RedactedAnswers::default(),
    );
    let Reply::Say(said) = mock.hear(&Message::parse(request.to_owned())) else {
        return vec!["unmatched".to_owned()];
    };
    let text = |message: &Message| String::from_utf8_lossy(message.raw()).into_owned();
    said.iter().map(text).collect()
}

#[test]
fn what_came_in_the_response_to_a_request_is_its_own() {
    let recording = recorded(
        r#"
        C c1 1 0 {"id":1,"method":"a"}
        C c1 2 0 {"id":2,"method":"b"}
        S c1 1 0 {"method":"log-a"}
        S c1 2 0 {"method":"log-b"}
        S c1 3 0 {"method":"log-elsewhere"}
        S c1 2 2 {"id":2,"result":"b"}
        S c1 1 1 {"id":1,"result":"a"}
        "#,
    );
    assert_eq!(
        played(&recording, r#"{"id":7,"method":"a"}"#),
        [r#"{"method":"log-a"}"#, r#"{"id":7,"result":"a"}"#]
    );
    assert_eq!(
        played(&recording, r#"{"id":7,"method":"b"}"#),
        [
            r#"{"method":"log-b"}"#,
            r#"{"method":"log-elsewhere"}"#,
            r#"{"id":7,"result":"b"}"#
        ]
    );
}

#[test]
fn tokens_of_other_connections_and_requests_given_up_take_nothing() {
    let recording = recorded(
        r#"
        C c1 0 0 {"id":1,"method":"a","params":{"_meta":{"progressToken":1}}}
        C c2 0 0 {"id":1,"method":"b","params":{"_meta":{"progressToken":1}}}
        S c2 0 0 {"method":"notifications/progress","params":{"progressToken":1}}
        S c2 0 2 {"id":1,"result":"b"}
        C c1 0 0 {"method":"notifications/cancelled","params":{"requestId":1}}
        S c1 0 0 {"method":"log"}
        C c1 0 0 {"id":2,"method":"c"}
        S c1 0 7 {"id":2,"result":"c"}
        "#,
    );
    assert_eq!(
        played(&recording, r#"{"id":7,"method":"a"}"#),
        ["unmatched"]
    );
    let b = r#"{"id":7,"method":"b","params":{"_meta":{"progressToken":"x"}}}"#;
    assert_eq!(
        played(&recording, b),
        [
            r#"{"method":"notifications/progress","params":{"progressToken":"x"}}"#,
            r#"{"id":7,"result":"b"}"#
        ]
    );
    assert_eq!(
        played(&recording, r#"{"id":7,"method":"c"}"#),
        [r#"{"method":"log"}"#, r#"{"id":7,"result":"c"}"#]
    );
}
