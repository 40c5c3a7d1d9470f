//! The title bar: where clients connect, which server they reach, and what is out of the ordinary.

use mcp_proxy_control::InterceptMode;
use mcp_proxy_wire::terminal_text::sanitize;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use unicode_width::UnicodeWidthStr as _;

use super::{counted, cut, span, style};
use crate::app::App;
use crate::command::UiCommand;
use crate::proxy::ProxyStatus;
use crate::theme::StyleRole;

/// Below this width what everybody knows is left out.
pub(crate) const NARROW: usize = 50;
/// Columns that the peers get before badges are shortened, and then left out.
const PEERS_FIRST: usize = 60;
const PEERS_LEAST: usize = 20;
/// Columns that are enough of a command or URL to know it by.
const TARGET_LEAST: usize = 24;
const GAP: &str = "  ";
/// So much of an address is shown: a client may have said it.
const MOST_ADDRESS: usize = 60;
const ARROW: &str = " → ";

/// Something out of the ordinary, at the right.
struct Badge {
    text: String,
    /// The same where there is little room.
    short: String,
    role: StyleRole,
}

impl Badge {
    fn new(role: StyleRole, text: String, short: String) -> Badge {
        Badge { text, short, role }
    }

    fn same(role: StyleRole, text: String) -> Badge {
        let short = text.clone();
        Badge { text, short, role }
    }
}

/// ` mcp-proxy — stdio — python server.py      [INTERCEPT]`.
pub(crate) fn draw(app: &App, frame: &mut Frame<'_>, area: Rect) {
    if area.height == 0 {
        return;
    }
    let width = usize::from(area.width);
    let wanted = describe(app, width, usize::MAX).width();
    let badges = fitting(badges(app), wanted.min(PEERS_FIRST), width);
    let taken = columns(&badges);
    let room = width.saturating_sub(taken + 1);
    let text = cut(&describe(app, width, room), room);
    let gap = " ".repeat(room.saturating_sub(text.width()));
    let mut spans = vec![span(app, StyleRole::Title, text + &gap)];
    for (role, text) in badges {
        spans.push(span(app, StyleRole::Title, GAP));
        spans.push(span(app, role, text));
    }
    spans.push(span(app, StyleRole::Title, " "));
    frame.render_widget(
        Paragraph::new(Line::from(spans)).style(style(app, StyleRole::Title)),
        area,
    );
}

/// What is out of the ordinary, the least important first.
fn badges(app: &App) -> Vec<Badge> {
    let mut badges = Vec::new();
    let is_live = app.proxy.link == ProxyStatus::Live;
    let events = app.tabs.get(app.tab).map(|tab| tab.view.events());
    let stderr = events.map_or(0, |events| events.stderr_lines());
    if stderr > 0 {
        let short = format!("stderr {stderr}");
        let text = format!("{short} · {}", UiCommand::Stderr.key());
        badges.push(Badge::new(StyleRole::Title, text, short));
    }
    let rules = app.proxy.rules.rules.len() as u64;
    if is_live && rules > 0 {
        let text = counted(rules, "rule");
        badges.push(Badge::same(StyleRole::Title, text));
    }
    let count = app.proxy.breakpoints.len() as u64;
    if is_live && count > 0 {
        let text = counted(count, "breakpoint");
        badges.push(Badge::new(StyleRole::Alarm, text, format!("{count} bp")));
    }
    if !app.proxy.held.is_empty() {
        let text = format!("⏸ {} held", app.proxy.held.len());
        badges.push(Badge::same(StyleRole::Alarm, text));
    }
    let is_record = app.tab != 0 || app.proxy.link == ProxyStatus::None;
    let word = match (&app.proxy.link, app.proxy.mode) {
        (ProxyStatus::Gone(_), _) => Some((StyleRole::Title, "[ENDED]")),
        (ProxyStatus::Live, InterceptMode::Intercept) => Some((StyleRole::Alarm, "[INTERCEPT]")),
        (ProxyStatus::Live, InterceptMode::Passthrough) | (ProxyStatus::None, _) => None,
    };
    let record = is_record.then_some((StyleRole::Title, "[RECORD]"));
    for (role, word) in word.into_iter().chain(record) {
        badges.push(Badge::same(role, word.to_owned()));
    }
    badges
}

/// Columns that badges take, with the gaps before them.
fn columns(badges: &[(StyleRole, String)]) -> usize {
    let widths = badges.iter().map(|(_, text)| text.width() + GAP.width());
    widths.sum()
}

/// The badges that there is room for besides the peers.
fn fitting(badges: Vec<Badge>, peers: usize, width: usize) -> Vec<(StyleRole, String)> {
    let long = badges.iter().map(|badge| (badge.role, badge.text.clone()));
    let long: Vec<_> = long.collect();
    if columns(&long) + peers < width {
        return long;
    }
    let short = badges.into_iter().map(|badge| (badge.role, badge.short));
    let mut short: Vec<_> = short.collect();
    while short.len() > 1 && columns(&short) + PEERS_LEAST > width {
        short.remove(0);
    }
    short
}

/// Who speaks with whom, in this much room.
fn describe(app: &App, width: usize, room: usize) -> String {
    let hello = &app.proxy.hello;
    let session = match app.tabs.get(app.tab) {
        Some(tab) if app.tabs.len() > 1 => format!(
            " — session {}/{}: {}",
            app.tab + 1,
            app.tabs.len(),
            sanitize(&tab.name)
        ),
        _ => String::new(),
    };
    let name = if width < NARROW {
        " "
    } else {
        " mcp-proxy — "
    };
    let what = match app.proxy.link {
        ProxyStatus::None => {
            let first = app.tabs.first();
            first.map_or(String::new(), |tab| sanitize(&tab.name))
        }
        _ if hello.target.is_empty() => "connecting …".to_owned(),
        _ => {
            let room = room.saturating_sub(name.width() + session.width());
            // With several sessions it is more important which one this is.
            let clients = Some(clients(app)).filter(|_| session.is_empty() && width >= NARROW);
            peers(
                clients.flatten(),
                &sanitize(&hello.target),
                &transport(&hello.server),
                room,
            )
        }
    };
    format!("{name}{what}{session}")
}

/// `stdio — http://127.0.0.1:8888/mcp → python server.py`: as much of it as tells who is who.
fn peers(clients: Option<String>, target: &str, transport: &str, room: usize) -> String {
    let Some(clients) = clients else {
        let full = format!("{transport} — {target}");
        return match full.width() <= room {
            true => full,
            false => cut(target, room),
        };
    };
    let short = |url: &str| url.strip_prefix("http://").unwrap_or(url).to_owned();
    // A long command is cut before the address of the clients is.
    let prefixes = [
        (format!("{transport} — {clients}{ARROW}"), target.to_owned()),
        (format!("{clients}{ARROW}"), target.to_owned()),
        (format!("{}{ARROW}", short(&clients)), short(target)),
    ];
    for (prefix, target) in prefixes {
        let left = room.saturating_sub(prefix.width());
        if left >= TARGET_LEAST.min(target.width()) {
            return prefix + &cut(&target, left);
        }
    }
    // Both are cut, and neither to nothing.
    let room = room.saturating_sub(ARROW.width());
    let clients = cut(&short(&clients), room / 2);
    let target = cut(&short(target), room.saturating_sub(clients.width()));
    format!("{clients}{ARROW}{target}")
}

/// Where clients connect, or how they speak where their address is not known. Nothing for one over stdio.
fn clients(app: &App) -> Option<String> {
    let clients = match (app.listen_url.as_deref(), app.proxy.hello.client.as_str()) {
        (Some(url), _) => url,
        (None, "" | "stdio") => return None,
        (None, "in_process") => "client in this process",
        (None, "sse") => "clients over HTTP+SSE",
        (None, _) => "clients over HTTP",
    };
    Some(cut(&sanitize(clients), MOST_ADDRESS))
}

/// A transport as people call it.
fn transport(name: &str) -> String {
    match name {
        "streamable_http" => "HTTP".to_owned(),
        "sse" => "HTTP+SSE".to_owned(),
        "in_process" => "in process".to_owned(),
        other => sanitize(other),
    }
}
