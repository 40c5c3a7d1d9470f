//! Members and elements of JSON that a server sent, as spans, so that changes are splices.
//!
//! The cursor of `wire` finds them; what is here is how they are chosen and changed.

use std::borrow::Cow;

use bytes::Bytes;
use mcp_proxy_wire::json::{Item, Items};
use mcp_proxy_wire::{Message, Span, string_content};

/// Spans to replace and what to put there. An empty span inserts, empty bytes remove.
#[derive(Debug, Default)]
pub struct Edits(Vec<(Span, Vec<u8>)>);

impl Edits {
    /// Puts `new` where `span` is.
    pub fn replace(&mut self, span: Span, new: impl Into<Vec<u8>>) {
        self.0.push((span, new.into()));
    }

    /// Puts `new` in front of what is at `at`.
    pub fn insert(&mut self, at: usize, new: impl Into<Vec<u8>>) {
        self.replace(Span::new(at, at), new);
    }

    /// Takes these spans out.
    pub fn remove(&mut self, spans: impl IntoIterator<Item = Span>) {
        self.0
            .extend(spans.into_iter().map(|span| (span, Vec::new())));
    }

    /// Nothing is to be changed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The edits in the order of their places.
    pub fn into_sorted(mut self) -> Vec<(Span, Vec<u8>)> {
        self.0.sort_by_key(|(span, _)| (span.start, span.end));
        self.0
    }

    /// The edits that can be made in the part of a text at `whole`, in order. One that overlaps the one before it is left out.
    pub fn within(self, whole: Span) -> impl Iterator<Item = (Span, Vec<u8>)> {
        let mut done = whole.start;
        self.into_sorted().into_iter().filter(move |(span, _)| {
            let fits = span.start >= done && span.end <= whole.end;
            if fits {
                done = span.end;
            }
            fits
        })
    }

    /// Appends `text` with the edits made.
    fn write(self, text: &[u8], out: &mut Vec<u8>) {
        let mut done = 0;
        for (span, new) in self.within(Span::new(0, text.len())) {
            out.extend_from_slice(text.get(done..span.start).unwrap_or_default());
            out.extend_from_slice(&new);
            done = span.end;
        }
        out.extend_from_slice(text.get(done..).unwrap_or_default());
    }

    /// The whole of `value` with the edits made. Without edits these are the same bytes.
    pub fn apply(self, value: &Message) -> Bytes {
        if self.is_empty() {
            return value.raw().clone();
        }
        let added: usize = self.0.iter().map(|(_, new)| new.len()).sum();
        let mut out = Vec::with_capacity(value.len() + added);
        self.write(value.raw(), &mut out);
        out.into()
    }
}

/// Any JSON value, ready for look-ups. `None` if it is not JSON.
pub fn parse(text: impl Into<Bytes>) -> Option<Message> {
    let value = Message::parse(text);
    value.is_json().then_some(value)
}

/// The id of an answer that may be broken further on, as it stands there. Nothing if the message is a request.
pub fn readable_id(message: &[u8]) -> Option<Vec<u8>> {
    let message = Message::parse(message.to_vec());
    match message.method() {
        None => message.id_token().map(<[u8]>::to_vec),
        Some(_) => None,
    }
}

/// Where the outermost object stands, without the white space around it. Nothing if the value is not an object.
pub fn object(value: &Message) -> Option<Span> {
    let text = value.raw();
    let start = text.len() - text.trim_ascii_start().len();
    (text.get(start) == Some(&b'{')).then_some(Span::new(start, text.trim_ascii_end().len()))
}

/// The elements of the array at `array`, in order. Nothing if it is not an array.
pub fn elements(value: &Message, array: Span) -> Vec<Span> {
    children(value, array, b'[')
        .into_iter()
        .map(|item| item.value)
        .collect()
}

/// The members of the object at `object` as key (with its quotes) and value, in order. Nothing if it is not an object.
pub fn members(value: &Message, object: Span) -> Vec<(Span, Span)> {
    children(value, object, b'{')
        .into_iter()
        .map(|item| (item.key, item.value))
        .collect()
}

/// The key at `key`, escapes resolved.
pub fn key_text(value: &Message, key: Span) -> Cow<'_, str> {
    match string_content(value.slice(key)) {
        Some(Cow::Borrowed(text)) => String::from_utf8_lossy(text),
        Some(Cow::Owned(text)) => Cow::Owned(String::from_utf8_lossy(&text).into_owned()),
        None => Cow::Borrowed(""),
    }
}

/// What to cut out of the object at `object` so that the members whose keys are chosen are gone.
pub fn member_cuts(value: &Message, object: Span, chosen: impl Fn(&str) -> bool) -> Vec<Span> {
    let members = members(value, object);
    cuts(members.into_iter().map(|(key, member)| {
        let whole = Span::new(key.start, member.end);
        (whole, chosen(&key_text(value, key)))
    }))
}

/// What to cut out of the array at `array` so that the strings that are chosen are gone.
pub fn element_cuts(value: &Message, array: Span, chosen: impl Fn(&str) -> bool) -> Vec<Span> {
    let elements = elements(value, array);
    cuts(elements.into_iter().map(|element| {
        let text = value.text_at(element);
        (element, text.is_some_and(|text| chosen(&text)))
    }))
}

/// Each cut takes one comma along: the one in front of it, or the one behind it while nothing before it is kept.
fn cuts(items: impl Iterator<Item = (Span, bool)>) -> Vec<Span> {
    let items: Vec<_> = items.collect();
    let mut cuts = Vec::new();
    let mut kept = false;
    for (at, &(span, chosen)) in items.iter().enumerate() {
        if !chosen {
            kept = true;
            continue;
        }
        let before = at.checked_sub(1).and_then(|at| items.get(at));
        let behind = items.get(at + 1);
        cuts.push(match (kept, before, behind) {
            (true, Some((before, _)), _) => Span::new(before.end, span.end),
            (_, _, Some((behind, _))) => Span::new(span.start, behind.start),
            _ => span,
        });
    }
    cuts
}

fn children(value: &Message, container: Span, opening: u8) -> Vec<Item> {
    let text = value.raw().get(..container.end).unwrap_or_default();
    match text.get(container.start) == Some(&opening) && value.is_json() {
        true => Items::of(text, container.start).collect(),
        false => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &'static str, member: &str) -> Vec<String> {
        let value = parse(text).unwrap();
        let array = value.member(object(&value).unwrap(), member).unwrap();
        elements(&value, array)
            .into_iter()
            .map(|span| String::from_utf8_lossy(value.slice(span)).into_owned())
            .collect()
    }

    fn without_members(text: &'static str, chosen: &[&str]) -> String {
        let value = parse(text).unwrap();
        let mut edits = Edits::default();
        edits.remove(member_cuts(&value, object(&value).unwrap(), |key| {
            chosen.contains(&key)
        }));
        String::from_utf8(edits.apply(&value).to_vec()).unwrap()
    }

    #[test]
    fn elements_keep_their_bytes() {
        let text = r#"{"n": 1, "a" : [ {"x": [1, 2]} ,"two", 3.0e1,[ ], {} , null]}"#;
        assert_eq!(
            texts(text, "a"),
            [r#"{"x": [1, 2]}"#, r#""two""#, "3.0e1", "[ ]", "{}", "null"]
        );
        assert!(texts(text, "n").is_empty());
    }

    #[test]
    fn brackets_in_strings_do_not_count() {
        let text = r#"{"a":["]}\"[",{"]":"{\\"},[["["]]]}"#;
        assert_eq!(
            texts(text, "a"),
            [r#""]}\"[""#, r#"{"]":"{\\"}"#, r#"[["["]]"#]
        );
    }

    #[test]
    fn members_come_in_order() {
        let value = parse(r#" {"b": {"c": 1}, "a": [1], "b": 2 } "#).unwrap();
        let members = members(&value, Span::new(1, value.len() - 1));
        let shown: Vec<_> = members
            .iter()
            .map(|(key, member)| (value.slice(*key), value.slice(*member)))
            .collect();
        let expected: [(&[u8], &[u8]); 3] = [
            (br#""b""#, br#"{"c": 1}"#),
            (br#""a""#, b"[1]"),
            (br#""b""#, b"2"),
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn cut_members_take_one_comma_along() {
        let text = r#"{"a":1, "b":2, "c":3}"#;
        assert_eq!(without_members(text, &["a"]), r#"{"b":2, "c":3}"#);
        assert_eq!(without_members(text, &["b"]), r#"{"a":1, "c":3}"#);
        assert_eq!(without_members(text, &["c"]), r#"{"a":1, "b":2}"#);
        assert_eq!(without_members(text, &["a", "b"]), r#"{"c":3}"#);
        assert_eq!(without_members(text, &["b", "c"]), r#"{"a":1}"#);
        assert_eq!(without_members(text, &["a", "c"]), r#"{"b":2}"#);
        assert_eq!(without_members(text, &["a", "b", "c"]), "{}");
        assert_eq!(without_members(r#"{"\u0061":1}"#, &["a"]), "{}");
        assert_eq!(without_members("{ }", &["a"]), "{ }");
    }
}
