//! What of a result is worth keeping: its texts if they are all that it says, otherwise the whole of it.
//!
//! One text that is JSON is kept as JSON, several of them as an array, and other texts as they are, with their own lines.

mod plain_text;

use std::ops::Range;

use crate::json::{self, CheckedJson, JsonText, Members};
use crate::spilled_result::preview;

pub(crate) use plain_text::PlainText;

/// What goes into a file.
#[derive(Debug)]
pub(crate) enum Payload<'a> {
    /// JSON that has been checked.
    Json(JsonText<'a>),
    /// The texts of a result.
    Plain(PlainText<'a>),
    /// What is not a result, as it came.
    Unknown(&'a [u8]),
}

impl Payload<'_> {
    /// Of the result of a tool. It is read where it stands; only an array of its texts is made in `joined`, which is empty.
    pub(crate) fn of_result<'a>(result: &'a [u8], joined: &'a mut Vec<u8>) -> Payload<'a> {
        if std::str::from_utf8(result).is_err() {
            return Payload::Unknown(result);
        }
        let Some(checked) = json::check(result) else {
            return Payload::Unknown(result);
        };
        let parts = ResultParts::of(result, &checked);
        let essence = parts.and_then(|parts| parts.essence(result, joined));
        essence.unwrap_or_else(|| Payload::Json(JsonText::plain(result, &checked)))
    }

    /// How many bytes it has, without those that a layout adds.
    pub(crate) fn length(&self) -> usize {
        match self {
            Payload::Json(json) => json.compact_length(),
            Payload::Plain(text) => text.length(),
            Payload::Unknown(bytes) => bytes.len(),
        }
    }

    /// Its first characters, without a layout.
    pub(crate) fn preview(&self) -> String {
        match self {
            Payload::Json(json) => {
                let mut windows = json.windows();
                windows
                    .fill()
                    .map_or_else(String::new, |window| preview(window.text))
            }
            Payload::Plain(text) => text.preview(),
            Payload::Unknown(bytes) => preview(bytes),
        }
    }
}

/// A result whose content is nothing but text.
struct ResultParts<'a> {
    /// The texts as string tokens; at least one.
    texts: Vec<&'a [u8]>,
    /// What it has as `structuredContent`.
    structured: Structured<'a>,
}

/// What a `structuredContent` holds.
enum Structured<'a> {
    /// There is none.
    Absent,
    /// An object with one member, the value of which may repeat the texts.
    Wrapper(&'a [u8]),
    /// Anything else.
    Other,
}

impl<'a> ResultParts<'a> {
    fn of(result: &'a [u8], checked: &CheckedJson) -> Option<ResultParts<'a>> {
        let members = |at| Members::at(result, checked, at);
        let root = Members::of_root(result, checked);
        let names = ["content", "contents", "structuredContent"];
        let [content, contents, structured] = find_values(root, names)?;
        let items = content.xor(contents)?;
        if result[items.start] != b'[' {
            return None;
        }
        let texts = members(items.start).map(|item| text_of(result, checked, item.value.start));
        let texts: Vec<&[u8]> = texts.collect::<Option<_>>()?;
        let structured = match structured.map(|span| (result[span.start], span.start)) {
            None | Some((b'n', _)) => Structured::Absent,
            Some((b'{', at)) => match json::only(members(at)) {
                Some(member) => Structured::Wrapper(&result[member.value]),
                None => Structured::Other,
            },
            Some(_) => Structured::Other,
        };
        (!texts.is_empty()).then_some(ResultParts { texts, structured })
    }

    /// What it says, once. Nothing if that is not its texts alone.
    fn essence(&self, result: &'a [u8], joined: &'a mut Vec<u8>) -> Option<Payload<'a>> {
        debug_assert!(joined.is_empty() && !result.is_empty());
        if let [text] = &*self.texts {
            // It is what `structuredContent` has, as the protocol asks for.
            if let Some(json) = container_in(text) {
                return Some(Payload::Json(json));
            }
            let is_all = match self.structured {
                Structured::Absent => true,
                Structured::Wrapper(value) => is_same_string(text, value),
                Structured::Other => false,
            };
            return PlainText::of(&self.texts)
                .filter(|_| is_all)
                .map(Payload::Plain);
        }
        match self.structured {
            Structured::Absent => self.all(joined),
            Structured::Wrapper(value) if value.starts_with(b"[") => self.repeated_array(value),
            Structured::Wrapper(_) | Structured::Other => None,
        }
    }

    /// All texts: as an array if each of them is JSON, otherwise one below the other.
    fn all(&self, joined: &'a mut Vec<u8>) -> Option<Payload<'a>> {
        if self.texts.iter().all(|text| container_in(text).is_some()) {
            for text in &self.texts {
                joined.push(if joined.is_empty() { b'[' } else { b',' });
                joined.extend_from_slice(&json::unescape(text)?);
            }
            joined.push(b']');
            let checked = json::check(joined)?;
            return Some(Payload::Json(JsonText::plain(joined, &checked)));
        }
        PlainText::of(&self.texts).map(Payload::Plain)
    }

    /// An array whose elements are the texts again: strings, or what the texts hold as JSON.
    fn repeated_array(&self, array: &'a [u8]) -> Option<Payload<'a>> {
        let checked = json::check(array)?;
        let mut texts = self.texts.iter();
        for element in Members::of_root(array, &checked) {
            let (element, text) = (&array[element.value], texts.next()?);
            let is_repeated = match element.first()? {
                b'"' => is_same_string(text, element),
                _ => is_same_value(text, element),
            };
            if !is_repeated {
                return None;
            }
        }
        texts.next().is_none().then_some(())?;
        Some(Payload::Json(JsonText::plain(array, &checked)))
    }
}

/// The text of a content item that has nothing else for a reader, or of the contents of a resource.
fn text_of<'a>(result: &'a [u8], checked: &CheckedJson, item: usize) -> Option<&'a [u8]> {
    let members = |at| Members::at(result, checked, at);
    let names = ["type", "text", "uri", "resource"];
    let [kind, text, uri, resource] = find_values(members(item), names)?;
    let kind = match kind {
        Some(kind) => Some(json::unescape(&result[kind])?),
        None => None,
    };
    let text = match (kind.as_deref(), uri) {
        (Some(b"text"), _) | (None, Some(_)) => text?,
        (Some(b"resource"), _) => find_values(members(resource?.start), ["text"])?[0].take()?,
        _ => return None,
    };
    Some(&result[text]).filter(|token| token.starts_with(b"\""))
}

/// The object or array that a string holds.
fn container_in(token: &[u8]) -> Option<JsonText<'_>> {
    may_hold_container(token)
        .then(|| JsonText::in_string(token))
        .flatten()
}

/// Whether two string tokens stand for the same text.
fn is_same_string(token: &[u8], other: &[u8]) -> bool {
    token == other || other.starts_with(b"\"") && json::unescape(token) == json::unescape(other)
}

/// Whether a string holds this JSON value.
fn is_same_value(token: &[u8], value: &[u8]) -> bool {
    let parse = |json: &[u8]| serde_json::from_slice::<serde_json::Value>(json).ok();
    let held = json::unescape(token).and_then(|text| parse(&text));
    held.is_some() && held == parse(value)
}

/// The values of some members of an object. Nothing if one is there twice, for then it is not clear which one counts.
fn find_values<const N: usize>(
    members: Members<'_>,
    names: [&str; N],
) -> Option<[Option<Range<usize>>; N]> {
    let mut values = [const { None }; N];
    for member in members {
        let name = json::unescape(member.key)?;
        let place = names.iter().position(|known| known.as_bytes() == name);
        if let Some(place) = place
            && values[place].replace(member.value).is_some()
        {
            return None;
        }
    }
    Some(values)
}

/// Whether the first thing in a string that is not white space opens a container. It saves a look at most plain texts.
fn may_hold_container(token: &[u8]) -> bool {
    let mut rest = token.get(1..).unwrap_or_default();
    loop {
        rest = match rest {
            [b'{' | b'[', ..] => return true,
            [b' ', rest @ ..] | [b'\\', b'n' | b'r' | b't', rest @ ..] => rest,
            // Written in a way that nobody writes it, which the full look decides.
            [b'\\', b'u', ..] => return true,
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(result: &str) -> String {
        let mut joined = Vec::new();
        let payload = Payload::of_result(result.as_bytes(), &mut joined);
        let length = payload.length();
        let (kind, text) = match payload {
            Payload::Json(json) => ("", json.to_compact().unwrap().into_owned()),
            Payload::Plain(plain) => {
                let mut text = Vec::new();
                plain.write_to(&mut text).unwrap();
                assert!(
                    String::from_utf8_lossy(&text).starts_with(&plain.preview()),
                    "the preview is the beginning"
                );
                ("text: ", text)
            }
            Payload::Unknown(bytes) => ("unknown: ", bytes.to_vec()),
        };
        assert_eq!(length, text.len());
        format!("{kind}{}", String::from_utf8(text).unwrap())
    }

    #[test]
    fn one_json_text_is_all_that_is_kept() {
        let result = r#"{"_meta":{"x":1},"structuredContent":{"a":1},
            "content":[{"annotations":{},"text":"\n { \"a\\n\": [1.50, \"\\u00e9\"] }","type":"text"}],"isError":false}"#;
        assert_eq!(payload(result), r#"{"a\n":[1.50,"\u00e9"]}"#);
        assert_eq!(
            payload(r#"{"content":[{"type":"text","text":"\u005b1]"}]}"#),
            "[1]"
        );
    }

    #[test]
    fn the_text_is_found_among_many_members() {
        for count in [0, 1, 14, 15, 16, 17, 40] {
            let others: String = (0..count)
                .map(|other| format!("\"{other}\" : [ {{}}, \"]\" ] ,\n"))
                .collect();
            let text =
                r#""isError" : false , "content" : [ { "type" : "t\u0065xt" , "text" : "[1]" } ] "#;
            assert_eq!(payload(&format!(" {{ {others} {text} }} ")), "[1]");
            let others = others.trim_end_matches(",\n");
            let comma = if count > 0 { "," } else { "" };
            assert_eq!(payload(&format!("{{{text}{comma}{others}}}")), "[1]");
        }
    }

    #[test]
    fn d2_s2_s3_a_text_is_kept_with_its_lines_and_once() {
        for (result, kept) in [
            (
                r#"{"content":[{"type":"text","text":"a\nb \u00e9\n"}]}"#,
                "a\nb é\n",
            ),
            (
                r#"{"content":[{"type":"text","text":"12"}],"isError":false}"#,
                "12",
            ),
            (
                r#"{"content":[{"type":"text","text":"[1"}],"isError":true}"#,
                "[1",
            ),
            (
                r#"{"content":[{"type":"text","text":"a\nb"}],"structuredContent":{"content":"a\u000ab"}}"#,
                "a\nb",
            ),
            (
                r#"{"structuredContent":{"result":"plain"},"content":[{"type":"text","text":"plain"}]}"#,
                "plain",
            ),
            (
                r#"{"contents":[{"uri":"file:///a","mimeType":"text/plain","text":"a\nb"}]}"#,
                "a\nb",
            ),
            (
                r#"{"content":[{"type":"resource","resource":{"uri":"x:","text":"inside"}}]}"#,
                "inside",
            ),
        ] {
            assert_eq!(payload(result), format!("text: {kept}"), "{result}");
        }
    }

    #[test]
    fn several_texts_stand_one_below_the_other() {
        let result = r#"{"content":[{"type":"text","text":"a\n"},{"type":"text","text":"b"},
            {"type":"text","text":""},{"type":"text","text":"{\"c\":1}"}]}"#;
        assert_eq!(payload(result), "text: a\nb\n{\"c\":1}");
        // Several values become an array, as some servers have it in structuredContent too.
        let texts =
            r#""content":[{"type":"text","text":"{\"a\": 1}"},{"type":"text","text":"[2]"}]"#;
        assert_eq!(payload(&format!("{{{texts}}}")), r#"[{"a":1},[2]]"#);
        let wrapper = r#""structuredContent":{"result":[{"a":1},[2]]}"#;
        assert_eq!(
            payload(&format!("{{{texts},{wrapper}}}")),
            r#"[{"a":1},[2]]"#
        );
        let strings = r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"5"}],"structuredContent":{"result":["a",5]}}"#;
        assert_eq!(payload(strings), r#"["a",5]"#);
    }

    #[test]
    fn anything_else_is_kept_whole() {
        for result in [
            r#"{"content":[{"type":"text","text":"plain"}],"structuredContent":{"rows":[1]}}"#,
            r#"{"content":[{"type":"text","text":"plain"}],"structuredContent":{"result":"other"}}"#,
            r#"{"content":[{"type":"text","text":"plain"}],"structuredContent":{"a":"plain","b":1}}"#,
            r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"structuredContent":{"result":["a"]}}"#,
            r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"structuredContent":{"result":["a","c"]}}"#,
            r#"{"content":[{"type":"text","text":"a"},{"type":"image","data":"","mimeType":"image/png"}]}"#,
            r#"{"content":[{"type":"text","text":"[\"\ud800\"]"}]}"#,
            r#"{"content":[{"type":"text","text":[1]}]}"#,
            r#"{"content":[{"type":"image","data":"","text":"[1]"}]}"#,
            r#"{"content":[],"structuredContent":{"a":1}}"#,
            r#"{"contents":[]}"#,
            r#"{"contents":[{"uri":"x:","blob":"AAAA"}]}"#,
            r#"[{"content":[{"type":"text","text":"[1]"}]}]"#,
            r#"{"content":{"type":"text","text":"[1]"}}"#,
            r#"{"content":[{"type":"text","text":"[1]"}],"content":[{"type":"text","text":"[1]"}]}"#,
            r#"{"content":[{"type":"text","text":"[1]","text":"[2]"}]}"#,
            r#"{"content":[["text","[1]"]]}"#,
            r#""content""#,
        ] {
            assert_eq!(payload(result), result);
        }
        assert_eq!(
            payload("{ \"content\" : [ ] }"),
            "{\"content\":[]}",
            "white space is not kept"
        );
    }

    #[test]
    fn what_is_not_json_is_kept_as_it_is() {
        assert_eq!(payload("{\"a\":"), "unknown: {\"a\":");
        assert!(matches!(
            Payload::of_result(b"\"\xff\"", &mut Vec::new()),
            Payload::Unknown(b"\"\xff\"")
        ));
    }
}
