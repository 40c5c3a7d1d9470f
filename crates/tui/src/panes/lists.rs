//! Breakpoints and rules.

use mcp_proxy_wire::Direction;
use mcp_proxy_wire::terminal_text::sanitize;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use super::overlay::window;
use super::{cut, span, style};
use crate::app::App;
use crate::theme::StyleRole;

pub(crate) fn breakpoints(app: &App, frame: &mut Frame<'_>, area: Rect, selected: usize) {
    let title = "Breakpoints (B adds, d removes, Esc closes)";
    let height = app.proxy.breakpoints.len().clamp(3, 20) as u16 + 2;
    let inner = window(app, frame, area, (78, height), title);
    let width = usize::from(inner.width);
    let rows = app.proxy.breakpoints.iter().enumerate();
    let mut lines: Vec<Line<'static>> = rows
        .map(|(place, breakpoint)| {
            let way = match breakpoint.direction {
                Some(Direction::ClientToServer) => "→",
                Some(Direction::ServerToClient) => "←",
                None => "↔",
            };
            let left = breakpoint.left.map(|left| format!(", {left} left"));
            let text = format!(
                " {:>3} {way} {}   {} held{}",
                breakpoint.id,
                sanitize(&breakpoint.filter),
                breakpoint.hits,
                left.unwrap_or_default()
            );
            let mut one = span(app, StyleRole::Plain, cut(&text, width));
            if place == selected {
                one = one.patch_style(style(app, StyleRole::Selected));
            }
            Line::from(one)
        })
        .collect();
    if lines.is_empty() {
        let text = " No breakpoints. B adds one: words, /regex/ or jq, as in the filter";
        lines.push(Line::from(span(app, StyleRole::Faint, text)));
    }
    let top = (selected + 1).saturating_sub(usize::from(inner.height));
    let lines: Vec<Line<'static>> = lines.into_iter().skip(top).collect();
    frame.render_widget(Paragraph::new(lines), inner);
}

pub(crate) fn rules(app: &App, frame: &mut Frame<'_>, area: Rect, top: usize) {
    let rules = &app.proxy.rules;
    let title = match &rules.file {
        Some(file) => format!("Rules of {} (Esc closes)", sanitize(file)),
        None => "Rules (Esc closes)".to_owned(),
    };
    let height = rules.rules.len().clamp(3, 20) as u16 + 3;
    let inner = window(app, frame, area, (90, height), &title);
    let width = usize::from(inner.width);
    let mut lines = Vec::new();
    if let Some(fault) = &rules.fault {
        let text = format!(
            " the file has a mistake and is not used: {}",
            sanitize(fault)
        );
        lines.push(Line::from(span(app, StyleRole::Bad, cut(&text, width))));
    }
    for rule in rules.rules.iter().skip(top) {
        let name = rule
            .name
            .as_deref()
            .map(|name| format!(" {}", sanitize(name)));
        let text = format!(
            " {:>3}{}: {}",
            rule.rule,
            name.unwrap_or_default(),
            sanitize(&rule.does)
        );
        lines.push(Line::from(span(app, StyleRole::Plain, cut(&text, width))));
    }
    if lines.is_empty() {
        let text = " No rules. `mcp-proxy proxy --rules FILE` loads some";
        lines.push(Line::from(span(app, StyleRole::Faint, text)));
    }
    frame.render_widget(Paragraph::new(lines), inner);
}
