//! Every screen, as a reviewed snapshot, and at sizes that nobody chooses.

use mcp_proxy_tui::{Colours, Theme};
use ratatui::style::Color;

use crate::record;
use crate::scenes::{SCENES, filtered, held, listed, replayed};
use crate::test_ui::TestUi;

#[test]
fn every_screen() {
    for (name, scene) in SCENES {
        for (width, height) in [(80, 24), (160, 50)] {
            let screen = scene().screen(width, height);
            insta::assert_snapshot!(format!("{name}-{width}x{height}"), screen);
        }
    }
}

#[test]
fn no_size_is_too_small() {
    for (name, scene) in SCENES {
        let mut stage = scene();
        for (width, height) in [
            (1, 1),
            (2, 1),
            (1, 5),
            (20, 5),
            (3, 3),
            (59, 9),
            (500, 4),
            (7, 100),
        ] {
            let screen = stage.screen(width, height);
            assert_eq!(screen.lines().count(), usize::from(height), "{name}");
        }
        // And back, with everything in its place.
        stage.screen(80, 24);
        stage.press(&["j", "k", "esc"]);
        stage.screen(80, 24);
    }
}

#[test]
fn a_small_screen_still_tells_what_matters() {
    let mut stage = held();
    insta::assert_snapshot!("held-20x5", stage.screen(20, 5));
    insta::assert_snapshot!("held-40x15", stage.screen(40, 15));
    stage.press(&["tab"]);
    insta::assert_snapshot!("held-message-20x5", stage.screen(20, 5));
    insta::assert_snapshot!("held-message-40x8", stage.screen(40, 8));
    stage.press(&["F6"]);
    insta::assert_snapshot!("editor-40x8", stage.screen(40, 8));
    stage.press(&["esc", "q"]);
    insta::assert_snapshot!("leave-20x5", stage.screen(20, 5));
    insta::assert_snapshot!("leave-40x15", stage.screen(40, 15));
    stage.press(&["esc", "F1"]);
    insta::assert_snapshot!("help-20x5", stage.screen(20, 5));
}

/// What is shown is not all there is: that is told on every screen.
#[test]
fn the_filter_is_seen_at_every_width() {
    let mut stage = filtered();
    for (width, height) in [
        (160, 50),
        (80, 24),
        (60, 15),
        (40, 15),
        (40, 8),
        (20, 8),
        (20, 5),
    ] {
        let screen = stage.screen(width, height);
        assert!(
            screen.contains("[Filter: .stat"),
            "{width}×{height}\n{screen}"
        );
    }
    insta::assert_snapshot!("filtered-40x15", stage.screen(40, 15));
}

/// A line that goes on is seen to.
#[test]
fn lines_that_are_cut_say_so() {
    let mut stage = listed();
    stage.press(&["W"]);
    let screen = stage.screen(80, 24);
    assert!(screen.contains("no such file: /srv/…│"), "{screen}");
    stage.press(&["tab", "right"]);
    let screen = stage.screen(80, 24);
    assert!(screen.contains("no such file: /srv/notes/pl…│"), "{screen}");
    // One that just fits is whole.
    stage.press(&["left"]);
    let screen = stage.screen(160, 50);
    assert!(screen.contains("plan.txt\""), "{screen}");
}

#[test]
fn d9_an_error_is_read_at_80_columns() {
    let mut stage = listed();
    let screen = stage.screen(80, 24);
    // The first line above the body, and the whole text in it.
    let text = "tool error: no such file:";
    assert!(screen.contains(text), "{screen}");
    assert_eq!(screen.matches("plan.txt").count(), 2, "{screen}");
    let keys = screen.lines().last().unwrap_or_default();
    assert!(keys.contains("W:") && keys.contains("Enter:"), "{keys}");
    // Also of the answer in the row of a call.
    stage.press(&["C"]);
    stage.all_read(9);
    assert!(stage.screen(80, 24).contains(text));
}

#[test]
fn d9_every_part_of_a_long_text_can_be_reached() {
    let mut record = record::ordinary();
    let call = record.call(4, "search", "{}");
    let words: Vec<String> = (0..500).map(|number| format!("word{number}")).collect();
    let text = words.join(" ");
    record.result(
        4,
        call,
        &format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#),
    );
    record.flush();
    let mut stage = TestUi::live(record);
    stage.all_read(11);
    stage.press(&["G", "tab"]);
    let mut seen = stage.screen(80, 24);
    for _ in 0..60 {
        stage.press(&["pagedown"]);
        seen.push_str(&stage.screen(80, 24));
    }
    for word in &words {
        assert!(seen.contains(word.as_str()), "{word}");
    }
    stage.press(&["g", "/"]);
    stage.letters("word321 ");
    stage.press(&["enter"]);
    assert!(stage.screen(80, 24).contains("word321"));
    // The text stays where it is at another width.
    assert!(stage.screen(160, 45).contains("word321"));
}

#[test]
fn d9_a_comparison_wraps() {
    let mut stage = replayed();
    stage.press(&["D"]);
    let screen = stage.screen(80, 24);
    assert!(screen.contains("plan.txt\""), "{screen}");
    stage.press(&["W"]);
    assert!(!stage.screen(80, 24).contains("plan.txt\""));
}

#[test]
fn the_status_bar_names_each_key_once() {
    let screen = listed().screen(160, 50);
    let status = screen.lines().last().unwrap_or_default();
    assert!(status.contains("  : "), "{status}");
    assert!(!status.contains("::"), "{status}");
}

#[test]
fn without_colours_nothing_is_coloured_and_nothing_is_lost() {
    let (mut dark, mut mono) = (held(), held());
    mono.app.theme = Theme::Mono;
    assert_eq!(dark.screen(80, 24), mono.screen(80, 24));
    for cell in mono.cells(80, 24).content() {
        assert_eq!((cell.fg, cell.bg), (Color::Reset, Color::Reset), "{cell:?}");
    }
    let coloured = |theme: Theme| {
        let mut stage = listed();
        stage.app.theme = theme;
        stage.cells(80, 24)
    };
    let colours = |theme| {
        let cells = coloured(theme);
        let colours = cells.content().iter().map(|cell| (cell.fg, cell.bg));
        colours.collect::<Vec<_>>()
    };
    assert_ne!(colours(Theme::Dark), colours(Theme::Light));
    // Where colours are not wanted, every theme is that without them.
    let mut unwanted = held();
    unwanted.app.colours = Colours::None;
    for theme in Theme::ALL {
        unwanted.app.theme = theme;
        assert_eq!(unwanted.cells(80, 24), mono.cells(80, 24), "{theme:?}");
    }
}
