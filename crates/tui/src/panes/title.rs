//! The title bar: which server, where its clients are, and what is out of the ordinary.

use mcp_proxy_control::InterceptMode;
use mcp_proxy_wire::terminal_text::sanitize;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use unicode_width::UnicodeWidthStr as _;

use super::{cut, span, style};
use crate::app::App;
use crate::proxy::ProxyStatus;
use crate::theme::StyleRole;

/// Below this width what everybody knows is left out.
pub(crate) const NARROW: usize = 50;
/// So much of an address is shown: a client may have said it.
const MOST_ADDRESS: usize = 60;

/// ` mcp-proxy — stdio — python server.py      [INTERCEPT]`.
pub(crate) fn draw(app: &App, frame: &mut Frame<'_>, area: Rect) {
    if area.height == 0 {
        return;
    }
    let mut marks = Vec::new();
    if !app.proxy.held.is_empty() {
        marks.push(format!("⏸ {} held", app.proxy.held.len()));
    }
    match (&app.proxy.link, app.proxy.mode) {
        (ProxyStatus::Gone(_), _) => marks.push("[ENDED]".to_owned()),
        (ProxyStatus::None, _) => marks.push("[RECORD]".to_owned()),
        (ProxyStatus::Live, InterceptMode::Intercept) => marks.push("[INTERCEPT]".to_owned()),
        (ProxyStatus::Live, InterceptMode::Passthrough) => {}
    }
    if app.tab != 0 && app.proxy.link != ProxyStatus::None {
        marks.push("[RECORD]".to_owned());
    }
    let marks = marks.join(" ");
    let alarm = app.proxy.mode == InterceptMode::Intercept || !app.proxy.held.is_empty();
    let hello = &app.proxy.hello;
    let width = usize::from(area.width);
    let room = width.saturating_sub(marks.width() + 2);
    let session = match app.tabs.get(app.tab) {
        Some(tab) if app.tabs.len() > 1 => format!(
            " — session {}/{}: {}",
            app.tab + 1,
            app.tabs.len(),
            sanitize(&tab.name)
        ),
        _ => String::new(),
    };
    let what = match app.proxy.link {
        ProxyStatus::None => app
            .tabs
            .first()
            .map_or(String::new(), |tab| tab.name.clone()),
        _ if hello.target.is_empty() => "connecting …".to_owned(),
        _ if width < NARROW => hello.target.clone(),
        // A long command is cut, and not what is said behind it.
        _ => {
            // With several sessions it is more important which one this is.
            let url = match session.is_empty() {
                true => clients(app),
                false => String::new(),
            };
            let before = format!("{} — ", hello.server);
            let rest = " mcp-proxy — ".width() + before.width() + url.width() + session.width();
            let target = cut(&hello.target, room.saturating_sub(rest));
            format!("{before}{target}{url}")
        }
    };
    let text = match width < NARROW {
        true => format!(" {}{session}", sanitize(&what)),
        false => format!(" mcp-proxy — {}{session}", sanitize(&what)),
    };
    let text = cut(&text, room);
    let gap = " ".repeat(room.saturating_sub(text.width()) + 1);
    let role = if alarm {
        StyleRole::Alarm
    } else {
        StyleRole::Title
    };
    let line = Line::from(vec![
        span(app, StyleRole::Title, text + &gap),
        span(app, role, marks),
        span(app, StyleRole::Title, " "),
    ]);
    frame.render_widget(
        Paragraph::new(line).style(style(app, StyleRole::Title)),
        area,
    );
}

/// ` — http://127.0.0.1:8888/mcp`, or how clients speak where their address is not known.
fn clients(app: &App) -> String {
    let clients = match (&app.listen_url, app.proxy.hello.client.as_str()) {
        (Some(url), _) => url.as_str(),
        (None, "") => return String::new(),
        (None, "stdio") => "client over stdio",
        (None, "in_process") => "client in this process",
        (None, "sse") => "clients over HTTP+SSE",
        (None, _) => "clients over HTTP",
    };
    format!(" — {}", cut(clients, MOST_ADDRESS))
}
