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

pub fn draw(app: &mut App, frame: &mut Frame<'_>, area: Rect) {
    let Overlay::Help { top } = app.overlay else {
        return;
    };
    let mut lines = Vec::new();
    for group in Group::ALL {
        if !lines.is_empty() {
            lines.push(Line::default());
        }
        lines.push(Line::from(span(app, Role::Key, group.heading())));
        for entry in COMMANDS.iter().filter(|entry| entry.group == group) {
            let keys: Vec<String> = entry.keys.iter().map(|key| shown_key(key)).collect();
            lines.push(Line::from(vec![
                span(app, Role::Key, format!("  {:<12}", keys.join(" "))),
                span(
                    app,
                    Role::Faint,
                    format!("{:<18}", format!(":{}", entry.name)),
                ),
                span(app, Role::Plain, entry.about),
            ]));
        }
    }
    let inner = window(
        app,
        frame,
        area,
        (110, u16::MAX),
        "Keys (j k scroll, Esc closes)",
    );
    let last = lines.len().saturating_sub(usize::from(inner.height));
    let top = top.min(last);
    if let Overlay::Help { top: kept } = &mut app.overlay {
        *kept = top;
    }
    let shown: Vec<Line<'static>> = lines.into_iter().skip(top).collect();
    frame.render_widget(Paragraph::new(shown), inner);
}
