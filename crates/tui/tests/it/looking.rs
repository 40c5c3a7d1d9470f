//! Moving about, marks, folds, copies.

use mcp_proxy_session::{MarkOperation, PeerInfo};
use mcp_proxy_tui::{Effect, Focus, Overlay};
use mcp_proxy_wire::Transport;
use serde_json::json;

use crate::record;
use crate::test_ui::TestUi;

#[test]
fn new_messages_are_followed_until_the_user_moves_away() {
    let mut stage = TestUi::live(record::ordinary());
    assert_eq!(stage.selected(), Some(9));
    stage.record.call(4, "search", "{}");
    stage.grown(10);
    assert_eq!(stage.selected(), Some(10));
    stage.press(&["k"]);
    stage.record.call(5, "search", "{}");
    stage.grown(11);
    assert_eq!(stage.selected(), Some(9));
    stage.press(&["F"]);
    assert_eq!(stage.selected(), Some(11));
    stage.press(&["g"]);
    assert_eq!(
        (stage.selected(), stage.app.tabs[0].follows),
        (Some(1), false)
    );
    stage.press(&["G"]);
    assert_eq!(
        (stage.selected(), stage.app.tabs[0].follows),
        (Some(11), true)
    );
    stage.press(&["F"]);
    assert!(!stage.app.tabs[0].follows);
}

#[test]
fn an_answer_in_a_list_of_errors_leads_to_its_request() {
    let mut stage = TestUi::live(record::ordinary());
    stage.press(&["!"]);
    stage.until("only errors are left", |app| app.tabs[0].view.len() < 9);
    let error = stage.selected().unwrap();
    stage.press(&["p"]);
    assert!(stage.selected().unwrap() < error);
    assert_eq!(stage.app.tabs[0].view.filter(), "");
    stage.says(&[&format!("#{}", stage.selected().unwrap())]);
}

#[test]
fn a_request_leads_to_its_answer_and_back() {
    let mut stage = TestUi::live(record::ordinary());
    stage.press(&["p"]);
    assert_eq!(stage.selected(), Some(8));
    stage.press(&["p"]);
    assert_eq!(stage.selected(), Some(9));
    stage.command("3");
    stage.press(&["p"]);
    assert_eq!(stage.selected(), Some(3));
    stage.complains(&["#3"]);
    stage.record.call(4, "search", "{}");
    stage.grown(10);
    stage.press(&["G", "p"]);
    assert_eq!(stage.selected(), Some(10));
    stage.complains(&["#10"]);
    stage.command("filter nowhere");
    stage.all_read(10);
    for key in ["p", "D"] {
        stage.press(&["l", "esc", key]);
        assert!(stage.is_plain(), "{key}");
        assert_eq!(stage.selected(), None, "{key}");
        stage.complains(&[]);
    }
}

#[test]
fn what_was_said_does_not_hide_the_keys_of_a_window() {
    for key in ["F1", "b", "u", "l", "R"] {
        let mut stage = TestUi::live(record::ordinary());
        stage.press(&["s"]);
        assert_ne!(stage.said(), "");
        stage.press(&[key]);
        assert_eq!((stage.said(), stage.is_plain()), ("", false), "{key}");
    }
}

#[test]
fn marks_are_set_gone_to_and_taken_away() {
    let mut stage = TestUi::live(record::ordinary());
    stage.press(&["'"]);
    assert_eq!(stage.selected(), Some(9));
    stage.complains(&[]);
    stage.command("2");
    stage.press(&["m"]);
    stage.command("6");
    stage.press(&["m", "'"]);
    assert_eq!(stage.selected(), Some(2));
    stage.press(&["'"]);
    assert_eq!(stage.selected(), Some(6));
    stage.press(&["m", "'", "'"]);
    assert_eq!(stage.selected(), Some(2));
    let note = |sequence, mark| ("note", json!({"sequence": sequence, "mark": mark}));
    let asked = stage.asked();
    assert_eq!(asked, [note(2, "set"), note(6, "set"), note(6, "removed")]);
}

#[test]
fn a_message_leads_to_the_call_that_caused_it() {
    let mut record = record::ordinary();
    let call = record.call(4, "search", "{}");
    let hub = PeerInfo::in_process("hub");
    record.opened_by(call, 2, &hub, &PeerInfo::new(Transport::Stdio));
    let asked = record.on(2).call(1, "find", "{}");
    record.flush();
    let mut stage = TestUi::live(record);
    stage.all_read(11);
    stage.command(&asked.to_string());
    // The facts name it; the list writes #010.
    let screen = stage.screen(120, 30);
    assert_eq!(screen.matches("#10").count(), 1, "{screen}");
    stage.press(&["P"]);
    assert_eq!(stage.app.tabs[0].selected, Some(call));
    stage.press(&["P"]);
    assert_eq!(stage.selected(), Some(call));
    stage.complains(&["#10"]);
}

#[test]
fn marks_are_kept_in_the_record() {
    let mut record = record::ordinary();
    for (sequence, mark) in [
        (2, MarkOperation::Set),
        (4, MarkOperation::Set),
        (4, MarkOperation::Removed),
    ] {
        record.mark(sequence, mark);
    }
    record.flush();
    let mut stage = TestUi::opened(record);
    stage.until("the marks are read", |app| {
        app.tabs[0].view.marks().contains(&2)
    });
    stage.press(&["'"]);
    assert_eq!(stage.selected(), Some(2));
    assert!(stage.screen(80, 24).contains("*◄ #002"));
    assert_eq!(stage.app.tabs[0].view.marks().len(), 1);
    // Another viewer's, while it happens; what is only looked at is not written.
    stage.record.mark(7, MarkOperation::Set);
    stage.record.flush();
    stage.app.tabs[0].view.request_refresh();
    stage.until("it is marked", |app| app.tabs[0].view.marks().contains(&7));
    stage.press(&["m"]);
    assert_eq!(stage.asked(), []);
}

#[test]
fn pages_are_as_high_as_the_screen() {
    let mut record = record::empty();
    for id in 0..200 {
        record.call(id, "search", "{}");
    }
    record.flush();
    let mut stage = TestUi::live(record);
    stage.all_read(200);
    stage.press(&["g"]);
    stage.screen(80, 24);
    let height = stage.app.tabs[0].height as u64;
    stage.press(&["pagedown"]);
    assert_eq!(stage.selected(), Some(height));
    stage.press(&["ctrl-d", "ctrl-u", "pageup", "pageup"]);
    assert_eq!(stage.selected(), Some(1));
}

#[test]
fn the_message_has_keys_of_its_own() {
    let mut stage = TestUi::live(record::ordinary());
    stage.press(&["tab", "G"]);
    assert_eq!(
        (stage.app.focus, stage.selected()),
        (Focus::Detail, Some(9))
    );
    let lines = |stage: &TestUi| stage.app.tabs[0].detail.as_ref().unwrap().rows.len();
    let all = lines(&stage);
    stage.press(&["g", "space"]);
    assert_eq!(lines(&stage), 1);
    stage.press(&["space"]);
    assert_eq!(lines(&stage), all);
    stage.press(&["z"]);
    assert!(lines(&stage) < all);
    stage.press(&["Z"]);
    assert_eq!(lines(&stage), all);
    stage.press(&["right", "h", "h"]);
    assert_eq!(stage.app.focus, Focus::List);
    stage.press(&["right", "esc"]);
    assert_eq!(stage.app.focus, Focus::List);
}

#[test]
fn copies_go_to_the_clipboard() {
    let mut stage = TestUi::live(record::ordinary());
    stage
        .app
        .show_program_output("listening on http://127.0.0.1:18942/mcp");
    stage.command("4");
    stage.press(&["y", "Y"]);
    let effects = stage.app.effects();
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let [Effect::Copy(text), Effect::Copy(curl)] = &effects[..] else {
        panic!("{effects:?}");
    };
    assert_eq!(text, body);
    assert!(curl.starts_with("curl ") && curl.contains(body), "{curl}");
    assert!(curl.contains("http://127.0.0.1:18942/mcp"), "{curl}");
    stage.command("5");
    stage.press(&["Y"]);
    assert!(stage.app.effects().is_empty(), "{}", stage.said());
}

#[test]
fn there_is_no_curl_command_where_nobody_has_a_url() {
    let record = record::ordinary();
    let hello = json!({"protocol": 1, "target": "python server.py", "server": "stdio", "client": "stdio",
        "record": record.path(), "pid": 1});
    let mut stage = TestUi::with(record, hello);
    stage.command("4");
    stage.press(&["Y"]);
    assert!(stage.app.effects().is_empty());
    stage.complains(&["stdio"]);
}

#[test]
fn before_the_first_message_the_config_of_a_client_is_copied() {
    let mut stage = TestUi::live(record::empty());
    stage.press(&["y"]);
    stage.complains(&[]);
    let url = "http://127.0.0.1:18942/mcp";
    stage
        .app
        .show_program_output(&format!("listening on {url}"));
    stage.press(&["y"]);
    let effects = stage.app.effects();
    let [Effect::Copy(text)] = &effects[..] else {
        panic!("{effects:?}");
    };
    let config: serde_json::Value = serde_json::from_str(text).unwrap();
    assert_eq!(config["mcpServers"]["server"]["url"], url);
}

#[test]
fn windows_open_scroll_and_close() {
    let mut stage = TestUi::live(record::ordinary());
    for key in ["F1", "?", "b", "u", "l"] {
        stage.press(&[key]);
        assert!(!stage.is_plain(), "{key}");
        stage.screen(80, 24);
        stage.press(&["j", "G", "k", "g", "pagedown", "pageup"]);
        stage.screen(80, 24);
        stage.press(&["esc"]);
        assert!(stage.is_plain(), "{key}");
        stage.press(&[key, "q"]);
        assert!(stage.is_plain(), "{key}: q closes first");
        assert!(!stage.quits());
    }
    assert_eq!(stage.selected(), Some(9), "the list behind has not moved");
    stage.press(&["F1", "u"]);
    assert!(matches!(stage.app.overlay, Overlay::Rules { .. }));
}

#[test]
fn rows_tell_what_became_of_a_message_though_there_is_little_room() {
    let mut record = record::ordinary();
    let answered = record.call(4, "a_tool_with_a_long_name", "{}");
    record::decide(&mut record, "hold", answered).write();
    record::decide(&mut record, "error", answered).write();
    let waits = record.call(5, "another_long_name", "{}");
    record::decide(&mut record, "hold", waits).write();
    record.flush();
    let shown = |stage: &mut TestUi| {
        let screen = stage.screen(80, 24);
        let rows = screen.lines().map(|line| line.chars().take(40).collect());
        let rows: Vec<String> = rows.collect();
        [answered, waits].map(|number| {
            let number = format!("#{number:03}");
            let row = rows.iter().find(|row| row.contains(&number)).unwrap();
            row.trim_matches(|side: char| side == '│' || side == ' ')
                .to_owned()
        })
    };
    // While the proxy is there it knows what it holds.
    let mut stage = TestUi::live(record);
    let [answered, waits] = shown(&mut stage);
    stage.gone("killed");
    let [_, undecided] = shown(&mut stage);
    insta::assert_snapshot!("narrow-rows", [answered, waits, undecided].join("\n"));
}
