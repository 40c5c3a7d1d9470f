//! Filter, control and status bar.

use mcp_proxy_control::InterceptMode;
use mcp_proxy_session::Filter;
use mcp_proxy_session::export::file_endings;
use mcp_proxy_wire::terminal_text::sanitize;
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Paragraph};
use unicode_width::UnicodeWidthStr as _;

use super::title::NARROW;
use super::{cut, span, wrapped};
use crate::app::{App, ClickArea, ClickTarget, Overlay, PromptKind, StatusTone};
use crate::command::{CommandGroup, UiCommand, shown_key};
use crate::proxy::ProxyStatus;
use crate::source::{RowGrouping, ViewState};
use crate::theme::StyleRole;

/// What the status bar names, with the word for it: as much of it as there is room for.
const STATUS: [(UiCommand, &str); 13] = [
    (UiCommand::Help, "Help"),
    (UiCommand::Filter, "Filter"),
    (UiCommand::Forward, "Forward"),
    (UiCommand::Modify, "Modify"),
    (UiCommand::Drop, "Drop"),
    (UiCommand::Open, "Open"),
    (UiCommand::Errors, "Errors"),
    (UiCommand::Peer, "Answer"),
    (UiCommand::Wrap, "Wrap"),
    (UiCommand::Quit, "Quit"),
    (UiCommand::Diff, "Diff"),
    (UiCommand::Search, "Search"),
    (UiCommand::CommandLine, "Command"),
];

/// The same while two bodies are compared.
const DIFF: [(UiCommand, &str); 6] = [
    (UiCommand::Down, "Down"),
    (UiCommand::Up, "Up"),
    (UiCommand::PageDown, "Page down"),
    (UiCommand::Wrap, "Wrap"),
    (UiCommand::Back, "Close"),
    (UiCommand::Help, "Help"),
];

/// The same while the servers of a hub are shown.
const SERVERS: [(UiCommand, &str); 7] = [
    (UiCommand::ServerMessages, "Messages"),
    (UiCommand::RestartServer, "Restart"),
    (UiCommand::EnableServer, "Enable"),
    (UiCommand::DisableServer, "Disable"),
    (UiCommand::ReloadServers, "Reload config"),
    (UiCommand::Back, "Close"),
    (UiCommand::Help, "Help"),
];

/// The same while a message is edited: the editor takes all other keys.
const EDITOR: [(UiCommand, &str); 5] = [
    (UiCommand::Send, "Send"),
    (UiCommand::CloseEditor, "Close"),
    (UiCommand::EditExternally, "$EDITOR"),
    (UiCommand::StartOver, "Start over"),
    (UiCommand::Undo, "Undo"),
];

/// The buttons of the control bar.
const BUTTONS: [(UiCommand, &str); 9] = [
    (UiCommand::Forward, "Forward"),
    (UiCommand::Modify, "Modify"),
    (UiCommand::Drop, "Drop"),
    (UiCommand::Step, "Step"),
    (UiCommand::Continue, "Continue"),
    (UiCommand::Replay, "Replay"),
    (UiCommand::Save, "Save"),
    (UiCommand::Load, "Load"),
    (UiCommand::Export, "Export"),
];

/// How much of a filter is shown before anything else on its line.
const FILTER_FIRST: usize = 24;
/// What a filter can be, for somebody who has typed nothing yet.
const FILTER_EXAMPLES: [&str; 5] = [
    "words: read_file",
    "regex: /time.?out/i",
    "jq: .status == \"error\"",
    ".tool == \"search\"",
    ".latency_ms > 500",
];
/// How many lines a status message may take.
const SAID_LINES: u16 = 3;

/// The bars below the panes, as many as there is room for: the status bar last.
pub(crate) fn bottom(app: &mut App, frame: &mut Frame<'_>, area: Rect) {
    let row = |index: u16| Rect::new(area.x, area.y + index, area.width, 1);
    match area.height {
        0 => {}
        1 => last(app, frame, row(0)),
        2 => {
            filter(app, frame, row(0));
            last(app, frame, row(1));
        }
        _ => {
            filter(app, frame, row(0));
            controls(app, frame, row(1));
            last(app, frame, row(2));
        }
    }
}

/// What was said, or the keys. Whatever is typed is shown where nothing else would be.
fn last(app: &mut App, frame: &mut Frame<'_>, area: Rect) {
    match (&app.overlay, &app.status) {
        (Overlay::Prompt(PromptKind::UiCommand | PromptKind::Search, _), _) => {
            typing(app, frame, area)
        }
        (Overlay::Prompt(PromptKind::Filter, _), _) if frame.area().height < 6 => {
            typing(app, frame, area);
        }
        (Overlay::Notice(_), _) => key_bar(app, frame, area, &[(UiCommand::Dismiss, "Close")]),
        (_, Some(said)) => {
            let (role, sign) = match said.tone {
                StatusTone::Bad => (StyleRole::Bad, "! "),
                StatusTone::Plain => (StyleRole::Key, ""),
            };
            let text = format!("{sign}{}", sanitize(&said.text));
            say(app, frame, area, &text, role);
        }
        (Overlay::Editor(_), None) => key_bar(app, frame, area, &EDITOR),
        (Overlay::Servers(_), None) => key_bar(app, frame, area, &SERVERS),
        (Overlay::Diff(_), None) => key_bar(app, frame, area, &DIFF),
        // Nowhere else is there room to tell that not all is shown.
        (_, None) if frame.area().height < 6 && has_filter(app) => filter(app, frame, area),
        _ => status(app, frame, area),
    }
}

fn has_filter(app: &App) -> bool {
    let tab = app.tabs.get(app.tab);
    tab.is_some_and(|tab| !tab.view.filter().is_empty())
}

/// What is longer than the line goes over those above.
fn say(app: &App, frame: &mut Frame<'_>, area: Rect, text: &str, role: StyleRole) {
    let width = usize::from(area.width).saturating_sub(1);
    let most = usize::from(SAID_LINES.min(frame.area().height / 2).max(1));
    let mut lines = wrapped(text, width);
    if lines.len() > most {
        let rest = lines.split_off(most - 1);
        lines.push(rest.join(" "));
    }
    let count = (lines.len() as u16).min(area.y + 1);
    let area = Rect::new(area.x, area.y + 1 - count, area.width, count);
    let lines = lines.iter().map(|line| {
        let text = format!(" {}", cut(line, width));
        Line::from(span(app, role, text))
    });
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), area);
}

fn status(app: &mut App, frame: &mut Frame<'_>, area: Rect) {
    let mut named = STATUS;
    let decides = |&(command, _): &(UiCommand, &str)| command.entry().group == CommandGroup::Decide;
    if app.proxy.held.is_empty() {
        // Nothing waits for these keys.
        named.sort_by_key(decides);
    } else if usize::from(area.width) < NARROW {
        // What is waited for goes first where not all can be named.
        named.sort_by_key(|one| !decides(one));
    }
    key_bar(app, frame, area, &named);
}

/// As many of these keys as there is room for; the mouse can press them.
fn key_bar(app: &mut App, frame: &mut Frame<'_>, area: Rect, named: &[(UiCommand, &str)]) {
    let mut spans = Vec::new();
    let mut column = area.x;
    for &(command, word) in named {
        let key = command.entry().keys.first().map(|key| shown_key(key));
        let key = match command {
            UiCommand::Quit => "Q".to_owned(),
            _ => key.unwrap_or_default(),
        };
        let text = match key.as_str() {
            // The key itself says it.
            ":" => " : ".to_owned(),
            key => format!(" {key}:"),
        };
        let width = (text.width() + word.len() + 1) as u16;
        if column + width > area.right() {
            break;
        }
        spans.push(span(app, StyleRole::Key, text));
        spans.push(span(app, StyleRole::Plain, format!("{word} ")));
        let area = Rect::new(column, area.y, width, 1);
        let target = ClickTarget::Button(command);
        app.click_areas.push(ClickArea { area, target });
        column += width;
    }
    frame.render_widget(Paragraph::new(Line::from(spans)), area);
}

/// ` Filter: tools/call            1,024 of 10,000  following  [Passthrough] [Intercept]`.
fn filter(app: &mut App, frame: &mut Frame<'_>, area: Rect) {
    if matches!(app.overlay, Overlay::Prompt(PromptKind::Filter, _)) {
        return typing(app, frame, area);
    }
    let (text, counts) = match app.tabs.get(app.tab) {
        Some(tab) => (tab.view.filter().to_owned(), counts(tab)),
        None => (String::new(), String::new()),
    };
    let width = usize::from(area.width);
    let shown = match text.is_empty() {
        true => "[Filter: (F2)]".to_owned(),
        false => format!("[Filter: {}]", sanitize(&text)),
    };
    let mode = app.proxy.mode;
    let mut modes = match app.proxy.link {
        ProxyStatus::Live => vec![
            ("[Passthrough]", mode == InterceptMode::Passthrough),
            ("[Intercept]", mode == InterceptMode::Intercept),
        ],
        _ => Vec::new(),
    };
    let mut right: usize = modes.iter().map(|(text, _)| text.len() + 1).sum();
    let first = shown.width().min(FILTER_FIRST) + 3;
    // The mode is in the title too, and the counts are the least of it.
    if first + right + counts.width() > width {
        modes.clear();
        right = 0;
    }
    let counts = match first + right + counts.width() > width {
        true => String::new(),
        false => counts,
    };
    let room = width.saturating_sub(right + counts.width() + 3);
    let shown = cut(&shown, room);
    let gap = " ".repeat(room.saturating_sub(shown.width()));
    let role = if text.is_empty() {
        StyleRole::Faint
    } else {
        StyleRole::ButtonOn
    };
    let mut spans = vec![
        Span::raw(" "),
        span(app, role, shown.clone()),
        Span::raw(gap),
        span(app, StyleRole::Faint, format!(" {counts} ")),
    ];
    let filter_area = Rect::new(area.x, area.y, (shown.width() + 1) as u16, 1);
    let target = ClickTarget::Button(UiCommand::Filter);
    app.click_areas.push(ClickArea {
        area: filter_area,
        target,
    });
    let mut column = area.right().saturating_sub(right as u16);
    for (text, is_on) in modes {
        let role = if is_on {
            StyleRole::ButtonOn
        } else {
            StyleRole::Button
        };
        let area = Rect::new(column, area.y, text.len() as u16, 1);
        let target = ClickTarget::Button(UiCommand::ToggleIntercept);
        if !is_on {
            app.click_areas.push(ClickArea { area, target });
        }
        column += text.len() as u16 + 1;
        spans.push(span(app, role, text));
        spans.push(Span::raw(" "));
    }
    frame.render_widget(Paragraph::new(Line::from(spans)), area);
}

fn counts(tab: &crate::tab::Tab) -> String {
    let (shown, total) = (tab.view.len(), tab.view.total());
    let mut text = match tab.view.state() {
        ViewState::Opening => "opening …".to_owned(),
        ViewState::Failed(_) => "cannot be read".to_owned(),
        ViewState::Ready if !tab.view.filter().is_empty() => {
            format!("{} of {}", grouped(shown), grouped(total))
        }
        ViewState::Ready => {
            let (count, noun) = match tab.view.grouping() {
                RowGrouping::Messages => (total, "message"),
                RowGrouping::Calls => (shown, "row"),
            };
            let plural = if count == 1 { "" } else { "s" };
            format!("{} {noun}{plural}", grouped(count))
        }
    };
    if let Some((done, of)) = tab.view.searching() {
        text.push_str(&format!(" ({} %)", done * 100 / of.max(1)));
    }
    if tab.follows {
        text.push_str(" ↓");
    }
    if let Some(trouble) = tab.view.trouble() {
        text = format!("! {}", cut(&sanitize(trouble), 40));
    }
    text
}

/// `1,024`.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn controls(app: &mut App, frame: &mut Frame<'_>, area: Rect) {
    let held = !app.proxy.held.is_empty();
    let live = app.proxy.link == ProxyStatus::Live;
    let mut spans = vec![Span::raw(" ")];
    let mut column = area.x + 1;
    for (command, word) in BUTTONS {
        let on = match command {
            UiCommand::Load => true,
            UiCommand::Save | UiCommand::Export => !matches!(app.proxy.link, ProxyStatus::Gone(_)),
            UiCommand::Replay => live,
            _ => held,
        };
        let text = format!("[{word}]");
        if column + text.len() as u16 >= area.right() {
            break;
        }
        let role = match (on, command) {
            (true, UiCommand::Save | UiCommand::Load | UiCommand::Export | UiCommand::Replay) => {
                StyleRole::Plain
            }
            (true, _) => StyleRole::ButtonOn,
            (false, _) => StyleRole::Button,
        };
        let area = Rect::new(column, area.y, text.len() as u16, 1);
        let target = ClickTarget::Button(command);
        app.click_areas.push(ClickArea { area, target });
        column += text.len() as u16 + 1;
        spans.push(span(app, role, text));
        spans.push(Span::raw(" "));
    }
    frame.render_widget(Paragraph::new(Line::from(spans)), area);
}

/// What to type after `:export`.
fn export_hint() -> String {
    let endings = file_endings();
    format!(" a file name; its ending is the format: {endings}")
}

/// How a filter is read, at the right; as long as there is none, what it can be.
fn filter_hint(app: &App, text: &str, room: usize) -> Vec<Span<'static>> {
    let free = room.saturating_sub(text.width());
    let Some(form) = Filter::form_name(text) else {
        let examples = FILTER_EXAMPLES.iter();
        let mut hint = String::from(" ");
        for example in examples {
            if hint.width() + example.width() + 2 > free {
                break;
            }
            hint.push_str("  ");
            hint.push_str(example);
        }
        return vec![span(app, StyleRole::Faint, hint)];
    };
    let hint = format!("({form})");
    match (free + 1).checked_sub(hint.width() + 1) {
        None | Some(0) => Vec::new(),
        Some(gap) => vec![
            Span::raw(" ".repeat(gap)),
            span(app, StyleRole::Faint, hint),
        ],
    }
}

fn typing(app: &App, frame: &mut Frame<'_>, area: Rect) {
    let Overlay::Prompt(typing, input) = &app.overlay else {
        return;
    };
    let sign = match typing {
        PromptKind::Filter => " Filter: ",
        PromptKind::Search => " /",
        PromptKind::UiCommand => " :",
    };
    let width = usize::from(area.width);
    let typed = input.lines().concat();
    let before: String = typed.chars().take(input.cursor().1).collect();
    let before = sanitize(&before);
    // The end of a long line stays on the screen.
    let room = width.saturating_sub(sign.width() + 1);
    let skipped = before.width().saturating_sub(room);
    let text: String = sanitize(&typed).chars().skip(skipped).collect();
    let mut spans = vec![
        span(app, StyleRole::Key, sign),
        span(app, StyleRole::Plain, cut(&text, room + 1)),
    ];
    match typing {
        PromptKind::Filter => spans.extend(filter_hint(app, &text, room)),
        PromptKind::UiCommand if UiCommand::named(text.trim_end()) == Some(UiCommand::Export) => {
            spans.push(span(app, StyleRole::Faint, export_hint()));
        }
        _ => {}
    }
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(Line::from(spans)), area);
    let column =
        area.x + (sign.width() + before.width() - skipped).min(width.saturating_sub(1)) as u16;
    frame.set_cursor_position(Position::new(column, area.y));
}
