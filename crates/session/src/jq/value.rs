//! JSON as values of jq.
//!
//! Own code for what the `jaq` crates read themselves, because the bytes come from peers: no depth may overflow the stack,
//! no number may cost more than its length, and strings are slices of the message, not copies.

use std::time::SystemTime;

use bytes::Bytes;
use jaq_json::{Map, Num, Rc, Val};
use mcp_proxy_wire::{JsonToken, Message, Span};

use crate::timestamp;

/// Programs do not get values that are nested deeper.
const DEEPEST: usize = 256;
/// A whole number with more digits is kept as it is spelled: reading it costs the square of its length.
const DIGITS: usize = 40;

/// A container whose end was not read yet.
enum OpenContainer {
    /// With the key of the next member.
    Object(Map<Val, Val>, Val),
    Array(Vec<Val>),
}

/// The value at `span` of a message that is JSON. Nothing if it is nested too deep, or the message is not JSON.
pub(crate) fn json(message: &Message, span: Span) -> Option<Val> {
    let part = message.raw().slice(span.start..span.end);
    message
        .is_json()
        .then(|| whole(&Message::parse(part)))
        .flatten()
}

/// The value of the whole message.
pub(crate) fn whole(message: &Message) -> Option<Val> {
    if !message.is_json() {
        return None;
    }
    let mut open = Vec::new();
    for token in message.walk() {
        let value = match token {
            JsonToken::Object => {
                open.push(OpenContainer::Object(Map::default(), Val::Null));
                None
            }
            JsonToken::Array => {
                open.push(OpenContainer::Array(Vec::new()));
                None
            }
            JsonToken::Key(span) => {
                if let Some(OpenContainer::Object(_, key)) = open.last_mut() {
                    *key = string(message, span)?;
                }
                None
            }
            JsonToken::Scalar(span) => Some(scalar(message, span)?),
            JsonToken::End => match open.pop()? {
                OpenContainer::Object(members, _) => Some(Val::obj(members)),
                OpenContainer::Array(elements) => Some(elements.into_iter().collect()),
            },
        };
        if open.len() > DEEPEST {
            return None;
        }
        let Some(value) = value else { continue };
        match open.last_mut() {
            None => return Some(value),
            // With duplicate keys the last one counts, as everywhere.
            Some(OpenContainer::Object(members, key)) => {
                members.insert(std::mem::take(key), value);
            }
            Some(OpenContainer::Array(elements)) => elements.push(value),
        }
    }
    None
}

/// `2026-11-15T18:00:00.001000Z`
pub(crate) fn time(time: SystemTime) -> Val {
    Val::utf8_str(timestamp::to_text(time))
}

fn scalar(message: &Message, span: Span) -> Option<Val> {
    match message.slice(span) {
        [b'"', ..] => string(message, span),
        b"true" => Some(Val::Bool(true)),
        b"false" => Some(Val::Bool(false)),
        b"null" => Some(Val::Null),
        digits => Some(number(std::str::from_utf8(digits).ok()?)),
    }
}

fn number(token: &str) -> Val {
    let is_short = token.len() <= DIGITS && token != "-0";
    let is_whole = is_short && !token.contains(['.', 'e', 'E']);
    let number = is_whole.then(|| Num::from_str_radix(token, 10)).flatten();
    // As it is spelled, so that a change that does not touch it writes it back so.
    Val::Num(number.unwrap_or_else(|| Num::Dec(Rc::new(token.to_owned()))))
}

fn string(message: &Message, span: Span) -> Option<Val> {
    if memchr::memchr(b'\\', message.slice(span)).is_none() {
        let inside = span.start + 1..span.end - 1;
        return Some(Val::utf8_str(message.raw().slice(inside)));
    }
    let text = message.text_at(span)?;
    Some(Val::utf8_str(Bytes::from(text.into_owned())))
}
