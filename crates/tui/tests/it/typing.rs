//! Lines that are typed: filters, searches, commands.

use mcp_proxy_tui::Theme;
use mcp_proxy_tui::{Focus, Overlay};
use serde_json::json;

use crate::record;
use crate::test_ui::TestUi;

fn shown(stage: &mut TestUi) -> Vec<u64> {
    let rows = stage.app.tabs[0].view.window(0, 100);
    rows.iter().map(|row| row.sequence).collect()
}

fn filter(stage: &mut TestUi, text: &str) {
    stage.press(&["F2", "ctrl-e", "ctrl-u"]);
    stage.letters(text);
    stage.press(&["enter"]);
    stage.all_read(9);
}

#[test]
fn a_filter_is_typed_changed_and_taken_away() {
    let mut stage = TestUi::live(record::ordinary());
    filter(&mut stage, "read_file");
    assert_eq!(shown(&mut stage), [5, 8, 9]);
    assert_eq!(stage.selected(), Some(9));
    filter(&mut stage, ".status == \"error\"");
    assert_eq!(shown(&mut stage), [9]);
    // One that is wrong says so, and stays to be put right; Esc goes back to the one before.
    filter(&mut stage, "/(/");
    stage.complains(&[]);
    assert!(matches!(stage.app.overlay, Overlay::Prompt(..)));
    stage.press(&["esc"]);
    stage.all_read(9);
    assert_eq!(stage.app.tabs[0].view.filter(), ".status == \"error\"");
    // Esc leaves it as it was; the lines before come back.
    stage.press(&["F2", "x", "esc"]);
    stage.all_read(9);
    assert_eq!(shown(&mut stage), [9]);
    stage.press(&["F2", "up", "up"]);
    let Overlay::Prompt(_, input) = &stage.app.overlay else {
        panic!("nothing is typed");
    };
    assert_eq!(input.lines(), ["read_file"]);
    stage.press(&["esc", "ctrl-l"]);
    stage.all_read(9);
    assert_eq!(shown(&mut stage).len(), 9);
    let selected = stage.selected();
    filter(&mut stage, "nowhere to be found");
    assert!(shown(&mut stage).is_empty());
    stage.press(&["j", "k", "G", "g", "p", "D", "y", "r"]);
    // Nothing is shown, so nothing is copied or sent again.
    assert_eq!((stage.selected(), stage.asked()), (None, vec![]));
    assert!(stage.app.effects().is_empty());
    let screen = stage.screen(100, 24);
    assert!(!screen.contains("jsonrpc"), "{screen}");
    stage.press(&["ctrl-l"]);
    stage.all_read(9);
    assert_eq!(stage.selected(), selected, "back where it was");
}

#[test]
fn a_selection_that_the_filter_hides_goes_to_the_nearest() {
    let mut stage = TestUi::live(record::ordinary());
    stage.command("7");
    stage.command("filter read_file");
    stage.all_read(9);
    stage.until("another is selected", |app| app.tabs[0].selected == Some(8));
    stage.command("goto 6");
    stage.complains(&["#6", "Ctrl-L"]);
    assert_eq!(stage.selected(), Some(8));
}

#[test]
fn a_search_goes_round_in_the_message() {
    let mut stage = TestUi::live(record::ordinary());
    stage.press(&["n"]);
    assert_eq!(stage.app.focus, Focus::List);
    stage.complains(&[]);
    stage.press(&["/"]);
    stage.letters("plan");
    stage.press(&["enter"]);
    assert_eq!(stage.app.focus, Focus::Detail);
    let cursor = |stage: &TestUi| stage.app.tabs[0].detail.as_ref().unwrap().cursor;
    let first = cursor(&stage);
    assert!(first > 0);
    stage.press(&["n"]);
    assert_eq!(cursor(&stage), first, "there is one only");
    stage.press(&["g", "N"]);
    assert_eq!(cursor(&stage), first);
    // A fold opens for what is in it.
    stage.press(&["z"]);
    assert!(cursor(&stage) < first);
    stage.press(&["n"]);
    assert_eq!(cursor(&stage), first);
    stage.command("search nowhere");
    assert_eq!(cursor(&stage), first);
    stage.complains(&["`nowhere`"]);
}

#[test]
fn commands_are_typed_by_name() {
    let mut stage = TestUi::live(record::ordinary());
    stage.command("forw");
    stage.complains(&[]);
    assert_eq!(stage.asked(), []);
    stage.command("nonsense \u{1b}[2J");
    stage.complains(&["`nonsense`", "F1"]);
    stage.command("s");
    stage.complains(&["`s`"]);
    stage.command("");
    stage.command("  goto 4 ");
    assert_eq!(stage.selected(), Some(4));
    stage.command("#7");
    assert_eq!(stage.selected(), Some(7));
    stage.command("goto seven");
    assert_eq!(stage.selected(), Some(7));
    stage.complains(&["`seven`"]);
    stage.command("99");
    assert_eq!(stage.selected(), Some(7));
    stage.complains(&["#99"]);
    stage.command("theme mono");
    assert_eq!(stage.app.theme, Theme::Mono);
    stage.command("theme");
    assert_eq!(stage.app.theme, Theme::Dark);
    stage.command("theme pink");
    assert_eq!(stage.app.theme, Theme::Dark);
    stage.complains(&["`pink`", "dark", "light", "mono"]);
    stage.command("note here \"it\" fails");
    let params = json!({"text": "here \"it\" fails"});
    stage.expect("note", params, Ok(json!({})));
    stage.says(&[]);
    stage.press(&["a"]);
    stage.letters("look");
    stage.press(&["enter"]);
    assert_eq!(
        stage.asked(),
        [("note", json!({"text": "look", "sequence": 7}))]
    );
}

#[test]
fn a_filter_that_never_ends_is_stopped_and_told() {
    let mut stage = TestUi::live(record::ordinary());
    stage.command("filter .method | until(false; .)");
    stage.until("it is stopped", |app| app.tabs[0].view.trouble().is_some());
    let trouble = stage.app.tabs[0].view.trouble().unwrap();
    let begin: String = trouble.chars().take(20).collect();
    let screen = stage.screen(160, 50);
    assert!(screen.contains(&format!("! {begin}")), "{screen}");
    stage.press(&["ctrl-l"]);
    stage.all_read(9);
    assert_eq!(shown(&mut stage).len(), 9);
}
