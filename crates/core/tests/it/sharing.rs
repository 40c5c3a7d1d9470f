//! Several clients on one server connection: ids of ours on the server's side, theirs on the way back.

use std::path::Path;
use std::time::Duration;

use mcp_proxy_core::{ClientStreams, NewConnection, OutgoingFrame, PipelineOutput};
use mcp_proxy_session::{ProxyMessage, RecordOptions, Redaction, RedactionRules, SessionRecord};
use mcp_proxy_wire::{
    Body, Direction, ExchangeId, Frame, LineEnd, Message, Origin, Transport, TransportEnvelope,
};

use crate::transcript::{proxy_run, recorder};

struct SharedConnection {
    connection: std::sync::Arc<mcp_proxy_core::Connection>,
}

impl SharedConnection {
    fn new() -> SharedConnection {
        let run = proxy_run(None);
        let connection = run.open(
            NewConnection::between(Transport::StreamableHttp, Transport::Stdio)
                .with_streams(ClientStreams::Shared),
        );
        SharedConnection { connection }
    }

    /// The same with a record in this folder.
    fn recorded(folder: &Path, options: RecordOptions) -> SharedConnection {
        let run = proxy_run(Some(recorder(folder, options)));
        let connection = run.open(
            NewConnection::between(Transport::StreamableHttp, Transport::Stdio)
                .with_streams(ClientStreams::Shared),
        );
        SharedConnection { connection }
    }

    fn pass(&self, direction: Direction, exchange: u64, text: &str) -> Vec<(u64, String)> {
        let mut output = PipelineOutput::default();
        let mut frames = vec![Frame::new(
            ExchangeId(exchange),
            direction.from().into(),
            TransportEnvelope::Line(LineEnd::Lf),
            Body::Message(Message::parse(text.to_owned())),
        )];
        let mut pipeline = self.connection.message_pipeline(direction);
        pipeline
            .pass(&mut frames, Duration::ZERO, &mut output)
            .unwrap();
        let text = |frame: Frame| match frame.body {
            Body::Message(message) => (
                frame.stream.exchange().unwrap().0,
                String::from_utf8(message.raw().to_vec()).unwrap(),
            ),
            other => panic!("{other:?}"),
        };
        let written = output
            .forward
            .into_iter()
            .filter_map(OutgoingFrame::into_written);
        written.map(text).collect()
    }

    /// Many requests at once: how many went out, and the answers to the others.
    fn flood(&self, count: u64) -> (usize, Vec<Frame>) {
        let request = Message::parse(r#"{"id":7,"method":"a"}"#);
        let frame = |exchange: u64| {
            let body = Body::Message(request.clone());
            let envelope = TransportEnvelope::Line(LineEnd::Lf);
            Frame::new(ExchangeId(exchange), Origin::Client, envelope, body)
        };
        let mut frames: Vec<Frame> = (0..count).map(frame).collect();
        let mut output = PipelineOutput::default();
        let mut pipeline = self.connection.message_pipeline(Direction::ClientToServer);
        pipeline
            .pass(&mut frames, Duration::ZERO, &mut output)
            .unwrap();
        let back = output
            .reply
            .into_iter()
            .filter_map(OutgoingFrame::into_written);
        (output.forward.len(), back.collect())
    }

    fn up(&self, exchange: u64, text: &str) -> String {
        self.pass(Direction::ClientToServer, exchange, text)
            .remove(0)
            .1
    }

    fn down(&self, text: &str) -> Vec<(u64, String)> {
        self.pass(Direction::ServerToClient, 0, text)
    }
}

#[test]
fn equal_ids_of_two_clients_find_their_way_back() {
    let shared = SharedConnection::new();
    assert_eq!(
        shared.up(10, r#"{"id":1,"method":"a"}"#),
        r#"{"id":1,"method":"a"}"#
    );
    assert_eq!(
        shared.up(11, r#"{"id":1,"method":"b"}"#),
        r#"{"id":2,"method":"b"}"#
    );
    assert_eq!(
        shared.down(r#"{"id":2,"result":{}}"#),
        [(11, r#"{"id":1,"result":{}}"#.into())]
    );
    assert_eq!(
        shared.down(r#"{"id":1,"result":{}}"#),
        [(10, r#"{"id":1,"result":{}}"#.into())]
    );
    assert!(shared.down(r#"{"id":1,"result":{}}"#).is_empty());
}

#[test]
fn progress_tokens_and_subscriptions_change_with_the_id() {
    let shared = SharedConnection::new();
    let call = r#"{"id":"x","method":"tools/call","params":{"_meta":{"progressToken":"t"}}}"#;
    let sent = shared.up(5, call);
    assert_eq!(
        sent,
        r#"{"id":1,"method":"tools/call","params":{"_meta":{"progressToken":1}}}"#
    );
    let progress =
        r#"{"method":"notifications/progress","params":{"progressToken":1,"progress":2}}"#;
    let expected =
        r#"{"method":"notifications/progress","params":{"progressToken":"t","progress":2}}"#;
    assert_eq!(shared.down(progress), [(5, expected.into())]);
    let tagged =
        r#"{"method":"n","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}"#;
    let expected =
        r#"{"method":"n","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"x"}}}"#;
    assert_eq!(shared.down(tagged), [(5, expected.into())]);
}

#[test]
fn closing_a_stream_cancels_the_request_once() {
    let shared = SharedConnection::new();
    shared.up(5, r#"{"id":"x","method":"tools/call"}"#);
    let cancel = shared.connection.cancel(ExchangeId(5)).unwrap();
    let text = String::from_utf8(cancel.raw().to_vec()).unwrap();
    assert!(text.contains(r#""requestId":1"#), "{text}");
    assert!(shared.connection.cancel(ExchangeId(5)).is_none());
}

#[test]
fn a_cancel_by_notification_names_the_request_by_our_id() {
    let shared = SharedConnection::new();
    shared.up(5, r#"{"id":"x","method":"tools/call"}"#);
    let sent = shared.up(
        6,
        r#"{"method":"notifications/cancelled","params":{"requestId":"x"}}"#,
    );
    assert_eq!(
        sent,
        r#"{"method":"notifications/cancelled","params":{"requestId":1}}"#
    );
}

#[test]
fn a_cancel_never_hits_another_client() {
    let shared = SharedConnection::new();
    shared.up(5, r#"{"id":1,"method":"a"}"#);
    shared.up(6, r#"{"id":1,"method":"b"}"#);
    let cancel = r#"{"method":"notifications/cancelled","params":{"requestId":1}}"#;
    assert!(shared.pass(Direction::ClientToServer, 7, cancel).is_empty());
    // The first closes its stream and, as real clients do, also sends the notification.
    shared.connection.cancel(ExchangeId(5)).unwrap();
    assert!(shared.pass(Direction::ClientToServer, 8, cancel).is_empty());
    assert_eq!(shared.down(r#"{"id":2,"result":{}}"#).len(), 1);
}

#[test]
fn a_request_over_the_limit_is_answered_and_not_sent() {
    let shared = SharedConnection::new();
    let (sent, refused) = shared.flood(16_385);
    assert_eq!(sent, 16_384);
    let [refusal] = &refused[..] else {
        panic!("{} answers", refused.len());
    };
    assert_eq!(refusal.stream, ExchangeId(16_384).into());
    let Body::Message(answer) = &refusal.body else {
        panic!("{refusal:?}");
    };
    assert_eq!(answer.id().unwrap().token(), b"7");
    assert_eq!(answer.error_code(), Some(-31008));
    assert!(!shared.connection.awaits_answer(ExchangeId(16_384)));
}

#[test]
fn a_connection_that_one_client_took_over_changes_no_ids_and_carries_the_servers_requests() {
    let shared = SharedConnection::new();
    let (up, down) = (Direction::ClientToServer, Direction::ServerToClient);
    shared.pass(up, 5, r#"{"id":7,"method":"server/discover"}"#);
    let refused = r#"{"id":1,"error":{"code":-32601,"message":"no"}}"#;
    assert_eq!(shared.pass(down, 0, refused).len(), 1);
    shared.connection.unshare();
    let request = r#"{"id":7,"method":"initialize"}"#;
    assert_eq!(shared.pass(up, 6, request), [(6, request.to_owned())]);
    let asked = r#"{"id":7,"method":"roots/list"}"#;
    assert_eq!(shared.pass(down, 6, asked), [(6, asked.to_owned())]);
}

/// The messages of the record in this folder.
fn messages(folder: &Path) -> Vec<ProxyMessage> {
    let record = SessionRecord::open(folder.join("s.jsonl")).unwrap();
    let read = record.messages(0).map(|message| message.unwrap());
    read.collect()
}

#[test]
fn answers_are_shown_under_the_id_of_their_request() {
    let folder = tempfile::tempdir().unwrap();
    let shared = SharedConnection::recorded(folder.path(), RecordOptions::default());
    shared.up(10, r#"{"id":2,"method":"a"}"#);
    shared.up(11, r#"{"id":1,"method":"b"}"#);
    shared.down(r#"{"id":1,"result":{}}"#);
    shared.down(r#"{"id":2,"result":{}}"#);
    let read = messages(folder.path());
    let shown: Vec<_> = read[2..]
        .iter()
        .map(|answer| {
            let (id, at_server) = (answer.jsonrpc_id.as_deref(), answer.server_id.as_deref());
            (answer.answers, id, at_server, answer.raw.bytes().unwrap())
        })
        .collect();
    let sent: [&[u8]; 2] = [br#"{"id":2,"result":{}}"#, br#"{"id":1,"result":{}}"#];
    let first = (Some(1), Some("2"), Some("1"), sent[0]);
    let second = (Some(2), Some("1"), Some("2"), sent[1]);
    assert_eq!(shown, [first, second]);
    // The line has the bytes as they came.
    let text = std::fs::read_to_string(folder.path().join("s.jsonl")).unwrap();
    let line = text.lines().find(|line| line.contains(r#""sequence":3"#));
    assert!(line.unwrap().ends_with(r#""raw":{"id":1,"result":{}}}"#));
}

#[test]
fn the_answer_to_a_request_whose_client_has_gone_is_late() {
    let folder = tempfile::tempdir().unwrap();
    let shared = SharedConnection::recorded(folder.path(), RecordOptions::default());
    shared.up(10, r#"{"id":7,"method":"a"}"#);
    shared.up(11, r#"{"id":7,"method":"b"}"#);
    shared.connection.cancel(ExchangeId(10)).unwrap();
    // Real clients also POST the cancel, which must not be taken for the request of somebody else.
    let cancel = r#"{"method":"notifications/cancelled","params":{"requestId":7}}"#;
    shared.pass(Direction::ClientToServer, 12, cancel);
    shared.down(r#"{"id":1,"result":{}}"#);
    shared.down(r#"{"id":2,"result":{}}"#);
    let read = messages(folder.path());
    let answers: Vec<_> = read[3..].iter().map(|it| (it.answers, it.late)).collect();
    assert_eq!(answers, [(Some(1), true), (Some(2), false)]);
}

#[test]
fn the_answer_to_a_cancelled_request_is_late_although_another_client_uses_its_id() {
    let folder = tempfile::tempdir().unwrap();
    let shared = SharedConnection::recorded(folder.path(), RecordOptions::default());
    shared.up(10, r#"{"id":7,"method":"a"}"#);
    let cancel = r#"{"method":"notifications/cancelled","params":{"requestId":7}}"#;
    shared.pass(Direction::ClientToServer, 11, cancel);
    shared.up(12, r#"{"id":7,"method":"b"}"#);
    shared.down(r#"{"id":1,"result":{}}"#);
    shared.down(r#"{"id":2,"result":{}}"#);
    let read = messages(folder.path());
    let answers: Vec<_> = read[3..].iter().map(|it| (it.answers, it.late)).collect();
    assert_eq!(answers, [(Some(1), true), (Some(3), false)]);
}

#[test]
fn an_id_that_has_to_be_hidden_is_in_no_line() {
    let folder = tempfile::tempdir().unwrap();
    let rules = RedactionRules {
        values: vec!["S3CRET".to_owned()],
        ..RedactionRules::default()
    };
    let options = RecordOptions {
        redaction: Redaction::new(&rules).unwrap(),
        ..RecordOptions::default()
    };
    let shared = SharedConnection::recorded(folder.path(), options);
    shared.up(10, r#"{"id":"S3CRET","method":"a"}"#);
    shared.down(r#"{"id":1,"result":{}}"#);
    let text = std::fs::read_to_string(folder.path().join("s.jsonl")).unwrap();
    assert!(!text.contains("S3CRET"), "{text}");
    assert_eq!(messages(folder.path())[1].answers, Some(1));
}
