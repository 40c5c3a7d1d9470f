//! The screen before the first message: what is waited for, and how a client gets here.

use mcp_proxy_wire::terminal_text::{sanitize, sanitize_json};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Block, Paragraph, Wrap};

use super::{framed, span, style};
use crate::app::App;
use crate::command::UiCommand;
use crate::proxy::ProxyStatus;
use crate::source::ViewState;
use crate::theme::StyleRole;

/// Whether there is nothing else to show.
pub(super) fn is_wanted(app: &App) -> bool {
    let tab = app.tabs.get(app.tab);
    tab.is_some_and(|tab| *tab.view.state() == ViewState::Ready && tab.view.total() == 0)
}

pub(super) fn draw(app: &App, frame: &mut Frame<'_>, area: Rect) {
    let block = Block::bordered()
        .title(" Messages ")
        .border_style(style(app, StyleRole::Focus));
    let inner = framed(frame, block, area);
    let mut lines = Vec::new();
    if inner.height > 12 {
        lines.push(Line::default());
    }
    lines.extend(texts(app).into_iter().map(|(role, text)| {
        let text = format!(" {text}");
        Line::from(span(app, role, text))
    }));
    let text = Paragraph::new(lines).wrap(Wrap { trim: false });
    frame.render_widget(text, inner);
}

fn texts(app: &App) -> Vec<(StyleRole, String)> {
    let plain = |text: &str| (StyleRole::Plain, text.to_owned());
    let heading = |text: &str| (StyleRole::Key, text.to_owned());
    match (&app.proxy.link, app.tab) {
        (ProxyStatus::None, _) | (_, 1..) => return vec![plain("This record has no messages.")],
        (ProxyStatus::Gone(_), _) => {
            return vec![plain("The proxy has ended. It recorded no messages.")];
        }
        (ProxyStatus::Live, _) => {}
    }
    let Some((url, config)) = app.listen_url.as_deref().zip(app.client_config()) else {
        let waiting = match app.proxy.hello.client.as_str() {
            "stdio" => {
                "Waiting for the client's first message (the client is connected over stdio)."
            }
            _ => "Waiting for a client",
        };
        return vec![heading(waiting)];
    };
    let mut lines = vec![
        heading("Waiting for a client"),
        plain(""),
        plain("Give it this URL:"),
        (StyleRole::Focus, format!("  {}", sanitize(url))),
        plain(""),
        plain(&format!(
            "or put this into its config ({} copies it):",
            UiCommand::Copy.key()
        )),
    ];
    let config = sanitize_json(&config);
    let config = config.lines().map(|line| plain(&format!("  {line}")));
    lines.extend(config);
    lines
}
