//! What happened besides messages: stderr of the server, connections, exits, notes.

use mcp_proxy_wire::terminal_text::sanitize;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use super::overlay::window;
use super::{cut, span};
use crate::app::{App, Overlay};
use crate::source::SessionEventKind;
use crate::theme::StyleRole;

pub(crate) fn draw(app: &mut App, frame: &mut Frame<'_>, area: Rect, back: usize) {
    let title = "stderr, connections and notes (j k scroll, Esc closes)";
    let inner = window(app, frame, area, (u16::MAX, u16::MAX), title);
    let Some(tab) = app.tabs.get(app.tab) else {
        return;
    };
    let events = tab.view.events();
    let height = usize::from(inner.height);
    let most = events.len().saturating_sub(height);
    let back = back.min(most);
    let from = most - back;
    let width = usize::from(inner.width);
    let shown = events.iter().skip(from).take(height);
    let mut lines: Vec<Line<'static>> = shown
        .map(|one| {
            let time = mcp_proxy_session::time_text(one.time);
            let connection = one.connection.map(|connection| format!("c{connection}"));
            let text = format!(
                " {} {:<4} {:<11} {}",
                time.get(11..23).unwrap_or_default(),
                connection.unwrap_or_default(),
                word(one.kind),
                sanitize(&one.text)
            );
            let role = match one.kind {
                SessionEventKind::Note => StyleRole::Key,
                kind if kind.is_trouble() => StyleRole::Bad,
                _ => StyleRole::Plain,
            };
            Line::from(span(app, role, cut(&text, width)))
        })
        .collect();
    if lines.is_empty() {
        lines.push(Line::from(span(app, StyleRole::Faint, " nothing so far")));
    }
    app.overlay = Overlay::Events { back };
    frame.render_widget(Paragraph::new(lines), inner);
}

fn word(kind: SessionEventKind) -> &'static str {
    match kind {
        SessionEventKind::Stderr => "stderr",
        SessionEventKind::Stray => "stray",
        SessionEventKind::Open => "opened",
        SessionEventKind::Close => "closed",
        SessionEventKind::Exit | SessionEventKind::Failed => "exit",
        SessionEventKind::Undelivered => "undelivered",
        SessionEventKind::Gap => "gap",
        SessionEventKind::Note => "note",
        SessionEventKind::End => "end",
        SessionEventKind::Other => "",
    }
}
