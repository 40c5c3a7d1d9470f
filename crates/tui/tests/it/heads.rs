//! HTTP heads: shown above the body, folded, searched, never edited as a body.

use mcp_proxy_session::RecordEvent;
use mcp_proxy_session::testing::{self, SampleRecord};
use mcp_proxy_tui::{Overlay, plain};
use mcp_proxy_wire::{Direction, Transport};

use crate::record;
use crate::test_ui::TestUi;

const CALL: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","arguments":{}}}"#;

/// A call over HTTP that is answered by an event stream: messages 1 and 2, and a notification in a stream whose head is
/// further away.
fn over_http() -> SampleRecord {
    let mut record = record::empty();
    let head = |record: &mut SampleRecord, exchange: u64, session: &str| {
        let envelope = testing::response(
            200,
            &[
                ("content-type", "text/event-stream"),
                ("mcp-session-id", session),
            ],
        );
        record.io(&RecordEvent::Http {
            connection: 1,
            exchange,
            direction: Direction::ServerToClient,
            transport: Transport::StreamableHttp,
            envelope: &envelope,
        });
    };
    head(&mut record, 1, "the-get-stream");
    let post = testing::post(
        "/mcp",
        &[
            ("host", "127.0.0.1:8888"),
            ("authorization", "Bearer very-secret"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", "2025-11-25"),
        ],
    );
    let call = record.from_client(CALL).carried_by(&post).in_exchange(2);
    let call = call.write();
    record.stderr("searching");
    head(&mut record, 2, "the-post-stream");
    let result = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;
    let answer = record.from_server(result).carried_by(&testing::event("7"));
    answer.in_exchange(2).answering(call).write();
    let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    let changed = record.from_server(changed).carried_by(&testing::event("8"));
    changed.in_exchange(1).write();
    record.flush();
    record
}

/// The session, live.
fn live() -> TestUi {
    let mut stage = TestUi::live(over_http());
    stage
        .app
        .show_program_output("listening on http://127.0.0.1:8888/mcp");
    stage
}

/// An answer in an event stream, with all headers.
pub fn opened() -> TestUi {
    let mut stage = live();
    stage.command("2");
    stage.press(&["H"]);
    stage
}

/// The request, folded as it is at first.
pub fn folded() -> TestUi {
    let mut stage = live();
    stage.command("1");
    stage
}

/// Of a pane in which no line is wrapped.
fn lines(stage: &mut TestUi) -> usize {
    stage.screen(400, 24);
    stage.app.tabs[0].detail.as_ref().unwrap().rows.len()
}

#[test]
fn a_head_is_one_line_until_it_is_opened() {
    let mut stage = folded();
    let before = lines(&mut stage);
    let screen = stage.screen(120, 40);
    assert!(screen.contains("POST /mcp HTTP/1.1"), "{screen}");
    assert!(!screen.contains("mcp-protocol-version"), "{screen}");
    stage.press(&["H"]);
    // Four headers and the empty line below them.
    assert_eq!(lines(&mut stage), before + 5);
    let screen = stage.screen(120, 40);
    assert!(
        screen.contains("mcp-protocol-version: 2025-11-25"),
        "{screen}"
    );
    assert!(!screen.contains("very-secret"), "as recorded: {screen}");
    // The next message is opened the same way; this one can be folded alone.
    stage.press(&["j"]);
    assert!(
        stage
            .screen(120, 40)
            .contains("content-type: text/event-stream")
    );
    stage.press(&["k", "tab", "g", "space"]);
    assert_eq!(lines(&mut stage), before);
}

#[test]
fn an_event_has_the_head_of_the_response_that_carried_it() {
    let mut stage = opened();
    let screen = stage.screen(120, 40);
    assert!(screen.contains("HTTP/1.1 200"), "{screen}");
    assert!(
        screen.contains("mcp-session-id: the-post-stream"),
        "{screen}"
    );
    assert!(screen.contains("id 7"), "{screen}");
    stage.command("3");
    let screen = stage.screen(120, 40);
    assert!(
        screen.contains("mcp-session-id: the-get-stream"),
        "{screen}"
    );
}

#[test]
fn a_head_is_searched_and_wrapped_like_the_body() {
    let mut stage = folded();
    stage.command("search protocol-version");
    let screen = stage.screen(80, 24);
    assert!(
        screen.contains("mcp-protocol-version"),
        "it unfolds: {screen}"
    );
    let detail = stage.app.tabs[0].detail.as_ref().unwrap();
    assert_eq!(detail.line(), Some(4));
    assert!(screen.contains("text/event-stream"), "{screen}");
    stage.press(&["W"]);
    let screen = stage.screen(80, 24);
    assert!(!screen.contains("text/event-stream"), "{screen}");
}

#[test]
fn the_body_is_edited_without_its_head() {
    let mut stage = folded();
    stage.press(&["H", "R"]);
    let Overlay::Editor(editor) = &stage.app.overlay else {
        panic!("the editor is closed: {}", stage.said());
    };
    assert!(editor.fault().is_none());
    assert_eq!(editor.message(), CALL);
    let body = &stage.app.tabs[0].detail.as_ref().unwrap().body;
    assert!(!plain(body).contains("host"));
}

#[test]
fn an_http_error_that_is_not_json_is_an_error_and_leads_to_its_request() {
    let mut record = record::empty();
    for (exchange, status) in [(1, 200), (2, 400)] {
        let post = testing::post("/mcp", &[]);
        let call = record.from_client(CALL).carried_by(&post);
        call.in_exchange(exchange).write();
        let head = testing::response(status, &[("content-type", "text/plain")]);
        let answer = record.from_server("Bad things").carried_by(&head);
        answer.in_exchange(exchange).write();
    }
    record.flush();
    let mut stage = TestUi::live(record);
    stage.all_read(4);
    stage.press(&["!"]);
    stage.until("it is found", |app| app.tabs[0].view.len() == 1);
    assert_eq!(stage.selected(), Some(4));
    let screen = stage.screen(120, 30);
    assert!(screen.contains("HTTP 400: Bad things"), "{screen}");
    stage.press(&["!", "p"]);
    assert_eq!(stage.selected(), Some(3));
    stage.press(&["p"]);
    assert_eq!(stage.selected(), Some(4));
}
