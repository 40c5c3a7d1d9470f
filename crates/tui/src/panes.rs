//! The screen: every pane draws the state, and notes where the mouse finds what.

mod bars;
mod detail;
mod diff;
mod events;
mod help;
mod lists;
mod overlay;
mod rows;
mod servers;
mod title;
mod waiting;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::Span;
use ratatui::widgets::Block;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::app::{App, DetailWidth, Focus, Overlay};
use crate::theme::StyleRole;

/// Below this width only one pane is shown.
const TWO_PANES: u16 = 60;
/// The list gets half of the screen, but no more columns than this: the rest says more in the message.
const LIST_COLUMNS: u16 = 80;
/// Below this height the bars are left out one after the other.
const ALL_BARS: u16 = 10;

/// Draws everything.
pub fn draw(app: &mut App, frame: &mut Frame<'_>) {
    app.click_areas.clear();
    let area = frame.area();
    if area.width < 2 || area.height < 1 {
        return;
    }
    let bars = match area.height {
        0..=2 => 0,
        3..=5 => 1,
        6..ALL_BARS => 2,
        _ => 3,
    };
    let title = u16::from(area.height > 1);
    let [top, middle, bottom] = Layout::vertical([
        Constraint::Length(title),
        Constraint::Min(1),
        Constraint::Length(bars),
    ])
    .areas(area);
    title::draw(app, frame, top);
    panes(app, frame, middle);
    overlay::draw(app, frame, middle);
    bars::bottom(app, frame, bottom);
}

fn panes(app: &mut App, frame: &mut Frame<'_>, area: Rect) {
    if let Some(tab) = app.current() {
        tab.show();
    }
    if matches!(app.overlay, Overlay::Editor(_)) {
        return overlay::editor(app, frame, area);
    }
    if waiting::is_wanted(app) {
        return waiting::draw(app, frame, area);
    }
    if area.width < TWO_PANES || app.detail_width == DetailWidth::Whole {
        return match app.focus {
            Focus::List => rows::draw(app, frame, area),
            Focus::Detail => detail::draw(app, frame, area),
        };
    }
    let list = (area.width / 2).min(LIST_COLUMNS);
    let [left, right] =
        Layout::horizontal([Constraint::Length(list), Constraint::Min(1)]).areas(area);
    rows::draw(app, frame, left);
    detail::draw(app, frame, right);
}

/// Draws a frame, and gives what is in it. Where there is hardly room for anything there is no frame.
fn framed(frame: &mut Frame<'_>, block: Block<'_>, area: Rect) -> Rect {
    if area.height < 4 {
        return area;
    }
    let inner = block.inner(area);
    frame.render_widget(block, area);
    inner
}

/// Text cut to this many columns, with `…` where it was cut.
fn cut(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 0;
    for letter in text.chars() {
        let width = letter.width().unwrap_or(0);
        if used + width + 1 > columns {
            break;
        }
        out.push(letter);
        used += width;
    }
    if columns > 0 {
        out.push('…');
    }
    out
}

/// `1 rule`, `3 rules`.
fn counted(count: u64, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    }
}

/// A text on lines of this many columns, broken between words.
fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.width() + 1 + word.width() <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// A span in the colours of the theme.
fn span(app: &App, role: StyleRole, text: impl Into<String>) -> Span<'static> {
    Span::styled(text.into(), style(app, role))
}

fn style(app: &App, role: StyleRole) -> Style {
    app.theme.style(role, app.colours)
}
