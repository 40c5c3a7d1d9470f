//! How a conversation begins: `initialize` in the legacy era, `server/discover` in the modern one.

use std::time::Instant;

use bytes::Bytes;
use mcp_proxy_wire::revision::{LATEST_LEGACY, MODERN, meta};
use mcp_proxy_wire::{Era, ErrorCode, Field, Message, json_string};

use super::{LinkNews, Phase, ServerLink};

/// The extension that has tasks in the modern era.
pub(crate) const TASK_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// Who the server thinks its client is.
#[derive(Clone, Debug)]
pub(crate) struct ClientDescription {
    /// `clientInfo`, as JSON.
    pub(crate) info: Bytes,
    /// `capabilities`, as JSON.
    pub(crate) capabilities: Bytes,
}

/// What a server said about itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerDescription {
    /// What it told the client to know, if anything.
    pub(crate) instructions: Option<String>,
    /// `serverInfo`, as JSON.
    pub(crate) info: Option<Bytes>,
    /// Whether the capability objects exist.
    pub(crate) offers: Offers,
}

/// What a server offers, from its capabilities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offers {
    pub(crate) tools: bool,
    pub(crate) resources: bool,
    pub(crate) subscriptions: bool,
    /// It says of one of its lists that it tells when that changes.
    pub(crate) list_changes: bool,
    pub(crate) prompts: bool,
    pub(crate) completions: bool,
    pub(crate) logging: bool,
    /// `capabilities.tasks`, as 2025-11-25 has it.
    pub(crate) tasks: bool,
    /// `tasks/list` as well.
    pub(crate) task_list: bool,
    /// The extension of that name in 2026-07-28.
    pub(crate) task_extension: bool,
}

/// The opening request. Its id is replaced on the way.
pub(super) fn request(era: Era, client: &ClientDescription) -> Message {
    let info = String::from_utf8_lossy(&client.info);
    let capabilities = String::from_utf8_lossy(&client.capabilities);
    Message::parse(match era {
        Era::Legacy => format!(
            r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{LATEST_LEGACY}","capabilities":{capabilities},"clientInfo":{info}}}}}"#
        ),
        Era::Modern => {
            let meta = client.meta();
            format!(
                r#"{{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{{"_meta":{{{meta}}}}}}}"#
            )
        }
    })
}

impl ClientDescription {
    /// The members of `_meta` that a modern request needs.
    pub(crate) fn meta_members(&self) -> [(&'static str, String); 3] {
        [
            (meta::PROTOCOL_VERSION, json_string(MODERN)),
            (
                meta::CLIENT_INFO,
                String::from_utf8_lossy(&self.info).into_owned(),
            ),
            (
                meta::CLIENT_CAPABILITIES,
                String::from_utf8_lossy(&self.capabilities).into_owned(),
            ),
        ]
    }

    /// The same as text, to be put between braces.
    pub(crate) fn meta(&self) -> String {
        let members = self.meta_members();
        let members = members
            .iter()
            .map(|(name, value)| format!("\"{name}\":{value}"));
        members.collect::<Vec<_>>().join(",")
    }
}

impl ServerLink {
    /// The answer to the opening.
    pub(super) fn opening_answered(&mut self, answer: &Message, now: Instant) -> Vec<LinkNews> {
        if let Some(news) = self.opening_refused(answer) {
            self.deadline = None;
            return vec![news];
        }
        self.description = describe(answer);
        self.phase = Phase::Ready;
        self.deadline = None;
        match self.era {
            Era::Legacy => self.send(Message::parse(
                r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            )),
            Era::Modern => self.listen(),
        }
        let mut news = vec![LinkNews::Ready];
        news.extend(self.list_all(now));
        news
    }

    fn opening_refused(&self, answer: &Message) -> Option<LinkNews> {
        if let Some(need) = self.sign_in_need(answer) {
            return Some(LinkNews::NeedsSignIn(need));
        }
        if let Some(code) = answer.error_code().map(ErrorCode) {
            let other_era = match self.era {
                Era::Legacy => {
                    [ErrorCode::UNSUPPORTED_VERSION, ErrorCode::METHOD_NOT_FOUND].contains(&code)
                }
                Era::Modern => !is_modern_error(code),
            };
            if other_era && !is_own(code) {
                return Some(LinkNews::WrongEra);
            }
            let text = answer
                .error()
                .and_then(|span| answer.member(span, "message"));
            let text = text.and_then(|span| answer.text_at(span));
            let text = text.as_deref().unwrap_or("no reason given");
            // A server's own -31016 is no word of ours.
            let is_ours = is_own(code) && code != ErrorCode::NEEDS_SIGN_IN;
            return Some(LinkNews::Failed(match is_ours {
                true => text.to_owned(),
                false => format!("it refused the opening: {text}"),
            }));
        }
        if answer.result().is_none() {
            return Some(LinkNews::Failed(
                "its answer to the opening has no result".to_owned(),
            ));
        }
        let supported = answer.span(Field::ResultField("supportedVersions"));
        if self.era == Era::Modern
            && !supported.is_some_and(|span| contains(answer.slice(span), MODERN.as_bytes()))
        {
            return Some(LinkNews::WrongEra);
        }
        None
    }
}

fn is_modern_error(code: ErrorCode) -> bool {
    [
        ErrorCode::HEADER_MISMATCH,
        ErrorCode::MISSING_CAPABILITY,
        ErrorCode::UNSUPPORTED_VERSION,
    ]
    .contains(&code)
}

/// Whether the error comes from the link itself and says nothing about the server's era.
pub(super) fn is_own(code: ErrorCode) -> bool {
    ErrorCode::OWN.iter().any(|own| own.code == code) && code != ErrorCode::SERVER_HTTP
}

fn contains(text: &[u8], wanted: &[u8]) -> bool {
    text.windows(wanted.len()).any(|window| window == wanted)
}

fn describe(answer: &Message) -> ServerDescription {
    let capability = |name: &str| {
        let capabilities = answer.span(Field::ResultField("capabilities"))?;
        answer.member(capabilities, name)
    };
    // Modern servers say it in `_meta`.
    let in_meta = || {
        let meta = answer.span(Field::ResultField("_meta"))?;
        answer.member(meta, meta::SERVER_INFO)
    };
    let info = answer
        .span(Field::ResultField("serverInfo"))
        .or_else(in_meta);
    let is_true = |name: &str, member: &str| {
        let span = capability(name).and_then(|span| answer.member(span, member));
        span.is_some_and(|span| answer.slice(span) == b"true")
    };
    let lists = ["tools", "resources", "prompts"];
    ServerDescription {
        instructions: answer
            .text(Field::ResultField("instructions"))
            .map(|text| text.into_owned()),
        info: info.map(|span| answer.raw().slice(span.range())),
        offers: Offers {
            tools: capability("tools").is_some(),
            resources: capability("resources").is_some(),
            subscriptions: is_true("resources", "subscribe"),
            list_changes: lists.iter().any(|list| is_true(list, "listChanged")),
            prompts: capability("prompts").is_some(),
            completions: capability("completions").is_some(),
            logging: capability("logging").is_some(),
            tasks: capability("tasks").is_some(),
            task_list: capability("tasks")
                .is_some_and(|span| answer.member(span, "list").is_some()),
            task_extension: capability("extensions")
                .is_some_and(|span| answer.member(span, TASK_EXTENSION).is_some()),
        },
    }
}
