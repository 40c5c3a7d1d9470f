//! Held messages: how they come to the screen, and what each decision asks of the proxy.

use mcp_proxy_control::InterceptMode;
use serde_json::json;

use crate::record;
use crate::scenes::held;
use crate::test_ui::TestUi;

#[test]
fn the_first_held_message_is_selected_wherever_the_user_was() {
    let mut stage = TestUi::live(record::ordinary());
    stage.press(&["g"]);
    assert_eq!(stage.selected(), Some(1));
    let call = stage.record.call(4, "read_file", "{}");
    stage.hold(1, call, "breakpoint 1");
    stage.until("it is selected", |app| app.tabs[0].selected == Some(10));
    assert!(!stage.app.tabs[0].follows);
    // A second one does not take the first away.
    let call = stage.record.call(5, "read_file", "{}");
    stage.hold(2, call, "breakpoint 1");
    stage.all_read(11);
    assert_eq!(
        (stage.selected(), stage.app.proxy.held.len()),
        (Some(10), 2)
    );
    stage.press(&["w"]);
    assert_eq!(stage.selected(), Some(11));
    stage.press(&["w"]);
    assert_eq!(stage.selected(), Some(10));
}

#[test]
fn a_user_who_has_moved_on_meanwhile_is_left_alone() {
    let mut stage = TestUi::live(record::ordinary());
    stage.press(&["g"]);
    // Held, but not in the record yet.
    stage.hold(1, 10, "breakpoint 1");
    stage.press(&["j"]);
    assert_eq!(stage.selected(), Some(2));
    stage.record.call(4, "read_file", "{}");
    stage.grown(10);
    assert_eq!(stage.selected(), Some(2));
}

#[test]
fn a_held_message_goes_on_or_nowhere() {
    let mut stage = held();
    stage.press(&["F5"]);
    let params = json!({"hold": 1, "action": "forward"});
    stage.expect("hold.resolve", params, Ok(json!({"hold": 1})));
    stage.says(&["#10"]);
    stage.press(&["F8"]);
    let params = json!({"hold": 1, "action": "drop"});
    stage.expect("hold.resolve", params, Ok(json!({"hold": 1})));
    stage.says(&["#10"]);
    stage.let_go(1);
    stage.press(&["F5"]);
    assert_eq!(stage.asked(), []);
    stage.complains(&[]);
}

#[test]
fn only_the_selected_hold_is_decided() {
    let mut stage = held();
    let call = stage.record.call(5, "search", "{}");
    stage.hold(2, call, "breakpoint 1");
    stage.all_read(11);
    stage.command("11");
    stage.press(&["F5"]);
    let asked = stage.asked();
    assert_eq!(asked[0].1["hold"], 2);
    stage.press(&["g", "F8"]);
    assert_eq!(stage.asked(), [], "another message is selected");
    assert_eq!(stage.selected(), Some(10));
    stage.complains(&["#10"]);
    stage.press(&["F8"]);
    let asked = stage.asked();
    assert_eq!(asked[0].1["hold"], 1);
}

#[test]
fn a_held_request_is_answered_with_an_error() {
    let mut stage = held();
    stage.press(&["x"]);
    assert!(!stage.is_plain());
    stage.letters("not \"today\"");
    stage.press(&["enter"]);
    let params = json!({"hold": 1, "action": "error", "code": -32000, "message": "not \"today\""});
    stage.expect("hold.resolve", params, Ok(json!({"hold": 1})));
    stage.says(&["#10"]);
    stage.command("error no");
    let params = json!({"hold": 1, "action": "error", "message": "no"});
    assert_eq!(stage.asked(), [("hold.resolve", params)]);
}

#[test]
fn step_continue_and_the_mode() {
    let mut stage = held();
    stage.press(&["s"]);
    stage.expect("step", json!({}), Ok(json!({})));
    stage.says(&["#10"]);
    stage.press(&["c"]);
    stage.expect("continue", json!({}), Ok(json!({})));
    stage.says(&[]);
    stage.press(&["i"]);
    let params = json!({"mode": "intercept"});
    stage.expect("intercept.set", params, Ok(json!({})));
    stage.mode = "intercept";
    stage.notice("holds", json!({"mode": "intercept", "held": [1]}));
    assert_eq!(stage.app.proxy.mode, InterceptMode::Intercept);
    stage.press(&["i"]);
    let params = json!({"mode": "passthrough"});
    assert_eq!(stage.asked(), [("intercept.set", params)]);
}

/// Two calls are held, the first of them selected.
pub fn two_held() -> TestUi {
    let mut stage = held();
    stage
        .record
        .verdict("hold", 10)
        .by("proxy")
        .why("breakpoint 1")
        .write();
    let call = stage.record.call(5, "search", "{}");
    stage.hold(2, call, "breakpoint 1");
    stage.all_read(11);
    assert_eq!(stage.selected(), Some(10));
    stage
}

#[test]
fn what_somebody_else_decides_stays_selected() {
    let mut stage = two_held();
    let by = "user (ctl, pid 9)";
    stage.forwarded_by(1, by, "");
    assert_eq!(stage.selected(), Some(10), "the next is not selected");
    stage.complains(&["#10", by]);
    for key in ["F5", "F6", "F8", "x"] {
        stage.press(&[key]);
        assert_eq!(stage.asked(), [], "{key}");
        stage.complains(&["#10", by]);
        assert_eq!(stage.selected(), Some(10), "{key}");
        assert!(stage.is_plain(), "{key}");
    }
    stage.command("error no");
    assert_eq!(stage.asked(), []);
    stage.press(&["w", "F8"]);
    assert_eq!(stage.asked()[0].1["hold"], 2);
}

#[test]
fn a_hold_that_comes_after_one_that_timed_out_is_not_selected() {
    let mut stage = held();
    stage.let_go(1);
    let call = stage.record.call(5, "search", "{}");
    stage.hold(2, call, "breakpoint 1");
    stage.all_read(11);
    assert_eq!(stage.selected(), Some(10));
    stage.press(&["F8"]);
    assert_eq!(stage.asked(), [], "the key was meant for the first");
    stage.complains(&["#10"]);
}

#[test]
fn the_next_is_selected_after_a_decision_made_here() {
    let mut stage = two_held();
    stage.press(&["F5"]);
    let params = json!({"hold": 1, "action": "forward"});
    stage.expect("hold.resolve", params, Ok(json!({"hold": 1})));
    stage.let_go(1);
    assert_eq!(stage.selected(), Some(11));
    stage.says(&["#10"]);
    let mut stage = two_held();
    stage.press(&["s"]);
    stage.expect("step", json!({}), Ok(json!({})));
    stage.says(&["#10", "#11"]);
    stage.let_go(1);
    assert_eq!(stage.selected(), Some(11));
    stage.let_go(2);
    stage.press(&["s"]);
    assert_eq!(stage.asked(), []);
    stage.complains(&[]);
}

#[test]
fn a_decision_that_came_too_late_selects_nothing_else() {
    let mut stage = two_held();
    stage.press(&["F5"]);
    stage.let_go(1);
    let why = "hold 1 was resolved already: drop by timeout";
    let params = json!({"hold": 1, "action": "forward"});
    stage.expect("hold.resolve", params, Err(why));
    assert_eq!(stage.selected(), Some(10));
    stage.complains(&[why]);
}

#[test]
fn a_message_that_stops_matching_the_filter_when_it_is_decided_stays_selected() {
    let mut stage = two_held();
    stage.command("filter .sequence > 9 and (.dropped | not)");
    stage.all_read(11);
    assert_eq!(stage.selected(), Some(10));
    stage
        .record
        .verdict("drop", 10)
        .by("user (ctl, pid 9)")
        .why("")
        .write();
    stage.record.flush();
    stage.let_go(1);
    stage.notice("rows", json!({"upto": 11}));
    stage.until("it is hidden", |app| app.tabs[0].view.len() == 1);
    assert_eq!(stage.selected(), Some(10));
    stage.press(&["F8"]);
    assert_eq!(stage.asked(), []);
    stage.press(&["j"]);
    assert_eq!(stage.selected(), Some(11));
}

#[test]
fn somebody_else_decided_first() {
    let mut stage = held();
    stage.press(&["F5"]);
    let why = "hold 1 was resolved already: drop by user (ctl, pid 9)";
    stage.holds.clear();
    stage.expect(
        "hold.resolve",
        json!({"hold": 1, "action": "forward"}),
        Err(why),
    );
    stage.complains(&[why]);
    assert!(stage.app.proxy.held.is_empty(), "asked for the present");
}

#[test]
fn breakpoints_are_added_and_removed() {
    let mut stage = held();
    stage.press(&["b", "j", "j", "j", "d"]);
    let done = Ok(json!({"id": 2}));
    stage.expect("breakpoints.remove", json!({"id": 2}), done);
    stage.says(&["2"]);
    stage.press(&["k", "k", "esc"]);
    stage.command("break .latency_ms > 50");
    let params = json!({"filter": ".latency_ms > 50"});
    stage.expect("breakpoints.add", params, Ok(json!({"id": 3})));
    stage.says(&[".latency_ms > 50"]);
    // Of the selected message, to be changed before it is added.
    stage.press(&["B", "enter"]);
    let filter = r#".tool == "read_file" and .direction == "client_to_server""#;
    let params = json!({"filter": filter});
    let why = "the proxy's reason";
    stage.expect("breakpoints.add", params, Err(why));
    stage.complains(&[why]);
    // Of an answer, for answers like it.
    stage.command("9");
    stage.press(&["B", "enter"]);
    let filter = r#".tool == "read_file" and .direction == "server_to_client""#;
    assert_eq!(
        stage.asked(),
        [("breakpoints.add", json!({"filter": filter}))]
    );
}

#[test]
fn keys_reach_only_what_they_are_for() {
    let mut record = record::ordinary();
    let call = record.call(4, "search", "{}");
    record.flush();
    let mut stage = TestUi::live(record);
    stage.hold(1, 3, "intercept");
    stage.hold(2, call, "intercept");
    stage.asked();
    // An error answers nobody where nobody asked.
    stage.command("3");
    stage.press(&["x"]);
    assert!(stage.is_plain(), "no text is asked for");
    stage.complains(&["#3"]);
    stage.command("error -5 no");
    assert_eq!(stage.asked(), []);
    // What a filter hides is not let go.
    stage.command("filter search");
    stage.settle();
    stage.press(&["s"]);
    stage.complains(&["#3"]);
    assert_eq!(stage.asked(), []);
}

#[test]
fn d10_a_drop_says_who_gets_no_answer_and_the_key_that_sends_an_error() {
    let mut stage = held();
    stage.press(&["F8"]);
    let note = "the client gets no answer";
    stage.answer(Ok(json!({"hold": 1, "note": note})));
    stage.says(&["#10", note, "(x)"]);
}

#[test]
fn after_a_drop_the_next_message_that_is_held_is_selected() {
    let mut stage = held();
    stage.press(&["F8"]);
    stage.answer(Ok(json!({"hold": 1})));
    stage.let_go(1);
    stage.press(&["g"]);
    assert_eq!(stage.selected(), Some(1));
    let call = stage.record.call(5, "search", "{}");
    stage.hold(2, call, "breakpoint 1");
    stage.until("it is selected", |app| app.tabs[0].selected == Some(11));
}

#[test]
fn a_message_that_is_held_behind_a_window_is_selected_when_that_is_closed() {
    for window in ["F1", "l", "b"] {
        let mut stage = TestUi::live(record::ordinary());
        stage.press(&["g", window]);
        let call = stage.record.call(4, "read_file", "{}");
        stage.hold(1, call, "breakpoint 1");
        stage.all_read(10);
        assert_eq!(stage.selected(), Some(1), "{window}");
        stage.press(&["esc"]);
        stage.until("it is selected", |app| app.tabs[0].selected == Some(10));
    }
}
