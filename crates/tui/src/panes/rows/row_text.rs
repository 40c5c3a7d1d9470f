//! What a row says of its message, in as much room as there is.

use mcp_proxy_session::remark_words as word;
use mcp_proxy_wire::terminal_text::sanitize;
use mcp_proxy_wire::{Kind, Origin};
use unicode_width::UnicodeWidthStr as _;

use crate::panes::cut;
use crate::source::MessageRow;

/// What a row says of its message.
pub(super) struct RowText {
    /// `tools/call`
    subject: String,
    /// ` [exec_cmd]`
    name: String,
    /// ` (response)`: left out where there is no room, because the arrow says it too.
    answer: &'static str,
    /// ` (tool error)`
    error: &'static str,
    /// ` · modified`
    flags: String,
    /// ` · made by the proxy` or ` · replayed`, if there is room.
    maker: String,
}

impl RowText {
    /// `forgotten`: it was held, and the proxy that held it is gone.
    pub(super) fn of(row: &MessageRow, forgotten: bool) -> RowText {
        let method = row.method.as_deref().map(sanitize);
        let name = row.name.as_deref();
        let name = name.map(|name| format!(" [{}]", sanitize(name)));
        let mut flags = String::new();
        push_flags(&mut flags, row, forgotten);
        if let Some(answer) = &row.answer {
            push_flags(&mut flags, answer, false);
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
            Kind::Other | Kind::Malformed if row.http_error.is_some() => {
                let status = row.http_error.unwrap_or_default();
                (format!("HTTP {status}{}", excerpt(row)), "")
            }
            Kind::Other => (format!("JSON, but not a message{}", excerpt(row)), ""),
            Kind::Malformed => (format!("not JSON{}", excerpt(row)), ""),
        };
        RowText {
            subject,
            name: name.unwrap_or_default(),
            answer,
            error: error_word(row.answer.as_deref().unwrap_or(row)),
            flags,
            maker: match row.origin {
                Origin::Proxy => format!(" · {}", word::OWN),
                Origin::Replay => format!(" · {}", word::REPLAYED),
                Origin::Client | Origin::Server => String::new(),
            },
        }
    }

    /// Whether all that matters has room.
    pub(super) fn fits(&self, room: usize) -> bool {
        let RowText {
            subject,
            name,
            error,
            flags,
            ..
        } = self;
        subject.width() + name.width() + error.width() + flags.width() <= room
    }

    /// `tools/call [exec_cmd]`, `tools/call [exec_cmd] (response)`, `[exec_cmd] (tool error) · late`, as much as has room.
    pub(super) fn within(&self, room: usize) -> String {
        let RowText {
            subject,
            name,
            answer,
            error,
            flags,
            maker,
        } = self;
        let outcome = format!("{error}{flags}");
        let short_error = if error.is_empty() { "" } else { ERROR };
        let short_outcome = format!("{short_error}{flags}");
        // A tool says more than the method that calls it.
        let short = match name.trim_start() {
            "" => subject,
            name => name,
        };
        let forms = [
            format!("{subject}{name}{answer}{outcome}{maker}"),
            format!("{subject}{name}{outcome}{maker}"),
            format!("{subject}{name}{answer}{outcome}"),
            format!("{subject}{name}{outcome}"),
            format!("{short}{outcome}{maker}"),
            format!("{short}{outcome}"),
            format!("{short}{short_outcome}"),
        ];
        let fitting = forms.into_iter().find(|form| form.width() <= room);
        fitting.unwrap_or_else(|| {
            let room = room.saturating_sub(short_outcome.width());
            let text = format!("{}{short_outcome}", cut(short, room));
            text.trim_start().to_owned()
        })
    }
}

/// Said of an error, and also of a tool error where there is no room.
const ERROR: &str = " (error)";

fn error_word(row: &MessageRow) -> &'static str {
    match (row.kind, row.is_error) {
        (Kind::Error, _) => ERROR,
        (Kind::Response, true) if row.http_error.is_some() => ERROR,
        (Kind::Response, true) => " (tool error)",
        _ => "",
    }
}

/// ` · modified · delayed`
fn push_flags(text: &mut String, row: &MessageRow, forgotten: bool) {
    for (is, remark) in [
        (row.modified, word::MODIFIED),
        (row.dropped, word::DROPPED),
        (row.refused, word::REFUSED),
        (row.answered, word::ANSWERED),
        (forgotten, word::UNDECIDED),
        (row.late, word::LATE),
        (row.duplicate, word::DUPLICATE),
        (row.delayed, word::DELAYED),
        (row.redirected, word::REDIRECTED),
        (row.undelivered, word::UNDELIVERED),
    ] {
        if is {
            text.push_str(&format!(" · {remark}"));
        }
    }
}

fn excerpt(row: &MessageRow) -> String {
    let excerpt = row.excerpt.as_deref().map(sanitize);
    excerpt.map_or(String::new(), |excerpt| format!(": {excerpt}"))
}
