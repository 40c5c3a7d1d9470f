//! What lies over the panes: a window in the middle, or the editor in place of the message.

use mcp_proxy_control::InterceptMode;
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Block, Clear, Paragraph, Wrap};
use unicode_width::UnicodeWidthStr as _;

use super::detail::on_screen;
use super::{diff, events, framed, help, lists, servers, span, style};
use crate::app::{App, Overlay};
use crate::command::UiCommand;
use crate::editor::EditPurpose;
use crate::theme::StyleRole;

pub(crate) fn draw(app: &mut App, frame: &mut Frame<'_>, area: Rect) {
    match app.overlay {
        Overlay::None | Overlay::Prompt(..) | Overlay::Editor(_) => {}
        Overlay::Help { .. } => help::draw(app, frame, area),
        Overlay::ConfirmQuit => confirm_quit(app, frame, area),
        Overlay::ConfirmLeave => confirm_leave(app, frame, area),
        Overlay::Breakpoints { .. } => lists::breakpoints(app, frame, area),
        Overlay::Rules { .. } => lists::rules(app, frame, area),
        Overlay::Events { .. } => events::draw(app, frame, area),
        Overlay::Servers(_) => servers::draw(app, frame, area),
        Overlay::Diff(_) => diff::draw(app, frame, area),
    }
}

/// A window of at most this size in the middle, emptied.
pub(crate) fn window(
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
        .border_style(style(app, StyleRole::Focus));
    frame.render_widget(Clear, area);
    framed(frame, block, area)
}

fn confirm_quit(app: &App, frame: &mut Frame<'_>, area: Rect) {
    let what = match app.proxy.held.len() {
        0 => "The proxy runs in this terminal and ends with it.".to_owned(),
        1 => "The proxy ends, and the held message is dropped.".to_owned(),
        held => format!("The proxy ends, and {held} held messages are dropped."),
    };
    confirm(
        app,
        frame,
        area,
        what,
        &[(UiCommand::EndProxy, "end it"), (UiCommand::Stay, "stay")],
    );
}

fn confirm_leave(app: &App, frame: &mut Frame<'_>, area: Rect) {
    let what = match (app.proxy.mode, app.proxy.held.len()) {
        (InterceptMode::Intercept, 0) => "The proxy keeps holding every message.".to_owned(),
        (InterceptMode::Intercept, held) => {
            format!("The proxy keeps holding every message; {held} held now.")
        }
        (InterceptMode::Passthrough, 1) => "A message is held and stays held.".to_owned(),
        (InterceptMode::Passthrough, held) => format!("{held} messages are held and stay held."),
    };
    let choices = [
        (UiCommand::LetGo, "release all"),
        (UiCommand::LeaveHolding, "keep holding"),
        (UiCommand::Stay, "stay"),
    ];
    confirm(app, frame, area, what, &choices);
}

/// A question with its choices: on one line, or one below the other where there is no room.
fn confirm(
    app: &App,
    frame: &mut Frame<'_>,
    area: Rect,
    what: String,
    choices: &[(UiCommand, &str)],
) {
    let choices = choices.iter();
    let choices: Vec<String> = choices
        .map(|(command, word)| format!("{}: {word}", command.key()))
        .collect();
    let on_one = choices.join("    ");
    let fits = on_one.width() + 3 <= usize::from(area.width);
    let choices = match fits {
        true => vec![on_one.clone()],
        false => choices,
    };
    let width = (what.width().max(on_one.width()) + 4) as u16;
    let height = choices.len() as u16 + 2 + (what.width() as u16 + 1).div_ceil(area.width.max(1));
    let inner = window(app, frame, area, (width, height), "Leave?");
    let mut lines = vec![Line::from(span(app, StyleRole::Plain, format!(" {what}")))];
    let choices = choices.into_iter();
    lines.extend(choices.map(|text| Line::from(span(app, StyleRole::Key, format!(" {text}")))));
    // What can be pressed goes before what is said, where there is room for one only.
    let folded = (what.width() + 1).div_ceil(usize::from(inner.width.max(1)));
    if usize::from(inner.height) < lines.len() - 1 + folded {
        lines.remove(0);
    }
    let text = Paragraph::new(Text::from(lines)).wrap(Wrap { trim: false });
    frame.render_widget(text, inner);
}

/// The editor.
pub(crate) fn editor(app: &mut App, frame: &mut Frame<'_>, area: Rect) {
    let (border, faint, plain) = (
        style(app, StyleRole::Focus),
        style(app, StyleRole::Faint),
        style(app, StyleRole::Selected),
    );
    let bad = style(app, StyleRole::Bad);
    let Overlay::Editor(editor) = &mut app.overlay else {
        return;
    };
    let title = match editor.purpose {
        EditPurpose::Hold { sequence, .. } => format!(" #{sequence} held: edit "),
        EditPurpose::Replay { sequence } => format!(" #{sequence}: edit and send again "),
    };
    let (check, check_style) = match (editor.fault(), editor.remark()) {
        (None, None) => (" JSON is valid ".to_owned(), faint),
        (None, Some(remark)) => (format!(" JSON, but {remark} "), bad),
        (Some(fault), _) => (
            format!(
                " line {}, column {}: {} ",
                fault.line, fault.column, fault.why
            ),
            bad,
        ),
    };
    let [send, outside, back] = [
        UiCommand::Send,
        UiCommand::GoOnOutside,
        UiCommand::CloseEditor,
    ]
    .map(UiCommand::key);
    let keys = format!(" {send} send  {outside} $EDITOR  {back} back ");
    let has_room = check.width() + keys.width() + 2 <= usize::from(area.width);
    let mut block = Block::bordered()
        .title(title)
        .title_bottom(Line::styled(check, check_style))
        .border_style(border);
    // What is wrong goes before the keys, which the last line has as well.
    if has_room {
        block = block.title_bottom(Line::styled(keys, faint).right_aligned());
    }
    frame.render_widget(Clear, area);
    let inner = framed(frame, block, area);
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
