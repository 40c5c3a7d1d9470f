//! What is written, and that it is read back byte for byte.

use crate::sample::*;
use mcp_proxy_session::*;
use mcp_proxy_wire::{Kind, Message};
use proptest::prelude::*;
use std::os::unix::fs::PermissionsExt;

#[test]
fn the_lines_of_a_session() {
    let (_sample, path) = everything();
    insta::assert_snapshot!("lines", std::fs::read_to_string(path).unwrap());
}

#[test]
fn every_line_is_json_and_starts_with_its_type() {
    let (_sample, path) = everything();
    for line in std::fs::read_to_string(path).unwrap().lines() {
        assert!(line.starts_with("{\"t\":\""), "{line}");
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
}

#[test]
fn files_are_private() {
    let mut sample = SampleRecord::new();
    sample.client("{}");
    sample.recorder.end(start(), "done").unwrap();
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(sample.path()), 0o600);
    assert_eq!(mode(&sample.path().with_extension("jsonl.idx")), 0o600);
}

#[test]
fn credentials_are_masked_and_kept_on_request() {
    for (keep_secrets, seen) in [(false, false), (true, true)] {
        let secrets = vec!["from-the-environment".to_owned()];
        let mut header = header();
        header.server_url = Some("http://user:very-secret@host/mcp?token=very-secret".to_owned());
        header.argv = ["proxy", "--header", "X-Key: very-secret"]
            .map(str::to_owned)
            .into();
        let mut sample = SampleRecord::with(
            RecordOptions {
                credentials: match keep_secrets {
                    true => CredentialRedaction::none(),
                    false => CredentialRedaction::new(secrets),
                },
                ..options()
            },
            &header,
        );
        sample.from_client(b"{}").carried_by(&post()).write();
        let cookie = response(200, &[("set-cookie", "very-secret")]);
        sample.from_server(b"{}").carried_by(&cookie).write();
        sample.recorder.record_event(
            start(),
            &RecordEvent::Stderr {
                connection: 1,
                line: b"key: from-the-environment",
            },
        );
        let text = sample.text();
        assert_eq!(text.contains("very-secret"), seen, "{text}");
        assert_eq!(text.contains("api_key=abc"), seen, "{text}");
        assert!(
            keep_secrets || !text.contains("from-the-environment"),
            "{text}"
        );
        assert!(text.contains("\"mcp-session-id\",\"s-1\""), "{text}");
    }
}

#[test]
fn message_bodies_are_never_masked() {
    let mut sample = SampleRecord::with(
        RecordOptions {
            credentials: CredentialRedaction::new(["very-secret".to_owned()]),
            ..options()
        },
        &header(),
    );
    sample.client(r#"{"method":"very-secret"}"#);
    assert!(sample.text().contains(r#""raw":{"method":"very-secret"}"#));
}

#[test]
fn an_encoded_http_body_is_base64_even_if_it_looks_like_json() {
    let mut sample = SampleRecord::new();
    let encoded = response(200, &[("content-encoding", "gzip")]);
    sample.from_server(b"{}").carried_by(&encoded).write();
    let plain = response(200, &[("content-encoding", "identity")]);
    sample.from_server(b"{}").carried_by(&plain).write();
    let session = sample.open();
    assert_eq!(
        session.message(0).unwrap().raw,
        RawBody::Binary("{}".into())
    );
    assert_eq!(session.message(1).unwrap().raw, RawBody::Json("{}".into()));
}

#[test]
fn a_large_body_stands_in_its_line() {
    let mut sample = SampleRecord::new();
    let body = format!(r#"{{"id":1,"result":"{}"}}"#, "y".repeat(3 << 20));
    sample.server(&body);
    sample.client("{}");
    let line = sample.text().lines().nth(1).unwrap().to_owned();
    assert!(line.ends_with(&format!("\"raw\":{body}}}")));
    let session = sample.open();
    assert_eq!((session.len(), session.damaged()), (2, 0));
    let message = session.message(0).unwrap();
    assert_eq!(message.kind, Kind::Response);
    assert_eq!(message.raw.to_bytes(), body.as_bytes());
    let files = std::fs::read_dir(sample.folder()).unwrap().count();
    assert_eq!(files, 1);
}

#[test]
fn of_a_record_of_format_2_all_is_read_but_large_bodies() {
    let mut sample = SampleRecord::new();
    sample.client(r#"{"id":1,"method":"a"}"#);
    sample.server(r#"{"id":1,"result":7}"#);
    let text = sample.text().replace("\"format\":3", "\"format\":2");
    let moved = r#""raw_ref":{"file":"2.raw","len":70000}"#;
    let text = text.replace(r#""raw":{"id":1,"result":7}"#, moved);
    let text = text.replace("\"len\":19", "\"len\":70000");
    let other = sample.beside("other.jsonl");
    std::fs::write(&other, text).unwrap();
    let session = SessionRecord::open(&other).unwrap();
    assert_eq!((session.len(), session.damaged()), (2, 0));
    assert_eq!(session.message(0).unwrap().raw.len(), 21);
    let large = session.message(1).unwrap();
    assert_eq!(large.raw, RawBody::NotStored { len: 70_000 });
    assert_eq!(large.jsonrpc_id.as_deref(), Some("1"));
}

#[test]
fn what_http_carried_without_a_body_is_no_message() {
    let mut sample = SampleRecord::new();
    sample
        .from_client("")
        .with_body(NewBody::Empty)
        .carried_by(&response(202, &[]))
        .write();
    let session = sample.open();
    assert_eq!(session.len(), 0);
    let kinds: Vec<String> = session
        .records()
        .map(|record| record.unwrap().kind().to_owned())
        .collect();
    assert_eq!(kinds, ["session", "io"]);
}

#[test]
fn answers_and_verdicts_are_folded_in() {
    let (_sample, path) = everything();
    let session = SessionRecord::open(path).unwrap();
    let answer = session.message(1).unwrap();
    assert_eq!(answer.correlated_id, Some(id(1)));
    assert_eq!(session.row(1).unwrap().peer(), Some(0));
    assert_eq!(session.row(0).unwrap().peer(), Some(1));
    assert_eq!(session.row(1).unwrap().latency(), answer.latency);
    let changed = session.message(2).unwrap();
    assert!(changed.modified && session.row(2).unwrap().is_modified());
    assert!(String::from_utf8_lossy(changed.raw.bytes().unwrap()).contains("/tmp"));
    assert!(
        String::from_utf8_lossy(changed.original_raw.unwrap().bytes().unwrap()).contains("/etc")
    );
    assert_eq!(changed.jsonrpc_id.as_deref(), Some("\"1\""));
    let dropped = session.message(4).unwrap();
    assert!(dropped.dropped && session.row(4).unwrap().is_dropped());
    assert_eq!(session.method(session.row(2).unwrap()), Some("tools/call"));
    assert_eq!(session.name(session.row(2).unwrap()), Some("read_file"));
    assert_eq!(session.end().unwrap().why, "the client closed");
    assert_eq!(
        session.message(7).unwrap().jsonrpc_id.as_deref(),
        Some("12345678901234567890123456789")
    );
}

#[test]
fn the_parts_of_a_batch_follow_its_bytes() {
    let mut sample = SampleRecord::new();
    let change = |sample: &mut SampleRecord, of: u64, to: &str| {
        sample.verdict("modify", of).raw(to).write();
    };
    let asked = sample.client(r#"{"jsonrpc":"2.0","id":1,"method":"a"}"#);
    // Two answers, cut to one.
    let raw = r#"[{"id":1,"result":1},{"id":2,"result":2}]"#;
    let part = |message: Message| NewBatchPart {
        kind: message.kind(),
        id: message.id(),
        method: None,
        answered_request: Some(answers(asked, 9)),
    };
    let parts = Message::parse(raw).parts().unwrap();
    let parts: Vec<_> = parts.into_iter().map(part).collect();
    let cut = sample.from_server(raw).with_parts(&parts).write();
    change(&mut sample, cut, r#"[{"id":2,"result":3}]"#);
    // A request that became a batch, a batch that became a request, and one that became empty.
    change(
        &mut sample,
        asked,
        r#"[{"id":1,"method":"b"},{"method":"n"}]"#,
    );
    let requests = r#"[{"id":5,"method":"a"},{"id":6,"method":"b"}]"#;
    let single = sample.client(requests);
    change(&mut sample, single, r#"{"id":5,"method":"a"}"#);
    let empty = sample.client(requests);
    change(&mut sample, empty, "[]");
    // One whose line says nothing about its parts.
    sample.client(requests);
    sample.recorder.end(start(), "done").unwrap();
    let session = SessionRecord::open(sample.path()).unwrap();
    let parts = |row: usize| session.message(row).unwrap().parts;
    let names = |row: usize| -> Vec<String> {
        let name = |part: BatchPart| part.method.unwrap_or(part.kind);
        parts(row).into_iter().map(name).collect()
    };
    assert_eq!(names(0), ["b", "n"]);
    assert_eq!(names(1), ["response"]);
    let kept = &parts(1)[0];
    assert_eq!(kept.jsonrpc_id.as_deref(), Some("2"));
    assert_eq!(kept.correlated_id, Some(id(asked)));
    assert!(names(2).is_empty() && names(3).is_empty());
    assert_eq!(names(4), ["a", "b"]);
}

proptest! {
    /// Any bytes, whatever they are, come back as they were.
    #[test]
    fn bytes_out_are_bytes_in(bodies in proptest::collection::vec(body(), 1..8)) {
        let mut sample = SampleRecord::new();
        for body in &bodies {
            sample.client(body);
        }
        let session = sample.open();
        prop_assert_eq!(session.len(), bodies.len());
        prop_assert_eq!(session.damaged(), 0);
        for (index, body) in bodies.iter().enumerate() {
            let message = session.message(index).unwrap();
            let raw = message.raw.to_bytes();
            prop_assert_eq!(&raw[..], &body[..]);
            prop_assert_eq!(message.kind, Message::parse(body.clone()).kind());
        }
        // The record is JSON lines for every other reader too.
        for line in std::fs::read_to_string(sample.path()).unwrap().lines() {
            prop_assert!(serde_json::from_str::<&serde_json::value::RawValue>(line).is_ok(), "{}", line);
        }
    }
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..200),
        ".{0,80}".prop_map(String::into_bytes),
        Just(br#" {"id":1.0,"method":"a\u0041\n","id":null} "#.to_vec()),
        Just(br#"[{"id":"\ud800"},[]]"#.to_vec()),
        Just(b"{\"id\":\"a\r\nb\",\"method\":\"x\"".to_vec()),
        Just([&b"["[..]].concat().repeat(200)),
        ("[a-z]{0,9}", any::<i64>()).prop_map(|(method, id)| format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#
        )
        .into_bytes()),
    ]
}
