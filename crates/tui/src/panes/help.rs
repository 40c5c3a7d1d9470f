//! The keys, from the table of commands.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use super::overlay::window;
use super::span;
use crate::app::{App, Overlay};
use crate::command::{COMMANDS, Group, shown_key};
use crate::theme::Role;

/// The column where it says what a key does.
const ABOUT: usize = 32;

pub fn draw(app: &mut App, frame: &mut Frame<'_>, area: Rect) {
    let Overlay::Help { top } = app.overlay else {
        return;
    };
    let title = "Keys (j k scroll, Esc closes)";
    let inner = window(app, frame, area, (110, u16::MAX), title);
    let room = usize::from(inner.width).saturating_sub(ABOUT);
    let mut lines = Vec::new();
    for group in Group::ALL {
        if !lines.is_empty() {
            lines.push(Line::default());
        }
        lines.push(Line::from(span(app, Role::Key, group.heading())));
        for entry in COMMANDS.iter().filter(|entry| entry.group == group) {
            let keys: Vec<String> = entry.keys.iter().map(|key| shown_key(key)).collect();
            let mut about = wrapped(entry.about, room).into_iter();
            lines.push(Line::from(vec![
                span(app, Role::Key, format!("  {:<12}", keys.join(" "))),
                span(
                    app,
                    Role::Faint,
                    format!("{:<18}", format!(":{}", entry.name)),
                ),
                span(app, Role::Plain, about.next().unwrap_or_default()),
            ]));
            let more = about.map(|text| format!("{:ABOUT$}{text}", ""));
            lines.extend(more.map(|text| Line::from(span(app, Role::Plain, text))));
        }
    }
    let last = lines.len().saturating_sub(usize::from(inner.height));
    let top = top.min(last);
    if let Overlay::Help { top: kept } = &mut app.overlay {
        *kept = top;
    }
    let shown: Vec<Line<'static>> = lines.into_iter().skip(top).collect();
    frame.render_widget(Paragraph::new(shown), inner);
}

/// A text on lines of so many columns, broken between words.
fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.len() + 1 + word.len() <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
