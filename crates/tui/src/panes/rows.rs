//! The message list: only the rows that are on the screen are ever looked at.

use std::time::{Duration, Instant};

use mcp_proxy_wire::terminal_text::sanitize;
use mcp_proxy_wire::{Direction, Kind, Origin};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};
use unicode_width::UnicodeWidthStr as _;

use super::{cut, framed, span, style};
use crate::app::{App, ClickArea, ClickTarget, Focus};
use crate::proxy::Held;
use crate::source::{MessageRow, ViewState};
use crate::theme::StyleRole;

/// From this width on rows tell when they came.
const WITH_TIME: usize = 70;
/// Below this width they tell nothing but how long a held message waits.
const WITH_SIZE: usize = 30;

pub(crate) fn draw(app: &mut App, frame: &mut Frame<'_>, area: Rect) {
    let role = match app.focus {
        Focus::List => StyleRole::Focus,
        Focus::Detail => StyleRole::Border,
    };
    let block = Block::bordered()
        .title(" Messages ")
        .border_style(style(app, role));
    let inner = framed(frame, block, area);
    let target = ClickTarget::List;
    app.click_areas.push(ClickArea {
        area: inner,
        target,
    });
    let now = app.now;
    let Some(tab) = app.tabs.get_mut(app.tab) else {
        return hint(app, frame, inner, "connecting …");
    };
    let failed = match tab.view.state() {
        ViewState::Failed(why) => Some(format!("cannot be read: {why}")),
        ViewState::Opening => Some("opening …".to_owned()),
        ViewState::Ready if tab.view.total() == 0 => Some("no messages yet".to_owned()),
        ViewState::Ready if tab.view.is_empty() && tab.view.searching().is_none() => {
            Some("nothing matches the filter (Ctrl-L shows everything)".to_owned())
        }
        ViewState::Ready => None,
    };
    if let Some(text) = failed {
        return hint(app, frame, inner, &text);
    }
    let height = usize::from(inner.height);
    let top = tab.scroll(height);
    let rows = tab.view.window(top, height);
    let (selected, several) = (tab.selected, tab.view.connections().len() > 1);
    let marked: Vec<bool> = rows
        .iter()
        .map(|row| tab.view.marks().contains(&row.sequence))
        .collect();
    let is_live = app.tab == 0;
    let width = usize::from(inner.width);
    let lines: Vec<Line<'static>> = rows
        .iter()
        .zip(marked)
        .map(|(row, marked)| {
            let held = is_live.then(|| app.proxy.hold_of(row.sequence)).flatten();
            let look = RowContext {
                held,
                forgotten: row.undecided && app.is_left_undecided(),
                several,
                marked,
                selected: selected == Some(row.sequence),
                now,
            };
            line(app, row, &look, width)
        })
        .collect();
    frame.render_widget(Paragraph::new(lines), inner);
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

/// `⏸ #007 → tools/call [exec_cmd]            42 s   1.2 kB`.
fn line(app: &App, row: &MessageRow, look: &RowContext<'_>, width: usize) -> Line<'static> {
    let to_server = row.direction == Direction::ClientToServer;
    // What was never decided waits for ever.
    let is_held = look.held.is_some() || look.forgotten;
    let (sign, arrow) = match (is_held, to_server) {
        (true, true) => ("⏸", "→"),
        (true, false) => ("⏸", "←"),
        (false, true) => ("►", "→"),
        (false, false) => ("◄", "←"),
    };
    let role = match (is_held, row.is_error || row.dropped, to_server) {
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
    let what = RowText::of(row, look);
    // What went wrong is told first, then of what, then how large that is.
    let full = facts(row, look, width, SizeColumn::Visible);
    let room = |right: &str| width.saturating_sub(right.width() + 1);
    let right = match what.fits(room(&full).saturating_sub(start.width())) {
        true => full,
        false => facts(row, look, width, SizeColumn::Hidden),
    };
    let room = room(&right);
    let left = what.within(room.saturating_sub(start.width()), width < WITH_SIZE);
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

/// What a row says of its message.
struct RowText {
    /// `tools/call`
    subject: String,
    /// ` [exec_cmd]`
    name: String,
    /// ` (response)`: left out where there is no room, because the arrow says it too.
    answer: &'static str,
    /// ` (failed) · changed`
    outcome: String,
    /// ` · by the proxy` or ` · by a replay`, if there is room.
    maker: &'static str,
    kind: Kind,
}

impl RowText {
    fn of(row: &MessageRow, look: &RowContext<'_>) -> RowText {
        let method = row.method.as_deref().map(sanitize);
        let name = row
            .name
            .as_deref()
            .map(|name| format!(" [{}]", sanitize(name)));
        let word = match (row.kind, row.is_error) {
            (Kind::Error, _) => " (error)",
            (Kind::Response, true) => " (failed)",
            _ => "",
        };
        let mut outcome = word.to_owned();
        for (is, word) in [
            (row.modified, "changed"),
            (row.dropped, "dropped"),
            (row.refused, "refused"),
            (row.answered, "answered"),
            (look.forgotten, "not decided"),
            (row.late, "late"),
            (row.duplicate, "duplicate"),
            (row.undelivered, "undelivered"),
        ] {
            if is {
                outcome.push_str(&format!(" · {word}"));
            }
        }
        let (subject, answer) = match row.kind {
            Kind::Request | Kind::Notification => (method.unwrap_or_default(), ""),
            Kind::Response | Kind::Error => match (method, row.kind == Kind::Response) {
                (Some(method), true) if !row.is_error => (method, " (response)"),
                (Some(method), _) => (method, ""),
                (None, true) if !row.is_error => ("response".to_owned(), ""),
                (None, _) => ("answer".to_owned(), ""),
            },
            Kind::Batch => (format!("batch{}", excerpt(row)), ""),
            Kind::Other => (format!("JSON, but not a message{}", excerpt(row)), ""),
            Kind::Malformed => (format!("not JSON{}", excerpt(row)), ""),
        };
        RowText {
            subject,
            name: name.unwrap_or_default(),
            answer,
            outcome,
            maker: match row.origin {
                Origin::Proxy => " · by the proxy",
                Origin::Replay => " · by a replay",
                Origin::Client | Origin::Server => "",
            },
            kind: row.kind,
        }
    }

    /// Whether all that matters has room.
    fn fits(&self, room: usize) -> bool {
        let name = match self.kind {
            // An answer does without: its request tells it.
            Kind::Response | Kind::Error => 0,
            _ => self.name.width(),
        };
        self.outcome.is_empty() || self.subject.width() + name + self.outcome.width() <= room
    }

    /// `tools/call [exec_cmd]`, `tools/call (response)`, `tools/call (failed) · late`, as much as has room.
    fn within(&self, room: usize, is_narrow: bool) -> String {
        let RowText {
            subject,
            name,
            answer,
            outcome,
            maker,
            ..
        } = self;
        let is_answer = matches!(self.kind, Kind::Response | Kind::Error);
        let full = format!("{subject}{name}{answer}{outcome}{maker}");
        if full.width() <= room {
            return full;
        }
        let mut forms = vec![format!("{subject}{name}{answer}")];
        let nameless = format!("{subject}{outcome}{maker}");
        if is_answer && !maker.is_empty() && nameless.width() <= room {
            return nameless;
        }
        if is_answer {
            forms.push(format!("{subject}{answer}"));
            forms.push(subject.clone());
        } else if is_narrow && !name.is_empty() {
            // A tool says more than the method that calls it.
            forms.push(name.trim_start().to_owned());
        }
        let room = room.saturating_sub(outcome.width());
        let fitting = forms.iter().find(|form| form.width() <= room);
        let form = fitting.or(forms.last()).map_or("", String::as_str);
        let told = format!("{}{outcome}", cut(form, room));
        told.trim_start().to_owned()
    }
}

fn excerpt(row: &MessageRow) -> String {
    let excerpt = row.excerpt.as_deref().map(sanitize);
    excerpt.map_or(String::new(), |excerpt| format!(": {excerpt}"))
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
        let left = held
            .until
            .map(|until| until.saturating_duration_since(look.now));
        text.push_str(&match left {
            Some(left) if width < WITH_SIZE => format!("{} s", left.as_secs()),
            Some(left) => format!("{} s left ", left.as_secs()),
            None => "waits ".to_owned(),
        });
    }
    if width < WITH_SIZE {
        return text;
    }
    if let (None, Some(latency)) = (look.held, row.latency) {
        text.push_str(&format!("{} ", short_time(latency)));
    }
    match size {
        SizeColumn::Visible => text.push_str(&short_size(row.len)),
        SizeColumn::Hidden => text.truncate(text.trim_end().len()),
    }
    if width >= WITH_TIME {
        let stamp = mcp_proxy_session::time_text(row.time);
        text = format!("{text:>16}  {}", stamp.get(11..23).unwrap_or_default());
    }
    text
}

/// `1.2 ms`, `42 s`.
pub(crate) fn short_time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match time.as_millis() {
        0 => format!("{} µs", time.as_micros()),
        1..10 => format!("{:.1} ms", seconds * 1e3),
        10..1000 => format!("{:.0} ms", seconds * 1e3),
        1000..60_000 => format!("{seconds:.1} s"),
        _ => format!("{:.0} min", seconds / 60.0),
    }
}

/// `120 B`, `1.2 kB`.
pub(crate) fn short_size(bytes: u64) -> String {
    let size = bytes as f64;
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", size / 1e3),
        _ => format!("{:.1} MB", size / 1e6),
    }
}
