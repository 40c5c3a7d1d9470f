//! What is hidden in messages and what is not, as tables.

use super::{captured_with, left, preset, rules};
use mcp_proxy_session::redact::{
    MissingFills, RedactionError, RedactionPreset, UnknownMarks, fill_redactions,
};
use mcp_proxy_session::{Redaction, RedactionRules};
use mcp_proxy_wire::Message;
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[test]
fn no_rules_are_no_redaction() {
    assert!(
        Redaction::new(&RedactionRules::default())
            .unwrap()
            .is_none()
    );
}

#[test]
fn keys_hide_their_values_at_any_depth() {
    let redaction = rules(&["password", "*token*"], &[], &[]);
    for (raw, shown) in [
        (
            r#"{"password":"x","user":"y"}"#,
            r##"{"password":"#1","user":"y"}"##,
        ),
        (
            r#"{ "PassWord" : 12.50 , "a":[{"myTokens":true}]}"#,
            r##"{ "PassWord" : "#1" , "a":[{"myTokens":"#2"}]}"##,
        ),
        // Nothing is no secret, and a key is only a whole key.
        (
            r#"{"password":null,"password":"","passwords":"x"}"#,
            r#"{"password":null,"password":"","passwords":"x"}"#,
        ),
        (r#"{"pass\u0077ord":"x"}"#, r##"{"pass\u0077ord":"#1"}"##),
        // Below a container, all of its scalars.
        (
            r#"{"tokens":["a",{"b":1,"c":null}],"d":2}"#,
            r##"{"tokens":["#1",{"b":"#2","c":null}],"d":2}"##,
        ),
        // Batches and other JSON.
        (
            r#"[{"id":1,"params":{"token":"x"}},{"token":"y"}]"#,
            r##"[{"id":1,"params":{"token":"#1"}},{"token":"#2"}]"##,
        ),
        (r#""token""#, r#""token""#),
        ("\u{feff}{\"token\":\"x\"}", "\u{feff}{\"token\":\"#1\"}"),
    ] {
        assert_eq!(left(&redaction, raw), shown);
    }
}

#[test]
fn the_head_of_a_message_is_no_key() {
    let redaction = rules(&["*"], &[], &[]);
    assert_eq!(
        left(
            &redaction,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"id":1}}"#
        ),
        r##"{"jsonrpc":"2.0","id":1,"method":"m","params":{"id":"#1"}}"##
    );
}

#[test]
fn a_property_named_password_keeps_its_schema() {
    let redaction = preset(RedactionPreset::Keys);
    let schema = r#"{"type":"object","properties":{"password":{"type":"string","description":"password=x"}},"required":["password"]}"#;
    for (raw, hidden) in [
        (
            format!(
                r#"{{"id":1,"result":{{"tools":[{{"name":"login","inputSchema":{schema},"outputSchema":{schema}}}]}}}}"#
            ),
            0,
        ),
        (
            format!(r#"[{{"id":1,"result":{{"tools":[{{"inputSchema":{schema}}}]}}}}]"#),
            0,
        ),
        (
            format!(
                r#"{{"id":1,"method":"elicitation/create","params":{{"requestedSchema":{schema}}}}}"#
            ),
            0,
        ),
        (
            format!(
                r#"{{"id":1,"result":{{"inputRequests":{{"a":{{"method":"elicitation/create","params":{{"requestedSchema":{schema}}}}}}}}}}}"#
            ),
            0,
        ),
        // A schema is one by its place, not by its name.
        (
            r#"{"id":1,"params":{"arguments":{"inputSchema":{"password":"x"}}}}"#.to_owned(),
            1,
        ),
        (
            r#"{"id":1,"params":{"arguments":{"properties":{"password":"x"}}}}"#.to_owned(),
            1,
        ),
    ] {
        let message = Message::parse(raw.clone());
        let count = redaction
            .message(&message)
            .map_or(0, |redacted| redacted.count);
        assert_eq!(count, hidden, "{raw}");
    }
    // A pattern is looked for in schemas too: an example may be a real key.
    let redaction = rules(&[], &["s3cret"], &[]);
    let raw = r#"{"result":{"tools":[{"inputSchema":{"default":"a s3cret"}}]}}"#;
    assert!(left(&redaction, raw).contains("a #1"));
}

#[test]
fn patterns_look_at_content() {
    let redaction = rules(&[], &["hunter[0-9]", "(?i)key: (é+)", "^4[0-9]{3}$"], &[]);
    for (raw, shown) in [
        (
            r#"{"a":"my hunter2 and hunter3"}"#,
            r##"{"a":"my #1 and #2"}"##,
        ),
        (r#"{"a":"\"hun\u0074er2\""}"#, r##"{"a":"\"#1\""}"##),
        (r#"{"a":"KEY: é\u00e9!"}"#, r##"{"a":"KEY: #1!"}"##),
        (r#"{"pin":4711,"no":14711}"#, r##"{"pin":"#1","no":14711}"##),
        // Keys stay; ids and methods do not.
        (
            r#"{"hunter2":1,"id":"hunter2"}"#,
            r##"{"hunter2":1,"id":"#1"}"##,
        ),
        // No JSON: the text as it stands.
        ("{\"a\":\"hunter2\"", "{\"a\":\"#1\""),
    ] {
        assert_eq!(left(&redaction, raw), shown);
    }
}

#[test]
fn patterns_that_overlap_leave_nothing_between() {
    let redaction = rules(&[], &["abc", "bcd", "d*"], &[]);
    assert_eq!(
        left(&redaction, r#"{"x":"abcd abc"}"#),
        r##"{"x":"#1 #2"}"##
    );
}

#[test]
fn paths_lead_to_values() {
    let redaction = rules(
        &[],
        &[],
        &[
            "$.params.arguments.a",
            "$.result.content[*].text",
            "$..deep",
            "$.list[1]",
        ],
    );
    for (raw, shown) in [
        (
            r#"{"params":{"arguments":{"a":1,"b":{"a":2}}}}"#,
            r##"{"params":{"arguments":{"a":"#1","b":{"a":2}}}}"##,
        ),
        (
            r#"[{"params":{"arguments":{"a":"x"}}}]"#,
            r##"[{"params":{"arguments":{"a":"#1"}}}]"##,
        ),
        (
            r#"{"result":{"content":[{"text":"x"},{"type":"t","text":"y"}]}}"#,
            r##"{"result":{"content":[{"text":"#1"},{"type":"t","text":"#2"}]}}"##,
        ),
        (
            r#"{"a":[{"deep":{"er":[1,"x"]}}]}"#,
            r##"{"a":[{"deep":{"er":["#1","#2"]}}]}"##,
        ),
        (r#"{"list":[1,2,3]}"#, r##"{"list":[1,"#1",3]}"##),
    ] {
        assert_eq!(left(&redaction, raw), shown);
    }
}

#[test]
fn json_in_strings_is_json() {
    let redaction = rules(&["password"], &["hunter2"], &[]);
    for (raw, shown) in [
        (
            r#"{"text":"{\"password\":\"x\",\"n\":1}"}"#,
            r##"{"text":"{\"password\":\"#1\",\"n\":1}"}"##,
        ),
        (
            r#"{"text":"[{\"t\":\"{\\\"password\\\":5}\"}]"}"#,
            r##"{"text":"[{\"t\":\"{\\\"password\\\":\\\"#1\\\"}\"}]"}"##,
        ),
        (
            r#"{"text":"{\"a\":\"hun\\u0074er2\"}"}"#,
            r##"{"text":"{\"a\":\"#1\"}"}"##,
        ),
        // And text that only holds some, or looks like it.
        (
            r#"{"text":"use {\"password\": \"x y\"} here"}"#,
            r##"{"text":"use {\"password\": \"#1\"} here"}"##,
        ),
        (
            r#"{"text":"http://h/?password=x&a=1"}"#,
            r##"{"text":"http://h/?password=#1&a=1"}"##,
        ),
        (
            r#"{"text":"a password: is a line"}"#,
            r##"{"text":"a password: #1"}"##,
        ),
        (
            r#"{"text":"password: \"x y\", user: z"}"#,
            r##"{"text":"password: \"#1\", user: z"}"##,
        ),
    ] {
        assert_eq!(left(&redaction, raw), shown);
    }
}

#[test]
fn broken_json_loses_what_can_be_seen() {
    let redaction = rules(&["pass*"], &[], &[]);
    for (raw, shown) in [
        (
            r#"{"password": "a\"b", "n":1"#,
            r##"{"password": "#1", "n":1"##,
        ),
        (r#"{"passcode":-12,"#, r##"{"passcode":#1,"##),
        (r#"{"password":"cut o"#, r##"{"password":"#1"##),
        ("{\"password\":\"ends in \\", "{\"password\":\"#1"),
        (r#"{\"password\": \"x\"}"#, r##"{\"password\": \"#1"##),
        ("env: PASSWORD=abc next", "env: PASSWORD=#1 next"),
        (
            "password='a b' pass=\"c d\" pass=",
            "password='#1' pass=\"#2\" pass=",
        ),
    ] {
        assert_eq!(left(&redaction, raw), shown);
    }
    let text = Message::parse(&b"{\"password\":\"\xff\xfe\","[..]);
    let redacted = redaction.message(&text).unwrap();
    assert_eq!(redacted.count, 1);
    assert!(!redacted.message.raw().contains(&0xff));
}

#[test]
fn a_peer_cannot_fake_a_mark() {
    let redaction = rules(&["password"], &[], &[]);
    let nonce = &redaction.facts().nonce;
    assert_eq!(nonce.len(), 16);
    assert_ne!(*nonce, rules(&["password"], &[], &[]).facts().nonce);
    // A guess is text like any other.
    let guess = r#"{"a":"[redacted:0123456789abcdef:1]"}"#;
    assert_eq!(left(&redaction, guess), guess);
    // Whoever learned the word still does not get it into the record.
    let raw = format!(
        r#"{{"a":"x [redacted:{nonce}:7] y","b":"\u005bredacted:{nonce}:1]","c":"{nonce}"}}"#
    );
    assert_eq!(
        left(&redaction, &raw),
        r##"{"a":"x #1 y","b":"#2","c":"#3"}"##
    );
}

#[test]
fn marks_of_a_record_stay_and_new_ones_count_on() {
    let capture = rules(&["password"], &[], &[]);
    let mut sample = captured_with(&capture);
    sample.client(r#"{"password":"x","token":"y"}"#);
    let export = sample
        .open()
        .redacted(&rules(&["password", "token"], &[], &[]));
    let facts = export.redaction().unwrap();
    assert_eq!(facts.nonce, capture.facts().nonce);
    assert_eq!(facts.keys, ["password", "token"]);
    let message = export.message(0).unwrap();
    assert_eq!(message.redacted, 2);
    let nonce = &facts.nonce;
    let shown = format!(r#"{{"password":"[redacted:{nonce}:1]","token":"[redacted:{nonce}:2]"}}"#);
    assert_eq!(&*message.raw.to_bytes(), shown.as_bytes());
}

#[test]
fn values_can_be_put_back() {
    let redaction = rules(&["password", "n"], &["hunter2"], &[]);
    let raw = r#"{"password":"a\"b","n":17,"t":"my hunter2!","j":"{\"password\":\"q\\\"r\"}"}"#;
    let redacted = redaction.message(&Message::parse(raw)).unwrap();
    assert_eq!(redacted.count, 4);
    let mut values: BTreeMap<u32, Value> = BTreeMap::new();
    values.insert(1, json!("a\"b"));
    values.insert(2, json!(17));
    assert_eq!(
        fill_redactions(&redacted.message, redaction.facts(), &values).unwrap_err(),
        MissingFills(vec![3, 4])
    );
    values.insert(3, json!("hunter2"));
    values.insert(4, json!("q\"r"));
    let filled = fill_redactions(&redacted.message, redaction.facts(), &values).unwrap();
    assert_eq!(filled.raw(), raw.as_bytes());
}

#[test]
fn an_edited_copy_gets_its_values_back() {
    let redaction = rules(&["password", "n"], &["hunter2"], &[]);
    let raw =
        r#"{"password":"a\"\u0062","n":1.50,"t":"my hunter2!","j":"{\"password\":\"q\\\"r\"}"}"#;
    let original = Message::parse(raw);
    let shown = redaction.message(&original).unwrap().message;
    let shown = String::from_utf8(shown.raw().to_vec()).unwrap();
    let restored = |edited: &str| {
        let restored = redaction.restore(edited.as_bytes(), &original);
        restored.map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
    };
    // Byte for byte, whatever was edited around them.
    assert_eq!(restored(&shown).unwrap(), raw);
    let longer = |text: &str| text.replace(r#"{"password""#, r#"{"new":1, "password""#);
    assert_eq!(restored(&longer(&shown)).unwrap(), longer(raw));
    // A mark that was moved means its value, as a value, in a string, and in a string that is JSON.
    let mark = |number: u32| format!("[redacted:{}:{number}]", redaction.facts().nonce);
    let moved = format!(
        r#"{{"x":["{1}","{0}"],"y":"n is {1}, {0}","z":"{{\"p\":\"{0}\"}}","w":"{3}","v":"{2}"}}"#,
        mark(1),
        mark(2),
        mark(3),
        mark(4)
    );
    assert_eq!(
        restored(&moved).unwrap(),
        r#"{"x":[1.50,"a\"\u0062"],"y":"n is 1.50, a\"b","z":"{\"p\":\"a\\\"\\u0062\"}","w":"q\"r","v":"hunter2"}"#
    );
    assert_eq!(restored(r#"{"all":"gone"}"#).unwrap(), r#"{"all":"gone"}"#);
    // What stands for nothing here is not sent.
    let of_another = |text: &str| restored(text).unwrap_err();
    let wrong = format!(r#"{{"x":"{}","y":"{}"}}"#, mark(5), mark(0));
    assert_eq!(of_another(&wrong), UnknownMarks(vec![Some(5), Some(0)]));
    for damaged in [mark(1).replace(']', ""), "[redacted:ab:1]".to_owned()] {
        assert_eq!(
            of_another(&format!(r#"{{"x":"{damaged}"}}"#)),
            UnknownMarks(vec![None])
        );
    }
}

#[test]
fn mistakes_are_told() {
    let of = |word: &str| vec![word.to_owned()];
    let wrong = [
        RedactionRules {
            keys: of(""),
            ..Default::default()
        },
        RedactionRules {
            values: of("("),
            ..Default::default()
        },
        RedactionRules {
            paths: of("a.b"),
            ..Default::default()
        },
    ];
    let errors = wrong.map(|rules| Redaction::new(&rules).unwrap_err());
    assert!(matches!(
        &errors,
        [
            RedactionError::EmptyKey,
            RedactionError::Value { pattern, .. },
            RedactionError::Path { path, .. },
        ] if pattern == "(" && path == "a.b"
    ));
    let errors = errors.map(|error| error.to_string());
    insta::assert_snapshot!("redaction_errors", errors.join("\n"));
}
