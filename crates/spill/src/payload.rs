//! What of a result is worth keeping: its one JSON text if that is all it says, otherwise the whole of it.

use std::ops::Range;

use crate::json::{self, CheckedJson, JsonText, Members};
use crate::spilled_result::preview;

/// What goes into a file.
#[derive(Debug)]
pub(crate) enum Payload<'a> {
    /// JSON that has been checked.
    Json(JsonText<'a>),
    /// Anything else, as it came.
    Text(&'a [u8]),
}

impl Payload<'_> {
    /// Of the result of a tool. It is read where it stands.
    pub(crate) fn of_result(result: &[u8]) -> Payload<'_> {
        if std::str::from_utf8(result).is_err() {
            return Payload::Text(result);
        }
        let Some(checked) = json::check(result) else {
            return Payload::Text(result);
        };
        Payload::Json(
            one_json_text(result, &checked).unwrap_or_else(|| JsonText::plain(result, &checked)),
        )
    }

    /// How many bytes it has, without those that a layout adds.
    pub(crate) fn length(&self) -> usize {
        match self {
            Payload::Json(json) => json.compact_length(),
            Payload::Text(text) => text.len(),
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
            Payload::Text(text) => preview(text),
        }
    }
}

fn one_json_text<'a>(result: &'a [u8], checked: &CheckedJson) -> Option<JsonText<'a>> {
    let token = one_text(result, checked).filter(|token| may_hold_container(token))?;
    JsonText::in_string(token)
}

/// The text of a result that has just this one and no error.
fn one_text<'a>(result: &'a [u8], checked: &CheckedJson) -> Option<&'a [u8]> {
    let members = |at| Members::at(result, checked, at);
    let root = Members::of_root(result, checked);
    let [content, is_error] = find_values(root, ["content", "isError"])?;
    if is_error.is_some_and(|is_error| &result[is_error] != b"false") {
        return None;
    }
    let content = content.filter(|content| result[content.start] == b'[')?;
    let item = json::only(members(content.start))?.value;
    let [kind, text] = find_values(members(item.start), ["type", "text"])?;
    if json::unescape(&result[kind?])? != b"text" {
        return None;
    }
    Some(&result[text?]).filter(|token| token.starts_with(b"\""))
}

/// The values of two members of an object. Nothing if one is there twice, for then it is not clear which one counts.
fn find_values(members: Members<'_>, names: [&str; 2]) -> Option<[Option<Range<usize>>; 2]> {
    let mut values = [None, None];
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
        match Payload::of_result(result.as_bytes()) {
            Payload::Json(json) => {
                let compact = json.to_compact().unwrap();
                assert_eq!(json.compact_length(), compact.len());
                String::from_utf8(compact.into_owned()).unwrap()
            }
            Payload::Text(text) => format!("text: {}", String::from_utf8_lossy(text)),
        }
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
    fn anything_else_is_kept_whole() {
        for result in [
            r#"{"content":[{"type":"text","text":"[1]"}],"isError":true}"#,
            r#"{"content":[{"type":"text","text":"[1]"},{"type":"text","text":"[2]"}]}"#,
            r#"{"content":[{"type":"text","text":"12"}]}"#,
            r#"{"content":[{"type":"text","text":"[1"}]}"#,
            r#"{"content":[{"type":"text","text":"[\"\ud800\"]"}]}"#,
            r#"{"content":[{"type":"text","text":"plain"}]}"#,
            r#"{"content":[{"type":"text","text":[1]}]}"#,
            r#"{"content":[{"type":"image","data":"","text":"[1]"}]}"#,
            r#"{"content":[],"structuredContent":{"a":1}}"#,
            r#"{"contents":[]}"#,
            r#"[{"content":[{"type":"text","text":"[1]"}]}]"#,
            r#"{"content":{"type":"text","text":"[1]"}}"#,
            r#"{"content":[{"type":"text","text":"[1]"}],"isError":null}"#,
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
    fn what_is_not_json_is_kept_as_text() {
        assert_eq!(payload("{\"a\":"), "text: {\"a\":");
        assert!(matches!(
            Payload::of_result(b"\"\xff\""),
            Payload::Text(b"\"\xff\"")
        ));
    }
}
