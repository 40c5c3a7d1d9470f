//! Redaction of any document and of any bytes.

use super::rules;
use mcp_proxy_session::Redaction;
use mcp_proxy_wire::{JsonToken, Message};
use proptest::prelude::*;
use regex::bytes::Regex;
use serde_json::{Value, json};
use std::sync::LazyLock;

/// JSON with the secret in some places: values of `password` only.
fn document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z\"\\\\/é\u{1}😀{\\[ ]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("[a-z]{1,4}|password", inner.clone()), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
            Just(json!({"password": "S3CRET"})),
            inner.prop_map(|value| match value {
                Value::Object(_) | Value::Array(_) => Value::from(value.to_string()),
                scalar => scalar,
            }),
        ]
    })
}

/// The values of `password` hidden, by the book.
fn by_the_book(value: &mut Value, hidden: bool) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                by_the_book(value, hidden || key == "password");
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|value| by_the_book(value, hidden)),
        Value::Null => {}
        Value::String(text) if text.is_empty() => {}
        scalar if hidden => *scalar = Value::from("#"),
        Value::String(text) => {
            if let Ok(mut inner @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str(text)
            {
                by_the_book(&mut inner, false);
                *text = inner.to_string();
            }
        }
        _ => {}
    }
}

fn unmarked(value: &mut Value) {
    match value {
        Value::Object(members) => members.values_mut().for_each(unmarked),
        Value::Array(list) => list.iter_mut().for_each(unmarked),
        Value::String(text) if text.starts_with("[redacted:") => *text = "#".to_owned(),
        Value::String(text) => {
            if let Ok(mut inner @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str(text)
            {
                unmarked(&mut inner);
                *text = inner.to_string();
            }
        }
        _ => {}
    }
}

static MARK: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"\\*"?\[redacted:[0-9a-f]{16}:[0-9]+\]\\*"?"#).unwrap());
static ONE_KEY: LazyLock<Redaction> = LazyLock::new(|| rules(&["password"], &[], &[]));
static ONE_OF_EACH: LazyLock<Redaction> =
    LazyLock::new(|| rules(&["password"], &["S3CRET"], &["$..a"]));

proptest! {
    /// The same as changing the parsed document, for two strings of JSON in strings; and nothing else changes.
    #[test]
    fn the_splice_is_what_the_book_says(mut document in document()) {
        let raw = document.to_string();
        let found = ONE_KEY.message(&Message::parse(raw.clone()));
        let shown = found.map_or(raw, |redacted| {
            assert!(redacted.message.is_json());
            String::from_utf8(redacted.message.into_raw().into()).unwrap()
        });
        let mut shown: Value = serde_json::from_str(&shown).unwrap();
        unmarked(&mut shown);
        by_the_book(&mut document, false);
        // Deeper than that it is text, where more may be hidden than the book says, but not less.
        if !document.to_string().contains("\\\\\\\\\\\\\\") {
            prop_assert_eq!(shown, document);
        }
    }

    /// Whatever the bytes are: no panic, and everything outside of the marks is what it was, in its order.
    #[test]
    fn any_bytes_keep_what_is_not_hidden(raw in prop::collection::vec(prop_oneof![
        Just(b"\"password\":".to_vec()), Just(b"{".to_vec()), Just(b"}".to_vec()), Just(b"\"S3CRET\"".to_vec()),
        Just(b",".to_vec()), Just(b"\\\"".to_vec()), Just(b"\\u0053".to_vec()), prop::collection::vec(any::<u8>(), 0..3),
    ], 0..20)) {
        let raw = raw.concat();
        let message = Message::parse(raw.clone());
        // A key of well-formed JSON is no value.
        prop_assume!(!message.walk().any(|piece| matches!(piece, JsonToken::Key(key) if message.slice(key) == b"\"S3CRET\"")));
        match ONE_OF_EACH.message(&message) {
            None => prop_assert!(memchr::memmem::find(&raw, b"S3CRET").is_none()),
            Some(redacted) => {
                let shown = redacted.message.into_raw();
                prop_assert!(memchr::memmem::find(&shown, b"S3CRET").is_none());
                let mut from = 0;
                for kept in MARK.split(&shown) {
                    let at = memchr::memmem::find(&raw[from..], kept);
                    prop_assert!(at.is_some());
                    from += at.unwrap_or(0) + kept.len();
                }
            }
        }
    }
}
