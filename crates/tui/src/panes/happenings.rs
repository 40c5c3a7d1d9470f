//! What happened besides messages: stderr of the server, connections, exits, notes.

use mcp_proxy_wire::visible::visible;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use super::overlay::window;
use super::{cut, span};
use crate::app::{App, Overlay};
use crate::source::HappeningKind;
use crate::theme::Role;

pub fn draw(app: &mut App, frame: &mut Frame<'_>, area: Rect) {
    let Overlay::Happenings { back } = app.overlay else {
        return;
    };
    let title = "stderr, connections and notes (j k scroll, Esc closes)";
    let inner = window(app, frame, area, (u16::MAX, u16::MAX), title);
    let Some(tab) = app.tabs.get(app.tab) else {
        return;
    };
    let happenings = tab.view.happenings();
    let height = usize::from(inner.height);
    let most = happenings.len().saturating_sub(height);
    let back = back.min(most);
    let from = most - back;
    let width = usize::from(inner.width);
    let shown = happenings.iter().skip(from).take(height);
    let mut lines: Vec<Line<'static>> = shown
        .map(|one| {
            let time = mcp_proxy_session::time_text(one.time);
            let connection = one.connection.map(|connection| format!("c{connection}"));
            let text = format!(
                " {} {:<4} {:<11} {}",
                time.get(11..23).unwrap_or_default(),
                connection.unwrap_or_default(),
                word(one.kind),
                visible(&one.text)
            );
            let role = match one.kind {
                HappeningKind::Note => Role::Key,
                kind if kind.is_trouble() => Role::Bad,
                _ => Role::Plain,
            };
            Line::from(span(app, role, cut(&text, width)))
        })
        .collect();
    if lines.is_empty() {
        lines.push(Line::from(span(app, Role::Faint, " nothing so far")));
    }
    if let Overlay::Happenings { back: kept } = &mut app.overlay {
        *kept = back;
    }
    frame.render_widget(Paragraph::new(lines), inner);
}

fn word(kind: HappeningKind) -> &'static str {
    match kind {
        HappeningKind::Stderr => "stderr",
        HappeningKind::Stray => "stray",
        HappeningKind::Open => "opened",
        HappeningKind::Close => "closed",
        HappeningKind::Exit | HappeningKind::Failed => "exit",
        HappeningKind::Undelivered => "undelivered",
        HappeningKind::Gap => "gap",
        HappeningKind::Note => "note",
        HappeningKind::End => "end",
        HappeningKind::Other => "",
    }
}
