//! Exports, compared with reviewed snapshots.

use crate::sample::*;
use mcp_proxy_session::*;
use serde_json::Value;
use std::path::Path;

fn exported(path: &Path, name: &str) -> String {
    let session = Session::open(path).unwrap();
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
fn side_files_are_put_in() {
    let filler = "z".repeat(SIDE_LIMIT);
    let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
    let bodies = [
        format!("{{\n\"id\":1,\"result\":\"é{filler}\"}}").into_bytes(),
        format!("no json \"{filler}").into_bytes(),
        [&b"\xff\xfe"[..], filler.as_bytes()].concat(),
        format!("[\"{filler}\",{deep}]").into_bytes(),
    ];
    let mut sample = Sample::new();
    for body in &bodies {
        sample.server(body, None);
    }
    sample.recorder.flush().unwrap();
    let session: Value = serde_json::from_str(&exported(sample.path(), "json")).unwrap();
    let raw = |index: usize| &session["messages"][index]["raw"];
    assert_eq!(raw(0)["result"].as_str().unwrap().len(), SIDE_LIMIT + 2);
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

#[test]
fn a_session_that_is_empty_exports_too() {
    let mut sample = Sample::new();
    sample.recorder.flush().unwrap();
    for name in ["json", "har", "markdown", "jsonl"] {
        let session = Session::open(sample.path()).unwrap();
        let mut out = Vec::new();
        export::exporter(name)
            .unwrap()
            .export(&session, &mut out, &mut |_, _| {})
            .unwrap();
        assert!(!out.is_empty());
    }
}
