//! Finding what is to be hidden: one walk over a message, without recursion into it.
//!
//! Only scalars are hidden; below a key or a path that names a container, all of its scalars. Strings are looked at with their
//! escapes resolved. One that holds JSON itself (as tools write their structured results a second time, as text) is walked over
//! in the same way, three strings deep at most.

use super::key::{KeyNameSource, SecretKeyNames};
use super::path::{PathElement, PathMatchState};
use super::preset::SHORT;
use super::{CompiledRedactionRules, mark::RedactionMark};
use bytes::Bytes;
use mcp_proxy_wire::{JsonToken, Kind, Message, Span, string_content, string_spans};
use regex::bytes::Regex;
use std::borrow::Cow;

/// JSON in strings in strings is followed so far.
pub(super) const LAYERS: u32 = 3;

/// Something to hide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RedactionHit {
    pub(super) span: Span,
    pub(super) form: HitForm,
}

/// What kind of text a hit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HitForm {
    /// A whole JSON value, in JSON nested in this many strings.
    Value(u32),
    /// Part of a string or of other text.
    Part,
}

/// Looks for what the rules name.
#[derive(Clone, Copy)]
pub(super) struct SecretFinder<'a> {
    pub(super) rules: &'a CompiledRedactionRules,
    pub(super) mark: &'a RedactionMark,
}

/// What is known about an open container or a value.
struct ValueContext {
    place: MessagePosition,
    /// What a key or a path above says about it.
    hidden: RedactionScope,
    trail: PathMatchState,
    /// The number of the next element.
    next: usize,
    /// What the element before says about it, if that is a flag: `["--token", "x"]`.
    flagged: RedactionScope,
}

/// What of a value is hidden because of where it stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum RedactionScope {
    No,
    /// What can be a secret: a preset named it, and `true` is none.
    Secrets,
    /// Everything, as it was asked for.
    All,
}

/// Where in an MCP message something stands, as far as it decides about schemas: a property *named* password is not a password.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MessagePosition {
    /// A JSON-RPC message.
    Message,
    /// The array around several.
    Batch,
    /// `params` or `result`.
    Content,
    /// `tools` in there, and one of them.
    Tools,
    Tool,
    /// `inputRequests` of a result, and one of them: a request in itself.
    InputRequest,
    /// A JSON schema and everything in it.
    Schema,
    Elsewhere,
}

impl SecretFinder<'_> {
    /// What to hide in a well-formed message, in order and without overlap.
    pub(super) fn in_message(&self, message: &Message) -> Vec<RedactionHit> {
        let mut hits = Vec::new();
        self.walk(message, 0, &mut hits);
        hits
    }

    /// What to hide in other text.
    pub(super) fn in_text(&self, text: &[u8]) -> Vec<RedactionHit> {
        let mut hits = Vec::new();
        if let Some(keys) = &self.rules.keys {
            hits.extend(self.named(keys, text));
        }
        self.values(text, &mut hits);
        merge_hits(hits)
    }

    fn walk(&self, message: &Message, layer: u32, hits: &mut Vec<RedactionHit>) {
        let mut open: Vec<ValueContext> = Vec::new();
        let mut key = None;
        for piece in message.walk() {
            match piece {
                JsonToken::Key(span) => {
                    self.key(message.slice(span), span.start, hits);
                    key = Some(span);
                }
                JsonToken::End => drop(open.pop()),
                JsonToken::Object | JsonToken::Array => {
                    if let Some(parent) = open.last_mut() {
                        parent.flagged = RedactionScope::No;
                    }
                    let mut spot = self.spot(message, layer, open.last_mut(), key.take());
                    if open.is_empty() && layer == 0 && piece == JsonToken::Array {
                        spot.place = MessagePosition::Batch;
                    }
                    open.push(spot);
                }
                JsonToken::Scalar(span) => {
                    let is_flag = message.slice(span).starts_with(b"\"-");
                    if let Some(parent) = open.last_mut().filter(|_| is_flag) {
                        parent.flagged = RedactionScope::No;
                    }
                    let spot = self.spot(message, layer, open.last_mut(), key.take());
                    self.scalar(message.slice(span), span.start, &spot, layer, hits);
                    if let Some(parent) = open.last_mut() {
                        parent.flagged = self.flag(parent.place, message.slice(span));
                    }
                }
            }
        }
    }

    /// A key stays, unless it is a credential in itself.
    fn key(&self, token: &[u8], at: usize, hits: &mut Vec<RedactionHit>) {
        let Some(content) = string_content(token) else {
            return;
        };
        let mut found = Vec::new();
        self.tokens(&content, &mut found);
        place(merge_hits(found), token, at, hits);
    }

    /// What is known about the value that comes next in the innermost open container.
    fn spot(
        &self,
        message: &Message,
        layer: u32,
        parent: Option<&mut ValueContext>,
        key: Option<Span>,
    ) -> ValueContext {
        let paths = &self.rules.paths;
        let Some(parent) = parent else {
            return match layer {
                0 => ValueContext::at(MessagePosition::Message, paths.start()),
                _ => ValueContext::at(MessagePosition::Elsewhere, PathMatchState::default()),
            };
        };
        // Paths begin at a message, also at one in a batch.
        if parent.place == MessagePosition::Batch {
            return ValueContext::at(MessagePosition::Message, paths.start());
        }
        let content = key.and_then(|span| string_content(message.slice(span)));
        let way = match &content {
            Some(key) => PathElement::Key(key),
            None => PathElement::Index(parent.next),
        };
        parent.next += 1;
        let (trail, arrived) = paths.follow(&parent.trail, way);
        let named = match way {
            _ if arrived => RedactionScope::All,
            PathElement::Key(key) => self.named_by(parent.place, key),
            PathElement::Index(_) => parent.flagged,
        };
        ValueContext {
            hidden: parent.hidden.max(named),
            ..ValueContext::at(parent.place.inside(way), trail)
        }
    }

    fn named_by(&self, place: MessagePosition, key: &[u8]) -> RedactionScope {
        let is_head =
            place == MessagePosition::Message && matches!(key, b"jsonrpc" | b"id" | b"method");
        if place == MessagePosition::Schema || is_head {
            return RedactionScope::No;
        }
        let by = self.rules.keys.as_ref().and_then(|keys| keys.named(key));
        match by {
            None => RedactionScope::No,
            Some(KeyNameSource::Preset) => RedactionScope::Secrets,
            Some(KeyNameSource::User) => RedactionScope::All,
        }
    }

    /// What the scalar `token` says about the one after it in a list.
    fn flag(&self, place: MessagePosition, token: &[u8]) -> RedactionScope {
        let name = token
            .strip_prefix(b"\"-")
            .and_then(|rest| rest.strip_suffix(b"\""));
        match name {
            Some(name) => self.named_by(place, name.strip_prefix(b"-").unwrap_or(name)),
            None => RedactionScope::No,
        }
    }

    fn scalar(
        &self,
        token: &[u8],
        at: usize,
        spot: &ValueContext,
        layer: u32,
        hits: &mut Vec<RedactionHit>,
    ) {
        let whole = RedactionHit {
            span: Span::new(at, at + token.len()),
            form: HitForm::Value(layer),
        };
        match token.first() {
            Some(b'"') => {}
            // An empty value is not a secret.
            Some(b'n') => return,
            Some(b't' | b'f') if spot.hidden != RedactionScope::All => return,
            _ if spot.hidden != RedactionScope::No => return hits.push(whole),
            _ => {
                let mut found = Vec::new();
                self.values(token, &mut found);
                if !found.is_empty() {
                    hits.push(whole);
                }
                return;
            }
        }
        let Some(content) = string_content(token) else {
            return;
        };
        if content.is_empty() || self.mark.is_real(&content) {
            return;
        }
        if spot.hidden != RedactionScope::No {
            return hits.push(whole);
        }
        place(self.in_string(content, spot.place, layer), token, at, hits);
    }

    /// Hits in a string's content.
    fn in_string(
        &self,
        content: Cow<'_, [u8]>,
        place: MessagePosition,
        layer: u32,
    ) -> Vec<RedactionHit> {
        let mut hits = Vec::new();
        self.values(&content, &mut hits);
        let keys = self
            .rules
            .keys
            .as_ref()
            .filter(|_| place != MessagePosition::Schema);
        if layer < LAYERS && matches!(content.trim_ascii_start().first(), Some(b'{' | b'[')) {
            let inner = Message::parse(Bytes::from(content.into_owned()));
            if inner.kind() != Kind::Malformed {
                self.walk(&inner, layer + 1, &mut hits);
            } else if let Some(keys) = keys {
                hits.extend(self.named(keys, inner.raw()));
            }
        } else if let Some(keys) = keys {
            hits.extend(self.named(keys, &content));
        }
        merge_hits(hits)
    }

    /// What keys find in text, but for what is hidden already.
    fn named<'a>(
        &'a self,
        keys: &'a SecretKeyNames,
        text: &'a [u8],
    ) -> impl Iterator<Item = RedactionHit> + 'a {
        let is_new = |span: &Span| !self.is_hidden(text, *span);
        keys.in_text(text).into_iter().filter(is_new).map(part)
    }

    /// What the patterns find.
    fn values(&self, text: &[u8], hits: &mut Vec<RedactionHit>) {
        for pattern in &self.rules.values {
            self.matches(pattern, text, hits);
        }
        self.tokens(text, hits);
    }

    /// What looks like a credential, or like a mark.
    fn tokens(&self, text: &[u8], hits: &mut Vec<RedactionHit>) {
        if text.len() <= SHORT {
            return;
        }
        if let Some(any) = &self.rules.any_token
            && any.is_match(text)
        {
            for pattern in &self.rules.tokens {
                self.matches(pattern, text, hits);
            }
        }
        if let Some(fake) = self.mark.fake_in(text) {
            self.matches(fake, text, hits);
        }
    }

    /// What a pattern finds, but for what is hidden already; of one with a group, what the first group holds.
    fn matches(&self, pattern: &Regex, text: &[u8], hits: &mut Vec<RedactionHit>) {
        let is_new = |span: &Span| !self.is_hidden(text, *span);
        if pattern.captures_len() == 1 {
            let found = pattern.find_iter(text);
            let found = found.map(|found| Span::new(found.start(), found.end()));
            hits.extend(found.filter(is_new).map(part));
        } else {
            let found = pattern.captures_iter(text);
            let found = found.filter_map(|found| found.get(1).or_else(|| found.get(0)));
            let found = found.map(|found| Span::new(found.start(), found.end()));
            hits.extend(found.filter(is_new).map(part));
        }
    }

    /// Whether a mark stands there, and a real one.
    fn is_hidden(&self, text: &[u8], span: Span) -> bool {
        self.mark.is_real(&text[span.start..span.end])
    }
}

/// Adds hits in the content of the string `token`, which stands at `at`.
fn place(inside: Vec<RedactionHit>, token: &[u8], at: usize, hits: &mut Vec<RedactionHit>) {
    if inside.is_empty() {
        return;
    }
    let spans: Vec<Span> = inside.iter().map(|hit| hit.span).collect();
    let places = string_spans(token, &spans);
    hits.extend(inside.iter().zip(places).map(|(hit, span)| RedactionHit {
        span: span.shift(at),
        form: hit.form,
    }));
}

impl ValueContext {
    fn at(place: MessagePosition, trail: PathMatchState) -> ValueContext {
        ValueContext {
            place,
            hidden: RedactionScope::No,
            trail,
            next: 0,
            flagged: RedactionScope::No,
        }
    }
}

impl MessagePosition {
    /// What stands one step further in.
    fn inside(self, way: PathElement<'_>) -> MessagePosition {
        let key = match way {
            PathElement::Key(key) => key,
            PathElement::Index(_) => b"",
        };
        match (self, key) {
            (MessagePosition::Schema, _) => MessagePosition::Schema,
            (MessagePosition::Message, b"params" | b"result") => MessagePosition::Content,
            (MessagePosition::Content, b"tools") => MessagePosition::Tools,
            (MessagePosition::Content, b"requestedSchema") => MessagePosition::Schema,
            (MessagePosition::Content, b"inputRequests") => MessagePosition::InputRequest,
            (MessagePosition::InputRequest, _) => MessagePosition::Message,
            (MessagePosition::Tools, b"") => MessagePosition::Tool,
            (MessagePosition::Tool, b"inputSchema" | b"outputSchema") => MessagePosition::Schema,
            _ => MessagePosition::Elsewhere,
        }
    }
}

fn part(span: Span) -> RedactionHit {
    RedactionHit {
        span,
        form: HitForm::Part,
    }
}

/// The same hits in order, those that touch one another as one, empty ones left out.
fn merge_hits(mut hits: Vec<RedactionHit>) -> Vec<RedactionHit> {
    hits.retain(|hit| !hit.span.is_empty());
    hits.sort_by_key(|hit| (hit.span.start, std::cmp::Reverse(hit.span.end)));
    let mut joined: Vec<RedactionHit> = Vec::with_capacity(hits.len());
    for hit in hits {
        match joined.last_mut() {
            Some(last) if hit.span.start < last.span.end => {
                if hit.span.end > last.span.end {
                    // Neither holds the other: what is left is not a JSON value, only text.
                    last.span.end = hit.span.end;
                    last.form = HitForm::Part;
                }
            }
            _ => joined.push(hit),
        }
    }
    joined
}
