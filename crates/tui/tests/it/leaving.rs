//! Leaving, and being left.

use mcp_proxy_control::InterceptMode;
use mcp_proxy_tui::Overlay;
use mcp_proxy_tui::ProxyOwner;
use mcp_proxy_tui::ProxyStatus;
use serde_json::json;

use crate::record;
use crate::scenes::{held, undecided};
use crate::test_ui::TestUi;

#[test]
fn a_viewer_leaves_the_proxy_alone() {
    for key in ["q", "Q", "ctrl-c"] {
        let mut stage = TestUi::live(record::ordinary());
        stage.press(&[key]);
        assert!(stage.quits(), "{key}");
        assert_eq!(stage.asked(), []);
    }
    let mut stage = held();
    stage.press(&["F6", "q"]);
    assert!(!stage.quits(), "a letter of the text");
    stage.press(&["ctrl-c"]);
    assert!(!stage.quits(), "the text would be lost");
    stage.press(&["esc"]);
    stage.let_go(1);
    stage.press(&["ctrl-c"]);
    assert!(stage.quits());
}

#[test]
fn a_proxy_that_goes_on_holding_is_not_left_without_a_question() {
    let mut stage = held();
    for key in ["n", "esc", "q"] {
        stage.press(&["q"]);
        assert!(matches!(stage.app.overlay, Overlay::ConfirmLeave));
        stage.press(&["j", "x", key]);
        assert!(stage.is_plain() && !stage.quits(), "{key}");
    }
    assert_eq!(stage.asked(), []);
    stage.press(&["ctrl-c", "l"]);
    assert!(stage.quits(), "left as it is");
    assert_eq!(stage.asked(), []);
    // Nothing is held, but the next message would be.
    let mut stage = TestUi::live(record::ordinary());
    stage.mode = "intercept";
    stage.notice("holds", json!({"mode": "intercept", "held": []}));
    stage.press(&["q", "c"]);
    assert!(!stage.quits(), "messages go on first");
    stage.expect("continue", json!({}), Ok(json!({})));
    assert!(stage.quits());
    assert_eq!(stage.app.proxy.mode, InterceptMode::Passthrough);
    // One that is gone holds nothing.
    let mut stage = held();
    stage.press(&["q"]);
    stage.gone("the proxy has ended");
    assert!(stage.is_plain());
    stage.press(&["q"]);
    assert!(stage.quits());
}

#[test]
fn where_the_proxy_runs_here_it_asks_first() {
    let mut stage = TestUi::live(record::ordinary());
    stage.app.owner = ProxyOwner::Here;
    for key in ["n", "esc", "q"] {
        stage.press(&["q"]);
        assert!(matches!(stage.app.overlay, Overlay::ConfirmQuit));
        stage.press(&["j", "x", key]);
        assert!(stage.is_plain() && !stage.quits(), "{key}");
    }
    assert_eq!(stage.asked(), []);
    stage.press(&["ctrl-c", "y"]);
    assert!(!stage.quits(), "the proxy ends first");
    stage.expect("shutdown", json!({}), Ok(json!({})));
    assert!(stage.quits());
}

#[test]
fn a_proxy_that_is_gone_before_it_answers_has_ended_too() {
    let mut stage = TestUi::live(record::ordinary());
    stage.app.owner = ProxyOwner::Here;
    stage.press(&["q", "enter"]);
    stage.gone("the proxy has ended");
    assert!(stage.quits());
}

#[test]
fn a_lost_proxy_leaves_the_record_on_the_screen() {
    let mut stage = held();
    stage.app.owner = ProxyOwner::Here;
    stage.press(&["q"]);
    let why = "the test has ended it";
    stage.gone(why);
    assert!(stage.is_plain(), "there is nothing left to end");
    assert_eq!(stage.app.proxy.link, ProxyStatus::Gone(why.to_owned()));
    assert!(stage.app.proxy.held.is_empty());
    stage.complains(&[why]);
    stage.press(&["i"]);
    stage.complains(&[why]);
    assert_eq!(stage.asked(), []);
    stage.press(&["g"]);
    assert_eq!(stage.selected(), Some(1));
    stage.command("filter read_file");
    stage.all_read(10);
    assert_eq!(stage.app.tabs[0].view.len(), 4);
    stage.press(&["q"]);
    assert!(stage.quits());
}

#[test]
fn an_edit_outlives_the_proxy() {
    let mut stage = held();
    stage.press(&["F6", "x"]);
    stage.gone("the proxy has ended");
    assert!(matches!(stage.app.overlay, Overlay::Editor(_)));
    stage.press(&["ctrl-s", "ctrl-s"]);
    stage.complains(&["Esc"]);
    assert!(matches!(stage.app.overlay, Overlay::Editor(_)));
    stage.press(&["esc"]);
    for key in ["F5", "F6", "F8", "E", "x", "B"] {
        stage.press(&[key]);
        assert!(stage.is_plain(), "{key}");
        stage.complains(&[]);
    }
    assert_eq!(stage.asked(), []);
    // Sent, but nobody can tell whether it has arrived.
    let mut stage = held();
    stage.press(&["F6", "backspace", "x", "backspace", " ", "ctrl-s"]);
    assert!(stage.is_plain());
    stage.gone("the proxy has closed the connection");
    assert!(matches!(stage.app.overlay, Overlay::Editor(_)));
}

/// Whether the selected #10 is left undecided, which its row and its facts then show. The screen `undecided` has the words.
fn tells_undecided(stage: &mut TestUi) -> bool {
    let row = &stage.app.tabs[0].view.window(9, 1)[0];
    let undecided = row.undecided && stage.app.is_left_undecided();
    if undecided {
        let screen = stage.screen(160, 24);
        assert_eq!(screen.matches('⏸').count(), 2, "{screen}");
    }
    undecided
}

#[test]
fn what_was_held_when_the_proxy_was_killed_is_told_as_undecided() {
    let mut stage = undecided();
    assert!(tells_undecided(&mut stage));
    let mut stage = TestUi::opened(stage.record);
    stage.all_read(10);
    assert!(tells_undecided(&mut stage));
    for key in ["F5", "F6", "F8", "E", "x", "B"] {
        stage.press(&["l", "esc", key]);
        assert!(stage.is_plain(), "{key}");
        stage.complains(&[]);
    }
    // While it is held the proxy says so, and afterwards the record.
    let mut stage = held();
    assert!(!tells_undecided(&mut stage));
    stage
        .record
        .verdict("hold", 10)
        .by("proxy")
        .why("breakpoint 1")
        .write();
    stage
        .record
        .verdict("forward", 10)
        .by("timeout")
        .why("")
        .write();
    stage.record.flush();
    stage.gone("the proxy has ended");
    stage.until("the record is read", |app| {
        let told = app.tabs[0].view.message_with_context(10);
        told.is_ok_and(|told| told.message.verdicts.len() == 2)
    });
    assert!(!tells_undecided(&mut stage));
}

#[test]
fn a_proxy_that_was_never_there() {
    let mut stage = TestUi::silent(record::ordinary(), json!({}));
    stage.far.asks.try_iter().for_each(drop);
    stage.gone("nobody listens there");
    stage.complains(&["nobody listens there"]);
    assert!(stage.app.tabs.is_empty());
    stage.screen(80, 24);
}

#[test]
fn what_the_program_says_is_shown() {
    let mut stage = TestUi::live(record::ordinary());
    stage
        .app
        .show_program_output("listening on http://127.0.0.1:8888/mcp");
    assert_eq!(stage.said(), "");
    assert!(stage.screen(160, 50).contains("http://127.0.0.1:8888/mcp"));
    stage
        .app
        .show_program_output("mcp-proxy: the rules were read again");
    assert_eq!(stage.said(), "the rules were read again");
    stage.now += std::time::Duration::from_secs(7);
    stage.settle();
    assert_eq!(stage.said(), "");
}
