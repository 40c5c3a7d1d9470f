//! JSON as values of jq.
//!
//! Own code for what the `jaq` crates read themselves, because the bytes come from peers: no depth may overflow the stack,
//! no number may cost more than its length, and strings are slices of the message, not copies.

use std::time::SystemTime;

use bytes::Bytes;
use jaq_json::{Map, Num, Rc, Val};
use mcp_proxy_wire::{Message, Span};

use crate::timestamp;

/// Programs do not get values that are nested deeper.
const DEEPEST: usize = 256;
/// A whole number with more digits is kept as it is spelled: reading it costs the square of its length.
const DIGITS: usize = 40;

/// The value at `span` of a message that is JSON. Nothing if it is nested too deep, or the message is not JSON.
pub(crate) fn json(message: &Message, span: Span) -> Option<Val> {
    if !message.is_json() {
        return None;
    }
    let mut reader = ValueReader {
        message,
        at: span.start,
        end: span.end,
    };
    reader.value(0)
}

/// The value of the whole message.
pub(crate) fn whole(message: &Message) -> Option<Val> {
    json(message, Span::new(0, message.len()))
}

/// `2026-11-15T18:00:00.001000Z`
pub(crate) fn time(time: SystemTime) -> Val {
    Val::utf8_str(timestamp::to_text(time))
}

/// Reads what the wire's scan has found to be well formed: it looks for the ends of things, and checks nothing.
struct ValueReader<'a> {
    message: &'a Message,
    at: usize,
    end: usize,
}

impl ValueReader<'_> {
    fn value(&mut self, depth: usize) -> Option<Val> {
        if depth > DEEPEST {
            return None;
        }
        match self.next()? {
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b'"' => self.string(),
            b't' => self.word(4, Val::Bool(true)),
            b'f' => self.word(5, Val::Bool(false)),
            b'n' => self.word(4, Val::Null),
            _ => self.number(),
        }
    }

    fn object(&mut self, depth: usize) -> Option<Val> {
        self.at += 1;
        let mut members = Map::default();
        while self.next()? != b'}' {
            let key = self.string()?;
            if self.next()? != b':' {
                return None;
            }
            self.at += 1;
            let value = self.value(depth + 1)?;
            // With duplicate keys the last one counts, as everywhere.
            members.insert(key, value);
            if self.next()? == b',' {
                self.at += 1;
            }
        }
        self.at += 1;
        Some(Val::obj(members))
    }

    fn array(&mut self, depth: usize) -> Option<Val> {
        self.at += 1;
        let mut elements = Vec::new();
        while self.next()? != b']' {
            elements.push(self.value(depth + 1)?);
            if self.next()? == b',' {
                self.at += 1;
            }
        }
        self.at += 1;
        Some(elements.into_iter().collect())
    }

    fn string(&mut self) -> Option<Val> {
        let raw = self.message.raw();
        let start = self.at;
        let mut from = start + 1;
        let mut escaped = false;
        loop {
            from += memchr::memchr2(b'"', b'\\', raw.get(from..self.end)?)?;
            if raw[from] == b'"' {
                break;
            }
            escaped = true;
            from += 2;
        }
        self.at = from + 1;
        if !escaped {
            return Some(Val::utf8_str(raw.slice(start + 1..from)));
        }
        let text = self.message.text_at(Span::new(start, self.at))?;
        Some(Val::utf8_str(Bytes::from(text.into_owned())))
    }

    fn number(&mut self) -> Option<Val> {
        let rest = self.message.raw().get(self.at..self.end)?;
        let length = rest
            .iter()
            .position(|byte| !matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'))
            .unwrap_or(rest.len());
        let token = std::str::from_utf8(&rest[..length])
            .ok()
            .filter(|token| !token.is_empty())?;
        self.at += length;
        let is_whole = token.len() <= DIGITS && token != "-0" && !token.contains(['.', 'e', 'E']);
        let number = is_whole.then(|| Num::from_str_radix(token, 10)).flatten();
        // As it is spelled, so that a change that does not touch it writes it back so.
        Some(Val::Num(
            number.unwrap_or_else(|| Num::Dec(Rc::new(token.to_owned()))),
        ))
    }

    fn word(&mut self, length: usize, value: Val) -> Option<Val> {
        self.at += length;
        Some(value)
    }

    /// The next byte that is not white space.
    fn next(&mut self) -> Option<u8> {
        while self.at < self.end {
            match self.message.raw()[self.at] {
                b' ' | b'\t' | b'\r' | b'\n' => self.at += 1,
                // A byte order mark is let through by the wire only where a message is not JSON.
                byte => return Some(byte),
            }
        }
        None
    }
}
