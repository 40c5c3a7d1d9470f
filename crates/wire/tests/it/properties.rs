//! Messages: generated JSON in odd spellings, JSON with a byte changed, and bytes that are nothing at all.

use mcp_proxy_wire::{Field, Id, Kind, Message, read_partial_head};
use proptest::prelude::*;

use crate::invariants;

/// White space as peers write it.
fn blank() -> impl Strategy<Value = &'static str> {
    prop_oneof![4 => Just(""), 1 => Just(" "), 1 => Just("\n"), 1 => Just("\r\n\t  ")]
}

fn token() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("1.0".to_owned()),
        Just("-0".to_owned()),
        Just("123456789012345678901234567890".to_owned()),
        Just("1e400".to_owned()),
        (0_u32..1000).prop_map(|number| number.to_string()),
        string(),
    ]
}

fn string() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-z ]{0,12}",
        Just("é世😀".to_owned()),
        Just(r#"\""#.to_owned()),
        Just(r"\\".to_owned()),
        Just(r"\ud800".to_owned()),
        Just(r"\u0065".to_owned()),
        Just("}],:".to_owned()),
    ];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| format!("\"{}\"", pieces.concat()))
}

fn key() -> impl Strategy<Value = String> {
    const KNOWN: &[&str] = &[
        "id",
        "method",
        "params",
        "result",
        "error",
        "jsonrpc",
        "name",
        "uri",
        "_meta",
        "code",
        "progressToken",
        "a",
    ];
    prop_oneof![
        6 => prop::sample::select(KNOWN).prop_map(|name| format!("\"{name}\"")),
        1 => Just(r#""m\u0065thod""#.to_owned()),
        1 => Just(r#""i\u0064""#.to_owned()),
        1 => string(),
    ]
}

fn json() -> impl Strategy<Value = String> {
    token().prop_recursive(5, 40, 6, |inner| {
        let value = (blank(), inner, blank()).prop_map(|(before, value, behind)| format!("{before}{value}{behind}")).boxed();
        let member = (blank(), key(), blank(), value.clone()).prop_map(|(before, key, behind, value)| format!("{before}{key}{behind}:{value}"));
        prop_oneof![
            2 => prop::collection::vec(value, 1..5).prop_map(|values| format!("[{}]", values.join(","))),
            3 => prop::collection::vec(member, 1..6).prop_map(|members| format!("{{{}}}", members.join(","))),
            1 => Just("{ }".to_owned()),
            1 => Just("[]".to_owned()),
        ]
    })
}

/// A message whose outermost members are all different, in any order.
fn request() -> impl Strategy<Value = (String, String)> {
    (token(), json(), json(), 0_usize..6).prop_map(|(id, params, more, turn)| {
        let mut members = [
            format!("\"id\":{id}"),
            format!("\"params\":{params}"),
            format!("\"more\" : {more}"),
            "\"method\":\"m\"".to_owned(),
        ];
        members.rotate_left(turn % 4);
        if turn > 3 {
            members.swap(0, 2);
        }
        (id, format!("{{{}}}", members.join(" ,")))
    })
}

proptest! {
    #[test]
    fn generated_json_is_read_and_changed_rightly(before in blank(), text in json(), behind in blank()) {
        let text = format!("{before}{text}{behind}");
        prop_assert!(Message::parse(text.clone()).is_json());
        invariants::message(text.as_bytes());
    }

    #[test]
    fn a_changed_byte_does_no_harm(text in json(), place in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
        let mut bytes = text.into_bytes();
        let place = place.index(bytes.len());
        bytes[place] = byte;
        if cut {
            bytes.truncate(place);
        }
        invariants::message(&bytes);
    }

    #[test]
    fn any_bytes_are_a_message(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        invariants::message(&bytes);
    }

    #[test]
    fn json_letters_in_any_order_are_a_message(bytes in prop::collection::vec(prop::sample::select(&br#"{}[]":,\u0d8 19.-+eEtruefalsn"#[..]), 0..60)) {
        invariants::message(&bytes);
    }

    #[test]
    fn the_id_token_is_kept((id, text) in request()) {
        let message = Message::parse(text);
        prop_assert_eq!(message.kind(), Kind::Request);
        prop_assert_eq!(message.id(), Some(Id::from_token(id.as_bytes())));
        let span = message.span(Field::Id).expect("there is one");
        let there = message.splice(&[(span, b"\"proxy:1\"")]).expect("a span of the message");
        let span = there.span(Field::Id).expect("there is one");
        let back = there.splice(&[(span, id.as_bytes())]).expect("a span of the message");
        prop_assert_eq!(back.raw(), message.raw());
    }

    /// What the two ends tell may be less than the whole, but never something else.
    #[test]
    fn the_ends_tell_no_lies((_, text) in request(), front in any::<prop::sample::Index>(), back in any::<prop::sample::Index>()) {
        let message = Message::parse(text.clone());
        let (front, back) = (front.index(text.len() + 1), back.index(text.len()));
        let head = read_partial_head(&text.as_bytes()[..front], &text.as_bytes()[back..]);
        prop_assert!(head.id.is_none() || head.id == message.id());
        prop_assert!(head.method.is_none() || head.method.as_deref() == message.method().as_deref());
        prop_assert!(head.name.is_none() || head.name.as_deref() == message.text(Field::Name).as_deref() || text.matches("name").count() > 1);
        prop_assert!(front == 0 || head.kind != Kind::Malformed);
    }
}
