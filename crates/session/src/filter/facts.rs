//! What a filter may ask about a message, wherever the message is.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use mcp_proxy_wire::{Direction, Kind, Message, Origin, PartialHead, Transport, TransportEnvelope};

use crate::message::{HttpHead, SseFields};
use crate::recorder::subject_field;

/// A message and what is known about it, borrowed from where it is: a pipeline or a record.
#[derive(Debug, Clone, Copy)]
pub struct MessageFacts<'a> {
    /// Its number within the session.
    pub sequence: u64,
    /// When it was received.
    pub time: SystemTime,
    /// Which way it travels.
    pub direction: Direction,
    /// Who wrote it.
    pub origin: Origin,
    /// The sequence number of the call that caused it.
    pub parent: Option<u64>,
    /// The transport of the link it was read from.
    pub transport: Transport,
    /// The connection's number.
    pub connection: u32,
    /// What the connection's server is called.
    pub server: Option<&'a str>,
    /// The exchange within the connection.
    pub exchange: u64,
    /// The message as it was received. Without bytes if it is [`MessageFacts::partial_head`].
    pub message: &'a Message,
    /// For a message whose bytes are not at hand: what its two ends say, and its length.
    pub partial_head: Option<(&'a PartialHead, u64)>,
    /// The request that it answers.
    pub request: Option<RequestFacts<'a>>,
    /// What it came in.
    pub envelope: EnvelopeFacts<'a>,
    /// What else is true of it.
    pub flags: MessageFlags,
}

/// The request that a message answers.
#[derive(Debug, Clone, Copy)]
pub struct RequestFacts<'a> {
    /// Its number.
    pub sequence: u64,
    /// Its method.
    pub method: Option<&'a str>,
    /// The tool, prompt or resource it is about.
    pub name: Option<&'a str>,
    /// From forwarding it to receiving this answer.
    pub latency: Duration,
    /// How long it was held or delayed before it was forwarded.
    pub held: Duration,
}

/// What a message came in.
#[derive(Debug, Clone, Copy, Default)]
pub enum EnvelopeFacts<'a> {
    /// Nothing worth telling.
    #[default]
    Plain,
    /// As it is on the wire.
    Live(&'a TransportEnvelope),
    /// As a record tells it.
    Recorded {
        /// HTTP facts.
        http: Option<&'a HttpHead>,
        /// SSE facts.
        sse: Option<&'a SseFields>,
    },
}

impl EnvelopeFacts<'_> {
    /// The status of the HTTP response that the message came in.
    pub fn http_status(&self) -> Option<u16> {
        match self {
            EnvelopeFacts::Live(TransportEnvelope::Response(parts)) => Some(parts.status.as_u16()),
            EnvelopeFacts::Recorded {
                http: Some(http), ..
            } => http.status,
            _ => None,
        }
    }

    /// Whether the message is the body of an HTTP request or response.
    pub fn has_http_head(&self) -> bool {
        match self {
            EnvelopeFacts::Plain => false,
            EnvelopeFacts::Live(envelope) => matches!(
                envelope,
                TransportEnvelope::Request(_) | TransportEnvelope::Response(_)
            ),
            EnvelopeFacts::Recorded { http, sse } => http.is_some() && sse.is_none(),
        }
    }
}

/// Whether an HTTP status says that something went wrong.
pub fn is_http_error(status: u16) -> bool {
    status >= 400
}

/// What may be true of a message besides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MessageFlags {
    /// It answers a request that was given up.
    pub late: bool,
    /// It answers a request that had its answer.
    pub duplicate: bool,
    /// A verdict changed it.
    pub modified: bool,
    /// A verdict dropped it.
    pub dropped: bool,
}

impl MessageFacts<'_> {
    /// What kind of message it is.
    pub fn kind(&self) -> Kind {
        self.partial_head
            .map_or(self.message.kind(), |(head, _)| head.kind)
    }

    /// The method; of an answer, that of the request it answers.
    pub fn method(&self) -> Option<Cow<'_, str>> {
        match (&self.request, self.partial_head) {
            (Some(asked), _) => asked.method.map(Cow::Borrowed),
            (None, Some((head, _))) => head.method.as_deref().map(Cow::Borrowed),
            (None, None) => self.message.method(),
        }
    }

    /// The tool, prompt or resource; of an answer, that of the request it answers.
    pub fn name(&self) -> Option<Cow<'_, str>> {
        match &self.request {
            Some(asked) => asked.name.map(Cow::Borrowed),
            None => self.own_name(),
        }
    }

    /// The tool, prompt or resource that this very message names.
    pub(super) fn own_name(&self) -> Option<Cow<'_, str>> {
        match self.partial_head {
            Some((head, _)) => head.name.as_deref().map(Cow::Borrowed),
            None => self.message.text(subject_field(&self.message.method()?)?),
        }
    }

    /// `ok`, `error` or `none`.
    pub fn status(&self) -> &'static str {
        use mcp_proxy_wire::Field::ResultField;
        match self.kind() {
            Kind::Error => "error",
            _ if self.envelope.http_status().is_some_and(is_http_error) => "error",
            Kind::Response => {
                let is_error = self.message.span(ResultField("isError"));
                let failed = is_error.is_some_and(|span| self.message.slice(span) == b"true");
                let tool = self
                    .request
                    .is_none_or(|asked| asked.method == Some("tools/call"));
                if failed && tool { "error" } else { "ok" }
            }
            _ => "none",
        }
    }
}
