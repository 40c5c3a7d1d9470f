//! The servers of a hub, and below them what is known about the selected one.

use mcp_proxy_control::{ServerHealth, ServerRow};
use mcp_proxy_wire::terminal_text::{sanitize, sanitize_json};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use unicode_width::UnicodeWidthStr as _;

use super::overlay::window;
use super::{counted, cut, span, style, wrapped};
use crate::app::{App, Overlay};
use crate::proxy::ProxyStatus;
use crate::theme::StyleRole;

/// Lines that the details of a server get before the list may have more.
const DETAILS: u16 = 6;
/// Below this height there are no details.
const LIST_ONLY: u16 = 8;
/// Below this width there are only names and states.
const NARROW: usize = 50;
/// The longest state, `needs sign-in`.
const STATE_MAX: usize = 13;
const NEEDS_SIGN_IN: &str = "needs sign-in";
/// The most lines of an error in the details.
const ERROR_LINES: usize = 3;

pub(crate) fn draw(app: &mut App, frame: &mut Frame<'_>, area: Rect) {
    let inner = window(app, frame, area, (u16::MAX, u16::MAX), &title(app));
    let inner = draw_invitation(app, frame, inner);
    let count = app.proxy.servers.len() as u16;
    let details = match inner.height {
        0..LIST_ONLY => 0,
        height => DETAILS.min(height / 2),
    };
    let list = (count.max(1) + 1).min(inner.height - details);
    let [list, details] =
        Layout::vertical([Constraint::Length(list), Constraint::Min(0)]).areas(inner);
    let rows = usize::from(list.height.saturating_sub(1));
    let Overlay::Servers(shown) = &mut app.overlay else {
        return;
    };
    shown.height = rows;
    // The selected server stays on the screen.
    let first = (shown.selected + 1).saturating_sub(rows.max(1));
    shown.top = shown.top.clamp(first, shown.selected.max(first));
    let shown = *shown;
    let columns = Columns::new(&app.proxy.servers, usize::from(list.width));
    let mut lines = vec![columns.heading(app)];
    let servers = app.proxy.servers.iter().enumerate();
    for (place, server) in servers.skip(shown.top).take(rows) {
        let line = columns.row(app, server);
        lines.push(match place == shown.selected {
            true => line.patch_style(style(app, StyleRole::Selected)),
            false => line,
        });
    }
    if app.proxy.servers.is_empty() {
        lines.push(Line::from(span(app, StyleRole::Faint, " none")));
    }
    frame.render_widget(Paragraph::new(lines), list);
    if let Some(server) = app.proxy.servers.get(shown.selected)
        && inner.height >= LIST_ONLY
    {
        let lines = describe(app, server, details);
        frame.render_widget(Paragraph::new(lines), details);
    }
}

/// As long as no client is connected: what to put into a client's config, or only the URL where the servers need the room.
/// Gives the rest of the area.
fn draw_invitation(app: &App, frame: &mut Frame<'_>, area: Rect) -> Rect {
    let Some((url, config)) = app.listen_url.as_deref().zip(app.client_config()) else {
        return area;
    };
    if app.proxy.clients() > 0 {
        return area;
    }
    let mut lines = vec![
        Line::default(),
        Line::from(span(
            app,
            StyleRole::Focus,
            " Waiting for a client. Put this into its config:",
        )),
    ];
    let config = sanitize_json(&config);
    let parts = config.lines().map(|line| format!("  {line}"));
    lines.extend(parts.map(|part| Line::from(span(app, StyleRole::Plain, part))));
    let servers = app.proxy.servers.len() as u16 + 1;
    if area.height < servers + DETAILS + lines.len() as u16 {
        let text = format!(" Waiting for a client at {}", sanitize(url));
        let text = cut(&text, usize::from(area.width));
        lines = vec![Line::from(span(app, StyleRole::Focus, text))];
    }
    let height = lines.len() as u16;
    if area.height < LIST_ONLY + height {
        return area;
    }
    let [rest, below] =
        Layout::vertical([Constraint::Min(0), Constraint::Length(height)]).areas(area);
    frame.render_widget(Paragraph::new(lines), below);
    rest
}

/// `Servers: 2 of 3 ready, 1 client`.
fn title(app: &App) -> String {
    let servers = &app.proxy.servers;
    let is_ready = |server: &&ServerRow| {
        let health = server.health.as_ref();
        health.is_some_and(|health| health.state == "ready")
    };
    let ready = servers.iter().filter(is_ready).count();
    let clients = counted(app.proxy.clients() as u64, "client");
    let heading = match app.proxy.link {
        ProxyStatus::Live => "Servers",
        ProxyStatus::None | ProxyStatus::Gone(_) => "Servers before the hub ended",
    };
    format!("{heading}: {ready} of {} ready, {clients}", servers.len())
}

/// Where the columns of the list are.
struct Columns {
    name: usize,
    state: usize,
    width: usize,
}

impl Columns {
    fn new(servers: &[ServerRow], width: usize) -> Columns {
        let names = servers.iter().map(|server| sanitize(&server.name).width());
        let most = (width / 4).max(12);
        let states = servers.iter().filter_map(|server| server.health.as_ref());
        let states = states.map(|health| sanitize(&health.state).width());
        Columns {
            name: names.max().unwrap_or_default().clamp(6, most),
            state: states.max().unwrap_or_default().clamp(8, STATE_MAX),
            width,
        }
    }

    fn heading(&self, app: &App) -> Line<'static> {
        let name = padded("server", self.name);
        let text = match self.width < NARROW {
            true => format!(" {name}  state"),
            false => format!(
                " {name}  {}  {:>6}  {:>8}  {:>5}  last error",
                padded("state", self.state),
                "tools",
                "restarts",
                "conns"
            ),
        };
        Line::from(span(app, StyleRole::Faint, cut(&text, self.width)))
    }

    fn row(&self, app: &App, server: &ServerRow) -> Line<'static> {
        let none = ServerHealth::default();
        let health = server.health.as_ref().unwrap_or(&none);
        let name = padded(&sanitize(&server.name), self.name);
        let stale = if health.stale { "*" } else { "" };
        let mut spans = vec![
            span(app, StyleRole::Plain, format!(" {name}  ")),
            span(
                app,
                state_role(&health.state),
                padded(&sanitize(&health.state), self.state),
            ),
        ];
        if self.width >= NARROW {
            let numbers = format!(
                "  {:>6}  {:>8}  {:>5}  ",
                format!("{}{stale}", health.tools),
                health.restarts,
                server.connections
            );
            spans.push(span(app, StyleRole::Plain, numbers));
        }
        let used: usize = spans.iter().map(Span::width).sum();
        let room = self.width.saturating_sub(used);
        let error = match self.width < NARROW {
            true => "",
            false => health.error.as_deref().unwrap_or_default(),
        };
        // To the edge, so that the whole line looks selected.
        spans.push(span(app, StyleRole::Faint, padded(&sanitize(error), room)));
        Line::from(spans)
    }
}

/// What is known about a server, on as many lines as there are.
fn describe(app: &App, server: &ServerRow, area: Rect) -> Vec<Line<'static>> {
    let none = ServerHealth::default();
    let health = server.health.as_ref().unwrap_or(&none);
    let width = usize::from(area.width).saturating_sub(1);
    let line = |role: StyleRole, text: &str| {
        let text = format!(" {}", cut(text, width));
        Line::from(span(app, role, text))
    };
    let name = cut(&sanitize(&server.name), width.saturating_sub(4));
    let rule = "─".repeat(width.saturating_sub(name.width() + 4));
    let mut lines = vec![
        line(StyleRole::Focus, &format!("── {name} {rule}")),
        line(StyleRole::Plain, &kind(server)),
        line(StyleRole::Plain, &offers(server, health)),
    ];
    if let Some(error) = &health.error {
        let error = sanitize(error);
        let text = match health.state.as_str() {
            // The error says so itself.
            NEEDS_SIGN_IN => error,
            "disabled" => format!("disabled: {error}"),
            _ => format!("last error: {error}"),
        };
        let mut texts = wrapped(&text, width);
        if texts.len() > ERROR_LINES {
            let rest = texts.split_off(ERROR_LINES - 1);
            texts.push(rest.join(" "));
        }
        lines.extend(texts.iter().map(|text| line(StyleRole::Bad, text)));
    }
    if let Some(sign_in) = &health.sign_in {
        let text = sign_in.to_string();
        lines.push(line(StyleRole::Plain, &sanitize(&text)));
    }
    let room = usize::from(area.height).saturating_sub(lines.len() + 1);
    let written = app.stderr_of(&server.name, room);
    if !written.is_empty() {
        lines.push(line(StyleRole::Faint, "stderr:"));
    }
    for event in written {
        let time = mcp_proxy_session::time_text(event.time);
        let time = time.get(11..19).unwrap_or_default();
        let text = format!("  {time} {}", sanitize(&event.text));
        lines.push(line(StyleRole::Plain, &text));
    }
    lines
}

/// `stdio: uvx mcp-server-git`.
fn kind(server: &ServerRow) -> String {
    let mut text = sanitize(&server.transport).to_string();
    if !server.target.is_empty() {
        text.push_str(&format!(": {}", sanitize(&server.target)));
    }
    text
}

/// `3 tools, 2 resources, 1 prompt; scope auto; 1 connection`.
fn offers(server: &ServerRow, health: &ServerHealth) -> String {
    let mut text = format!(
        "{}, {}, {}",
        counted(health.tools, "tool"),
        counted(health.resources, "resource"),
        counted(health.prompts, "prompt")
    );
    if health.stale {
        text.push_str(" (* when it last answered)");
    }
    if !health.scope.is_empty() {
        text.push_str(&format!("; scope {}", sanitize(&health.scope)));
    }
    text.push_str(&format!("; {}", counted(server.connections, "connection")));
    if health.own_sessions > 0 {
        let sessions = counted(health.own_sessions, "client");
        text.push_str(&format!(", {sessions} with one of their own"));
    }
    if !health.warnings.is_empty() {
        let warnings = counted(health.warnings.len() as u64, "warning");
        text.push_str(&format!("; {warnings} in `mcp-proxy status`"));
    }
    text
}

fn state_role(state: &str) -> StyleRole {
    match state {
        "ready" => StyleRole::ToClient,
        "failed" => StyleRole::Bad,
        "starting" | NEEDS_SIGN_IN => StyleRole::Held,
        _ => StyleRole::Faint,
    }
}

/// Text on exactly this many columns.
fn padded(text: &str, columns: usize) -> String {
    let text = cut(text, columns);
    let gap = " ".repeat(columns.saturating_sub(text.width()));
    text + &gap
}
