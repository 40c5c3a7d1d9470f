//! Writing JSON without parsing it: compact, and as the content of a string.
//!
//! Numbers, escapes and the order of members stay as they were written, so no value can change on the way.

use mcp_proxy_wire::Span;
use memchr::{memchr2, memmem};

use crate::json;

/// `json` without white space between its tokens.
pub fn compact(json: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    push_compact(&mut out, json);
    out
}

/// Appends `json` without white space between its tokens.
pub fn push_compact(out: &mut Vec<u8>, json: &[u8]) {
    out.reserve(json.len());
    let mut rest = json;
    while let Some((&byte, after)) = rest.split_first() {
        if byte == b'"' {
            let (string, after) = rest.split_at(string_length(rest));
            out.extend_from_slice(string);
            rest = after;
        } else {
            if !byte.is_ascii_whitespace() {
                out.push(byte);
            }
            rest = after;
        }
    }
}

/// How long the string at the beginning of `json` is, quotes included.
fn string_length(json: &[u8]) -> usize {
    let mut at = 1;
    while let Some(found) = json.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        if json[at + found] == b'"' {
            return at + found + 1;
        }
        at += found + 2;
    }
    json.len()
}

/// Appends `json` likewise. If it is an object, its own members that are `null` are left out: in definitions and results
/// they say no more than a missing member. Deeper down, as in a schema's `"default": null`, they may mean something.
pub fn push_compact_without_nulls(out: &mut Vec<u8>, json: &bytes::Bytes) {
    // Nearly always there is none, and this says so without reading the members.
    if memmem::find(json, b"null").is_none() {
        return push_compact(out, json);
    }
    let Some(value) = json::parse(json.clone()) else {
        return push_compact(out, json);
    };
    let members = json::members(&value, value.root());
    let is_null = |span: Span| value.slice(span) == b"null";
    if !members.iter().any(|(_, member)| is_null(*member)) {
        return push_compact(out, json);
    }
    out.push(b'{');
    let kept = members.iter().filter(|(_, member)| !is_null(*member));
    for (place, (key, member)) in kept.enumerate() {
        if place > 0 {
            out.push(b',');
        }
        out.extend_from_slice(value.slice(*key));
        out.push(b':');
        push_compact(out, value.slice(*member));
    }
    out.push(b'}');
}

/// Appends `text` as a JSON string, quotes included. What is not UTF-8 becomes U+FFFD.
pub fn push_string(out: &mut Vec<u8>, text: &[u8]) {
    push_text(out, &String::from_utf8_lossy(text));
}

/// Appends `text` as a JSON string, quotes included.
pub fn push_text(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(|&byte| needs_escape(byte)) {
        out.extend_from_slice(&rest[..at]);
        match rest[at] {
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            byte @ (b'"' | b'\\') => out.extend_from_slice(&[b'\\', byte]),
            control => out.extend_from_slice(format!("\\u{control:04x}").as_bytes()),
        }
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

fn needs_escape(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without_nulls(json: &'static str) -> String {
        let mut out = Vec::new();
        push_compact_without_nulls(&mut out, &json.into());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn only_space_between_tokens_is_dropped() {
        assert_eq!(
            compact(
                b" { \"a \\\" \\\\\" : [ 1.50 ,\n12345678901234567890123 ] , \"\\u00e9\":\" \" } "
            ),
            br#"{"a \" \\":[1.50,12345678901234567890123],"\u00e9":" "}"#
        );
    }

    #[test]
    fn only_outer_nulls_are_dropped() {
        assert_eq!(
            without_nulls(r#"{ "a": null, "b": {"default": null}, "c": null, "d": [null] }"#),
            r#"{"b":{"default":null},"d":[null]}"#
        );
        assert_eq!(without_nulls(r#"{"a": null}"#), "{}");
        assert_eq!(without_nulls(" [null, 1] "), "[null,1]");
    }

    #[test]
    fn strings_come_back_as_they_were() {
        let text = "plain \" \\ \n\r\t \u{1} é 😀 \u{7f}";
        let mut out = Vec::new();
        push_string(&mut out, text.as_bytes());
        let back: String = serde_json::from_slice(&out).unwrap();
        assert_eq!(back, text);
    }
}
