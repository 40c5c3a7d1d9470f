//! Finding what is to be hidden: one walk over a message, without recursion into it.
//!
//! Only scalars are hidden; below a key or a path that names a container, all of its scalars. Strings are looked at with their
//! escapes resolved. One that holds JSON itself (as tools write their structured results a second time, as text) is walked over
//! in the same way, three strings deep at most.

use super::key::{By, Keys};
use super::path::{Paths, Trail, Way};
use super::preset::SHORT;
use super::{Rules, mark::Mark};
use bytes::Bytes;
use mcp_proxy_wire::{Kind, Message, Piece, Span, string_content, string_spans};
use regex::bytes::Regex;
use std::borrow::Cow;

/// JSON in strings in strings is followed so far.
const LAYERS: u32 = 3;

/// Something to hide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) span: Span,
    pub(super) form: Form,
}

/// What kind of text a hit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A whole JSON value, in JSON that stands in so many strings.
    Value(u32),
    /// Part of a string or of other text.
    Part,
}

/// Looks for what the rules name.
#[derive(Clone, Copy)]
pub(super) struct Finder<'a> {
    pub(super) rules: &'a Rules,
    pub(super) mark: &'a Mark,
}

/// What is known about an open container or a value.
struct Spot {
    place: Place,
    /// What a key or a path above says about it.
    hidden: Hidden,
    trail: Trail,
    /// The number of the next element.
    next: usize,
    /// What the element before says about it, if that is a flag: `["--token", "x"]`.
    flagged: Hidden,
}

/// What of a value is hidden because of where it stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Hidden {
    No,
    /// What can be a secret: a preset named it, and `true` is none.
    Secrets,
    /// Everything, as it was asked for.
    All,
}

/// Where in an MCP message something stands, as far as it decides about schemas: a property *named* password is no password.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
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
    Asked,
    /// A JSON schema and everything in it.
    Schema,
    Elsewhere,
}

impl Finder<'_> {
    /// What to hide in a well-formed message, in order and without overlap.
    pub(super) fn in_message(&self, message: &Message) -> Vec<Hit> {
        let mut hits = Vec::new();
        self.walk(message, 0, &mut hits);
        hits
    }

    /// What to hide in other text.
    pub(super) fn in_text(&self, text: &[u8]) -> Vec<Hit> {
        let mut hits = Vec::new();
        if let Some(keys) = &self.rules.keys {
            hits.extend(self.named(keys, text));
        }
        self.values(text, &mut hits);
        apart(hits)
    }

    fn walk(&self, message: &Message, layer: u32, hits: &mut Vec<Hit>) {
        let mut open: Vec<Spot> = Vec::new();
        let mut key = None;
        for piece in message.walk() {
            match piece {
                Piece::Key(span) => {
                    self.key(message.slice(span), span.start, hits);
                    key = Some(span);
                }
                Piece::End => drop(open.pop()),
                Piece::Object | Piece::Array => {
                    if let Some(parent) = open.last_mut() {
                        parent.flagged = Hidden::No;
                    }
                    let mut spot = self.spot(message, layer, open.last_mut(), key.take());
                    if open.is_empty() && layer == 0 && piece == Piece::Array {
                        spot.place = Place::Batch;
                    }
                    open.push(spot);
                }
                Piece::Scalar(span) => {
                    let is_flag = message.slice(span).starts_with(b"\"-");
                    if let Some(parent) = open.last_mut().filter(|_| is_flag) {
                        parent.flagged = Hidden::No;
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
    fn key(&self, token: &[u8], at: usize, hits: &mut Vec<Hit>) {
        let Some(content) = string_content(token) else {
            return;
        };
        let mut found = Vec::new();
        self.tokens(&content, &mut found);
        place(apart(found), token, at, hits);
    }

    /// What is known about the value that comes next in the innermost open container.
    fn spot(
        &self,
        message: &Message,
        layer: u32,
        parent: Option<&mut Spot>,
        key: Option<Span>,
    ) -> Spot {
        let paths = &self.rules.paths;
        let Some(parent) = parent else {
            return match layer {
                0 => Spot::at(Place::Message, paths.start()),
                _ => Spot::at(Place::Elsewhere, Trail::default()),
            };
        };
        // Paths begin at a message, also at one in a batch.
        if parent.place == Place::Batch {
            return Spot::at(Place::Message, paths.start());
        }
        let content = key.and_then(|span| string_content(message.slice(span)));
        let way = match &content {
            Some(key) => Way::Key(key),
            None => Way::Index(parent.next),
        };
        parent.next += 1;
        let (trail, arrived) = self.follow(paths, &parent.trail, way);
        let named = match way {
            _ if arrived => Hidden::All,
            Way::Key(key) => self.named_by(parent.place, key),
            Way::Index(_) => parent.flagged,
        };
        Spot {
            hidden: parent.hidden.max(named),
            ..Spot::at(parent.place.inside(way), trail)
        }
    }

    fn follow(&self, paths: &Paths, trail: &Trail, way: Way<'_>) -> (Trail, bool) {
        if *trail == Trail::default() {
            return (Trail::default(), false);
        }
        paths.follow(trail, way)
    }

    fn named_by(&self, place: Place, key: &[u8]) -> Hidden {
        let is_head = place == Place::Message && matches!(key, b"jsonrpc" | b"id" | b"method");
        if place == Place::Schema || is_head {
            return Hidden::No;
        }
        let by = self.rules.keys.as_ref().and_then(|keys| keys.named(key));
        match by {
            None => Hidden::No,
            Some(By::Preset) => Hidden::Secrets,
            Some(By::User) => Hidden::All,
        }
    }

    /// What the scalar `token` says about the one after it in a list.
    fn flag(&self, place: Place, token: &[u8]) -> Hidden {
        let name = token
            .strip_prefix(b"\"-")
            .and_then(|rest| rest.strip_suffix(b"\""));
        match name {
            Some(name) => self.named_by(place, name.strip_prefix(b"-").unwrap_or(name)),
            None => Hidden::No,
        }
    }

    fn scalar(&self, token: &[u8], at: usize, spot: &Spot, layer: u32, hits: &mut Vec<Hit>) {
        let whole = Hit {
            span: Span::new(at, at + token.len()),
            form: Form::Value(layer),
        };
        match token.first() {
            Some(b'"') => {}
            // Nothing is no secret.
            Some(b'n') => return,
            Some(b't' | b'f') if spot.hidden != Hidden::All => return,
            _ if spot.hidden != Hidden::No => return hits.push(whole),
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
        if spot.hidden != Hidden::No {
            return hits.push(whole);
        }
        place(self.in_string(content, spot.place, layer), token, at, hits);
    }

    /// Hits in a string's content.
    fn in_string(&self, content: Cow<'_, [u8]>, place: Place, layer: u32) -> Vec<Hit> {
        let mut hits = Vec::new();
        self.values(&content, &mut hits);
        let keys = self.rules.keys.as_ref().filter(|_| place != Place::Schema);
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
        apart(hits)
    }

    /// What keys find in text, but for what is hidden already.
    fn named<'a>(&'a self, keys: &'a Keys, text: &'a [u8]) -> impl Iterator<Item = Hit> + 'a {
        let is_new = |span: &Span| !self.is_hidden(text, *span);
        keys.in_text(text).into_iter().filter(is_new).map(part)
    }

    /// What the patterns find.
    fn values(&self, text: &[u8], hits: &mut Vec<Hit>) {
        for pattern in &self.rules.values {
            self.matches(pattern, text, hits);
        }
        self.tokens(text, hits);
    }

    /// What looks like a credential, or like a mark.
    fn tokens(&self, text: &[u8], hits: &mut Vec<Hit>) {
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
    fn matches(&self, pattern: &Regex, text: &[u8], hits: &mut Vec<Hit>) {
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
fn place(inside: Vec<Hit>, token: &[u8], at: usize, hits: &mut Vec<Hit>) {
    if inside.is_empty() {
        return;
    }
    let spans: Vec<Span> = inside.iter().map(|hit| hit.span).collect();
    let places = string_spans(token, &spans);
    hits.extend(inside.iter().zip(places).map(|(hit, span)| Hit {
        span: span.shift(at),
        form: hit.form,
    }));
}

impl Spot {
    fn at(place: Place, trail: Trail) -> Spot {
        Spot {
            place,
            hidden: Hidden::No,
            trail,
            next: 0,
            flagged: Hidden::No,
        }
    }
}

impl Place {
    /// What stands one step further in.
    fn inside(self, way: Way<'_>) -> Place {
        let key = match way {
            Way::Key(key) => key,
            Way::Index(_) => b"",
        };
        match (self, key) {
            (Place::Schema, _) => Place::Schema,
            (Place::Message, b"params" | b"result") => Place::Content,
            (Place::Content, b"tools") => Place::Tools,
            (Place::Content, b"requestedSchema") => Place::Schema,
            (Place::Content, b"inputRequests") => Place::Asked,
            (Place::Asked, _) => Place::Message,
            (Place::Tools, b"") => Place::Tool,
            (Place::Tool, b"inputSchema" | b"outputSchema") => Place::Schema,
            _ => Place::Elsewhere,
        }
    }
}

fn part(span: Span) -> Hit {
    Hit {
        span,
        form: Form::Part,
    }
}

/// The same hits in order, those that touch one another as one, empty ones left out.
fn apart(mut hits: Vec<Hit>) -> Vec<Hit> {
    hits.retain(|hit| !hit.span.is_empty());
    hits.sort_by_key(|hit| (hit.span.start, std::cmp::Reverse(hit.span.end)));
    let mut joined: Vec<Hit> = Vec::with_capacity(hits.len());
    for hit in hits {
        match joined.last_mut() {
            Some(last) if hit.span.start < last.span.end => {
                if hit.span.end > last.span.end {
                    // Neither holds the other: what is left is no JSON value, only text.
                    last.span.end = hit.span.end;
                    last.form = Form::Part;
                }
            }
            _ => joined.push(hit),
        }
    }
    joined
}
