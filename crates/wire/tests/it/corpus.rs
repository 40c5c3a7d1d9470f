//! Nasty inputs as files, each with what is to be seen in it. The fuzz target starts from the same files.

use std::path::Path;

use mcp_proxy_wire::{Id, Kind, Message};

use crate::invariants;

/// File, kind, id token, method, and whether it is JSON and may stand inside a line of JSON.
type CorpusRow = (
    &'static str,
    Kind,
    Option<&'static str>,
    Option<&'static str>,
    JsonStatus,
);

#[derive(Clone, Copy, PartialEq, Debug)]
enum JsonStatus {
    Embeds,
    Yes,
    No,
}

#[rustfmt::skip]
const TABLE: &[CorpusRow] = &[
    ("batch", Kind::Batch, None, None, JsonStatus::Embeds),
    ("batch-cut", Kind::Malformed, None, None, JsonStatus::No),
    ("batch-empty", Kind::Batch, None, None, JsonStatus::Embeds),
    ("batch-of-nonsense", Kind::Batch, None, None, JsonStatus::Embeds),
    ("bom", Kind::Request, Some("1"), Some("ping"), JsonStatus::No),
    ("cut-in-escape", Kind::Malformed, Some("1"), None, JsonStatus::No),
    ("cut-in-id", Kind::Malformed, None, Some("a"), JsonStatus::No),
    ("duplicate-keys", Kind::Request, Some("2"), Some("b"), JsonStatus::Embeds),
    ("empty", Kind::Malformed, None, None, JsonStatus::No),
    ("error", Kind::Error, Some("\"e\""), None, JsonStatus::Embeds),
    ("error-with-null-result", Kind::Error, Some("3"), None, JsonStatus::Embeds),
    ("escaped-keys", Kind::Request, Some("5"), Some("tools/call"), JsonStatus::Embeds),
    ("id-1.0", Kind::Response, Some("1.0"), None, JsonStatus::Embeds),
    ("id-30-digits", Kind::Request, Some("123456789012345678901234567890"), Some("ping"), JsonStatus::Embeds),
    ("id-null", Kind::Request, Some("null"), Some("ping"), JsonStatus::Embeds),
    ("id-object", Kind::Request, Some("{\"a\":[1]}"), Some("ping"), JsonStatus::Embeds),
    ("id-string-1", Kind::Response, Some("\"1\""), None, JsonStatus::Embeds),
    ("invalid-utf8", Kind::Malformed, Some("1"), Some("caf\u{fffd}"), JsonStatus::No),
    ("leading-zero", Kind::Malformed, None, None, JsonStatus::No),
    ("lines-mixed", Kind::Malformed, Some("1"), Some("a"), JsonStatus::No),
    ("lone-surrogates", Kind::Request, Some("\"\\ud800\""), Some("\u{fffd}😀"), JsonStatus::Embeds),
    ("method-and-result", Kind::Request, Some("1"), Some("a"), JsonStatus::Embeds),
    ("method-no-string", Kind::Request, Some("1"), None, JsonStatus::Embeds),
    ("newline-in-string", Kind::Malformed, Some("1"), None, JsonStatus::No),
    ("no-rpc", Kind::Other, None, None, JsonStatus::Embeds),
    ("not-json", Kind::Malformed, None, None, JsonStatus::No),
    ("notification", Kind::Notification, None, Some("notifications/cancelled"), JsonStatus::Embeds),
    ("nul-in-string", Kind::Malformed, Some("1"), None, JsonStatus::No),
    ("nul-outside", Kind::Malformed, Some("1"), Some("a"), JsonStatus::No),
    ("numbers", Kind::Response, Some("-0"), None, JsonStatus::Embeds),
    ("overlong-utf8", Kind::Malformed, Some("1"), Some("\u{fffd}\u{fffd}"), JsonStatus::No),
    ("pretty", Kind::Request, Some("4"), Some("ping"), JsonStatus::Yes),
    ("request", Kind::Request, Some("1"), Some("tools/call"), JsonStatus::Embeds),
    ("response-id-last", Kind::Response, Some("1"), None, JsonStatus::Embeds),
    ("scalar", Kind::Other, None, None, JsonStatus::Embeds),
    ("single-quotes", Kind::Malformed, None, None, JsonStatus::No),
    ("sse-mixed", Kind::Malformed, None, None, JsonStatus::No),
    ("trailing-comma", Kind::Malformed, Some("1"), Some("a"), JsonStatus::No),
    ("two-values", Kind::Malformed, Some("1"), Some("a"), JsonStatus::No),
    ("white-space", Kind::Malformed, None, None, JsonStatus::No),
];

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

#[test]
fn every_file_is_seen_as_the_table_says() {
    for &(file, kind, id, method, json) in TABLE {
        let bytes = std::fs::read(folder().join(file)).expect(file);
        let message = Message::parse(bytes.clone());
        assert_eq!(message.kind(), kind, "{file}");
        assert_eq!(
            message.id(),
            id.map(|id| Id::from_token(id.as_bytes())),
            "{file}"
        );
        assert_eq!(message.method().as_deref(), method, "{file}");
        let found = match (message.is_json(), message.fits_in_json_line()) {
            (true, true) => JsonStatus::Embeds,
            (true, false) => JsonStatus::Yes,
            _ => JsonStatus::No,
        };
        assert_eq!(found, json, "{file}");
        everything(&bytes);
    }
}

#[test]
fn every_file_is_in_the_table() {
    let entries = std::fs::read_dir(folder()).expect("the corpus folder");
    let mut files: Vec<String> = entries
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    files.sort();
    assert_eq!(files, TABLE.iter().map(|row| row.0).collect::<Vec<_>>());
}

#[test]
fn deep_nesting_is_carried_and_its_head_is_known() {
    for depth in [119, 120, 121, 999, 1000, 1001, 10_000] {
        let nested = "[".repeat(depth - 1) + &"]".repeat(depth - 1);
        let text = format!(r#"{{"id":1,"method":"m","params":{nested},"late":true}}"#);
        let message = Message::parse(text.clone());
        assert_eq!(
            (message.id(), message.method().as_deref()),
            (Some(Id::number(1)), Some("m"))
        );
        assert_eq!(message.is_json(), depth <= 1000, "{depth}");
        assert_eq!(message.fits_in_json_line(), depth <= 120, "{depth}");
        invariants::message(text.as_bytes());
    }
}

#[test]
fn twenty_mebibytes_are_one_message() {
    let text = format!(
        r#"{{"id":1,"result":{{"text":"{}"}},"method":"m"}}"#,
        "x".repeat(20 << 20)
    );
    let message = Message::parse(text);
    assert_eq!(
        (message.kind(), message.method().as_deref()),
        (Kind::Request, Some("m"))
    );
    assert!(message.fits_in_json_line());
}

fn everything(bytes: &[u8]) {
    invariants::message(bytes);
    for size in [1, 2, 3, 7, 1000] {
        for max in [usize::MAX, 10, 0] {
            invariants::lines(bytes, &[size], max);
            invariants::events(bytes, &[size], max);
        }
    }
}
