//! One row for each call.

use mcp_proxy_tui::RowGrouping;

use crate::record;
use crate::scenes::listed;
use crate::test_ui::TestUi;

fn shown(stage: &mut TestUi) -> Vec<(u64, Option<u64>)> {
    let rows = stage.app.tabs[0].view.window(0, 100);
    let pairs = rows.iter().map(|row| {
        let answer = row.answer.as_ref();
        (row.sequence, answer.map(|answer| answer.sequence))
    });
    pairs.collect()
}

/// The ordinary session, by calls.
pub fn grouped() -> TestUi {
    let mut stage = listed();
    stage.press(&["C"]);
    stage.all_read(9);
    stage.app.status = None;
    stage
}

#[test]
fn a_request_and_its_answer_share_a_row() {
    let mut stage = grouped();
    let calls = [
        (1, Some(2)),
        (3, None),
        (4, Some(5)),
        (6, Some(7)),
        (8, Some(9)),
    ];
    assert_eq!(shown(&mut stage), calls);
    // Of the answer that was selected the call is.
    assert_eq!(
        (stage.selected(), stage.app.tabs[0].place()),
        (Some(8), Some(4))
    );
    stage.press(&["k"]);
    assert_eq!(stage.selected(), Some(6));
    let screen = stage.screen(120, 40);
    assert!(screen.contains("\"query\": \"rust proxies\""), "{screen}");
    assert!(screen.contains("3 results"), "{screen}");
    // Alone, it is shown by p, and back.
    stage.press(&["p"]);
    assert_eq!(stage.selected(), Some(7));
    assert!(!stage.screen(120, 40).contains("rust proxies"));
    stage.press(&["p", "C"]);
    stage.all_read(9);
    assert_eq!(stage.app.tabs[0].view.grouping(), RowGrouping::Messages);
    assert_eq!((shown(&mut stage).len(), stage.selected()), (9, Some(6)));
}

#[test]
fn d16_calls_show_the_request_and_the_selected_answer_at_once() {
    let mut stage = listed();
    stage.press(&["!"]);
    stage.all_read(9);
    stage.until("one is left", |app| app.tabs[0].view.len() == 1);
    assert_eq!(stage.selected(), Some(9));
    stage.press(&["C"]);
    stage.all_read(9);
    let screen = stage.screen(160, 45);
    assert!(screen.contains("/srv/notes/plan.txt\""), "{screen}");
    assert!(screen.contains("\"isError\": true"), "{screen}");
    // And back at the answer, which is all that the filter shows.
    stage.press(&["C"]);
    stage.all_read(9);
    stage.until("it is selected", |app| app.tabs[0].selected == Some(9));
}

#[test]
fn an_answer_that_comes_later_joins_its_call() {
    let mut stage = grouped();
    let call = stage.record.call(4, "search", "{}");
    stage.grown(10);
    stage.until("it is shown", |app| app.tabs[0].view.len() == 6);
    assert_eq!(shown(&mut stage).last(), Some(&(10, None)));
    stage.record.result(4, call, "{}");
    stage.grown(11);
    assert_eq!(shown(&mut stage).last(), Some(&(10, Some(11))));
    assert_eq!(shown(&mut stage).len(), 6);
}

#[test]
fn a_filter_finds_calls_by_their_answers() {
    let mut stage = grouped();
    stage.command("filter no such file");
    stage.all_read(9);
    stage.until("it is found", |app| app.tabs[0].view.len() == 1);
    assert_eq!(shown(&mut stage), [(8, Some(9))]);
    // A verdict on the answer does not hide the call.
    record::decide(&mut stage.record, "hold", 9).write();
    record::decide(&mut stage.record, "forward", 9).write();
    stage.grown(9);
    stage.until("it is read", |app| {
        let told = app.tabs[0].view.message_with_context(9);
        told.is_ok_and(|told| told.message.verdicts.len() == 2)
    });
    assert_eq!(shown(&mut stage), [(8, Some(9))]);
}

#[test]
fn only_errors_are_shown_and_then_what_was_before() {
    for grouping in [RowGrouping::Messages, RowGrouping::Calls] {
        let mut stage = listed();
        if grouping == RowGrouping::Calls {
            stage.press(&["C"]);
        }
        stage.command("filter tools/call");
        stage.all_read(9);
        stage.press(&["!"]);
        stage.all_read(9);
        stage.until("one is left", |app| app.tabs[0].view.len() == 1);
        stage.press(&["!"]);
        stage.all_read(9);
        assert_eq!(stage.app.tabs[0].view.filter(), "tools/call");
    }
}

#[test]
fn a_held_answer_is_decided_in_the_row_of_its_call() {
    let mut stage = grouped();
    let call = stage.record.call(4, "search", "{}");
    let answer = stage.record.result(4, call, "{}");
    stage.hold(1, answer, "breakpoint 1");
    stage.all_read(11);
    stage.until("it is selected", |app| app.tabs[0].selected == Some(11));
    assert!(stage.screen(120, 40).contains("⏸ #010"));
    stage.press(&["F5"]);
    assert_eq!(stage.asked()[0].1["hold"], 1);
}
