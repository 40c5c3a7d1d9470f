//! Sending again, and comparing.

use mcp_proxy_control::Fault;
use mcp_proxy_tui::{BodyVersion, LineDifference, Overlay};
use mcp_proxy_wire::Origin;
use serde_json::{Value, json};

use crate::record;
use crate::scenes::{edited, replayed};
use crate::test_ui::TestUi;

/// The numbers of the messages that are compared.
fn compared(stage: &TestUi) -> [u64; 2] {
    match &stage.app.overlay {
        Overlay::Diff(sides) => sides.sequences,
        _ => panic!("nothing is compared: {}", stage.said()),
    }
}

fn version(stage: &TestUi) -> BodyVersion {
    stage.app.tabs[0].detail.as_ref().unwrap().shown
}

fn differences(stage: &TestUi) -> usize {
    let Overlay::Diff(sides) = &stage.app.overlay else {
        return 0;
    };
    let differ = |line: &&mcp_proxy_tui::DiffRow| line.kind != LineDifference::Same;
    sides.lines.iter().filter(differ).count()
}

#[test]
fn an_answer_leads_to_the_request_that_is_sent_again() {
    let mut stage = TestUi::live(record::ordinary());
    assert_eq!(stage.selected(), Some(9));
    stage.press(&["r"]);
    assert_eq!(stage.selected(), Some(8));
    stage.says(&["#8"]);
    let params = json!({"sequence": 8});
    let why = "the server does not start";
    stage.expect("replay", params, Err(why));
    stage.complains(&["#8", why]);
    stage.press(&["ctrl-r"]);
    let params = json!({"sequence": 8, "session": "live"});
    assert_eq!(stage.asked(), [("replay", params)]);
}

#[test]
fn a_message_is_changed_before_it_is_sent_again() {
    let mut stage = TestUi::live(record::ordinary());
    stage.press(&["R", "ctrl-s"]);
    let params = json!({"sequence": 8});
    assert_eq!(stage.asked(), [("replay", params)], "unchanged");
    stage.press(&["R", "down", "end", "backspace", "backspace", "backspace"]);
    stage.letters("1\",");
    stage.press(&["ctrl-s"]);
    let asked = stage.asked();
    let raw = asked[0].1["raw"].as_str().unwrap();
    assert!(raw.starts_with(r#"{"jsonrpc":"2.1","id":3,"#), "{raw}");
}

#[test]
fn what_is_no_request_is_sent_again_only_when_asked_twice() {
    let mut stage = TestUi::live(record::ordinary());
    // No JSON, and JSON that is no message.
    for (text, line) in [("{\"a\":", Some(1)), ("{\"a\":1}", None)] {
        stage.press(&["R", "ctrl-o"]);
        stage.press(&["ctrl-k"; 40]);
        stage.letters(text);
        stage.press(&["ctrl-s"]);
        assert_eq!(stage.asked(), []);
        let Overlay::Editor(editor) = &stage.app.overlay else {
            panic!("the editor is closed: {}", stage.said());
        };
        assert_eq!(editor.fault().map(|fault| fault.line), line);
        assert_eq!(editor.remark().is_some(), line.is_none());
        assert!(editor.sends_invalid);
        stage.complains(&["Ctrl-S"]);
        stage.press(&["ctrl-s"]);
        let params = json!({"sequence": 8, "raw": text, "as_is": true});
        stage.expect("replay", params, Err("the server has ended"));
        // It comes back, to be changed.
        assert!(!stage.is_plain());
        stage.press(&["esc"]);
    }
}

#[test]
fn requests_of_a_server_are_not_sent_again() {
    let mut record = record::ordinary();
    record.server(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    record.flush();
    let mut stage = TestUi::live(record);
    stage.press(&["r"]);
    assert_eq!(stage.asked(), []);
    stage.complains(&[]);
    let mut stage = TestUi::opened(record::ordinary());
    stage.press(&["r", "R", "ctrl-r"]);
    assert_eq!(stage.asked(), []);
    stage.complains(&["mcp-proxy replay"]);
}

#[test]
fn a_replay_is_compared_from_each_of_its_four_messages() {
    let mut stage = replayed();
    assert_eq!(stage.app.tabs[0].replays[&8], (10, Some(11)));
    stage.says(&["#8", "#10", "#11", "31.0 ms"]);
    for (number, expected, lines) in [
        ("8", [9, 11], 2),
        ("10", [9, 11], 2),
        ("9", [9, 11], 2),
        ("11", [9, 11], 2),
    ] {
        stage.command(number);
        stage.press(&["D"]);
        assert_eq!(compared(&stage), expected, "{number}");
        assert!(differences(&stage) >= lines, "{number}");
        stage.press(&["j", "G", "k", "esc"]);
        assert!(stage.is_plain());
    }
    stage.command("1");
    stage.press(&["D"]);
    assert!(stage.is_plain());
    stage.complains(&[]);
}

#[test]
fn a_message_with_another_head_has_no_other_body() {
    let mut record = record::ordinary();
    record::decide(&mut record, "hold", 8).write();
    record::decide(&mut record, "modify", 8).write();
    record.flush();
    let mut stage = TestUi::live(record);
    stage.command("8");
    stage.press(&["D"]);
    assert!(stage.is_plain());
    stage.complains(&["HTTP"]);
    stage.press(&["o"]);
    stage.says(&["HTTP"]);
}

#[test]
fn any_two_messages_are_compared() {
    let mut stage = TestUi::live(record::ordinary());
    stage.command("diff 6 #8");
    assert_eq!(compared(&stage), [6, 8]);
    assert!(differences(&stage) > 0);
    stage.press(&["esc"]);
    for wrong in ["diff 6", "diff 6 8 9", "diff six 8", "diff 6 99"] {
        stage.command(wrong);
        assert!(stage.is_plain(), "{wrong}");
        stage.complains(&[]);
    }
}

#[test]
fn a_notification_has_no_answer_to_compare() {
    let mut stage = TestUi::live(record::ordinary());
    stage.command("3");
    stage.press(&["r"]);
    stage.record.on(2).by(Origin::Replay);
    stage
        .record
        .client(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    stage.record.flush();
    let answer = json!({"request": 10, "answer": null, "conn": "c2", "latency_ms": null, "raw": Value::Null});
    let params = json!({"sequence": 3});
    stage.expect("replay", params, Ok(answer));
    assert_eq!(stage.app.tabs[0].replays[&3], (10, None));
    stage.says(&["#3", "#10"]);
    stage.all_read(10);
    stage.press(&["D"]);
    assert_eq!((compared(&stage), differences(&stage)), ([3, 10], 0));
}

#[test]
fn d19_the_id_of_a_replay_is_not_a_difference() {
    let mut stage = TestUi::live(record::ordinary());
    stage.command("6");
    stage.press(&["r"]);
    let record = stage.record.on(2).by(Origin::Replay);
    let call = record.call(77, "search", r#"{"query":"rust proxies"}"#);
    record.result(
        77,
        call,
        r#"{"content":[{"type":"text","text":"3 results"}],"id":7}"#,
    );
    stage.record.flush();
    let answer = json!({"request": 10, "answer": 11, "conn": "c2", "latency_ms": 1.0, "raw": "{}"});
    stage.expect("replay", json!({"sequence": 6}), Ok(answer));
    stage.all_read(11);
    stage.press(&["D"]);
    assert_eq!(compared(&stage), [7, 11]);
    let differing = differences(&stage);
    stage.press(&["esc"]);
    // Two messages that the user chooses are compared in full.
    stage.command("diff 7 11");
    assert_eq!(differences(&stage), differing + 1);
}

#[test]
fn an_edit_is_compared_with_what_was_received() {
    let mut stage = edited();
    stage.press(&["D"]);
    assert_eq!(compared(&stage), [10, 10]);
    assert_eq!(differences(&stage), 1);
    stage.press(&["esc", "o"]);
    assert_eq!(version(&stage), BodyVersion::Received);
    stage.says(&[]);
    stage.press(&["o"]);
    assert_eq!(version(&stage), BodyVersion::Sent);
    stage.says(&[]);
    // There is only one version of a message that was not changed.
    stage.press(&["g", "o"]);
    assert_eq!(version(&stage), BodyVersion::Sent);
    stage.says(&[]);
}

#[test]
fn values_that_are_not_known_any_more_are_asked_for_in_the_editor() {
    let mut stage = TestUi::live(record::ordinary());
    let fault = |reason: &str| Fault::new(Fault::NOT_KEPT, "the proxy's reason").because(reason);
    stage.press(&["r"]);
    stage.refuse(fault("server_gone"));
    assert!(stage.is_plain());
    stage.press(&["r"]);
    stage.refuse(fault("redacted"));
    stage.complains(&["#8", "the proxy's reason"]);
    let Overlay::Editor(editor) = &stage.app.overlay else {
        panic!("there is no editor");
    };
    assert!(editor.text().contains("read_file"));
}
