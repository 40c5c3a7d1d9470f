//! Two bodies side by side.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph};

use super::{cut, span, style};
use crate::app::{App, DiffScreenRow, DiffView, Overlay};
use crate::text::{BodyLayout, LineDifference};
use crate::theme::StyleRole;

pub(crate) fn draw(app: &mut App, frame: &mut Frame<'_>, area: Rect) {
    let halves = Layout::horizontal([Constraint::Percentage(50), Constraint::Min(1)]).areas(area);
    let halves: [Rect; 2] = halves;
    let Overlay::Diff(view) = &mut app.overlay else {
        return;
    };
    // Each has a frame, and a column for the sign.
    let columns = halves.map(|half| usize::from(half.width.saturating_sub(3)));
    view.wrap_at(app.wraps.then_some(columns));
    let Overlay::Diff(view) = &app.overlay else {
        return;
    };
    frame.render_widget(Clear, area);
    for (side, area) in halves.into_iter().enumerate() {
        half(app, frame, area, view, side);
    }
}

fn half(app: &App, frame: &mut Frame<'_>, area: Rect, view: &DiffView, side: usize) {
    let changed = view
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
        .title(format!(" {} ", view.titles[side]))
        .title_bottom(bottom)
        .border_style(style(app, StyleRole::Focus));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let width = usize::from(inner.width);
    let rows = view.rows.iter().skip(view.top);
    let rows = rows.take(usize::from(inner.height));
    let rows: Vec<Line<'static>> = rows
        .map(|row| screen_row(app, &view.bodies[side], row, side, width))
        .collect();
    frame.render_widget(Paragraph::new(rows), inner);
}

fn screen_row(
    app: &App,
    body: &BodyLayout,
    row: &DiffScreenRow,
    side: usize,
    width: usize,
) -> Line<'static> {
    let part = row.sides[side];
    let text = part.and_then(|part| {
        let line = body.lines().get(part.line)?;
        let pieces = line.row_pieces(&part).into_iter();
        let text: String = pieces.map(|(text, _)| text).collect();
        Some(" ".repeat(part.indent) + &text)
    });
    let (sign, role) = match (row.kind, side) {
        (LineDifference::Same, _) => (' ', StyleRole::Plain),
        (_, _) if part.is_none() => (' ', StyleRole::Faint),
        (_, 0) => ('-', StyleRole::Removed),
        (_, _) => ('+', StyleRole::Added),
    };
    let text = format!("{sign}{}", text.unwrap_or_default());
    Line::from(span(app, role, cut(&text, width)))
}
