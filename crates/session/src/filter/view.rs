//! The view of a message that jq programs see.
//!
//! `docs/filters.md` describes its fields; a test compares the two lists.

use std::borrow::Cow;
use std::time::Duration;

use FieldSource::{Fact, Part};
use bytes::Bytes;
use jaq_json::Val;
use mcp_proxy_wire::{Field, Message, Span, TransportEnvelope};

use super::facts::{EnvelopeFacts, MessageFacts};
use crate::jq::{self, NeededFields};

/// Where the value of a field comes from.
#[derive(Clone, Copy)]
enum FieldSource {
    /// What is known about the message.
    Fact(fn(&MessageFacts<'_>) -> Option<Val>),
    /// A part of it, which may be large.
    Part(fn(&Message) -> Option<Span>),
}

/// Every field of the view, in the order of `docs/filters.md`, which says what each means. What a message does not have is `null`.
const FIELDS: &[(&str, FieldSource)] = &[
    ("method", Fact(|f| f.method().map(text))),
    ("tool", Fact(|f| f.name_if(&["tools/call"]))),
    ("prompt", Fact(|f| f.name_if(&["prompts/get"]))),
    ("uri", Fact(|f| f.name_if(RESOURCE_METHODS))),
    ("name", Fact(|f| f.name().map(text))),
    ("direction", Fact(|f| Some(word(f.direction.as_str())))),
    ("origin", Fact(|f| Some(word(f.origin.as_str())))),
    ("kind", Fact(|f| Some(word(f.kind().as_str())))),
    ("status", Fact(|f| Some(word(f.status())))),
    ("id", Fact(|f| f.id())),
    ("params", Part(Message::params)),
    ("result", Part(Message::result)),
    ("error", Part(Message::error)),
    ("message", Part(|message| Some(Span::new(0, message.len())))),
    ("raw", Fact(|f| f.raw())),
    ("size", Fact(|f| Some(number(f.size())))),
    ("sequence", Fact(|f| Some(number(f.sequence)))),
    ("time", Fact(|f| Some(jq::time(f.time)))),
    (
        "answers",
        Fact(|f| f.request.map(|asked| number(asked.sequence))),
    ),
    ("parent", Fact(|f| f.parent.map(number))),
    (
        "latency_ms",
        Fact(|f| f.request.map(|asked| millis(asked.latency))),
    ),
    (
        "request_held_ms",
        Fact(|f| f.request.map(|asked| millis(asked.held))),
    ),
    ("transport", Fact(|f| Some(word(f.transport.as_str())))),
    ("connection", Fact(|f| Some(number(f.connection.into())))),
    ("server", Fact(|f| f.server.map(text))),
    ("exchange", Fact(|f| Some(number(f.exchange)))),
    ("http", Fact(|f| f.http())),
    ("sse", Fact(|f| f.sse())),
    ("late", Fact(|f| Some(Val::Bool(f.flags.late)))),
    ("duplicate", Fact(|f| Some(Val::Bool(f.flags.duplicate)))),
    ("modified", Fact(|f| Some(Val::Bool(f.flags.modified)))),
    ("dropped", Fact(|f| Some(Val::Bool(f.flags.dropped)))),
];

const RESOURCE_METHODS: &[&str] = &[
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
];

/// What a program sees of a message, on its way to the thread that runs the program. Parts of the message are read there.
pub(super) struct MessageView {
    message: Message,
    members: Vec<(&'static str, ViewMember)>,
}

enum ViewMember {
    Value(Val),
    Part(Span),
}

impl MessageView {
    /// Its size, for the deadline of the program.
    pub(super) fn size(&self) -> usize {
        self.message.len()
    }

    pub(super) fn into_value(self) -> Val {
        let members = self.members.into_iter().map(|(name, member)| {
            let value = match member {
                ViewMember::Value(value) => value,
                ViewMember::Part(span) => jq::json(&self.message, span).unwrap_or(Val::Null),
            };
            (word(name), value)
        });
        Val::obj(members.collect())
    }
}

/// The names of all fields.
pub fn field_names() -> Vec<&'static str> {
    FIELDS.iter().map(|(name, _)| *name).collect()
}

impl MessageFacts<'_> {
    /// The view, with the fields that are needed.
    pub(super) fn view(&self, needs: NeededFields) -> MessageView {
        let needed = FIELDS.iter().enumerate();
        let needed = needed.filter(|(place, _)| needs.has(*place));
        let members = needed.map(|(_, (name, source))| {
            let member = match source {
                Fact(value) => ViewMember::Value(value(self).unwrap_or(Val::Null)),
                Part(span) => {
                    span(self.message).map_or(ViewMember::Value(Val::Null), ViewMember::Part)
                }
            };
            (*name, member)
        });
        MessageView {
            message: self.message.clone(),
            members: members.collect(),
        }
    }

    fn name_if(&self, methods: &[&str]) -> Option<Val> {
        let method = self.method()?;
        methods
            .contains(&&*method)
            .then(|| self.name().map(text))
            .flatten()
    }

    fn raw(&self) -> Option<Val> {
        let is_whole = self.partial_head.is_none();
        is_whole.then(|| Val::utf8_str(self.message.raw().clone()))
    }

    fn size(&self) -> u64 {
        let len = self.message.len() as u64;
        self.partial_head.map_or(len, |(_, len)| len)
    }

    fn id(&self) -> Option<Val> {
        match self.partial_head {
            Some((head, _)) => {
                let token = Message::parse(head.id.as_ref()?.token().to_vec());
                jq::whole(&token)
            }
            None => jq::json(self.message, self.message.span(Field::Id)?),
        }
    }

    fn http(&self) -> Option<Val> {
        match self.envelope {
            EnvelopeFacts::Live(TransportEnvelope::Request(parts)) => Some(object([
                ("method", Some(text(parts.method.as_str()))),
                ("target", Some(text(parts.uri.to_string()))),
                ("version", Some(text(format!("{:?}", parts.version)))),
                ("headers", Some(headers(wire_headers(&parts.headers)))),
            ])),
            EnvelopeFacts::Live(TransportEnvelope::Response(parts)) => Some(object([
                ("status", Some(number(parts.status.as_u16().into()))),
                ("version", Some(text(format!("{:?}", parts.version)))),
                ("headers", Some(headers(wire_headers(&parts.headers)))),
            ])),
            EnvelopeFacts::Recorded {
                http: Some(http), ..
            } => Some(object([
                ("method", http.method.as_deref().map(text)),
                ("target", http.target.as_deref().map(text)),
                ("status", http.status.map(|status| number(status.into()))),
                ("version", Some(text(http.version.as_str()))),
                ("headers", Some(headers(http.headers.iter().cloned()))),
            ])),
            _ => None,
        }
    }

    fn sse(&self) -> Option<Val> {
        let (id, event, retry) = match self.envelope {
            EnvelopeFacts::Live(TransportEnvelope::Event(event)) => {
                (&event.id, &event.event, event.retry)
            }
            EnvelopeFacts::Recorded { sse: Some(sse), .. } => (&sse.id, &sse.event, sse.retry),
            _ => return None,
        };
        Some(object([
            ("id", id.as_deref().map(text)),
            ("event", event.as_deref().map(text)),
            ("retry", retry.map(number)),
        ]))
    }
}

fn wire_headers(headers: &http::HeaderMap) -> impl Iterator<Item = (String, String)> + '_ {
    headers.iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        (name.as_str().to_owned(), value)
    })
}

/// A header that comes twice is joined with a comma, as HTTP says that it may be.
fn headers(all: impl Iterator<Item = (String, String)>) -> Val {
    let mut members: Vec<(String, String)> = Vec::new();
    for (name, value) in all {
        match members.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = format!("{known}, {value}"),
            None => members.push((name, value)),
        }
    }
    Val::obj(
        members
            .into_iter()
            .map(|(name, value)| (text(name), text(value)))
            .collect(),
    )
}

fn object<const N: usize>(members: [(&'static str, Option<Val>); N]) -> Val {
    let present = members
        .into_iter()
        .filter_map(|(name, value)| Some((word(name), value?)));
    Val::obj(present.collect())
}

fn word(word: &'static str) -> Val {
    Val::utf8_str(word)
}

fn text<'t>(text: impl Into<Cow<'t, str>>) -> Val {
    Val::utf8_str(Bytes::from(text.into().into_owned()))
}

fn millis(time: Duration) -> Val {
    Val::from(time.as_secs_f64() * 1e3)
}

fn number(number: u64) -> Val {
    isize::try_from(number).map_or_else(|_| Val::from(number as f64), Val::from)
}
