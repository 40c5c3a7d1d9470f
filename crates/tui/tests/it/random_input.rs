//! Whatever is pressed, whenever: no panic.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEventKind};
use mcp_proxy_tui::COMMANDS;
use mcp_proxy_tui::InputEvent;
use proptest::prelude::*;

use crate::record;
use crate::scenes::{SCENES, held};
use crate::test_ui::{TestUi, key};

/// Screens whose keys mean different things.
const WINDOWS: [&str; 16] = [
    "held",
    "editor",
    "filter-typed",
    "command",
    "help",
    "breakpoints",
    "rules",
    "stderr",
    "servers",
    "diff-edit",
    "quit",
    "leave",
    "ended",
    "record",
    "connecting",
    "failed",
];

#[test]
fn every_command_in_every_window() {
    for (name, scene) in SCENES.iter().filter(|(name, _)| WINDOWS.contains(name)) {
        let mut stage = scene();
        for entry in COMMANDS {
            for rest in ["", "har /var/x"] {
                stage.app.run(entry.command, rest);
                stage.asked();
            }
            let screen = stage.screen(30, 6);
            assert!(!screen.is_empty(), "{name}: {}", entry.name);
        }
    }
}

/// Each command on each window, where there is no message at all.
#[test]
fn every_command_without_a_message() {
    let mut stage = TestUi::opened(record::empty());
    for entry in COMMANDS {
        for open in ["", "F1", "b", "u", "l", "v", "F6", "R", "F2", ":", "/", "D"] {
            stage.press(&["esc", "esc"]);
            if !open.is_empty() {
                stage.press(&[open]);
            }
            stage.run(entry.command);
            stage.screen(30, 6);
            for name in entry.keys {
                stage.app.handle_input(InputEvent::Key(key(name)));
            }
        }
    }
}

/// Keys that mean something, more often than chance would have it; and any other.
fn any_key() -> impl Strategy<Value = KeyEvent> {
    let known: Vec<&str> = COMMANDS
        .iter()
        .flat_map(|entry| entry.keys)
        .copied()
        .collect();
    prop_oneof![
        6 => proptest::sample::select(known).prop_map(key),
        2 => any::<char>().prop_map(|letter| KeyEvent::new(KeyCode::Char(letter), KeyModifiers::NONE)),
        1 => proptest::sample::select(vec!["backspace", "delete", "esc", "enter", "ctrl-s", "ctrl-e", "ctrl-a", "ctrl-w"])
            .prop_map(key),
        1 => (0..=255_u8).prop_map(|bits| KeyEvent::new(KeyCode::Tab, KeyModifiers::from_bits_truncate(bits))),
    ]
}

#[derive(Clone, Debug)]
enum UserAction {
    Key(KeyEvent),
    Click(u16, u16),
    Wheel(u16, u16),
    Paste(String),
    Draw(u16, u16),
    Hold,
    LetGo,
}

fn any_deed() -> impl Strategy<Value = UserAction> {
    prop_oneof![
        20 => any_key().prop_map(UserAction::Key),
        3 => (0..170_u16, 0..55_u16).prop_map(|(column, row)| UserAction::Click(column, row)),
        1 => (0..170_u16, 0..55_u16).prop_map(|(column, row)| UserAction::Wheel(column, row)),
        1 => any::<String>().prop_map(UserAction::Paste),
        4 => (1..170_u16, 1..55_u16).prop_map(|(width, height)| UserAction::Draw(width, height)),
        1 => Just(UserAction::Hold),
        1 => Just(UserAction::LetGo),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_of_deeds(deeds in proptest::collection::vec(any_deed(), 1..120)) {
        let mut stage = held();
        for deed in deeds {
            match deed {
                UserAction::Key(key) => stage.app.handle_input(InputEvent::Key(key)),
                UserAction::Click(column, row) => stage.mouse(MouseEventKind::Down(MouseButton::Left), column, row),
                UserAction::Wheel(column, row) => stage.mouse(MouseEventKind::ScrollUp, column, row),
                UserAction::Paste(text) => stage.app.handle_input(InputEvent::Paste(text)),
                UserAction::Draw(width, height) => drop(stage.cells(width, height)),
                UserAction::Hold => {
                    let hold = stage.holds.len() as u64 + 1;
                    stage.hold(hold, 8 + hold, "breakpoint 1");
                }
                UserAction::LetGo => stage.let_go(1),
            }
            stage.settle();
            stage.asked();
        }
        stage.cells(80, 24);
    }
}
