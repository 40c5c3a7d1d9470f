//! Import of the seed's JSON and of its origin's.

use crate::sample::*;
use mcp_proxy_session::*;
use serde_json::Value;
use std::path::Path;

fn json_of(path: &Path) -> Value {
    let mut out = Vec::new();
    export::exporter("json")
        .unwrap()
        .export(
            &SessionRecord::open(path).unwrap(),
            &mut out,
            &mut |_, _| {},
        )
        .unwrap();
    serde_json::from_slice(&out).unwrap()
}

#[test]
fn an_export_comes_back_as_it_was() {
    let (sample, path) = everything();
    let exported = json_of(&path);
    let source = sample.beside("session.json");
    std::fs::write(&source, serde_json::to_string_pretty(&exported).unwrap()).unwrap();
    let imported = import(
        &source,
        RecordLocation::File(sample.beside("imported.jsonl")),
    )
    .unwrap();
    // A session of its own, which says where it comes from.
    let mut again = json_of(&imported);
    let (id, from) = (&exported["id"], &again["metadata"]["imported_from"]);
    assert_eq!(from, id);
    assert_ne!(&again["id"], id);
    again["id"] = id.clone();
    let metadata = again["metadata"].as_object_mut().unwrap();
    metadata.remove("imported_from");
    assert_eq!(again, exported);
    let session = SessionRecord::open(&imported).unwrap();
    assert_eq!(session.row(1).unwrap().peer(), Some(0));
}

#[test]
fn the_origins_field_names_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("origin.json");
    let document = r#"{"id":"s","started_at":"2026-03-01T10:00:00+00:00","transport":"sse","server_url":"http://h/sse","messages":[
        {"proxy_id":"8f14e45f-ceea-467f-a0e6-1f2f5d3c9a11","sequence":0,"timestamp":"2026-03-01T10:00:01+00:00","direction":"client_to_server",
         "transport":"sse","payload":{"jsonrpc":"2.0","id":1,"method":"tools/list"},"jsonrpc_id":1,"method":"tools/list","modified":true,
         "original_payload":{"jsonrpc":"2.0","id":1,"method":"tools/lost"}},
        {"proxy_id":"9f14e45f-ceea-467f-a0e6-1f2f5d3c9a12","sequence":1,"timestamp":"2026-03-01T10:00:01.500000+00:00","direction":"server_to_client",
         "transport":"sse","payload":{"jsonrpc":"2.0","id":1,"result":{}},"correlated_id":"8f14e45f-ceea-467f-a0e6-1f2f5d3c9a11"}]}"#;
    std::fs::write(&source, document).unwrap();
    let record = import(
        &source,
        RecordLocation::Folder(folder.path().join("records")),
    )
    .unwrap();
    let mut imported = json_of(&record);
    imported["id"] = "a new one".into();
    insta::assert_snapshot!(
        "imported-origin",
        serde_json::to_string_pretty(&imported).unwrap()
    );
    let session = SessionRecord::open(&record).unwrap();
    assert_eq!(session.row(1).unwrap().latency().unwrap().as_millis(), 500);
}

#[test]
fn answers_to_the_requests_of_a_batch_stay_answers() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("batch.json");
    let message = |number: u64, direction: &str, raw: &str, answers: &str| {
        format!(
            r#"{{"id":"0000000{number}-0000-7000-8000-000000000000","sequence":{number},"timestamp":"2026-03-01T10:00:0{number}Z","direction":"{direction}","transport":"stdio","raw":{raw},"correlated_id":{answers},"modified":false,"original_raw":null}}"#
        )
    };
    let asked = "\"00000001-0000-7000-8000-000000000000\"";
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","id":2,"method":"b"}]"#;
    let messages = [
        message(1, "client_to_server", batch, "null"),
        message(
            2,
            "server_to_client",
            r#"{"jsonrpc":"2.0","id":2,"result":{}}"#,
            asked,
        ),
        message(
            3,
            "server_to_client",
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            asked,
        ),
    ];
    let document = format!(
        r#"{{"id":"s","started_at":"2026-03-01T10:00:00Z","transport":"stdio","messages":[{}]}}"#,
        messages.join(",")
    );
    std::fs::write(&source, document).unwrap();
    let record = import(
        &source,
        RecordLocation::File(folder.path().join("new.jsonl")),
    )
    .unwrap();
    let exported = json_of(&record);
    for index in [1, 2] {
        let answers = exported["messages"][index]["correlated_id"].as_str();
        assert_eq!(answers, Some(asked.trim_matches('"')));
    }
    let session = SessionRecord::open(&record).unwrap();
    assert_eq!(session.row(2).unwrap().peer(), Some(0));
}

#[test]
fn what_is_no_session_is_refused_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("x.json");
    let mut told = Vec::new();
    for (content, word) in [
        ("[]", "`messages`"),
        ("{}", "`messages`"),
        (
            r#"{"messages":[[]],"started_at":"2026-03-01T10:00:00Z"}"#,
            "`direction`",
        ),
        (r#"{"messages":[]}"#, "`started_at`"),
        (r#"{"messages":[],"started_at":"now"}"#, "\"now\""),
        (
            r#"{"messages":[],"started_at":"2026-03-01T10:00:00Z","transport":"pigeon"}"#,
            "pigeon",
        ),
        (
            r#"{"messages":[{"direction":"up","raw":{}}],"started_at":"2026-03-01T10:00:00Z"}"#,
            "`direction`",
        ),
    ] {
        std::fs::write(&source, content).unwrap();
        let error = import(
            &source,
            RecordLocation::File(folder.path().join("out.jsonl")),
        );
        let Err(Error::Import { why, .. }) = error else {
            panic!("{content}: {error:?}");
        };
        assert!(why.contains(word), "{content}: {why}");
        told.push(why);
    }
    insta::assert_snapshot!("import_errors", told.join("\n"));
}

#[test]
fn an_export_is_opened_as_it_is() {
    let (sample, path) = everything();
    let exported = json_of(&path);
    let source = sample.beside("session.json");
    std::fs::write(&source, exported.to_string()).unwrap();
    let session = SessionRecord::open(&source).unwrap();
    assert_eq!(session.header().id, exported["id"]);
    let record = session.path().to_path_buf();
    assert_eq!(json_of(&source), exported);
    assert!(record.exists());
    // Only for as long as it is read.
    drop(session);
    assert!(!record.exists());
    let error = SessionRecord::open(sample.beside("session.har"));
    assert!(matches!(error, Err(Error::Io { .. })), "{error:?}");
    std::fs::write(sample.beside("session.har"), r#"{"log":{}}"#).unwrap();
    let error = SessionRecord::open(sample.beside("session.har"));
    assert!(matches!(error, Err(Error::NotARecord { .. })), "{error:?}");
}

#[test]
fn an_import_next_to_its_original_has_a_name_and_an_id_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let place = || RecordLocation::Folder(folder.path().join("records"));
    let mut original = testing::SampleRecord::at_place(place(), &testing::header());
    original.call(1, "echo", "{}");
    original.end();
    let source = folder.path().join("s.json");
    std::fs::write(&source, json_of(original.path()).to_string()).unwrap();
    import(&source, place()).unwrap();
    let listed = store::list(&folder.path().join("records")).unwrap();
    assert_eq!(listed.len(), 2);
    assert_ne!(listed[0].id, listed[1].id);
    for record in &listed {
        let ending = record.path().extension().unwrap();
        assert_eq!(ending, "jsonl", "{}", record.path().display());
    }
}
