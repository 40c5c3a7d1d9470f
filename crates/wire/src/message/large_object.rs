//! The members of a large object, looked up once.
//!
//! A member is found by a scan of its object. That costs nothing in a small one, and milliseconds in a result of megabytes,
//! which is asked for several members on its way.

use crate::{Span, json, text};

/// Objects of fewer bytes are scanned each time.
pub(crate) const LARGE: usize = 64 * 1024;

/// An object with more members is scanned each time.
const MAX_MEMBERS: usize = 64;

/// One large object of a message: the first that was asked for a member.
#[derive(Debug)]
pub(crate) struct LargeObject {
    object: Span,
    /// Nothing if there are too many.
    members: Option<Vec<(Box<[u8]>, Span)>>,
}

impl LargeObject {
    /// Looks at the object at `object`, whose bytes are `bytes`. They are known to be JSON.
    pub(crate) fn read(object: Span, bytes: &[u8]) -> LargeObject {
        let mut members = Vec::new();
        json::members(bytes, |key, value| {
            if members.len() <= MAX_MEMBERS {
                let name = match key.escaped {
                    true => text::unescape(key.raw).into(),
                    false => key.raw.into(),
                };
                members.push((name, value.shift(object.start)));
            }
        });
        LargeObject {
            object,
            members: (members.len() <= MAX_MEMBERS).then_some(members),
        }
    }

    /// The value of the last member called `name`, if this is the object that is meant and it is known.
    pub(crate) fn find(&self, object: Span, name: &str) -> Option<Option<Span>> {
        let members = self.members.as_ref().filter(|_| self.object == object)?;
        let last = members.iter().rev();
        let mut last = last.filter(|(known, _)| **known == *name.as_bytes());
        Some(last.next().map(|(_, value)| *value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, Message};

    fn message(members: &str) -> Message {
        let filler = "x".repeat(LARGE);
        Message::parse(format!(
            r#"{{"id":1,"result":{{"filler":"{filler}",{members}}},"extra":{{"a":"{filler}"}}}}"#
        ))
    }

    #[test]
    fn members_are_those_that_a_scan_finds() {
        let message = message(r#" "a":1, "\u0062":[2] ,"a":{"c":3}"#);
        assert_eq!(message.kind(), Kind::Response);
        let result = message.result().unwrap();
        let shown = |name: &str| message.member(result, name).map(|span| message.slice(span));
        for _ in 0..2 {
            assert_eq!(shown("a"), Some(&br#"{"c":3}"#[..]));
            assert_eq!(shown("b"), Some(&b"[2]"[..]));
            assert_eq!(shown("c"), None);
        }
        // Another large object, and a small one inside the first.
        let whole = Span::new(0, message.len());
        let extra = message.member(whole, "extra").unwrap();
        assert!(message.member(extra, "a").is_some());
        let inner = message.member(result, "a").unwrap();
        assert_eq!(
            message.member(inner, "c").map(|span| message.slice(span)),
            Some(&b"3"[..])
        );
    }

    #[test]
    fn an_object_with_many_members_is_scanned() {
        let many: Vec<String> = (0..200)
            .map(|number| format!(r#""m{number}":{number}"#))
            .collect();
        let message = message(&many.join(","));
        let result = message.result().unwrap();
        for number in [0, 63, 64, 65, 199] {
            let found = message.member(result, &format!("m{number}")).unwrap();
            assert_eq!(message.slice(found), number.to_string().as_bytes());
        }
    }
}
