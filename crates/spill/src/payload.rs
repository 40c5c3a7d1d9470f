//! What of a result is worth keeping: its texts if they are all that it says, otherwise the whole of it.
//!
//! One text that is JSON is kept as JSON, several of them as an array, and other texts as they are, with their own lines.

use std::borrow::Cow;

use mcp_proxy_wire::json::{self, JsonRoot};
use mcp_proxy_wire::{Span, string_content};
use serde_json::Value;

/// What goes into a file.
#[derive(Debug)]
pub(crate) enum Payload<'a> {
    /// Compact JSON.
    Json(Cow<'a, [u8]>),
    /// The texts of a result, or what is not a result, as it came.
    Text(Cow<'a, [u8]>),
}

impl<'a> Payload<'a> {
    /// What to keep of the result of a tool.
    pub(crate) fn of_result(result: &'a [u8]) -> Payload<'a> {
        if json::check(result).is_none() {
            return Payload::Text(result.into());
        }
        let essence = ResultParts::of(result).and_then(|parts| parts.essence());
        essence.unwrap_or_else(|| Payload::Json(json::compact(result).into()))
    }

    /// The bytes to keep, without those that a layout adds.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Payload::Json(bytes) | Payload::Text(bytes) => bytes,
        }
    }
}

/// A result whose content is nothing but text.
struct ResultParts<'a> {
    /// At least one.
    texts: Vec<Cow<'a, [u8]>>,
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
    fn of(result: &'a [u8]) -> Option<ResultParts<'a>> {
        let names = ["content", "contents", "structuredContent"];
        let [content, contents, structured] = find_values(result, names)?;
        let items = content.xor(contents)?;
        if !items.starts_with(b"[") {
            return None;
        }
        let texts: Vec<_> = values(items).map(text_of).collect::<Option<_>>()?;
        let structured = match structured {
            None | Some(b"null") => Structured::Absent,
            Some(object) if object.starts_with(b"{") => {
                let mut values = values(object);
                match (values.next(), values.next()) {
                    (Some(value), None) => Structured::Wrapper(value),
                    _ => Structured::Other,
                }
            }
            Some(_) => Structured::Other,
        };
        (!texts.is_empty()).then_some(ResultParts { texts, structured })
    }

    /// What the result says, once. Nothing if that is more than its texts.
    fn essence(mut self) -> Option<Payload<'a>> {
        if self.texts.len() > 1 {
            return match self.structured {
                Structured::Absent => Some(all_texts(&self.texts)),
                Structured::Wrapper(value) => repeated_array(&self.texts, value),
                Structured::Other => None,
            };
        }
        let text = self.texts.pop()?;
        // The protocol asks for the text to be what `structuredContent` has.
        if is_container(&text) {
            return Some(Payload::Json(json::compact(&text).into()));
        }
        let is_all = match self.structured {
            Structured::Absent => true,
            Structured::Wrapper(value) => is_string(value, &text),
            Structured::Other => false,
        };
        is_all.then_some(Payload::Text(text))
    }
}

/// Several texts: an array if each of them is an object or an array, otherwise one below the other.
fn all_texts<'a>(texts: &[Cow<'_, [u8]>]) -> Payload<'a> {
    let mut all = Vec::new();
    if texts.iter().all(|text| is_container(text)) {
        for text in texts {
            all.push(if all.is_empty() { b'[' } else { b',' });
            json::push_compact(&mut all, text);
        }
        all.push(b']');
        return Payload::Json(all.into());
    }
    for text in texts {
        if !all.is_empty() && !all.ends_with(b"\n") {
            all.push(b'\n');
        }
        all.extend_from_slice(text);
    }
    Payload::Text(all.into())
}

/// An array whose elements are the texts again: strings, or what the texts hold as JSON.
fn repeated_array<'a>(texts: &[Cow<'_, [u8]>], array: &[u8]) -> Option<Payload<'a>> {
    let elements: Vec<_> = values(array).collect();
    let parse = |json: &[u8]| serde_json::from_slice::<Value>(json).ok();
    let is_repeated = |(text, element): (&Cow<'_, [u8]>, &&[u8])| match element.first() {
        Some(b'"') => is_string(element, text),
        _ => parse(text).is_some_and(|held| Some(held) == parse(element)),
    };
    let is_same = array.starts_with(b"[")
        && elements.len() == texts.len()
        && texts.iter().zip(&elements).all(is_repeated);
    is_same.then(|| Payload::Json(json::compact(array).into()))
}

/// The text of a content item that has nothing else for a reader, or of the contents of a resource.
fn text_of(item: &[u8]) -> Option<Cow<'_, [u8]>> {
    let [kind, text, uri, resource] = find_values(item, ["type", "text", "uri", "resource"])?;
    let kind = match kind {
        Some(kind) => Some(string_content(kind)?),
        None => None,
    };
    let text = match (kind.as_deref(), uri) {
        (Some(b"text"), _) | (None, Some(_)) => text?,
        (Some(b"resource"), _) => find_values(resource?, ["text"])?[0]?,
        _ => return None,
    };
    // Half a surrogate pair is JSON, but not text.
    string_content(text).filter(|text| std::str::from_utf8(text).is_ok())
}

fn is_container(text: &[u8]) -> bool {
    matches!(text.trim_ascii_start().first(), Some(b'{' | b'['))
        && matches!(json::check(text), Some(JsonRoot::Object | JsonRoot::Array))
}

/// Whether a token is a string that stands for this text.
fn is_string(token: &[u8], text: &[u8]) -> bool {
    string_content(token).is_some_and(|content| content.as_ref() == text)
}

/// The values in a container.
fn values(container: &[u8]) -> impl Iterator<Item = &[u8]> {
    json::Items::of(container, 0).map(|item| slice(container, item.value))
}

/// The values of some members of an object. Nothing if one is there twice, for then it is not clear which one counts.
fn find_values<'a, const N: usize>(
    object: &'a [u8],
    names: [&str; N],
) -> Option<[Option<&'a [u8]>; N]> {
    let mut found = [None; N];
    for item in json::Items::of(object, 0) {
        // The elements of an array have no key.
        let key = string_content(slice(object, item.key))?;
        let place = names.iter().position(|name| name.as_bytes() == &*key);
        if let Some(place) = place
            && found[place].replace(slice(object, item.value)).is_some()
        {
            return None;
        }
    }
    Some(found)
}

fn slice(text: &[u8], span: Span) -> &[u8] {
    text.get(span.range()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(result: &str) -> String {
        let payload = Payload::of_result(result.as_bytes());
        let kind = match payload {
            Payload::Json(_) => "",
            Payload::Text(_) => "text: ",
        };
        format!("{kind}{}", String::from_utf8_lossy(payload.bytes()))
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
        assert_eq!(payload("{\"a\":"), "text: {\"a\":");
        assert!(matches!(
            Payload::of_result(b"\"\xff\""),
            Payload::Text(kept) if *kept == *b"\"\xff\""
        ));
    }
}
