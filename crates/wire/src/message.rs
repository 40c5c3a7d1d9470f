//! A message: raw bytes plus a head.
//!
//! Parsing never fails, never copies and never looks at more than it must: one linear pass gives the kind and the
//! spans of the outermost members. What a message says further down is looked up on demand ([`Field`](crate::Field)).
//! Malformed bytes are a message like any other; what was readable of id and method before the damage stays known.

mod splice;

use std::borrow::Cow;

use bytes::Bytes;

pub use splice::SpliceError;

use crate::scan::{self, RootKind, ScanEnd};
use crate::{Id, Span, text};

/// A message nested deeper than this counts as malformed.
pub const MAX_DEPTH: usize = scan::MAX_DEPTH;

/// A message nested no deeper than this may stand inside a JSON line that common parsers (which stop at 128) can read.
pub const EMBED_DEPTH: usize = 120;

/// Raw bytes and what a first look at them tells.
#[derive(Clone, Debug)]
pub struct Message {
    raw: Bytes,
    head: MessageHead,
}

/// What a message is, by its shape. The `jsonrpc` member is not asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Kind {
    /// An object with `method` and `id` (`"id":null` too).
    Request,
    /// An object with `method` and no `id`.
    Notification,
    /// An object with `result` and no `method`.
    Response,
    /// An object with `error` and no `method`; also when it has `"result":null` as well.
    Error,
    /// An array.
    Batch,
    /// JSON, but none of these.
    Other,
    /// No JSON: broken grammar, broken UTF-8, too deep, or nothing at all.
    Malformed,
}

#[derive(Clone, Copy, Debug)]
struct MessageHead {
    kind: Kind,
    depth: u16,
    newline: bool,
    bom: bool,
    /// No grammar was broken, as far as it was looked at.
    valid_so_far: bool,
    members: HeadMembers<Span>,
}

/// The outermost members that make the shape of a message, by whatever tells where their values are.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeadMembers<T> {
    pub id: Option<T>,
    pub method: Option<T>,
    pub params: Option<T>,
    pub result: Option<T>,
    pub error: Option<T>,
}

impl Kind {
    /// The variant in lower case, as records and listings spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::Request => "request",
            Kind::Notification => "notification",
            Kind::Response => "response",
            Kind::Error => "error",
            Kind::Batch => "batch",
            Kind::Other => "other",
            Kind::Malformed => "malformed",
        }
    }
}

impl Message {
    /// Takes `raw` as a message.
    pub fn parse(raw: impl Into<Bytes>) -> Message {
        let raw = raw.into();
        let head = MessageHead::read(&raw);
        Message { raw, head }
    }

    /// The same message with its bytes in other hands: `keep` returns what it is given, perhaps with something attached.
    pub fn try_rehouse<E>(
        self,
        keep: impl FnOnce(Bytes) -> Result<Bytes, E>,
    ) -> Result<Message, E> {
        let length = self.raw.len();
        let raw = keep(self.raw)?;
        debug_assert_eq!(raw.len(), length, "these are not the same bytes");
        Ok(Message {
            raw,
            head: self.head,
        })
    }

    /// The bytes, exactly as given.
    pub fn raw(&self) -> &Bytes {
        &self.raw
    }

    /// The bytes, exactly as given.
    pub fn into_raw(self) -> Bytes {
        self.raw
    }

    /// How many bytes it is long.
    pub fn len(&self) -> usize {
        self.raw.len()
    }

    /// Whether it has no bytes at all.
    pub fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// Where its outermost value stands, without the white space around it.
    pub fn root(&self) -> Span {
        let start = self.raw.len() - self.raw.trim_ascii_start().len();
        Span::new(start, start + self.raw.trim_ascii().len())
    }

    /// What it is.
    pub fn kind(&self) -> Kind {
        self.head.kind
    }

    /// Whether its sender waits for an answer: a request, or what a reader less strict than we are takes for one (nested
    /// too deep for us, or with bytes that are not UTF-8).
    pub fn expects_answer(&self) -> bool {
        self.head.kind == Kind::Request || self.looks_like_request()
    }

    /// The same of a batch: whether one of its messages does.
    pub fn expects_any_answer(&self) -> bool {
        match self.parts() {
            Some(parts) => parts.iter().any(Message::expects_answer),
            None => self.expects_answer(),
        }
    }

    /// Whether it is an answer, or what a reader less strict than we are takes for one, as far as we can read it.
    pub fn is_answer(&self) -> bool {
        let members = &self.head.members;
        matches!(self.head.kind, Kind::Response | Kind::Error)
            || (self.head.kind == Kind::Malformed
                && self.head.valid_so_far
                && members.id.is_some()
                && members.method.is_none())
    }

    fn looks_like_request(&self) -> bool {
        self.head.kind == Kind::Malformed && self.head.valid_so_far && self.has_id_and_method()
    }

    /// Whether an id and a method can be read, whatever else is wrong.
    pub fn has_id_and_method(&self) -> bool {
        self.head.members.id.is_some() && self.head.members.method.is_some()
    }

    /// Its id. `null` is an id; no `id` member is none.
    pub fn id(&self) -> Option<Id> {
        self.id_token().map(Id::from_token)
    }

    /// Its id as it stands in the message, for a look without a copy.
    pub fn id_token(&self) -> Option<&[u8]> {
        self.id_span().map(|span| self.slice(span))
    }

    /// Its method, escapes resolved and U+FFFD for what is not text. Nothing if `method` is not a string.
    pub fn method(&self) -> Option<Cow<'_, str>> {
        text::quoted(self.slice(self.method_span()?)).map(text::text)
    }

    pub(crate) fn id_span(&self) -> Option<Span> {
        self.head.members.id
    }

    pub(crate) fn method_span(&self) -> Option<Span> {
        self.head.members.method
    }

    /// Where the value of `params` stands.
    pub fn params(&self) -> Option<Span> {
        self.head.members.params
    }

    /// Where the value of `result` stands.
    pub fn result(&self) -> Option<Span> {
        self.head.members.result
    }

    /// Where the value of `error` stands.
    pub fn error(&self) -> Option<Span> {
        self.head.members.error
    }

    /// The bytes at `span`; none if the span is of some longer message.
    pub fn slice(&self, span: Span) -> &[u8] {
        self.raw.get(span.range()).unwrap_or_default()
    }

    /// The number in `error.code`.
    pub fn error_code(&self) -> Option<i64> {
        let code = self.member(self.error()?, "code")?;
        whole_number(self.slice(code))
    }

    /// Whether the bytes are exactly one JSON value (RFC 8259, valid UTF-8). White space around it is allowed, a
    /// byte order mark is not.
    pub fn is_json(&self) -> bool {
        self.head.kind != Kind::Malformed && !self.head.bom
    }

    /// Whether the bytes may stand as they are inside a line of JSON: valid, no CR or LF, not too deep.
    pub fn fits_in_json_line(&self) -> bool {
        self.is_json() && !self.head.newline && usize::from(self.head.depth) <= EMBED_DEPTH
    }

    /// How many objects and arrays are open at the deepest place.
    pub fn depth(&self) -> usize {
        usize::from(self.head.depth)
    }

    /// Whether there is a CR or LF anywhere in it.
    pub fn has_line_break(&self) -> bool {
        match self.head.kind {
            Kind::Malformed => memchr::memchr2(b'\n', b'\r', &self.raw).is_some(),
            // In sound JSON they stand between tokens only.
            _ => self.head.newline,
        }
    }

    /// Whether CR or LF stands between tokens of a well-formed message.
    pub(crate) fn has_newline(&self) -> bool {
        self.head.newline
    }

    /// The same message with other bytes that have the same tokens in the same places, on one line.
    pub(crate) fn with_spaces(&self, raw: Bytes) -> Message {
        let head = MessageHead {
            newline: false,
            ..self.head
        };
        Message { raw, head }
    }

    /// The elements of a batch, each as a message of its own on the same bytes. Nothing if this is not a batch.
    pub fn parts(&self) -> Option<Vec<Message>> {
        if self.head.kind != Kind::Batch {
            return None;
        }
        let start = if self.head.bom { BOM.len() } else { 0 };
        let mut parts = Vec::new();
        scan::scan(self.raw.get(start..).unwrap_or_default(), |_, span| {
            parts.push(Message::parse(self.raw.slice(span.shift(start).range())));
        });
        Some(parts)
    }
}

/// A byte order mark, which some writers put in front of their JSON.
pub(crate) const BOM: &[u8] = b"\xef\xbb\xbf";

impl MessageHead {
    fn read(raw: &[u8]) -> MessageHead {
        let (start, text) = match raw.strip_prefix(BOM) {
            Some(text) => (BOM.len(), text),
            None => (0, raw),
        };
        let mut members = HeadMembers::<Span>::default();
        let scan = scan::scan(text, |key, span| {
            // The elements of an array have empty keys, which fill no slot.
            if let Some(slot) = members.slot(key) {
                *slot = Some(span.shift(start));
            }
        });
        let sound =
            scan.end == ScanEnd::Complete && (scan.ascii || std::str::from_utf8(text).is_ok());
        let kind = match scan.root {
            _ if !sound => Kind::Malformed,
            RootKind::Array => Kind::Batch,
            RootKind::Object => members
                .map(|span| raw.get(span.range()).unwrap_or_default())
                .kind(),
            RootKind::Scalar | RootKind::Nothing => Kind::Other,
        };
        let depth = u16::try_from(scan.depth).unwrap_or(u16::MAX);
        MessageHead {
            kind,
            depth,
            newline: scan.newline,
            bom: start != 0,
            valid_so_far: matches!(scan.end, ScanEnd::Complete | ScanEnd::TooDeep),
            members,
        }
    }
}

impl<T> HeadMembers<T> {
    /// The place for the member called `key`, if it is one of those that matter.
    #[inline]
    pub(crate) fn slot(&mut self, key: scan::MemberKey<'_>) -> Option<&mut Option<T>> {
        if key.escaped {
            return self.plain_slot(&text::unescape(key.raw));
        }
        self.plain_slot(key.raw)
    }

    #[inline]
    fn plain_slot(&mut self, key: &[u8]) -> Option<&mut Option<T>> {
        match key {
            b"id" => Some(&mut self.id),
            b"method" => Some(&mut self.method),
            b"params" => Some(&mut self.params),
            b"result" => Some(&mut self.result),
            b"error" => Some(&mut self.error),
            _ => None,
        }
    }

    /// These members, and those of `other` that are missing here.
    pub(crate) fn or(self, other: HeadMembers<T>) -> HeadMembers<T> {
        HeadMembers {
            id: self.id.or(other.id),
            method: self.method.or(other.method),
            params: self.params.or(other.params),
            result: self.result.or(other.result),
            error: self.error.or(other.error),
        }
    }

    fn map<U>(self, change: impl Fn(T) -> U) -> HeadMembers<U> {
        HeadMembers {
            id: self.id.map(&change),
            method: self.method.map(&change),
            params: self.params.map(&change),
            result: self.result.map(&change),
            error: self.error.map(&change),
        }
    }
}

impl HeadMembers<&[u8]> {
    /// The kind of an object with these members.
    pub(crate) fn kind(&self) -> Kind {
        match (self.method, self.id, self.result, self.error) {
            (Some(_), Some(_), _, _) => Kind::Request,
            (Some(_), None, _, _) => Kind::Notification,
            // Peers of the JSON-RPC 1.0 school write both members and null in one of them.
            (None, _, Some(b"null"), Some(error)) if error != b"null" => Kind::Error,
            (None, _, Some(_), _) => Kind::Response,
            (None, _, None, Some(_)) => Kind::Error,
            (None, _, None, None) => Kind::Other,
        }
    }
}

/// The whole number that a JSON number token stands for, `-32601.0` and `-3.2e4` included.
pub(crate) fn whole_number(token: &[u8]) -> Option<i64> {
    let token = std::str::from_utf8(token).ok()?;
    if !token.starts_with(['-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']) {
        return None;
    }
    if let Ok(number) = token.parse() {
        return Some(number);
    }
    const EXACT: f64 = 9_007_199_254_740_991.0;
    let number: f64 = token.parse().ok()?;
    (number.fract() == 0.0 && number.abs() <= EXACT).then_some(number as i64)
}
