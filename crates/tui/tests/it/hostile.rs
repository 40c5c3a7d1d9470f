//! Payloads that would act on a terminal, or hide on it: nothing of them reaches a cell.

use mcp_proxy_tui::COMMANDS;
use mcp_proxy_wire::terminal_text::sanitize;
use ratatui::buffer::Buffer;
use serde_json::json;

use crate::record;
use crate::test_ui::TestUi;

/// Clears the screen, rings, sets the title, turns the reading direction, hides a sentence in tags, joins and splits letters.
const HOSTILE: &str = "a\u{1b}[2J\u{7}\u{1b}]0;owned\u{9c}\u{202e}txt.\u{2066}b\u{e0048}\u{e0049}\u{e007f}c\u{200b}\u{feff}\u{9b}31md\r\u{8}e\u{2028}f";

/// As JSON writes it: control characters must be escaped there, the others need not.
fn in_json() -> String {
    let text = serde_json::to_string(HOSTILE).unwrap();
    text[1..text.len() - 1].to_owned()
}

fn stage() -> TestUi {
    let hostile = in_json();
    let mut record = record::empty();
    let call = record.call(1, &hostile, &format!(r#"{{"{hostile}":"{hostile}"}}"#));
    record.stderr(HOSTILE);
    record.result(
        1,
        call,
        &format!(r#"{{"{hostile}":["{hostile}"],"isError":true}}"#),
    );
    record.client(format!(
        r#"{{"jsonrpc":"2.0","id":"{hostile}","method":"{hostile}"}}"#
    ));
    record.server(HOSTILE);
    record.client(format!(
        r#"[{{"jsonrpc":"2.0","id":7,"method":"{hostile}"}}]"#
    ));
    record.on(2);
    let held = record.call(2, &hostile, &format!(r#"{{"path":"{hostile}"}}"#));
    record.flush();
    let hello = json!({"protocol": 1, "target": HOSTILE, "server": HOSTILE, "client": HOSTILE, "record": record.path()});
    let mut stage = TestUi::silent(record, hello);
    stage.breakpoints =
        json!([{"id": 1, "filter": HOSTILE, "direction": null, "left": null, "hits": 1}]);
    stage.rules = json!({"file": HOSTILE, "fault": HOSTILE,
        "rules": [{"rule": 1, "name": HOSTILE, "line": 1, "does": HOSTILE}]});
    stage.until("it is open", |app| !app.tabs.is_empty());
    stage.all_read(6);
    stage.until("stderr is read", |app| {
        !app.tabs[0].view.events().is_empty()
    });
    stage.hold(1, held, HOSTILE);
    stage
        .app
        .show_program_output(&format!("listening on http://{HOSTILE}"));
    stage.app.tabs[0].name = HOSTILE.to_owned();
    stage
}

/// No cell has a character that acts, or that cannot be seen.
fn assert_harmless(cells: &Buffer, what: &str) {
    for cell in cells.content() {
        let symbol = cell.symbol();
        assert_eq!(sanitize(symbol), symbol, "{what}");
    }
}

#[test]
fn every_message_in_every_window() {
    let mut stage = stage();
    for message in 1..=6 {
        stage.command(&message.to_string());
        for keys in [
            &[][..],
            &["tab", "W"],
            &["W", "z"],
            &["Z", "o"],
            &["F6"],
            &["R"],
            &["b"],
            &["u"],
            &["l"],
            &["B"],
            &["p"],
            &["D"],
        ] {
            stage.press(keys);
            for (width, height) in [(80, 24), (160, 50), (20, 5)] {
                let cells = stage.cells(width, height);
                assert_harmless(&cells, &format!("#{message} {keys:?} {width}x{height}"));
            }
            stage.press(&["esc", "esc"]);
        }
    }
}

#[test]
fn what_is_said_typed_and_pasted() {
    let mut stage = stage();
    for name in ["filter", "search", "load", "goto", "theme", "nonsense"] {
        stage.command(&format!("{name} {HOSTILE}"));
        assert_harmless(&stage.cells(160, 50), name);
    }
    for keys in [&[":"][..], &["/"], &["F2"], &["F6"]] {
        stage.press(keys);
        let paste = mcp_proxy_tui::InputEvent::Paste(HOSTILE.to_owned());
        stage.app.handle_input(paste);
        assert_harmless(&stage.cells(160, 50), &format!("pasted after {keys:?}"));
        stage.press(&["esc", "ctrl-l"]);
    }
    stage.press(&["F5"]);
    let params = json!({"hold": 1, "action": "forward"});
    stage.expect("hold.resolve", params, Err(HOSTILE));
    assert_harmless(&stage.cells(160, 50), "an error of the proxy");
    stage.gone(HOSTILE);
    assert_harmless(&stage.cells(160, 50), "gone");
    for entry in COMMANDS {
        stage.run(entry.command);
        assert_harmless(&stage.cells(80, 24), entry.name);
        stage.press(&["esc"]);
    }
}

#[test]
fn it_is_shown_as_escapes() {
    let mut stage = stage();
    stage.command("1");
    insta::assert_snapshot!("hostile-160x50", stage.screen(160, 50));
    stage.press(&["l"]);
    insta::assert_snapshot!("hostile-stderr-80x24", stage.screen(80, 24));
}
