//! The mark that stands where a value stood: `[redacted:WORD:1]`.
//!
//! WORD is random and is told in the record's header only, so no peer can write a mark beforehand. One that learned it later
//! (it can read the record) still cannot fake one: whatever holds the word on its way into the record is hidden itself.

use super::RedactionFacts;
use super::find::{HitForm, LAYERS, RedactionHit};
use crate::REDACTED_CREDENTIAL;
use bytes::Bytes;
use mcp_proxy_wire::{Message, Span, json_string, string_content};
use memchr::memmem::Finder;
use regex::bytes::Regex;
use serde_json::Value;
use std::collections::BTreeMap;

/// Makes and knows the marks of one session.
#[derive(Debug)]
pub(super) struct RedactionMark {
    /// `[redacted:WORD:`
    front: String,
    source: MarkOrigin,
}

#[derive(Debug)]
enum MarkOrigin {
    /// Messages come from peers: whatever holds the word is fake.
    Peers(Box<Finder<'static>>, Regex),
    /// Messages come from the record: marks in them are real.
    Record,
}

impl RedactionMark {
    pub(super) fn for_peers(nonce: &str) -> Result<RedactionMark, regex::Error> {
        let fake = Regex::new(&format!(r"(?-u)(?:\[redacted:)?{nonce}(?::[0-9]*\]?)?"))?;
        Ok(RedactionMark {
            front: front(nonce),
            source: MarkOrigin::Peers(Box::new(Finder::new(nonce).into_owned()), fake),
        })
    }

    pub(super) fn for_record(nonce: &str) -> RedactionMark {
        RedactionMark {
            front: front(nonce),
            source: MarkOrigin::Record,
        }
    }

    /// What finds a peer's text that looks like a mark, if there is such in `text`.
    pub(super) fn fake_in(&self, text: &[u8]) -> Option<&Regex> {
        match &self.source {
            MarkOrigin::Peers(word, fake) => word.find(text).map(|_| fake),
            MarkOrigin::Record => None,
        }
    }

    /// Whether a string's content is a mark already.
    pub(super) fn is_real(&self, content: &[u8]) -> bool {
        matches!(self.source, MarkOrigin::Record) && content.starts_with(self.front.as_bytes())
    }

    /// `text` with [`REDACTED_CREDENTIAL`] for each hit.
    pub(super) fn mask(text: &[u8], hits: &[RedactionHit]) -> Bytes {
        put(text, hits, |_, _| REDACTED_CREDENTIAL.to_owned())
    }

    /// `raw` with a mark for each hit. Marks are numbered from `before` + 1.
    pub(super) fn put(&self, raw: &[u8], hits: &[RedactionHit], before: u32) -> Bytes {
        put(raw, hits, |index, hit| {
            let quote = match hit.form {
                HitForm::Value(layer) => quote(layer),
                HitForm::Part => String::new(),
            };
            let number = u32::try_from(index).unwrap_or(u32::MAX);
            let mark = self.text(number.saturating_add(before).saturating_add(1));
            format!("{quote}{mark}{quote}")
        })
    }

    /// The mark with this number.
    pub(super) fn text(&self, number: u32) -> String {
        format!("{}{number}]", self.front)
    }
}

fn put(
    text: &[u8],
    hits: &[RedactionHit],
    instead: impl Fn(usize, &RedactionHit) -> String,
) -> Bytes {
    let mut out = Vec::with_capacity(text.len() + hits.len() * 16);
    let mut done = 0;
    for (index, hit) in hits.iter().enumerate() {
        out.extend_from_slice(&text[done..hit.span.start]);
        out.extend_from_slice(instead(index, hit).as_bytes());
        done = hit.span.end;
    }
    out.extend_from_slice(&text[done..]);
    out.into()
}

fn front(nonce: &str) -> String {
    format!("[redacted:{nonce}:")
}

/// A quote inside of `layer` strings.
fn quote(layer: u32) -> String {
    format!("{}\"", "\\".repeat((1 << layer) - 1))
}

/// The numbers of marks for which no value was given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("values were redacted and are needed: {}", .0.iter().map(u32::to_string).collect::<Vec<_>>().join(", "))]
pub struct MissingFills(pub Vec<u32>);

/// A place in a message where a value was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedactedPlace {
    /// The number of the mark.
    pub mark: u32,
    /// The member, such as `params.arguments.token`. Empty if the message is not JSON.
    pub path: String,
}

/// Where the marks of a message are.
pub fn redacted_places(message: &Message, facts: &RedactionFacts) -> Vec<RedactedPlace> {
    let front = front(&facts.nonce);
    let mut places = Vec::new();
    match serde_json::from_slice::<Value>(message.raw()) {
        Ok(value) => find_places(&value, &front, "", &mut places),
        Err(_) => add_places(message.raw(), &front, "", &mut places),
    }
    places.sort_by_key(|place| place.mark);
    places
}

fn find_places(value: &Value, front: &str, path: &str, places: &mut Vec<RedactedPlace>) {
    let below = |name: &str| match path {
        "" => name.to_owned(),
        _ => format!("{path}.{name}"),
    };
    match value {
        Value::String(text) => add_places(text.as_bytes(), front, path, places),
        Value::Array(list) => {
            for (index, value) in list.iter().enumerate() {
                find_places(value, front, &format!("{path}[{index}]"), places);
            }
        }
        Value::Object(members) => {
            for (name, value) in members {
                add_places(name.as_bytes(), front, &below(name), places);
                find_places(value, front, &below(name), places);
            }
        }
        _ => {}
    }
}

fn add_places(text: &[u8], front: &str, path: &str, places: &mut Vec<RedactedPlace>) {
    for at in memchr::memmem::find_iter(text, front.as_bytes()) {
        if let Some((_, mark)) = mark_at(text, at, front.len()) {
            places.push(RedactedPlace {
                mark,
                path: path.to_owned(),
            });
        }
    }
}

/// Puts values back in the place of a message's marks, so that it can be sent again. A value that was the whole of a JSON value
/// may be any JSON; one inside of a string is put in as text.
pub fn fill_redactions(
    message: &Message,
    facts: &RedactionFacts,
    values: &BTreeMap<u32, Value>,
) -> Result<Message, MissingFills> {
    let mut missing = Vec::new();
    let filled = replace_marks(message.raw(), &front(&facts.nonce), |number| {
        let value = values.get(&number);
        if value.is_none() {
            missing.push(number);
        }
        Some((value?.to_string().into_bytes(), HitForm::Value(0)))
    });
    match missing.is_empty() {
        true => Ok(Message::parse(filled)),
        false => Err(MissingFills(missing)),
    }
}

/// `text` with values in the place of its marks. `value` gives that of a mark with its number, and what it was a part of.
fn replace_marks(
    text: &[u8],
    front: &str,
    mut value: impl FnMut(u32) -> Option<(Vec<u8>, HitForm)>,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut done = 0;
    for at in memchr::memmem::find_iter(text, front.as_bytes()) {
        if let Some((mark, number)) = mark_at(text, at, front.len())
            && let Some((raw, form)) = value(number)
        {
            let (span, value) = value_for(text, mark, &raw, form);
            out.extend_from_slice(&text[done..span.start]);
            out.extend_from_slice(&value);
            done = span.end;
        }
    }
    out.extend_from_slice(&text[done..]);
    out
}

/// The numbers of marks that match no hidden value of a message, or `None` for a mark that is damaged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", unknown_marks(.0))]
pub struct UnknownMarks(pub Vec<Option<u32>>);

fn unknown_marks(numbers: &[Option<u32>]) -> String {
    let known: Vec<_> = numbers.iter().flatten().map(u32::to_string).collect();
    match known.as_slice() {
        [] => "a mark [redacted:…] was changed; it must stay as it was, or go".to_owned(),
        [one] => format!("the mark [redacted:…:{one}] matches no hidden value of this message"),
        more => {
            let more = more.join(", ");
            format!("the marks [redacted:…] {more} match no hidden values of this message")
        }
    }
}

/// What any mark begins with, of whatever session.
const MARK_START: &[u8] = b"[redacted:";

impl RedactionMark {
    /// `edited` with the values of `original` in the place of its marks. `hits` are what was hidden in `original`, in the
    /// order of their numbers. A mark may have been moved: it still means its value.
    pub(super) fn restore(
        &self,
        edited: &[u8],
        original: &[u8],
        hits: &[RedactionHit],
    ) -> Result<Bytes, UnknownMarks> {
        let hit = |number: u32| hits.get(usize::try_from(number).ok()?.checked_sub(1)?);
        // The sender may have written something like a mark itself; then it stays as it is.
        let may_be_text = memchr::memmem::find(original, MARK_START).is_some();
        let mut unknown = Vec::new();
        for at in memchr::memmem::find_iter(edited, MARK_START) {
            let is_ours = edited[at..].starts_with(self.front.as_bytes());
            match mark_at(edited, at, self.front.len()).filter(|_| is_ours) {
                Some((_, number)) if hit(number).is_some() => {}
                Some((_, number)) => unknown.push(Some(number)),
                None if is_ours || !may_be_text => unknown.push(None),
                None => {}
            }
        }
        if !unknown.is_empty() {
            return Err(UnknownMarks(unknown));
        }
        let restored = replace_marks(edited, &self.front, |number| {
            let RedactionHit { span, form } = *hit(number)?;
            Some((original[span.start..span.end].to_vec(), form))
        });
        Ok(restored.into())
    }
}

/// What a mark is replaced with, and how much of the text around it: a whole value takes the quotes with it.
fn value_for(edited: &[u8], mark: Span, raw: &[u8], form: HitForm) -> (Span, Vec<u8>) {
    let HitForm::Value(layer) = form else {
        return (mark, raw.to_vec());
    };
    let quoted = (0..=LAYERS).find(|layer| is_quoted(edited, mark, *layer));
    match quoted {
        Some(now) => {
            let quotes = quote(now).len();
            let span = Span::new(mark.start - quotes, mark.end + quotes);
            // As it was, byte for byte, unless it was moved into or out of a string.
            let value = match now == layer {
                true => raw.to_vec(),
                false => nested(&plain(raw, layer), now),
            };
            (span, value)
        }
        None => {
            let token = plain(raw, layer);
            let text = string_content(&token).map(|text| text.into_owned());
            (mark, nested(&text.unwrap_or(token), 1))
        }
    }
}

/// Whether a mark is the whole of a string that stands in this many strings.
fn is_quoted(text: &[u8], mark: Span, layer: u32) -> bool {
    let quote = quote(layer);
    let before = &text[..mark.start];
    let is_exact = before
        .strip_suffix(b"\"")
        .is_some_and(|before| slashes(before) == quote.len() - 1);
    is_exact && text[mark.end..].starts_with(quote.as_bytes())
}

/// A JSON token out of this many strings.
fn plain(raw: &[u8], layer: u32) -> Vec<u8> {
    let mut token = raw.to_vec();
    for _ in 0..layer {
        let quoted = [b"\"", token.as_slice(), b"\""].concat();
        match string_content(&quoted) {
            Some(content) => token = content.into_owned(),
            None => break,
        }
    }
    token
}

/// Text as it stands inside of this many strings.
fn nested(text: &[u8], layers: u32) -> Vec<u8> {
    let mut text = text.to_vec();
    for _ in 0..layers {
        let token = json_string(&String::from_utf8_lossy(&text));
        text = token.as_bytes()[1..token.len() - 1].to_vec();
    }
    text
}

/// The mark whose front is at `at`, and its number.
fn mark_at(raw: &[u8], at: usize, front: usize) -> Option<(Span, u32)> {
    let digits = at + front;
    let len = raw.get(digits..)?.iter().position(|byte| *byte == b']')?;
    let number = std::str::from_utf8(&raw[digits..digits + len]).ok()?;
    Some((Span::new(at, digits + len + 1), number.parse().ok()?))
}

/// How many backslashes stand at the end.
fn slashes(text: &[u8]) -> usize {
    let other = text.iter().rposition(|byte| *byte != b'\\');
    text.len() - other.map_or(0, |at| at + 1)
}
