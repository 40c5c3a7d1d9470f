//! A breakpoint finds a message by the call that caused it and by its server, as a filter over the record does.

use mcp_proxy_core::intercept::NewBreakpoint;
use mcp_proxy_core::{HoldOptions, NewConnection, PassResult, Peer};
use mcp_proxy_session::{Filter, RecordOptions, SessionRecord};
use mcp_proxy_wire::{Direction, Frame, Message, Origin, StreamId, Transport};
use serde_json::Value;

use crate::transcript::{holding, recorder};

on_both_runtimes!(an_answer_is_held_by_the_call_that_caused_its_request);
async fn an_answer_is_held_by_the_call_that_caused_its_request() {
    for opened_for in [None, Some(3)] {
        let folder = tempfile::tempdir().unwrap();
        let recorder = recorder(folder.path(), RecordOptions::default());
        let run = holding(Some(recorder), HoldOptions::default());
        run.intercept().add_breakpoint(NewBreakpoint {
            filter: Filter::parse(r#".parent == 7 and .direction == "server_to_client""#).unwrap(),
            ..NewBreakpoint::default()
        });
        let connection = run.open(NewConnection {
            parent: opened_for,
            ..NewConnection::between(Transport::InProcess, Transport::Stdio)
        });
        let pass = async |origin, text: &str, parent| {
            let direction = match origin {
                Origin::Client => Direction::ClientToServer,
                _ => Direction::ServerToClient,
            };
            let mut frame = Frame::message(StreamId::Only, origin, Message::parse(text.to_owned()));
            frame.parent = parent;
            let mut pipeline = connection.message_pipeline(direction);
            let passed = pipeline.try_pass(frame, run.now()).unwrap();
            matches!(passed, PassResult::Held)
        };
        let call = r#"{"id":1,"method":"tools/call"}"#;
        assert!(!pass(Origin::Client, call, Some(7)).await);
        assert!(pass(Origin::Server, r#"{"id":1,"result":{}}"#, None).await);
        let text = std::fs::read_to_string(folder.path().join("s.jsonl")).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        let messages = lines.filter(|line: &Value| line["t"] == "msg");
        assert!(
            messages
                .map(|line| line["parent"].clone())
                .all(|parent| parent == 7)
        );
    }
}

on_both_runtimes!(a_message_is_held_by_the_name_of_its_server);
async fn a_message_is_held_by_the_name_of_its_server() {
    let stdio = || Peer::new(Transport::Stdio);
    let folder = tempfile::tempdir().unwrap();
    let recorder = recorder(folder.path(), RecordOptions::default());
    let run = holding(Some(recorder), HoldOptions::default());
    let filters = [r#".server == "files""#, r#".server == "server""#];
    let filters = filters.map(|filter| Filter::parse(filter).unwrap());
    for filter in filters.clone() {
        run.intercept().add_breakpoint(NewBreakpoint {
            filter,
            ..NewBreakpoint::default()
        });
    }
    let servers = [stdio().named("files"), stdio().named("search"), stdio()];
    let mut held = Vec::new();
    for server in servers {
        let connection = run.open(NewConnection::between(Transport::InProcess, server));
        let call = Message::parse(r#"{"id":1,"method":"tools/call"}"#);
        let frame = Frame::message(StreamId::Only, Origin::Client, call);
        let mut pipeline = connection.message_pipeline(Direction::ClientToServer);
        let passed = pipeline.try_pass(frame, run.now()).unwrap();
        held.push(matches!(passed, PassResult::Held));
    }
    assert_eq!(held, [true, false, true]);
    let session = SessionRecord::open(folder.path().join("s.jsonl")).unwrap();
    let is_found = |row| {
        let mut filters = filters.iter();
        filters.any(|filter| filter.matches(&session, row).unwrap())
    };
    let found: Vec<bool> = session.rows().iter().map(is_found).collect();
    assert_eq!(found, held);
}
