//! What lies over the panes: a window in the middle, or the editor in place of the message.

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Block, Clear, Paragraph};
use unicode_width::UnicodeWidthStr as _;

use super::detail::on_screen;
use super::{happenings, help, lists, sides, span, style};
use crate::app::{App, Overlay};
use crate::editor::Purpose;
use crate::theme::Role;

pub fn draw(app: &mut App, frame: &mut Frame<'_>, area: Rect) {
    match app.overlay {
        Overlay::None | Overlay::Typing(..) | Overlay::Editor(_) => {}
        Overlay::Help { .. } => help::draw(app, frame, area),
        Overlay::ConfirmQuit => confirm(app, frame, area),
        Overlay::Breakpoints { .. } => lists::breakpoints(app, frame, area),
        Overlay::Rules { .. } => lists::rules(app, frame, area),
        Overlay::Happenings { .. } => happenings::draw(app, frame, area),
        Overlay::Diff(_) => sides::draw(app, frame, area),
    }
}

/// A window of at most this size in the middle, emptied.
pub fn window(
    app: &App,
    frame: &mut Frame<'_>,
    area: Rect,
    (width, height): (u16, u16),
    title: &str,
) -> Rect {
    let (width, height) = (width.min(area.width), height.min(area.height));
    let area = Rect::new(
        area.x + (area.width - width) / 2,
        area.y + (area.height - height) / 2,
        width,
        height,
    );
    let block = Block::bordered()
        .title(format!(" {title} "))
        .border_style(style(app, Role::Focus));
    let inner = block.inner(area);
    frame.render_widget(Clear, area);
    frame.render_widget(block, area);
    inner
}

fn confirm(app: &App, frame: &mut Frame<'_>, area: Rect) {
    let inner = window(app, frame, area, (54, 5), "Leave?");
    let held = app.proxy.held.len();
    let what = match held {
        0 => "The proxy runs in this terminal and ends with it.".to_owned(),
        1 => "The proxy ends, and the held message is let go.".to_owned(),
        _ => format!("The proxy ends, and {held} held messages are let go."),
    };
    let text = Text::from(vec![
        Line::from(span(app, Role::Plain, format!(" {what}"))),
        Line::from(span(app, Role::Key, " y: end it    n: stay")),
    ]);
    frame.render_widget(Paragraph::new(text), inner);
}

/// The editor.
pub fn editor(app: &mut App, frame: &mut Frame<'_>, area: Rect) {
    let (border, faint, plain) = (
        style(app, Role::Focus),
        style(app, Role::Faint),
        style(app, Role::Selected),
    );
    let bad = style(app, Role::Bad);
    let Overlay::Editor(editor) = &mut app.overlay else {
        return;
    };
    let title = match editor.purpose {
        Purpose::Hold { sequence, .. } => format!(" #{sequence} held: edit "),
        Purpose::Replay { sequence } => format!(" #{sequence}: edit and send again "),
    };
    let (check, check_style) = match editor.fault() {
        None => (" JSON is valid ".to_owned(), faint),
        Some(fault) => (
            format!(
                " line {}, column {}: {} ",
                fault.line, fault.column, fault.why
            ),
            bad,
        ),
    };
    let keys = " Ctrl-S send  Ctrl-E $EDITOR  Esc back ";
    let has_room = check.width() + keys.width() + 2 <= usize::from(area.width);
    let mut block = Block::bordered()
        .title(title)
        .title_bottom(Line::styled(check, check_style))
        .border_style(border);
    // What is wrong goes before the keys, which the last line has as well.
    if has_room {
        block = block.title_bottom(Line::styled(keys, faint).right_aligned());
    }
    let inner = block.inner(area);
    frame.render_widget(Clear, area);
    frame.render_widget(block, area);
    let (width, height) = (usize::from(inner.width), usize::from(inner.height));
    let (top, left) = editor.area.scroll(width, height);
    let (row, column) = editor.area.cursor();
    let lines = editor.area.lines().iter().enumerate();
    let lines: Vec<Line<'static>> = lines
        .skip(top)
        .take(height)
        .map(|(place, text)| {
            let text = on_screen(text, &mut left.clone(), &mut width.clone());
            match place == row {
                true => Line::styled(text, plain),
                false => Line::raw(text),
            }
        })
        .collect();
    frame.render_widget(Paragraph::new(lines), inner);
    let place = Position::new(
        inner.x + (column - left) as u16,
        inner.y + (row - top) as u16,
    );
    frame.set_cursor_position(place);
}
