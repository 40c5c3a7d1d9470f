//! The keys, from the table of commands.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use super::overlay::window;
use super::{span, wrapped};
use crate::app::{App, Overlay};
use crate::command::{COMMANDS, CommandGroup, shown_key};
use crate::theme::StyleRole;

/// The column where it says what a key does.
const ABOUT: usize = 32;
/// Below this width it says so on the lines below.
const NARROW: u16 = 60;
/// There it begins at this column.
const BELOW: usize = 2;

pub(crate) fn draw(app: &mut App, frame: &mut Frame<'_>, area: Rect, top: usize) {
    let title = "Keys (j k scroll, Esc closes)";
    let inner = window(app, frame, area, (110, u16::MAX), title);
    let is_narrow = inner.width < NARROW;
    let about_at = if is_narrow { BELOW } else { ABOUT };
    let room = usize::from(inner.width).saturating_sub(about_at);
    let mut lines = Vec::new();
    for group in CommandGroup::ALL {
        if !lines.is_empty() {
            lines.push(Line::default());
        }
        lines.push(Line::from(span(app, StyleRole::Key, group.heading())));
        for entry in COMMANDS.iter().filter(|entry| entry.group == group) {
            let keys: Vec<String> = entry.keys.iter().map(|key| shown_key(key)).collect();
            let mut about = wrapped(entry.about, room).into_iter();
            let (keys, name) = (keys.join(" "), entry.shown_name());
            let mut first = vec![
                span(app, StyleRole::Key, format!("  {keys:<12}")),
                span(app, StyleRole::Faint, format!("{name:<18}")),
            ];
            match is_narrow {
                true => first[0] = span(app, StyleRole::Key, format!("{keys} ")),
                false => first.push(span(
                    app,
                    StyleRole::Plain,
                    about.next().unwrap_or_default(),
                )),
            }
            lines.push(Line::from(first));
            let more = about.map(|text| format!("{:about_at$}{text}", ""));
            lines.extend(more.map(|text| Line::from(span(app, StyleRole::Plain, text))));
        }
    }
    let last = lines.len().saturating_sub(usize::from(inner.height));
    let top = top.min(last);
    app.overlay = Overlay::Help { top };
    let shown: Vec<Line<'static>> = lines.into_iter().skip(top).collect();
    frame.render_widget(Paragraph::new(shown), inner);
}
