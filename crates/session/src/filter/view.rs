//! The view of a message that jq programs see.
//!
//! [`FIELDS`] is the one list of its fields. The view is made from it, and so are the help page, the documentation and the
//! errors about fields that do not exist.

use std::borrow::Cow;

use bytes::Bytes;
use jaq_json::Val;
use mcp_proxy_wire::{Field, Message, Span, TransportEnvelope};

use super::facts::{EnvelopeFacts, MessageFacts};
use crate::jq::{self, NeededFields};

/// A field of the view.
pub struct FilterField {
    /// Its name, without the dot.
    pub name: &'static str,
    /// What kind of value it has.
    pub holds: &'static str,
    /// What it means.
    pub about: &'static str,
    source: FieldSource,
}

/// Where the value of a field comes from.
#[derive(Clone, Copy)]
enum FieldSource {
    /// What is known about the message.
    Fact(fn(&MessageFacts<'_>) -> Option<Val>),
    /// A part of it, which may be large.
    Part(fn(&Message) -> Option<Span>),
}

/// Every field of the view, in the order in which people read of them. What a message does not have is `null`.
pub const FIELDS: &[FilterField] = &[
    fact(
        "method",
        "string",
        "the method; of an answer, that of the request it answers",
        |f| f.method().map(text),
    ),
    fact(
        "tool",
        "string",
        "the tool of a tools/call, and of its answer",
        |f| f.name_if(&["tools/call"]),
    ),
    fact(
        "prompt",
        "string",
        "the prompt of a prompts/get, and of its answer",
        |f| f.name_if(&["prompts/get"]),
    ),
    fact(
        "uri",
        "string",
        "the resource of a resources/read, subscribe or unsubscribe, and of its answer",
        |f| {
            f.name_if(&[
                "resources/read",
                "resources/subscribe",
                "resources/unsubscribe",
            ])
        },
    ),
    fact(
        "name",
        "string",
        "the tool, prompt or resource, whichever it is",
        |f| f.name().map(text),
    ),
    fact(
        "direction",
        "string",
        "client_to_server or server_to_client",
        |f| Some(word(f.direction.as_str())),
    ),
    fact(
        "origin",
        "string",
        "who wrote it: client, server, proxy or replay",
        |f| Some(word(f.origin.as_str())),
    ),
    fact(
        "kind",
        "string",
        "request, notification, response, error, batch, other or malformed",
        |f| Some(word(f.kind().as_str())),
    ),
    fact(
        "status",
        "string",
        "of an answer, ok or error (also for a tool that failed, and for an HTTP status of 400 or more); of anything else, none",
        |f| Some(word(f.status())),
    ),
    fact("id", "any", "the JSON-RPC id", |f| f.id()),
    part(
        "params",
        "any",
        "the params of a request or notification",
        Message::params,
    ),
    part("result", "any", "the result of an answer", Message::result),
    part(
        "error",
        "object",
        "the error of an answer: code, message, data",
        Message::error,
    ),
    part(
        "message",
        "any",
        "the whole message; for a batch, an array",
        |message| Some(Span::new(0, message.len())),
    ),
    fact(
        "raw",
        "string",
        "the whole message as text, as it was sent",
        |f| {
            f.partial_head
                .is_none()
                .then(|| Val::utf8_str(f.message.raw().clone()))
        },
    ),
    fact("size", "number", "its length in bytes", |f| {
        Some(number(
            f.partial_head
                .map_or(f.message.len() as u64, |(_, len)| len),
        ))
    }),
    fact("sequence", "number", "its number within the session", |f| {
        Some(number(f.sequence))
    }),
    fact(
        "time",
        "string",
        "when it was received: \"2026-11-15T18:00:00.001000Z\"",
        |f| Some(jq::time(f.time)),
    ),
    fact(
        "answers",
        "number",
        "the number of the request that it answers",
        |f| f.request.map(|asked| number(asked.sequence)),
    ),
    fact(
        "parent",
        "number",
        "the number of the call that caused it, where the proxy sent it because of a client's request",
        |f| f.parent.map(number),
    ),
    fact(
        "latency_ms",
        "number",
        "of an answer, how long the server took: from forwarding the request to receiving the answer",
        |f| {
            f.request
                .map(|asked| Val::from(asked.latency.as_secs_f64() * 1e3))
        },
    ),
    fact(
        "request_held_ms",
        "number",
        "of an answer, how long its request was held or delayed before it was forwarded",
        |f| {
            f.request
                .map(|asked| Val::from(asked.held.as_secs_f64() * 1e3))
        },
    ),
    fact(
        "transport",
        "string",
        "stdio, sse, streamable_http, websocket or in_process: that of the side it came from",
        |f| Some(word(f.transport.as_str())),
    ),
    fact(
        "connection",
        "number",
        "the number of the connection",
        |f| Some(number(f.connection.into())),
    ),
    fact(
        "server",
        "string",
        "the name of the connection's server: that of a hub's configuration; hub on the connections of a hub's clients; server if nobody gave it a name",
        |f| f.server.map(text),
    ),
    fact(
        "exchange",
        "number",
        "the number of the HTTP exchange within the connection",
        |f| Some(number(f.exchange)),
    ),
    fact(
        "http",
        "object",
        "of a message that is an HTTP body, its head: method and target of a request, status of a response, version, headers (names in lower case); masked where a record masks. A message in an event stream has none, but .sse",
        |f| f.http(),
    ),
    fact(
        "sse",
        "object",
        "id, event and retry of the event that carried it",
        |f| f.sse(),
    ),
    fact(
        "late",
        "boolean",
        "it answers a request that was given up",
        |f| Some(Val::Bool(f.flags.late)),
    ),
    fact(
        "duplicate",
        "boolean",
        "it answers a request that had its answer",
        |f| Some(Val::Bool(f.flags.duplicate)),
    ),
    fact(
        "modified",
        "boolean",
        "it was changed on its way; known in records only",
        |f| Some(Val::Bool(f.flags.modified)),
    ),
    fact(
        "dropped",
        "boolean",
        "it was dropped; known in records only",
        |f| Some(Val::Bool(f.flags.dropped)),
    ),
];

const fn fact(
    name: &'static str,
    holds: &'static str,
    about: &'static str,
    value: fn(&MessageFacts<'_>) -> Option<Val>,
) -> FilterField {
    FilterField {
        name,
        holds,
        about,
        source: FieldSource::Fact(value),
    }
}

const fn part(
    name: &'static str,
    holds: &'static str,
    about: &'static str,
    span: fn(&Message) -> Option<Span>,
) -> FilterField {
    FilterField {
        name,
        holds,
        about,
        source: FieldSource::Part(span),
    }
}

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
pub(super) fn names() -> Vec<&'static str> {
    FIELDS.iter().map(|field| field.name).collect()
}

impl MessageFacts<'_> {
    /// The view, with the fields that are needed.
    pub(super) fn view(&self, needs: NeededFields) -> MessageView {
        let needed = FIELDS.iter().enumerate();
        let needed = needed.filter(|(place, _)| needs.has(*place));
        let members = needed.map(|(_, field)| {
            let member = match field.source {
                FieldSource::Fact(value) => ViewMember::Value(value(self).unwrap_or(Val::Null)),
                FieldSource::Part(span) => {
                    span(self.message).map_or(ViewMember::Value(Val::Null), ViewMember::Part)
                }
            };
            (field.name, member)
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

fn number(number: u64) -> Val {
    isize::try_from(number).map_or_else(|_| Val::from(number as f64), Val::from)
}
