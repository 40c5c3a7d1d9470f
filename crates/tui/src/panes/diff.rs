//! Two bodies side by side.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph};

use super::{cut, span, style};
use crate::app::{App, DiffView, Overlay};
use crate::text::{BodyLayout, DiffRow, LineDifference};
use crate::theme::StyleRole;

pub(crate) fn draw(app: &mut App, frame: &mut Frame<'_>, area: Rect) {
    let Overlay::Diff(sides) = &app.overlay else {
        return;
    };
    frame.render_widget(Clear, area);
    let halves = Layout::horizontal([Constraint::Percentage(50), Constraint::Min(1)]).areas(area);
    let [left, right]: [Rect; 2] = halves;
    half(app, frame, left, sides, 0);
    half(app, frame, right, sides, 1);
}

fn half(app: &App, frame: &mut Frame<'_>, area: Rect, sides: &DiffView, side: usize) {
    let changed = sides
        .lines
        .iter()
        .filter(|line| line.kind != LineDifference::Same)
        .count();
    let bottom = match (side, changed) {
        (0, _) => " Esc closes ".to_owned(),
        (_, 0) => " no difference ".to_owned(),
        (_, 1) => " 1 line differs ".to_owned(),
        (_, count) => format!(" {count} lines differ "),
    };
    let block = Block::bordered()
        .title(format!(" {} ", sides.titles[side]))
        .title_bottom(bottom)
        .border_style(style(app, StyleRole::Focus));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let width = usize::from(inner.width);
    let lines = sides
        .lines
        .iter()
        .skip(sides.top)
        .take(usize::from(inner.height));
    let lines: Vec<Line<'static>> = lines
        .map(|line| one(app, &sides.bodies[side], line, side, width))
        .collect();
    frame.render_widget(Paragraph::new(lines), inner);
}

fn one(app: &App, body: &BodyLayout, line: &DiffRow, side: usize, width: usize) -> Line<'static> {
    let place = if side == 0 { line.left } else { line.right };
    let text = place.and_then(|place| body.lines().get(place));
    let text = text.map_or(String::new(), |line| {
        let pieces: String = line
            .pieces
            .iter()
            .map(|piece| piece.text.as_str())
            .collect();
        " ".repeat(usize::from(line.indent)) + &pieces
    });
    let (sign, role) = match (line.kind, side) {
        (LineDifference::Same, _) => (' ', StyleRole::Plain),
        (_, _) if place.is_none() => (' ', StyleRole::Faint),
        (_, 0) => ('-', StyleRole::Removed),
        (_, _) => ('+', StyleRole::Added),
    };
    Line::from(span(app, role, cut(&format!("{sign}{text}"), width)))
}
