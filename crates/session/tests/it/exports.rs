//! Exports, compared with reviewed snapshots.

use crate::sample::*;
use mcp_proxy_session::*;
use serde_json::Value;
use std::path::Path;

fn exported(path: &Path, name: &str) -> String {
    let session = SessionRecord::open(path).unwrap();
    let mut out = Vec::new();
    let mut last = (0, 0);
    export::exporter(name)
        .unwrap()
        .export(&session, &mut out, &mut |done, total| last = (done, total))
        .unwrap();
    assert_eq!(last.0, last.1, "progress ends at its end");
    String::from_utf8(out).unwrap()
}

#[test]
fn every_format() {
    let (_sample, path) = everything();
    for exporter in exporters() {
        insta::assert_snapshot!(
            format!("export-{}", exporter.name()),
            exported(&path, exporter.name())
        );
    }
}

#[test]
fn only_what_a_filter_chooses() {
    let (_sample, path) = everything();
    let chosen = |filter: &str, name: &str| {
        let mut session = SessionRecord::open(&path).unwrap();
        session
            .retain_matching(&Filter::parse(filter).unwrap())
            .unwrap();
        let mut out = Vec::new();
        let exporter = export::exporter(name).unwrap();
        exporter.export(&session, &mut out, &mut |_, _| {}).unwrap();
        (session, String::from_utf8(out).unwrap())
    };
    let (session, json) = chosen("tools", "json");
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["messages"].as_array().unwrap().len(), 4);
    assert_eq!(session.len(), 4);
    for row in session.rows() {
        let peer = row.peer().and_then(|peer| session.row(peer));
        assert!(peer.is_none_or(|peer| peer.sequence() != row.sequence()));
    }
    let (_, lines) = chosen("tools", "jsonl");
    assert_eq!(lines.matches("{\"t\":\"msg\"").count(), 4);
    assert!(lines.contains("{\"t\":\"session\"") && lines.contains("{\"t\":\"end\""));
    let (_, har) = chosen(".tool == \"read_file\"", "har");
    let har: Value = serde_json::from_str(&har).unwrap();
    assert_eq!(har["log"]["entries"].as_array().unwrap().len(), 1);
    let (_, report) = chosen(".sequence < 0", "markdown");
    assert!(!report.contains("tools/call"), "{report}");
}

#[test]
fn json_has_the_seeds_fields_and_no_others() {
    let (_sample, path) = everything();
    let session: Value = serde_json::from_str(&exported(&path, "json")).unwrap();
    let keys = |value: &Value| {
        value
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(
        keys(&session),
        "id started_at ended_at transport server_command server_url messages metadata"
    );
    for message in session["messages"].as_array().unwrap() {
        assert_eq!(
            keys(message),
            "id sequence timestamp direction transport raw jsonrpc_id method correlated_id modified original_raw"
        );
    }
}

#[test]
fn large_bodies_are_in_every_export() {
    const LARGE: usize = 100_000;
    let filler = "z".repeat(LARGE);
    let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
    let bodies = [
        format!("{{\n\"id\":1,\"result\":\"é{filler}\"}}").into_bytes(),
        format!("no json \"{filler}").into_bytes(),
        [&b"\xff\xfe"[..], filler.as_bytes()].concat(),
        format!("[\"{filler}\",{deep}]").into_bytes(),
    ];
    let mut sample = SampleRecord::new();
    for body in &bodies {
        sample.server(body);
    }
    sample.flush();
    let session: Value = serde_json::from_str(&exported(sample.path(), "json")).unwrap();
    let raw = |index: usize| &session["messages"][index]["raw"];
    assert_eq!(raw(0)["result"].as_str().unwrap().len(), LARGE + 2);
    assert_eq!(raw(1).as_str().unwrap().as_bytes(), bodies[1]);
    let encoded = raw(2).as_str().unwrap().strip_prefix("base64:").unwrap();
    use base64::Engine;
    assert_eq!(
        base64::engine::general_purpose::STANDARD
            .decode(encoded)
            .unwrap(),
        bodies[2]
    );
    assert_eq!(
        raw(3).as_str().unwrap().as_bytes(),
        bodies[3],
        "too deep for other readers, so a string"
    );
    for name in ["har", "markdown", "jsonl"] {
        exported(sample.path(), name);
    }
}

#[test]
fn har_has_what_readers_ask_for() {
    let (_sample, path) = everything();
    let har: Value = serde_json::from_str(&exported(&path, "har")).unwrap();
    assert_eq!(har["log"]["version"], "1.2");
    let entries = har["log"]["entries"].as_array().unwrap();
    for entry in entries {
        assert!(
            entry["startedDateTime"].is_string()
                && entry["time"].is_number()
                && entry["cache"].is_object()
        );
        for key in ["send", "wait", "receive"] {
            assert!(entry["timings"][key].is_number());
        }
        for (side, keys) in [
            (
                "request",
                &[
                    "method",
                    "url",
                    "httpVersion",
                    "cookies",
                    "headers",
                    "queryString",
                    "headersSize",
                    "bodySize",
                ][..],
            ),
            (
                "response",
                &[
                    "status",
                    "statusText",
                    "httpVersion",
                    "cookies",
                    "headers",
                    "content",
                    "redirectURL",
                ][..],
            ),
        ] {
            for key in keys {
                assert!(!entry[side][*key].is_null(), "{side}.{key} in {entry}");
            }
        }
    }
    let stdio: Vec<&Value> = entries
        .iter()
        .filter(|entry| entry["_transport"] == "stdio")
        .collect();
    assert_eq!(stdio[0]["_sequences"], serde_json::json!([1, 2]));
    let http = entries
        .iter()
        .find(|entry| entry["_transport"] == "streamable_http")
        .unwrap();
    assert_eq!(http["response"]["status"], 200);
    assert_eq!(http["_eventSourceMessages"][0]["eventId"], "e-1");
}

fn har(sample: &mut SampleRecord) -> Vec<Value> {
    sample.flush();
    let mut har: Value = serde_json::from_str(&exported(sample.path(), "har")).unwrap();
    match har["log"]["entries"].take() {
        Value::Array(entries) => entries,
        other => panic!("{other}"),
    }
}

/// A stdio client before an HTTP server: the streams of the proxy's own requests have no number in the record. All their
/// events once became those of the first request.
#[test]
fn har_gives_each_answer_of_a_bridge_to_the_request_that_asked() {
    let mut sample = SampleRecord::new();
    let first = sample.client(r#"{"id":1,"method":"initialize"}"#);
    let second = sample.client(r#"{"id":2,"method":"tools/list"}"#);
    let event = event("e-1");
    let log = br#"{"method":"notifications/message"}"#;
    let answer = sample.from_server(r#"{"id":1,"result":1}"#);
    answer.carried_by(&event).answering(first).write();
    sample.from_server(log).carried_by(&event).write();
    let answer = sample.from_server(r#"{"id":2,"result":2}"#);
    answer.carried_by(&event).answering(second).write();
    let entries = har(&mut sample);
    let pairs: Vec<(&Value, &Value)> = entries
        .iter()
        .map(|entry| {
            (
                &entry["request"]["url"],
                &entry["response"]["content"]["text"],
            )
        })
        .collect();
    let (none, url) = (Value::Null, |word: &str| Value::from(word));
    let expected = [
        (
            url("stdio://server/initialize"),
            url(r#"{"id":1,"result":1}"#),
        ),
        (
            url("stdio://server/tools/list"),
            url(r#"{"id":2,"result":2}"#),
        ),
        (url("streamable-http://server/notifications/message"), none),
    ];
    let expected: Vec<(&Value, &Value)> = expected.iter().map(|(a, b)| (a, b)).collect();
    assert_eq!(pairs, expected);
}

/// `_eventSourceMessages` is known to Chrome only; to all others a stream without a body was empty.
#[test]
fn har_has_the_events_of_a_stream_as_its_body() {
    let mut sample = SampleRecord::new();
    sample
        .from_client(r#"{"id":7,"method":"tools/list"}"#)
        .carried_by(&post())
        .in_exchange(5)
        .write();
    for data in ["{\n\"id\":7}", "\"é\""] {
        let event = event("e-1");
        let message = sample.from_server(data).carried_by(&event);
        message.in_exchange(5).write();
    }
    let entries = har(&mut sample);
    let content = &entries[0]["response"]["content"];
    let text = "id: e-1\nevent: message\ndata: {\ndata: \"id\":7}\n\nid: e-1\nevent: message\ndata: \"é\"\n\n";
    assert_eq!(content["text"], text);
    assert_eq!(content["size"], text.len());
    assert_eq!(entries[0]["response"]["bodySize"], text.len());

    let binary = sample.from_server(b"\xff").carried_by(&event("e-2"));
    binary.in_exchange(5).write();
    let entries = har(&mut sample);
    assert!(entries[0]["response"]["content"]["text"].is_null());
    assert_eq!(entries[0]["_eventSourceMessages"][2]["data"], "base64:/w==");
}

#[test]
fn har_does_not_call_json_what_the_server_did_not() {
    let mut sample = SampleRecord::new();
    sample
        .from_client(r#"{"id":7,"method":"tools/list"}"#)
        .carried_by(&post())
        .in_exchange(5)
        .write();
    let moved = response(308, &[("location", "/b")]);
    let moved = sample.from_server("moved").carried_by(&moved);
    moved.in_exchange(5).write();
    let entries = har(&mut sample);
    assert_eq!(entries[0]["response"]["content"]["mimeType"], "x-unknown");
    assert_eq!(entries[0]["response"]["redirectURL"], "/b");
}

#[test]
fn a_session_that_is_empty_exports_too() {
    let mut sample = SampleRecord::new();
    sample.flush();
    for name in ["json", "har", "markdown", "jsonl"] {
        let session = SessionRecord::open(sample.path()).unwrap();
        let mut out = Vec::new();
        export::exporter(name)
            .unwrap()
            .export(&session, &mut out, &mut |_, _| {})
            .unwrap();
        assert!(!out.is_empty());
    }
}

#[test]
fn a_body_that_is_not_in_the_record_is_marked() {
    let sample = SampleRecord::new();
    let path = sample.beside("format2.jsonl");
    let lines = [
        r#"{"t":"session","format":2,"id":"s","started_at":"2026-11-15T18:00:00Z","client":{"transport":"stdio"},"server":{"transport":"stdio"}}"#,
        r#"{"t":"msg","timestamp":"2026-11-15T18:00:01Z","sequence":1,"id":"019a8888-0000-7000-8000-000000000001","mono_ns":1,"direction":"client_to_server","transport":"stdio","conn":"c1","exchange":0,"kind":"request","jsonrpc_id":1,"method":"m","len":70000,"raw_ref":{"file":"1.raw","len":70000}}"#,
    ];
    std::fs::write(&path, lines.map(|line| format!("{line}\n")).concat()).unwrap();
    for (name, mark) in [
        ("har", "\"comment\":\"70000 bytes that were not stored\""),
        ("markdown", "70000 bytes that were not stored"),
        ("json", "\"missing\":{\"1\":70000}"),
    ] {
        let text = exported(&path, name);
        assert!(text.contains(mark), "{name}: {text}");
    }
}

#[test]
fn d20_a_file_with_another_ending_has_no_format() {
    let format = |file: &str| export::exporter_for_file(Path::new(file)).map(|one| one.name());
    assert_eq!(format("x.pdf"), None);
    assert_eq!(format("x.json.bak"), None);
    assert_eq!(format("x.MD"), Some("markdown"));
    assert_eq!(format("session"), Some("json"));
    assert_eq!(export::file_endings(), ".json, .jsonl, .har, .md");
}

#[test]
fn d30_a_long_error_ends_with_an_ellipsis_in_the_table() {
    let mut sample = SampleRecord::new();
    for (id, length) in [(1, 100), (2, 101)] {
        let call = sample.call(id, "slow", "{}");
        let text = "é".repeat(length);
        sample.result(
            id,
            call,
            &format!(r#"{{"content":[{{"type":"text","text":"{text}"}}],"isError":true}}"#),
        );
    }
    sample.flush();
    let report = exported(sample.path(), "markdown");
    let whole = format!("⚠ tool error: {}, ", "é".repeat(100));
    let cut = format!("⚠ tool error: {}…, ", "é".repeat(100));
    assert!(report.contains(&whole), "{report}");
    assert!(report.contains(&cut), "{report}");
}

#[test]
fn broken_json_is_marked_in_a_report_whatever_was_readable_of_it() {
    let mut sample = SampleRecord::new();
    sample.client(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"#);
    sample.flush();
    let report = exported(sample.path(), "markdown");
    let lines = |start: &str| report.lines().find(|line| line.starts_with(start)).unwrap();
    assert!(lines("| 1 |").contains("tools/call"), "{report}");
    assert!(lines("| 1 |").contains('⚠'), "{report}");
    assert_eq!(report.matches('⚠').count(), 2, "{report}");
}
