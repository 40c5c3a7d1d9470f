//! The editor of held messages.

use mcp_proxy_control::HoldClock;
use mcp_proxy_session::testing;
use mcp_proxy_tui::{EditPurpose, Editor, Effect, Overlay};
use serde_json::{Value, json};

use crate::record;
use crate::scenes::held;
use crate::test_ui::TestUi;

/// From the first line to behind the value of `path`.
const TO_THE_PATH: [&str; 7] = ["down", "down", "down", "down", "down", "down", "down"];

/// Takes `.txt"` off the path and puts this in its place.
fn change_path(stage: &mut TestUi, end: &str) {
    stage.press(&["F6"]);
    stage.press(&TO_THE_PATH);
    stage.press(&[
        "end",
        "backspace",
        "backspace",
        "backspace",
        "backspace",
        "backspace",
    ]);
    stage.letters(end);
}

fn editor(stage: &TestUi) -> &Editor {
    match &stage.app.overlay {
        Overlay::Editor(editor) => editor,
        _ => panic!("the editor is closed: {}", stage.said()),
    }
}

#[test]
fn an_edited_message_goes_on_with_every_other_token_as_it_was() {
    let mut stage = held();
    change_path(&mut stage, ".md\"");
    stage.press(&["ctrl-s"]);
    let text = r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"read_file","arguments":{"path":"/srv/notes/plan.md"}}}"#;
    let params = json!({"hold": 1, "action": "modify", "raw_text": text, "as_is": false});
    stage.expect("hold.resolve", params, Ok(json!({"hold": 1})));
    stage.says(&["#10"]);
    assert!(stage.is_plain());
}

#[test]
fn esc_sends_nothing() {
    let mut stage = held();
    change_path(&mut stage, ".md\"");
    stage.press(&["esc"]);
    assert_eq!(stage.asked(), []);
    assert!(stage.is_plain());
    stage.says(&["#10", "F6"]);
    assert_eq!(stage.app.proxy.held.len(), 1);
}

#[test]
fn the_clock_stands_still_while_the_message_is_in_an_editor() {
    let mut stage = held();
    assert!(stage.screen(120, 40).contains("54 s left"));
    stage.press(&["F6"]);
    assert_eq!(stage.edits, [json!({"hold": 1, "open": true})]);
    assert_eq!(stage.app.proxy.held[0].row.clock, HoldClock::Stopped);
    let screen = stage.screen(80, 24);
    assert!(screen.contains("clock stopped"), "{screen}");
    stage.now += std::time::Duration::from_secs(30);
    stage.settle();
    assert!(
        stage.screen(80, 24).contains("54 s left"),
        "it does not count"
    );
    stage.press(&["esc"]);
    assert_eq!(stage.edits[1], json!({"hold": 1, "open": false}));
    assert_eq!(stage.app.proxy.held[0].row.clock, HoldClock::Running);
    // In $EDITOR too, and when that fails.
    stage.press(&["E"]);
    assert_eq!(stage.edits[2]["open"], true);
    let effects = stage.app.effects();
    let [Effect::Edit(purpose, text)] = &effects[..] else {
        panic!("{effects:?}");
    };
    let failed = Err("vi: not found".to_owned());
    stage.app.finish_external_edit(*purpose, text, failed);
    stage.settle();
    assert_eq!(stage.edits[3]["open"], false);
    // What is replayed has no clock.
    stage.press(&["R", "esc"]);
    assert_eq!(stage.edits.len(), 4);
}

#[test]
fn a_held_message_gets_more_time() {
    let mut stage = held();
    stage.press(&["+"]);
    let answer = json!({"hold": 1, "clock": "running", "left_ms": 114_000});
    stage.expect("hold.extend", json!({"hold": 1}), Ok(answer));
    stage.says(&["#10", "114 s"]);
    stage.command("extend 600");
    let params = json!({"hold": 1, "seconds": 600});
    stage.expect("hold.extend", params, Err("no"));
    stage.complains(&["no"]);
    stage.command("extend soon");
    stage.complains(&["`soon`"]);
    assert_eq!(stage.asked(), []);
}

/// A call over HTTP is held, whose head can be changed.
fn held_over_http() -> TestUi {
    let mut stage = TestUi::live(record::ordinary());
    let head = [("authorization", "Bearer secret"), ("x-trace", "1")];
    let head = testing::post("/mcp", &head);
    let call = stage
        .record
        .from_client(r#"{"jsonrpc":"2.0","id":4,"method":"ping"}"#);
    let call = call.carried_by(&head).write();
    stage.hold(1, call, "breakpoint 1");
    stage.holds[0]["head_editable"] = json!(true);
    stage.notice("holds", json!({"mode": "passthrough", "held": [1]}));
    stage.all_read(10);
    stage.until("it is selected", |app| app.tabs[0].selected == Some(10));
    stage
}

#[test]
fn the_head_of_a_held_message_is_edited_above_its_body() {
    let mut stage = held_over_http();
    stage.press(&["F6"]);
    let text = editor(&stage).text();
    assert!(text.starts_with("POST /mcp\n"), "{text}");
    assert!(!text.contains("secret"), "{text}");
    // Only the head.
    stage.press(&["down", "down", "end", "backspace"]);
    stage.letters("2");
    stage.press(&["ctrl-s"]);
    let params = json!({"hold": 1, "action": "forward", "headers": {"x-trace": "2"}});
    stage.expect("hold.resolve", params, Err("no"));
    // It comes back; the body too.
    assert!(editor(&stage).is_changed());
    let paste = editor(&stage).text().replace("\"ping\"", "\"pong\"");
    stage.press(&["home"]);
    stage.press(&["up"; 5]);
    stage.press(&["ctrl-k"; 30]);
    stage
        .app
        .handle_input(mcp_proxy_tui::InputEvent::Paste(paste));
    stage.press(&["ctrl-s"]);
    let asked = stage.asked();
    assert_eq!(asked[0].1["action"], "modify");
    assert_eq!(asked[0].1["headers"], json!({"x-trace": "2"}));
    let raw = asked[0].1["raw_text"].as_str().unwrap();
    assert_eq!(raw, r#"{"jsonrpc":"2.0","id":4,"method":"pong"}"#);
}

#[test]
fn headers_are_set_in_the_request_that_the_proxy_makes_of_a_held_message() {
    let mut stage = TestUi::live(record::ordinary());
    let call = r#"{"jsonrpc":"2.0","id":4,"method":"ping"}"#;
    let call = stage.record.from_client(call).write();
    stage.hold(1, call, "breakpoint 1");
    stage.holds[0]["head_made"] = json!(true);
    stage.notice("holds", json!({"mode": "passthrough", "held": [1]}));
    stage.all_read(10);
    stage.until("it is selected", |app| app.tabs[0].selected == Some(10));
    stage.press(&["F6"]);
    let text = editor(&stage).text();
    assert!(text.starts_with("POST "), "{text}");
    stage.press(&["end", "enter"]);
    stage.letters("x-tenant: blue");
    stage.press(&["ctrl-s"]);
    let params = json!({"hold": 1, "action": "forward", "headers": {"x-tenant": "blue"}});
    stage.expect("hold.resolve", params, Ok(json!({"hold": 1})));
}

#[test]
fn what_is_no_header_is_not_sent() {
    let mut stage = held_over_http();
    stage.press(&["F6", "down", "home"]);
    stage.letters("x ");
    stage.press(&["ctrl-s", "ctrl-s"]);
    assert_eq!(stage.asked(), []);
    stage.complains(&["2"]);
    // A draft with a head is replayed without it.
    stage.press(&["esc"]);
    stage.let_go(1);
    stage.press(&["R"]);
    let text = editor(&stage).text();
    assert!(text.starts_with("{\n"), "{text}");
}

#[test]
fn a_draft_survives_esc_and_is_offered_again() {
    let mut stage = held();
    change_path(&mut stage, ".md\"");
    stage.press(&["esc", "g"]);
    stage.command("10");
    stage.press(&["F6"]);
    stage.says(&["#10"]);
    assert!(editor(&stage).is_changed());
    assert!(editor(&stage).text().contains("plan.md"));
    // It can be thrown away, and that can be undone.
    stage.press(&["ctrl-o"]);
    assert!(!editor(&stage).is_changed());
    stage.press(&["ctrl-z"]);
    assert!(editor(&stage).text().contains("plan.md"));
    stage.press(&["ctrl-s"]);
    stage.answer(Ok(json!({"hold": 1})));
    // What was sent is no draft any more.
    stage.press(&["F6"]);
    assert!(!editor(&stage).is_changed());
    // What was not changed is none either.
    stage.press(&["esc", "F6"]);
    assert_eq!(stage.said(), "");
}

#[test]
fn what_was_not_changed_is_forwarded_byte_for_byte() {
    let mut stage = held();
    stage.press(&["e", "ctrl-s"]);
    let params = json!({"hold": 1, "action": "forward"});
    stage.expect("hold.resolve", params, Ok(json!({"hold": 1})));
    stage.says(&["#10"]);
}

#[test]
fn what_is_no_json_is_sent_only_when_asked_twice() {
    let mut stage = held();
    change_path(&mut stage, ",");
    stage.press(&["ctrl-s"]);
    assert_eq!(stage.asked(), []);
    assert_eq!(editor(&stage).fault().map(|fault| fault.line), Some(8));
    assert!(editor(&stage).sends_invalid);
    stage.complains(&["8", "Ctrl-S"]);
    // A change takes the insistence back.
    stage.letters("x");
    assert!(!editor(&stage).sends_invalid);
    stage.press(&["ctrl-s"]);
    assert_eq!(stage.asked(), []);
    stage.press(&["ctrl-s"]);
    let asked = stage.asked();
    let (_, params) = &asked[0];
    assert_eq!(params["as_is"], Value::Bool(true));
    let text = params["raw_text"].as_str().unwrap();
    assert!(text.contains("/srv/notes/plan,x\n"), "{text}");
}

#[test]
fn what_is_no_message_is_sent_only_when_asked_twice() {
    let mut stage = TestUi::live(record::ordinary());
    let call = stage.record.call(4, "search", "{}");
    let answer = stage.record.result(4, call, r#"{"content":[]}"#);
    stage.hold(1, answer, "breakpoint 1");
    stage.all_read(11);
    stage.until("it is selected", |app| app.tabs[0].selected == Some(11));
    stage.press(&["F6"]);
    stage.press(&["ctrl-k"; 40]);
    // An answer without an answer in it.
    let text = r#"{"jsonrpc":"2.0","id":4}"#;
    stage.letters(text);
    assert!(editor(&stage).fault().is_none() && editor(&stage).remark().is_some());
    stage.press(&["ctrl-s"]);
    assert_eq!(stage.asked(), []);
    assert!(editor(&stage).sends_invalid);
    stage.complains(&["Ctrl-S"]);
    stage.press(&["ctrl-s"]);
    let params = json!({"hold": 1, "action": "modify", "raw_text": text, "as_is": true});
    assert_eq!(stage.asked(), [("hold.resolve", params)]);
}

#[test]
fn a_message_that_is_decided_elsewhere_while_it_is_edited() {
    let mut stage = held();
    change_path(&mut stage, ".md\"");
    stage.let_go(1);
    stage.complains(&["#10", "R"]);
    assert!(matches!(stage.app.overlay, Overlay::Notice(_)));
    // What is typed on was meant for the editor, and does nothing.
    stage.letters("continue q");
    stage.press(&["enter", "ctrl-s"]);
    assert_eq!(stage.asked(), []);
    assert!(!stage.quits());
    stage.press(&["esc"]);
    assert!(stage.is_plain());
    assert_eq!(stage.selected(), Some(10));
    // The draft is there, to be replayed.
    stage.press(&["R"]);
    assert!(editor(&stage).text().contains("plan.md"));
    stage.press(&["ctrl-s"]);
    let asked = stage.asked();
    assert_eq!(asked[0].0, "replay");
    assert!(asked[0].1["raw"].as_str().unwrap().contains("plan.md"));
}

#[test]
fn a_text_that_somebody_else_forestalled_is_a_draft() {
    let mut stage = held();
    change_path(&mut stage, ".md\"");
    stage.press(&["ctrl-s"]);
    stage.let_go(1);
    stage.answer(Err(
        "hold 1 was resolved already: drop by user (ctl, pid 9)",
    ));
    assert!(stage.is_plain(), "there is nothing to edit any more");
    stage.press(&["R"]);
    assert!(editor(&stage).text().contains("plan.md"));
}

#[test]
fn the_selection_stays_on_an_edited_message_though_new_ones_were_followed() {
    let mut stage = held();
    assert!(!stage.app.tabs[0].follows);
    change_path(&mut stage, ".md\"");
    stage.press(&["ctrl-s"]);
    stage.answer(Ok(json!({"hold": 1})));
    stage.let_go(1);
    stage.record.result(4, 10, "{}");
    stage.grown(11);
    assert_eq!(stage.selected(), Some(10), "D compares it");
}

/// Bug: the pane stayed blank but for the end of the line.
#[test]
fn an_editor_that_grows_shows_its_lines_from_the_start() {
    let mut stage = held();
    stage.press(&["F6"]);
    stage.press(&TO_THE_PATH);
    stage.press(&["end"]);
    let before = stage.screen(120, 40);
    stage.screen(20, 5);
    assert_eq!(stage.screen(120, 40), before);
}

#[test]
fn a_hold_that_comes_leaves_the_editor_alone() {
    let mut stage = held();
    change_path(&mut stage, ".md\"");
    let call = stage.record.call(5, "search", "{}");
    stage.hold(2, call, "breakpoint 1");
    stage.all_read(11);
    assert_eq!(stage.selected(), Some(10));
    stage.press(&["ctrl-s"]);
    assert_eq!(stage.asked()[0].1["hold"], 1);
}

#[test]
fn the_editor_outside_gets_the_text_and_gives_it_back() {
    let mut stage = held();
    stage.press(&["E"]);
    let effects = stage.app.effects();
    let [Effect::Edit(purpose, text)] = &effects[..] else {
        panic!("{effects:?}");
    };
    assert_eq!(
        *purpose,
        EditPurpose::Hold {
            hold: 1,
            sequence: 10
        }
    );
    let after = text.replace("plan.txt", "other.txt") + "\n";
    stage.app.finish_external_edit(*purpose, text, Ok(after));
    assert_eq!(stage.asked(), [], "it is shown before it is sent");
    stage.says(&["Ctrl-S"]);
    stage.press(&["ctrl-s"]);
    let asked = stage.asked();
    let text = asked[0].1["raw_text"].as_str().unwrap_or_default();
    assert!(
        text.ends_with(r#"{"path":"/srv/notes/other.txt"}}}"#),
        "{asked:?}"
    );
    // From within the editor, and an editor that fails.
    stage.press(&["F6", "ctrl-e"]);
    let effects = stage.app.effects();
    assert!(matches!(&effects[..], [Effect::Edit(..)]), "{effects:?}");
    stage
        .app
        .finish_external_edit(*purpose, "", Err("vi: not found".to_owned()));
    assert!(matches!(stage.app.overlay, Overlay::Editor(_)));
}

#[test]
fn pasted_text_goes_into_the_editor() {
    let mut stage = held();
    stage.press(&["F6"]);
    let paste = mcp_proxy_tui::InputEvent::Paste("[]".to_owned());
    stage.app.handle_input(paste);
    let editor = editor(&stage);
    assert!(editor.fault().is_some() && editor.is_changed());
}

#[test]
fn a_refused_edit_under_another_window_is_a_draft_and_the_clock_runs_again() {
    let mut stage = held();
    change_path(&mut stage, ".md\"");
    stage.press(&["ctrl-s", "?"]);
    stage.answer(Err("no"));
    assert!(matches!(stage.app.overlay, Overlay::Help { .. }));
    assert_eq!(stage.edits.last(), Some(&json!({"hold": 1, "open": false})));
    assert_eq!(stage.app.proxy.held[0].row.clock, HoldClock::Running);
    stage.press(&["esc", "F6"]);
    assert!(editor(&stage).text().contains("plan.md"));
    // Where the message was opened again meanwhile, its clock stays stopped.
    stage.press(&["ctrl-s", "F6"]);
    stage.answer(Err("no"));
    assert_eq!(stage.edits.last(), Some(&json!({"hold": 1, "open": true})));
    assert_eq!(stage.app.proxy.held[0].row.clock, HoldClock::Stopped);
}

#[test]
fn an_edit_that_the_proxy_did_not_answer_before_it_ended_is_kept_under_another_window() {
    let mut stage = held();
    change_path(&mut stage, ".md\"");
    stage.press(&["ctrl-s", "?"]);
    stage.gone("the proxy has ended");
    assert!(matches!(stage.app.overlay, Overlay::Help { .. }));
    stage.press(&["esc", "R"]);
    assert!(editor(&stage).text().contains("plan.md"));
}
