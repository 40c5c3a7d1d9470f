//! Steps through an object or an array, and looks members up.
//!
//! Five times as fast as the checking scan, and a modern request is asked seven times for what its `_meta` says.

use crate::Span;
use crate::scan::{MemberKey, string};

/// A member of an object, or an element of an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Item {
    /// The key with its quotes. Empty in an array.
    pub key: Span,
    /// The value.
    pub value: Span,
    key_is_escaped: bool,
}

/// The items of one container, in order.
#[derive(Clone, Debug)]
pub struct Items<'a> {
    text: &'a [u8],
    /// On the bracket or the comma in front of the next item. At the end of the text if there is none.
    at: usize,
    is_object: bool,
}

impl<'a> Items<'a> {
    /// The items of the container that begins at `start`, or behind white space there. Anything else has none.
    #[inline(always)]
    pub fn of(text: &'a [u8], start: usize) -> Items<'a> {
        let start = blank_end(text, start);
        let opening = text.get(start);
        Items {
            text,
            at: match opening {
                Some(b'{' | b'[') => start,
                _ => text.len(),
            },
            is_object: opening == Some(&b'{'),
        }
    }

    fn end(&mut self) -> Option<Item> {
        self.at = self.text.len();
        None
    }
}

impl Iterator for Items<'_> {
    type Item = Item;

    #[inline(always)]
    fn next(&mut self) -> Option<Item> {
        let text = self.text;
        let start = blank_end(text, self.at + 1);
        let (key, key_is_escaped, value) = if self.is_object {
            if text.get(start) != Some(&b'"') {
                return self.end();
            }
            let (end, escaped) = string_end_and_escapes(text, start);
            let value = blank_end(text, blank_end(text, end) + 1);
            (Span::new(start, end), escaped, value)
        } else {
            (Span::new(start, start), false, start)
        };
        if matches!(text.get(value), None | Some(b'}' | b']')) {
            return self.end();
        }
        let end = value_end(text, value);
        let behind = blank_end(text, end);
        self.at = match text.get(behind) {
            Some(b',') => behind,
            _ => text.len(),
        };
        Some(Item {
            key,
            value: Span::new(value, end),
            key_is_escaped,
        })
    }
}

/// The value of the last member called `name` in the object `text`.
pub(crate) fn find(text: &[u8], name: &str) -> Option<Span> {
    let mut found = None;
    members(text, |key, value| {
        if key.is(name) {
            found = Some(value);
        }
    });
    found
}

/// Tells each member of the object `text`, in order.
#[inline(always)]
pub(crate) fn members<'a>(text: &'a [u8], mut member: impl FnMut(MemberKey<'a>, Span)) {
    let items = Items::of(text, 0);
    if !items.is_object {
        return;
    }
    for item in items {
        let key = item.key.start + 1..item.key.end.saturating_sub(1);
        let raw = text.get(key).unwrap_or_default();
        let escaped = item.key_is_escaped;
        member(MemberKey { raw, escaped }, item.value);
    }
}

pub(super) fn blank_end(text: &[u8], at: usize) -> usize {
    match text.get(at) {
        Some(byte) if *byte > b' ' => at,
        _ => string::blank_end(text, at).0,
    }
}

/// The index behind the string whose opening quote is at `at`; the end of the text if it does not close.
#[inline]
pub fn string_end(text: &[u8], at: usize) -> usize {
    string_end_and_escapes(text, at).0
}

/// Also tells whether there are escapes in the string.
#[inline(always)]
fn string_end_and_escapes(text: &[u8], at: usize) -> (usize, bool) {
    let mut escaped = false;
    let mut at = string::run_end(text, at + 1).0;
    loop {
        match text.get(at) {
            // A quote after a backslash does not end the string.
            Some(b'\\') => {
                escaped = true;
                at = string::escaped_run_end(text, at + 2).0;
            }
            Some(_) => return (at + 1, escaped),
            None => return (text.len(), escaped),
        }
    }
}

/// The index behind the value that begins at `at`.
fn value_end(text: &[u8], mut at: usize) -> usize {
    let mut open = 0_usize;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => {
                at = string_end(text, at);
                if open == 0 {
                    return at;
                }
                continue;
            }
            b'{' | b'[' => open += 1,
            b'}' | b']' if open <= 1 => return at + open,
            b'}' | b']' => open -= 1,
            b',' | b' ' | b'\t' | b'\r' | b'\n' if open == 0 => return at,
            _ => {}
        }
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::scan::{self, ScanEnd, scan};

    fn value() -> impl Strategy<Value = String> {
        let scalar = prop_oneof![
            Just("null".to_owned()),
            Just(" -1.5e3 ".to_owned()),
            Just(r#""a\"}{\\""#.to_owned()),
            Just("\"\"".to_owned()),
            "\"[ -!#-\\[\\]-~é]{0,40}\"",
        ];
        scalar.prop_recursive(4, 40, 5, |inner| {
            let key = prop_oneof![
                Just("\"a\""),
                Just(" \"\\u0061\" "),
                Just("\"b\""),
                Just("\"\"")
            ];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5)
                    .prop_map(|items| format!("[{}]", items.join(" , "))),
                prop::collection::vec((key, inner), 0..5).prop_map(|members| {
                    let members: Vec<String> =
                        members.iter().map(|(k, v)| format!("{k}:\n{v}")).collect();
                    format!(" {{{}}}", members.join(","))
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn sound_text_gives_the_same_member(text in value()) {
            prop_assert_eq!(scan(text.as_bytes(), |_, _| {}).end, ScanEnd::Complete);
            for name in ["a", "b", "", "c"] {
                let found = find(text.as_bytes(), name);
                prop_assert_eq!(found, scan::find(text.as_bytes(), name));
            }
        }

        #[test]
        fn anything_gives_an_answer(text in prop::collection::vec(any::<u8>(), 0..60), braced in any::<bool>()) {
            let mut text = text;
            if braced {
                text.splice(0..0, *b"{\"a\":");
            }
            if let Some(span) = find(&text, "a") {
                prop_assert!(span.start <= span.end && span.start <= text.len() + 1);
            }
        }
    }
}
