//! Who gets the room: the list, the message, the editor, stray lines between rows.

use mcp_proxy_session::RecordEvent;
use mcp_proxy_session::testing::SampleRecord;
use mcp_proxy_tui::{ClickTarget, DetailWidth, Focus};
use mcp_proxy_wire::Direction;

use crate::record;
use crate::scenes::{editing, listed};
use crate::test_ui::TestUi;

/// The width of the area that was last drawn for this.
fn width(stage: &TestUi, target: ClickTarget) -> u16 {
    let mut areas = stage.app.click_areas.iter();
    let area = areas.find(|area| area.target == target);
    area.map_or(0, |area| area.area.width)
}

#[test]
fn a_message_is_opened_on_the_whole_width() {
    let mut stage = listed();
    stage.press(&["enter"]);
    stage.screen(80, 24);
    assert_eq!(width(&stage, ClickTarget::Detail), 78);
    assert_eq!(stage.app.focus, Focus::Detail);
    for back in ["enter", "esc", "tab", "left"] {
        stage.press(&[back]);
        assert_eq!(stage.app.focus, Focus::List, "{back}");
        assert_eq!(stage.app.detail_width, DetailWidth::Pane, "{back}");
        stage.screen(80, 24);
        assert_eq!(width(&stage, ClickTarget::List), 38);
        stage.press(&["enter"]);
    }
}

#[test]
fn a_wide_screen_gives_its_room_to_the_message() {
    let mut stage = listed();
    stage.screen(200, 60);
    assert_eq!(width(&stage, ClickTarget::List), 78);
    assert_eq!(width(&stage, ClickTarget::Detail), 118);
}

#[test]
fn the_editor_gets_the_whole_width_at_any_size() {
    let mut stage = editing();
    for (width, height) in [(40, 8), (80, 24), (200, 60)] {
        let screen = stage.screen(width, height);
        assert!(!screen.contains("Messages"), "{screen}");
        let line = screen.lines().nth(2).unwrap_or_default();
        assert_eq!(line.chars().count(), usize::from(width), "{screen}");
    }
}

/// A server that prints on stdout before and after its messages.
fn noisy() -> SampleRecord {
    let mut record = record::empty();
    let stray = |record: &mut SampleRecord, text: &str| {
        record.io(&RecordEvent::Stray {
            connection: 1,
            direction: Direction::ServerToClient,
            bytes: text.as_bytes(),
        });
    };
    let call = record.call(1, "search", "{}");
    stray(&mut record, "debug: searching");
    stray(&mut record, "debug: \u{1b}[2J found 3");
    record.result(1, call, "{}");
    stray(&mut record, "debug: done");
    record.flush();
    record
}

pub fn stray() -> TestUi {
    let mut stage = TestUi::live(noisy());
    stage.until("stray lines are read", |app| {
        app.tabs[0].view.events().len() == 3
    });
    stage
}

#[test]
fn stray_lines_are_rows_that_no_key_selects() {
    let mut stage = stray();
    let screen = stage.screen(80, 24);
    assert_eq!(screen.matches('⚠').count(), 2, "{screen}");
    assert!(screen.contains("debug: searching"), "{screen}");
    stage.press(&["k"]);
    assert_eq!(stage.selected(), Some(1));
    // The second message is on the third line.
    stage.screen(80, 24);
    stage.click(3, 4);
    assert_eq!(stage.selected(), Some(2));
    stage.click(3, 3);
    assert_eq!(stage.selected(), Some(2), "not a message");
    // A filter is about messages.
    stage.command("filter search");
    stage.all_read(2);
    assert!(!stage.screen(80, 24).contains('⚠'));
}

#[test]
fn stray_lines_never_push_the_selection_off_the_screen() {
    let mut stage = stray();
    for _ in 0..20 {
        stage
            .record
            .client(r#"{"jsonrpc":"2.0","method":"notifications/x"}"#);
        stage.record.io(&RecordEvent::Stray {
            connection: 1,
            direction: Direction::ServerToClient,
            bytes: b"again",
        });
    }
    stage.grown(22);
    for key in ["G", "k", "k", "g", "j", "j"] {
        stage.press(&[key]);
        for height in [8, 10, 24] {
            let selected = format!("#{:03} ", stage.selected().unwrap());
            let screen = stage.screen(80, height);
            assert!(screen.contains(&selected), "{key} {height}\n{screen}");
        }
    }
}
