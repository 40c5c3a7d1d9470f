//! The mouse, on what was last drawn.

use crossterm::event::MouseEventKind;
use mcp_proxy_tui::UiCommand;
use mcp_proxy_tui::{ClickTarget, Focus, Overlay, PromptKind};
use serde_json::json;

use crate::record;
use crate::scenes::held;
use crate::test_ui::TestUi;

/// Where the last drawn target of this kind begins.
fn place(stage: &TestUi, target: ClickTarget) -> (u16, u16) {
    let mut hits = stage.app.click_areas.iter();
    let hit = hits.find(|hit| hit.target == target).unwrap();
    (hit.area.x, hit.area.y)
}

#[test]
fn rows_lines_and_buttons_are_pressed() {
    let mut stage = held();
    stage.screen(160, 50);
    let (column, row) = place(&stage, ClickTarget::List);
    stage.click(column + 3, row + 1);
    assert_eq!((stage.selected(), stage.app.focus), (Some(2), Focus::List));
    stage.click(column, row + 40);
    assert_eq!(stage.selected(), Some(2), "there is no row");
    stage.screen(160, 50);
    let (column, row) = place(&stage, ClickTarget::Detail);
    stage.click(column, row + 2);
    assert_eq!(stage.app.focus, Focus::Detail);
    assert_eq!(stage.app.tabs[0].detail.as_ref().unwrap().cursor, 2);
    let (column, row) = place(&stage, ClickTarget::Button(UiCommand::Drop));
    stage.click(column, row);
    assert_eq!(stage.asked(), [], "another message was selected");
    stage.click(column, row);
    let params = json!({"hold": 1, "action": "drop"});
    assert_eq!(stage.asked(), [("hold.resolve", params)]);
    let (column, row) = place(&stage, ClickTarget::Button(UiCommand::ToggleIntercept));
    stage.click(column, row);
    let params = json!({"mode": "intercept"});
    assert_eq!(stage.asked(), [("intercept.set", params)]);
    let (column, row) = place(&stage, ClickTarget::Button(UiCommand::Filter));
    stage.click(column, row);
    assert!(matches!(
        stage.app.overlay,
        Overlay::Prompt(PromptKind::Filter, _)
    ));
}

#[test]
fn the_wheel_moves_what_it_is_over() {
    let mut stage = TestUi::live(record::ordinary());
    stage.press(&["g"]);
    stage.screen(160, 50);
    let (column, row) = place(&stage, ClickTarget::List);
    stage.mouse(MouseEventKind::ScrollDown, column, row);
    assert_eq!(stage.selected(), Some(4));
    stage.mouse(MouseEventKind::ScrollUp, column, row);
    assert_eq!(stage.selected(), Some(1));
    let (column, row) = place(&stage, ClickTarget::Detail);
    stage.mouse(MouseEventKind::ScrollDown, column, row);
    let cursor = stage.app.tabs[0].detail.as_ref().unwrap().cursor;
    assert_eq!((stage.selected(), cursor), (Some(1), 3));
    stage.press(&["F1"]);
    stage.mouse(MouseEventKind::ScrollDown, column, row);
    assert!(matches!(stage.app.overlay, Overlay::Help { top: 3 }));
}

#[test]
fn what_is_behind_a_window_is_not_pressed() {
    let mut stage = TestUi::live(record::ordinary());
    stage.press(&["F1"]);
    stage.screen(160, 50);
    for row in 2..40 {
        stage.click(40, row);
    }
    assert_eq!(stage.selected(), Some(9));
    let mut stage = held();
    stage.press(&["F6", "x"]);
    stage.screen(160, 50);
    for row in 0..50 {
        for column in (0..160).step_by(4) {
            stage.click(column, row);
        }
    }
    assert_eq!(stage.asked(), []);
    assert!(
        matches!(stage.app.overlay, Overlay::Editor(_)),
        "the text stays"
    );
}
