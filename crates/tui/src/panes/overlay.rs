//! What lies over the panes: a window in the middle, or the editor in place of the message.

use mcp_proxy_control::InterceptMode;
use mcp_proxy_wire::terminal_text::sanitize;
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Block, Clear, Paragraph, Wrap};
use ratatui_textarea::{CursorMove, DataCursor, TextArea};
use unicode_width::UnicodeWidthStr as _;

use super::{counted, diff, events, framed, help, lists, servers, span, style, wrapped};
use crate::app::{App, Overlay};
use crate::command::UiCommand;
use crate::editor::EditPurpose;
use crate::theme::StyleRole;

pub(crate) fn draw(app: &mut App, frame: &mut Frame<'_>, area: Rect) {
    match app.overlay {
        Overlay::None | Overlay::Prompt(..) | Overlay::Editor(_) => {}
        Overlay::Help { top } => help::draw(app, frame, area, top),
        Overlay::ConfirmQuit => confirm_quit(app, frame, area),
        Overlay::ConfirmLeave => confirm_leave(app, frame, area),
        Overlay::Notice(_) => notice(app, frame, area),
        Overlay::Breakpoints { selected } => lists::breakpoints(app, frame, area, selected),
        Overlay::Rules { top } => lists::rules(app, frame, area, top),
        Overlay::Events { back } => events::draw(app, frame, area, back),
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
        0 => "Quitting ends the proxy, which runs in this terminal.".to_owned(),
        1 => "Quitting ends the proxy and drops the held message.".to_owned(),
        held => format!("Quitting ends the proxy and drops {held} held messages."),
    };
    confirm(
        app,
        frame,
        area,
        what,
        &[(UiCommand::EndProxy, "end it"), (UiCommand::Stay, "cancel")],
    );
}

fn confirm_leave(app: &App, frame: &mut Frame<'_>, area: Rect) {
    let breakpoints = app.proxy.breakpoints.len() as u64;
    let holding = match (app.proxy.mode, breakpoints) {
        (InterceptMode::Intercept, _) => "Every message will still be held after you quit",
        (InterceptMode::Passthrough, 0) => "Still held",
        (InterceptMode::Passthrough, 1) => {
            "Your breakpoint will still hold messages after you quit"
        }
        (InterceptMode::Passthrough, _) => {
            "Your breakpoints will still hold messages after you quit"
        }
    };
    let now = match app.proxy.held.len() as u64 {
        0 => String::new(),
        held => format!("; held now: {held}"),
    };
    let what = match (app.proxy.mode, breakpoints, app.proxy.held.len() as u64) {
        (InterceptMode::Passthrough, 0, held) => {
            format!("{holding}: {}.", counted(held, "message"))
        }
        _ => format!("{holding}{now}."),
    };
    let forward = match breakpoints {
        0 => "forward all and quit",
        1 => "remove it, forward all, quit",
        _ => "remove them, forward all, quit",
    };
    let choices = [
        (UiCommand::ForwardAndQuit, forward),
        (UiCommand::QuitHolding, "quit and keep holding"),
        (UiCommand::Stay, "stay here"),
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
    let inner = window(app, frame, area, (width, height), "Quit?");
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

/// Something that has to be seen before another key counts.
fn notice(app: &App, frame: &mut Frame<'_>, area: Rect) {
    let Overlay::Notice(text) = &app.overlay else {
        return;
    };
    let columns = usize::from(area.width.saturating_sub(4)).clamp(1, 70);
    let lines = wrapped(&sanitize(text), columns);
    let size = (columns as u16 + 4, lines.len() as u16 + 2);
    let title = format!(
        "The editor was closed ({} closes this)",
        UiCommand::Dismiss.key()
    );
    let inner = window(app, frame, area, size, &title);
    let lines = lines.into_iter().map(|line| {
        let text = format!(" {line}");
        Line::from(span(app, StyleRole::Bad, text))
    });
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), inner);
}

/// The editor.
pub(crate) fn editor(app: &mut App, frame: &mut Frame<'_>, area: Rect) {
    let (border, faint, plain) = (
        style(app, StyleRole::Focus),
        style(app, StyleRole::Faint),
        style(app, StyleRole::Selected),
    );
    let bad = style(app, StyleRole::Bad);
    let clock = match &app.overlay {
        Overlay::Editor(editor) => app.proxy.hold_of(editor.purpose.sequence()),
        _ => None,
    };
    let clock = clock.map(|held| held.describe_clock(app.now));
    let Overlay::Editor(editor) = &mut app.overlay else {
        return;
    };
    let title = match (editor.purpose, clock) {
        (EditPurpose::Hold { sequence, .. }, Some(clock)) => {
            format!(" Edit #{sequence}, held: {clock} ")
        }
        (EditPurpose::Hold { sequence, .. }, None) => format!(" Edit #{sequence}, held "),
        (EditPurpose::Replay { sequence }, _) => format!(" Edit #{sequence} and replay it "),
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
        UiCommand::EditExternally,
        UiCommand::CloseEditor,
    ]
    .map(UiCommand::key);
    let keys = format!(" {send} send  {outside} $EDITOR  {back} close ");
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
    if inner.as_size() != editor.drawn_size {
        editor.drawn_size = inner.as_size();
        scroll_to_start(&mut editor.area);
    }
    editor.area.set_cursor_line_style(plain);
    editor.area.set_cursor_style(plain);
    frame.render_widget(&editor.area, inner);
    let cursor = editor.area.screen_cursor();
    let (top, left) = editor.area.scroll_offset();
    let place = Position::new(
        inner.x + (cursor.col as u16).saturating_sub(left),
        inner.y + (cursor.row as u16).saturating_sub(top),
    );
    frame.set_cursor_position(place);
}

/// Shows the text from its start again, as far as the cursor lets it: what was scrolled away on a smaller screen may fit now.
fn scroll_to_start(area: &mut TextArea<'_>) {
    let DataCursor(row, column) = area.cursor();
    let (top, left) = area.scroll_offset();
    let back = |by: u16| -i16::try_from(by).unwrap_or(i16::MAX);
    // This takes the cursor along.
    area.scroll((back(top), back(left)));
    area.move_cursor(CursorMove::Jump(row as u16, column as u16));
}
