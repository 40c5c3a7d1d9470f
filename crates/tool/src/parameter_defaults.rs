//! Parameters that say nothing: the one rule for all tools that the hub itself offers.
//!
//! Clients such as mcp-use fill in every parameter of the schema, and `proxy-read` has the parameters of two tools. So a value
//! that means the same as leaving the parameter out is accepted with every action, whether the action takes the parameter or not.

use bytes::Bytes;
use mcp_proxy_wire::{Message, Span, string_content};

use crate::json;
use crate::tool_values::whole_number;

/// A longer value says something. It may be as large as a message, so nobody reads it.
const LONGEST: usize = 1024;

/// What a parameter is if it is not given. Where actions have different defaults, each of them.
const DEFAULTS: &[(&str, &[&str])] = &[
    ("type", &["tool"]),
    ("limit", &["10", "100"]),
    ("offset", &["0"]),
    ("detail", &["full"]),
    ("format", &["text"]),
    ("includeTools", &["true"]),
    ("includeInputSchema", &["false"]),
    ("includeAnnotations", &["true"]),
    ("resultToFile", &["false"]),
    ("resultSizeThreshold", &["0"]),
    ("op", &["stat"]),
    ("lines", &["50"]),
    ("fromLine", &["1"]),
    ("fromColumn", &["1"]),
    ("context", &["0"]),
    ("maxBytes", &["0"]),
    ("refresh", &["false"]),
];

/// The defaults of the parameter `name`, without quotes.
pub fn defaults_of(name: &str) -> &'static [&'static str] {
    let found = DEFAULTS.iter().find(|(known, _)| *known == name);
    found.map_or(&[], |(_, defaults)| defaults)
}

/// Whether `value` means the same as leaving the parameter `name` out: it is null, empty, or a default.
/// `configured_limit` is the default that an administrator chose for `limit`.
///
/// ```
/// use mcp_proxy_tool::says_nothing;
///
/// assert!(says_nothing("detail", &"\"full\"".into(), 100));
/// assert!(says_nothing("filter", &r#"{"prefix":null,"tags":[]}"#.into(), 100));
/// assert!(says_nothing("limit", &"20".into(), 20));
/// assert!(!says_nothing("limit", &"21".into(), 20));
/// ```
pub fn says_nothing(name: &str, value: &Bytes, configured_limit: u32) -> bool {
    if value.len() > LONGEST {
        return false;
    }
    let is_configured =
        || name == "limit" && whole_number(value) == Some(i64::from(configured_limit));
    defaults_of(name).iter().any(|default| is(value, default))
        || is_configured()
        || json::parse(value.clone()).is_some_and(|value| is_empty(&value, value.root()))
}

fn is(value: &[u8], default: &str) -> bool {
    match default.parse::<i64>() {
        Ok(number) => whole_number(value) == Some(number),
        Err(_) => {
            let text = string_content(value).unwrap_or(value.into());
            text.trim_ascii().eq_ignore_ascii_case(default.as_bytes())
        }
    }
}

/// Whether a value is null, blank, or an object or array that holds nothing else. A string may hold an empty object or array.
fn is_empty(value: &Message, span: Span) -> bool {
    match value.slice(span) {
        b"null" => true,
        [b'{', ..] => {
            let members = json::members(value, span);
            members
                .into_iter()
                .all(|(_, member)| is_empty(value, member))
        }
        [b'[', ..] => json::elements(value, span).is_empty(),
        _ => value.text_at(span).is_some_and(|text| {
            let text = text.trim();
            let inner = text
                .strip_prefix('{')
                .and_then(|text| text.strip_suffix('}'))
                .or_else(|| text.strip_prefix('[')?.strip_suffix(']'));
            inner.unwrap_or(text).trim().is_empty()
        }),
    }
}
