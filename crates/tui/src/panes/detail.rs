//! The selected message: what is known of it, and its body, highlighted and foldable.

use mcp_proxy_session::{MessageWithContext, Verdict};
use mcp_proxy_wire::Origin;
use mcp_proxy_wire::terminal_text::{sanitize, size_text};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph, Wrap};
use unicode_width::UnicodeWidthChar as _;

use super::{cut, framed, span, style, wrapped};
use crate::app::{App, ClickArea, ClickTarget, DetailWidth, Focus};
use crate::command::UiCommand;
use crate::tab::{BodyVersion, Detail, Tab};
use crate::text::{BodyLine, TextPiece, TextPieceKind, TextRow, short_time};
use crate::theme::StyleRole;

/// How much of an error's text stands above the body.
const PROBLEM_COLUMNS: usize = 200;

pub(crate) fn draw(app: &mut App, frame: &mut Frame<'_>, area: Rect) {
    let role = match app.focus {
        Focus::Detail => StyleRole::Focus,
        Focus::List => StyleRole::Border,
    };
    let Some(mut detail) = app.tabs.get_mut(app.tab).and_then(|tab| tab.detail.take()) else {
        let block = Block::bordered()
            .title(" Message ")
            .border_style(style(app, role));
        let nothing = app.tabs.get(app.tab).is_some_and(Tab::matches_nothing);
        let hint = match nothing {
            true => "No message matches the filter: F2 changes it, Ctrl-L shows everything",
            false => "",
        };
        let hint = Paragraph::new(span(app, StyleRole::Faint, hint)).wrap(Wrap { trim: false });
        return frame.render_widget(hint.block(block), area);
    };
    let title = match detail.shown {
        BodyVersion::Sent => format!(" #{} ", detail.sequence),
        BodyVersion::Received => format!(" #{} as received ", detail.sequence),
    };
    let mut block = Block::bordered()
        .title(title)
        .border_style(style(app, role));
    if app.detail_width == DetailWidth::Whole {
        let back = format!(" {}: back to the list ", UiCommand::Open.key());
        block = block.title_bottom(Line::from(back).right_aligned());
    }
    let inner = framed(frame, block, area);
    let width = usize::from(inner.width);
    let facts = match &detail.told {
        Ok(told) if inner.height > 6 => facts(told, &detail, app),
        _ => Vec::new(),
    };
    let facts: Vec<Line<'static>> = facts
        .iter()
        .flat_map(|(role, text)| {
            let lines = wrapped(&sanitize(text), width);
            lines.into_iter().map(|text| (*role, text))
        })
        .take(usize::from(inner.height / 3))
        .map(|(role, text)| Line::from(span(app, role, cut(&text, width))))
        .collect();
    let [head, body] =
        Layout::vertical([Constraint::Length(facts.len() as u16), Constraint::Min(1)]).areas(inner);
    frame.render_widget(Paragraph::new(facts), head);
    let target = ClickTarget::Detail;
    app.click_areas.push(ClickArea { area: body, target });
    draw_body(app, &mut detail, frame, body);
    if let Some(tab) = app.tabs.get_mut(app.tab) {
        tab.detail = Some(detail);
    }
}

fn draw_body(app: &App, detail: &mut Detail, frame: &mut Frame<'_>, area: Rect) {
    let height = usize::from(area.height);
    let width = usize::from(area.width);
    // The first column is for the signs of folds.
    detail.wrap_at(app.wraps.then(|| width.saturating_sub(1)));
    let top = detail.scroll(height);
    let focused = app.focus == Focus::Detail;
    let shown = detail.rows.iter().enumerate().skip(top).take(height);
    let lines: Vec<Line<'static>> = shown
        .map(|(place, row)| {
            let mut spans = body_row(app, detail, row, width);
            if focused && place == detail.cursor {
                let selected = style(app, StyleRole::Selected);
                spans = spans
                    .into_iter()
                    .map(|span| span.patch_style(selected))
                    .collect();
            }
            Line::from(spans)
        })
        .collect();
    frame.render_widget(Paragraph::new(lines), area);
}

fn body_row(app: &App, detail: &Detail, row: &TextRow, width: usize) -> Vec<Span<'static>> {
    let Some(text) = detail.body.lines().get(row.line) else {
        return Vec::new();
    };
    let folded = detail.folds.is_folded(row.line);
    let sign = match (text.opens.is_some() && row.from == 0, folded) {
        (true, true) => "▸",
        (true, false) => "▾",
        (false, _) => " ",
    };
    let mut spans = vec![span(app, StyleRole::Faint, sign)];
    match app.wraps {
        true => {
            spans.push(Span::raw(" ".repeat(row.indent)));
            let pieces = text.row_pieces(row).into_iter();
            spans.extend(pieces.map(|(text, kind)| piece_span(app, text.to_owned(), kind)));
        }
        false => push_cut(app, text, detail.shift, width, &mut spans),
    }
    if folded && row.to.is_none() {
        spans.push(span(app, StyleRole::Faint, detail.body.summary(row.line)));
    }
    spans
}

/// The part of a line that is on the screen where lines are cut: a megabyte on one line is drawn at every frame.
fn push_cut(
    app: &App,
    text: &BodyLine,
    shift: usize,
    width: usize,
    spans: &mut Vec<Span<'static>>,
) {
    let mut skip = shift;
    let indent = usize::from(text.indent);
    let before = indent.saturating_sub(skip);
    spans.push(Span::raw(" ".repeat(before)));
    skip = skip.saturating_sub(indent);
    let mut room = width.saturating_sub(before + 1);
    let is_cut = is_wider(&text.pieces, skip + room);
    room = room.saturating_sub(usize::from(is_cut));
    for piece in &text.pieces {
        let shown = on_screen(&piece.text, &mut skip, &mut room);
        spans.push(piece_span(app, shown, piece.kind));
        if room == 0 {
            break;
        }
    }
    if is_cut {
        spans.push(span(app, StyleRole::Faint, "…"));
    }
}

fn piece_span(app: &App, text: String, kind: TextPieceKind) -> Span<'static> {
    let is_found = !app.search.is_empty() && crate::text::has(&text, &app.search);
    let one = span(app, role_of(kind), text);
    match is_found {
        true => one.patch_style(style(app, StyleRole::Found)),
        false => one,
    }
}

/// Whether pieces take more columns than this; no more of them is looked at than it takes to know.
fn is_wider(pieces: &[TextPiece], columns: usize) -> bool {
    let letters = pieces.iter().flat_map(|piece| piece.text.chars());
    let mut used = letters.scan(0, |used, letter| {
        *used += letter.width().unwrap_or(0);
        Some(*used)
    });
    used.any(|used| used > columns)
}

/// What of a text is on the screen.
fn on_screen(text: &str, skip: &mut usize, room: &mut usize) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        let width = letter.width().unwrap_or(0);
        if *skip > 0 {
            *skip = skip.saturating_sub(width.max(1));
            continue;
        }
        if width > *room {
            *room = 0;
            break;
        }
        *room -= width;
        out.push(letter);
    }
    out
}

/// The colours of a piece of a body.
fn role_of(kind: TextPieceKind) -> StyleRole {
    match kind {
        TextPieceKind::Key => StyleRole::JsonKey,
        TextPieceKind::Text => StyleRole::JsonText,
        TextPieceKind::Number => StyleRole::JsonNumber,
        TextPieceKind::Word => StyleRole::JsonWord,
        TextPieceKind::Hidden => StyleRole::Hidden,
        TextPieceKind::Note => StyleRole::Faint,
        TextPieceKind::Punctuation | TextPieceKind::Plain => StyleRole::Plain,
    }
}

/// What is known besides the body, the most useful first: above all what is wrong with it.
fn facts(told: &MessageWithContext, detail: &Detail, app: &App) -> Vec<(StyleRole, String)> {
    let problem = detail.problem.as_ref().map(|problem| {
        let text = problem.text.as_deref().unwrap_or_default();
        let text = text.lines().next().unwrap_or_default();
        let text = match text.is_empty() {
            true => problem.what.clone(),
            false => format!("{}: {}", problem.what, cut(text, PROBLEM_COLUMNS)),
        };
        (StyleRole::Bad, text)
    });
    let rest = known_facts(told, detail.sequence, app).into_iter();
    let rest = rest.map(|text| (StyleRole::Faint, text));
    problem.into_iter().chain(rest).collect()
}

fn known_facts(told: &MessageWithContext, sequence: u64, app: &App) -> Vec<String> {
    let message = &told.message;
    let mut lines = Vec::new();
    if app.tab == 0
        && let Some(held) = app.proxy.hold_of(sequence)
    {
        lines.push(format!(
            "⏸ held by {}, {}",
            held.row.by,
            held.describe_clock(app.now)
        ));
    }
    if message.undecided && app.is_left_undecided() {
        let by = message.verdicts.last().map_or("", |hold| hold.why.as_str());
        lines.push(format!("⏸ not decided: held by {by}, not forwarded"));
    }
    let time = mcp_proxy_session::time_text(message.timestamp);
    let mut first = format!(
        "{} c{} {} {}",
        time.get(11..23).unwrap_or_default(),
        message.connection,
        message.transport,
        size_text(message.len),
    );
    if let Some(id) = &message.jsonrpc_id {
        first.push_str(&format!(" id {id}"));
    }
    if let Some(request) = message.answers {
        let latency = message
            .latency
            .map(|latency| format!(" after {}", short_time(latency)));
        let latency = latency.unwrap_or_default();
        first.push_str(&format!(" answers #{request}{latency}"));
        // The latency is the server's own.
        if let Some(held) = message.request_held {
            let held = short_time(held);
            first.push_str(&format!(" (#{request} was held {held} before)"));
        }
    }
    if let Some(held) = message.held {
        first.push_str(&format!(" held {}", short_time(held)));
    }
    match message.origin {
        Origin::Proxy => lines.push("made by the proxy".to_owned()),
        Origin::Replay => lines.push(match message.replay_of {
            Some(origin) if origin.is_edited => format!("edited replay of #{}", origin.sequence),
            Some(origin) => format!("replay of #{}", origin.sequence),
            None => "replayed".to_owned(),
        }),
        Origin::Client | Origin::Server => {}
    }
    if let Some(parent) = message.parent {
        let key = UiCommand::Parent.key();
        lines.push(format!("caused by #{parent}: {key} goes there"));
    }
    lines.push(first);
    lines.extend(
        message
            .verdicts
            .iter()
            .filter(|verdict| verdict.kind != "hold")
            .map(verdict_line),
    );
    if told.undelivered {
        lines.push("undelivered".to_owned());
    }
    lines
}

/// `modified by rule 1: slow-search`, in the words that rows use.
fn verdict_line(verdict: &Verdict) -> String {
    let done = match verdict.kind.as_str() {
        "forward" => "forwarded",
        "modify" => "modified",
        "drop" => "dropped",
        "refuse" => "refused",
        "error" | "answer" => "answered",
        "delay" => "delayed",
        "redirect" => "redirected",
        other => other,
    };
    match verdict.why.is_empty() {
        true => format!("{done} by {}", verdict.by),
        false => format!("{done} by {}: {}", verdict.by, verdict.why),
    }
}
