//! What people are told about a message besides its words: what is wrong with it, and what the proxy did with it.
//!
//! This is the one list of these words: tables, reports, exports and the terminal UI show the same ones.

use super::{MessageWithContext, ProxyMessage, RawBody};
use crate::duration_text;
use crate::filter::is_http_error;
use mcp_proxy_wire::{Field, Kind, Message, Origin};
use remark_words as word;

/// What became of a message, in a word.
pub mod remark_words {
    /// Other bytes were forwarded.
    pub const MODIFIED: &str = "modified";
    /// It was not forwarded.
    pub const DROPPED: &str = "dropped";
    /// A rule refused it.
    pub const REFUSED: &str = "refused";
    /// The proxy answered it in the place of the peer.
    pub const ANSWERED: &str = "answered";
    /// It went to another server.
    pub const REDIRECTED: &str = "redirected";
    /// The proxy that held it ended before anybody decided.
    pub const UNDECIDED: &str = "not decided";
    /// A rule kept it for a time.
    pub const DELAYED: &str = "delayed";
    /// It answers a request that was given up.
    pub const LATE: &str = "late";
    /// It answers a request that had its answer.
    pub const DUPLICATE: &str = "duplicate";
    /// The proxy wrote it.
    pub const OWN: &str = "made by the proxy";
    /// It was sent again.
    pub const REPLAYED: &str = "replayed";
    /// It did not reach its peer.
    pub const UNDELIVERED: &str = "undelivered";
}

/// What is wrong with a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageProblem {
    /// `error -32602`, `tool error`, `HTTP 404`, `not JSON`.
    pub what: String,
    /// What the peer says about it. It comes from outside, and may be hostile.
    pub text: Option<String>,
}

impl MessageWithContext {
    /// What is wrong with it: an error, a tool that failed, an HTTP status, bytes that are not JSON-RPC.
    pub fn problem(&self) -> Option<MessageProblem> {
        let http = self.message.http.as_ref().and_then(|http| http.status);
        let status = http.filter(|status| is_http_error(*status));
        let status = status.map(|status| format!("HTTP {status}"));
        let asked = self.request.as_ref().map(|asked| asked.method.as_str());
        let own = own_problem(&self.message, asked);
        match (status, own) {
            (Some(status), Some(own)) => Some(MessageProblem {
                what: format!("{status}, {}", own.what),
                ..own
            }),
            (Some(what), None) => Some(MessageProblem { what, text: None }),
            (None, own) => own,
        }
    }

    /// What the proxy did with it, and what else is unusual about it.
    pub fn remarks(&self) -> Vec<String> {
        let message = &self.message;
        let mut words: Vec<String> = Vec::new();
        let mut add = |is: bool, remark: &str| words.extend(is.then(|| remark.to_owned()));
        add(message.modified, word::MODIFIED);
        add(message.dropped, word::DROPPED);
        add(message.refused, word::REFUSED);
        add(message.answered, word::ANSWERED);
        add(message.redirected, word::REDIRECTED);
        add(message.undecided, word::UNDECIDED);
        if let Some(time) = message.held.filter(|_| !message.undecided) {
            let what = if message.delayed {
                word::DELAYED
            } else {
                "held"
            };
            words.push(format!("{what} {}", duration_text(time)));
        }
        let mut add = |is: bool, remark: &str| words.extend(is.then(|| remark.to_owned()));
        add(message.late, word::LATE);
        add(message.duplicate, word::DUPLICATE);
        add(message.origin == Origin::Proxy, word::OWN);
        let replay = match message.replay_of {
            Some(origin) if origin.is_edited => format!("edited replay of #{}", origin.sequence),
            Some(origin) => format!("replay of #{}", origin.sequence),
            None => word::REPLAYED.to_owned(),
        };
        add(message.origin == Origin::Replay, &replay);
        add(self.undelivered, word::UNDELIVERED);
        if let Some(parent) = message.parent {
            words.push(format!("caused by #{parent}"));
        }
        if message.redacted > 0 {
            words.push(format!("{} redacted", message.redacted));
        }
        words
    }
}

fn own_problem(message: &ProxyMessage, asked: Option<&str>) -> Option<MessageProblem> {
    let problem = |what: &str| {
        Some(MessageProblem {
            what: what.to_owned(),
            text: None,
        })
    };
    match message.kind {
        Kind::Malformed => problem("not JSON"),
        Kind::Other if message.len > 0 => problem("not JSON-RPC"),
        Kind::Error => {
            let body = body_of(&message.raw);
            let error = body.error().and_then(|span| {
                serde_json::from_slice::<serde_json::Value>(body.slice(span)).ok()
            });
            let code = body.error_code();
            let code = code.map(|code| format!(" {code}")).unwrap_or_default();
            let text = error
                .as_ref()
                .and_then(|error| error.get("message")?.as_str());
            Some(MessageProblem {
                what: format!("error{code}"),
                text: text.filter(|text| !text.is_empty()).map(str::to_owned),
            })
        }
        // A tool that fails answers with a result that says so.
        Kind::Response if asked == Some("tools/call") => {
            let body = body_of(&message.raw);
            let failed = body
                .span(Field::ResultField("isError"))
                .is_some_and(|span| body.slice(span) == b"true");
            failed.then(|| MessageProblem {
                what: "tool error".to_owned(),
                text: tool_error_text(&body),
            })
        }
        _ => None,
    }
}

/// What a tool says about its failure: the first line of the first text in its content.
fn tool_error_text(body: &Message) -> Option<String> {
    let content = body.slice(body.span(Field::ResultField("content"))?);
    let content: Vec<serde_json::Value> = serde_json::from_slice(content).ok()?;
    let mut texts = content.iter().filter_map(|item| item.get("text")?.as_str());
    let mut lines = texts.next()?.lines().map(str::trim);
    lines.find(|line| !line.is_empty()).map(str::to_owned)
}

fn body_of(raw: &RawBody) -> Message {
    Message::parse(raw.bytes().unwrap_or_default().to_vec())
}
