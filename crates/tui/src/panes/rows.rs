//! The message list: only the rows that are on the screen are ever looked at.

mod row_text;

use std::time::Instant;

use mcp_proxy_wire::Direction;
use mcp_proxy_wire::terminal_text::{sanitize, size_text};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};
use unicode_width::UnicodeWidthStr as _;

use super::{cut, framed, span, style};
use crate::app::{App, ClickArea, ClickTarget, Focus};
use crate::proxy::Held;
use crate::source::{MessageRow, RowGrouping, StrayLines, ViewState};
use crate::text::short_time;
use crate::theme::StyleRole;
use row_text::RowText;

/// From this width on rows tell when they came: to the second, and to the millisecond.
const WITH_SECONDS: usize = 56;
const WITH_MILLISECONDS: usize = 70;
/// Below this width they tell nothing but how long a held message waits.
const WITH_SIZE: usize = 30;

pub(crate) fn draw(app: &mut App, frame: &mut Frame<'_>, area: Rect) {
    let role = match app.focus {
        Focus::List => StyleRole::Focus,
        Focus::Detail => StyleRole::Border,
    };
    let grouping = app.tabs.get(app.tab).map(|tab| tab.view.grouping());
    let title = match grouping.unwrap_or_default() {
        RowGrouping::Messages => " Messages ",
        RowGrouping::Calls => " Calls ",
    };
    let block = Block::bordered()
        .title(title)
        .border_style(style(app, role));
    let inner = framed(frame, block, area);
    let target = ClickTarget::List;
    app.click_areas.push(ClickArea {
        area: inner,
        target,
    });
    let Some(tab) = app.tabs.get_mut(app.tab) else {
        return hint(app, frame, inner, "connecting …");
    };
    let failed = match tab.view.state() {
        ViewState::Failed(why) => Some(format!("cannot be read: {why}")),
        ViewState::Opening => Some("opening …".to_owned()),
        ViewState::Ready if tab.view.is_empty() && tab.view.searching().is_none() => {
            Some("nothing matches the filter (Ctrl-L shows everything)".to_owned())
        }
        ViewState::Ready => None,
    };
    if let Some(text) = failed {
        return hint(app, frame, inner, &text);
    }
    let lines = visible_lines(app, usize::from(inner.width), usize::from(inner.height));
    frame.render_widget(Paragraph::new(lines), inner);
}

/// The rows on the screen, with stray lines of the server between them. Notes which row is where, for the mouse.
fn visible_lines(app: &mut App, width: usize, height: usize) -> Vec<Line<'static>> {
    let Some(tab) = app.tabs.get_mut(app.tab) else {
        return Vec::new();
    };
    let top = tab.scroll(height);
    let rows = tab.view.window(top, height);
    let strays = tab.view.stray_lines(top, height);
    let several = tab.view.has_several_connections();
    let selected = tab.selected;
    let marked: Vec<bool> = rows
        .iter()
        .map(|row| tab.view.marks().contains(&row.sequence))
        .collect();
    let stray_at = |place: usize| {
        let found = strays.iter().find(|(at, _)| *at == place);
        found.map(|(_, lines)| (None, stray_line(app, lines, width)))
    };
    let is_live = app.tab == 0;
    let mut lines = Vec::new();
    for (index, (row, marked)) in rows.iter().zip(marked).enumerate() {
        lines.extend(stray_at(top + index));
        let answer = row.answer.as_ref().map(|answer| answer.sequence);
        let hold = |sequence: u64| app.proxy.hold_of(sequence);
        let held = hold(row.sequence).or_else(|| hold(answer?));
        let look = RowContext {
            held: held.filter(|_| is_live),
            forgotten: row.undecided && app.is_left_undecided(),
            several,
            marked,
            selected: selected.is_some_and(|one| one == row.sequence || Some(one) == answer),
            now: app.now,
        };
        lines.push((Some(top + index), line(app, row, &look, width)));
    }
    lines.extend(stray_at(top + rows.len()));
    // Stray lines must not push the selected row off the screen.
    let place = app.tabs.get(app.tab).and_then(|tab| tab.place());
    let selected = lines
        .iter()
        .position(|(at, _)| *at == place && at.is_some());
    let surplus = selected.map_or(0, |line| (line + 1).saturating_sub(height));
    let surplus = match place.is_some_and(|place| place + 1 == top + rows.len()) {
        // Below the last row there may be some too.
        true => lines
            .len()
            .saturating_sub(height)
            .min(selected.unwrap_or(0)),
        false => surplus,
    };
    lines.drain(..surplus);
    lines.truncate(height);
    let (places, lines) = lines.into_iter().unzip();
    if let Some(tab) = app.tabs.get_mut(app.tab) {
        tab.drawn_places = places;
    }
    lines
}

/// `⚠ stdout ×3: Listening on port 80 — not messages`.
fn stray_line(app: &App, stray: &StrayLines, width: usize) -> Line<'static> {
    let (count, what) = match stray.count {
        1 => (String::new(), " — not a message"),
        count => (format!(" ×{count}"), " — not messages"),
    };
    let mut text = format!(" ⚠ stdout{count}: {}", sanitize(&stray.first));
    if text.width() + what.width() <= width {
        text.push_str(what);
    }
    Line::from(span(app, StyleRole::Bad, cut(&text, width)))
}

fn hint(app: &App, frame: &mut Frame<'_>, area: Rect, text: &str) {
    let text = sanitize(text);
    let line = Line::from(span(app, StyleRole::Faint, format!(" {text}")));
    frame.render_widget(
        Paragraph::new(line).wrap(ratatui::widgets::Wrap { trim: false }),
        area,
    );
}

/// What a row's look depends on besides the message.
struct RowContext<'a> {
    held: Option<&'a Held>,
    /// It was held, and the proxy that held it is gone.
    forgotten: bool,
    several: bool,
    marked: bool,
    selected: bool,
    now: Instant,
}

/// `⏸ #007 → tools/call [exec_cmd]            42 s   1.2 KiB`.
fn line(app: &App, row: &MessageRow, look: &RowContext<'_>, width: usize) -> Line<'static> {
    let to_server = row.direction == Direction::ClientToServer;
    // What was never decided waits for ever.
    let is_held = look.held.is_some() || look.forgotten;
    let sign = match (is_held, to_server) {
        (true, _) => "⏸",
        (false, true) => "►",
        (false, false) => "◄",
    };
    let arrow = match (&row.answer, to_server) {
        (Some(_), _) => "⇄",
        (None, true) => "→",
        (None, false) => "←",
    };
    let answer = row.answer.as_deref();
    let went_wrong = |row: &MessageRow| row.is_error || row.dropped;
    let is_bad = went_wrong(row) || answer.is_some_and(went_wrong);
    let role = match (is_held, is_bad, to_server) {
        (true, _, _) => StyleRole::Held,
        (_, true, _) => StyleRole::Bad,
        (_, _, true) => StyleRole::ToServer,
        (_, _, false) => StyleRole::ToClient,
    };
    let mark = if look.marked { "*" } else { " " };
    let connection = match look.several {
        true => format!("c{} ", row.connection),
        false => String::new(),
    };
    let start = format!("{mark}{sign} #{:03} {arrow} {connection}", row.sequence);
    let what = RowText::of(row, look.forgotten);
    // What went wrong is told first, then of what, then how large that is.
    let full = facts(row, look, width, SizeColumn::Visible);
    let room = |right: &str| width.saturating_sub(right.width() + 1);
    let right = match what.fits(room(&full).saturating_sub(start.width())) {
        true => full,
        false => facts(row, look, width, SizeColumn::Hidden),
    };
    let room = room(&right);
    let left = what.within(room.saturating_sub(start.width()));
    let left = format!("{start}{left}");
    let left = cut(&left, room);
    let gap = " ".repeat(room.saturating_sub(left.width()) + 1);
    let mut spans = vec![
        span(app, role, left),
        Span::raw(gap),
        span(app, StyleRole::Faint, right),
    ];
    if look.selected {
        let selected = style(app, StyleRole::Selected);
        spans = spans
            .into_iter()
            .map(|span| span.patch_style(selected))
            .collect();
    }
    Line::from(spans)
}

/// Whether a row tells how large its message is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SizeColumn {
    Visible,
    /// There is something more important.
    Hidden,
}

fn facts(row: &MessageRow, look: &RowContext<'_>, width: usize, size: SizeColumn) -> String {
    let mut text = String::new();
    if let Some(held) = look.held {
        text.push_str(&match width < WITH_SIZE {
            true => held.short_clock(look.now),
            false => held.clock_text(look.now) + " ",
        });
    }
    if width < WITH_SIZE {
        return text;
    }
    let told = row.answer.as_deref().unwrap_or(row);
    if let (None, Some(latency)) = (look.held, told.latency) {
        text.push_str(&format!("{} ", short_time(latency)));
    }
    match size {
        SizeColumn::Visible => text.push_str(&size_text(told.len)),
        SizeColumn::Hidden => text.truncate(text.trim_end().len()),
    }
    let time = mcp_proxy_session::time_text(row.time);
    let (time, columns) = match width {
        ..WITH_SECONDS => return text,
        WITH_SECONDS..WITH_MILLISECONDS => (time.get(11..19), 13),
        _ => (time.get(11..23), 17),
    };
    let time = time.unwrap_or_default();
    match size {
        SizeColumn::Visible => format!("{text:>columns$} {time}"),
        // The room of the column is needed.
        SizeColumn::Hidden => format!("{text} {time}"),
    }
}
