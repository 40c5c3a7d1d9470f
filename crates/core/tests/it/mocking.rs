//! What a mock plays of records in which requests were open at the same time.

use std::sync::Arc;

use mcp_proxy_core::mock::{MatchMode, MockRecording, MockReply, MockServer, RedactedAnswers};
use mcp_proxy_session::testing::SampleRecord;
use mcp_proxy_wire::Message;

/// One line a message: who, connection, exchange, the request answered or 0, the body.
fn recorded(lines: &str) -> Arc<MockRecording> {
    let mut record = SampleRecord::new();
    let lines = lines.lines().map(str::trim).filter(|line| !line.is_empty());
    for line in lines {
        let mut words = line.splitn(5, ' ');
        let mut word = || words.next().unwrap();
        let (who, connection, exchange, answers) = (word(), word(), word(), word());
        let message = match who {
            "C" => record.from_client(word()),
            _ => record.from_server(word()),
        };
        let connection = connection.trim_start_matches('c').parse().unwrap();
        let message = message
            .on(connection)
            .in_exchange(exchange.parse().unwrap());
        match answers.parse().unwrap() {
            0 => message.write(),
            request => message.answering(request).write(),
        };
    }
    let session = record.open();
    Arc::new(MockRecording::read(session).unwrap())
}

fn played(recording: &Arc<MockRecording>, request: &str) -> Vec<String> {
    let mut mock = MockServer::new(
        Arc::clone(recording),
        MatchMode::default(),
        RedactedAnswers::default(),
    );
    let MockReply::Messages(said) = mock.answer_message(&Message::parse(request.to_owned())) else {
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
