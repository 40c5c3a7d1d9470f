//! `docs/control.md`: every method has an example in it, and every example is run.
//!
//! In a block of JSON, `> ` is what a viewer sends and `< ` what it gets. What differs from run to run (times, ids) may
//! differ; members, their kinds and error codes must be the same.

use std::collections::BTreeSet;

use mcp_proxy_control::METHODS;
use serde_json::Value;

use super::sockets::RawControlClient;
use super::test_home::TestHome;
use crate::programs::{INITIALIZE, INITIALIZED};

const CALL: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hi"}}}"#;
/// The files that the examples of `export` and `save` write.
const OUTPUTS: [&str; 2] = ["/home/user/session.har", "/home/user/copy.jsonl"];

#[test]
fn every_method_has_an_example_that_is_true() {
    let text = include_str!("../../../../../docs/control.md");
    let house = TestHome::new();
    // What the document says about its examples.
    let rules = house.path("rules.toml");
    let rule = "[[rule]]\nname = \"slow-search\"\ntool = \"search\"\ndelay = \"2s\"\n";
    std::fs::write(&rules, rule).unwrap();
    let flags = ["--break", "tools/call", "--rules", rules.to_str().unwrap()];
    let mut run = house.demo(&flags);
    run.round(INITIALIZE);
    run.say(INITIALIZED);
    run.say(CALL);
    house.held();
    let mut viewer = RawControlClient::connect(&house, &run);
    let mut shown = BTreeSet::new();
    let mut sent = None;
    for line in text.lines() {
        if let Some(request) = line.strip_prefix("> ") {
            let parsed: Value = serde_json::from_str(request).expect(request);
            shown.insert(parsed["method"].as_str().unwrap().to_owned());
            let request_here = OUTPUTS.iter().fold(request.to_owned(), |request, output| {
                let name = std::path::Path::new(output).file_name().unwrap();
                let here = house.path(name.to_str().unwrap());
                request.replace(output, here.to_str().unwrap())
            });
            viewer.send(&request_here);
            sent = Some(request);
        } else if let Some(expected) = line.strip_prefix("< ") {
            let expected: Value = serde_json::from_str(expected).expect(expected);
            let heard = match expected["method"].as_str() {
                // A notice comes when it comes; the next of its kind is meant.
                Some(method) => next(&mut viewer, |heard| heard["method"] == method),
                None => next(&mut viewer, |heard| heard.get("method").is_none()),
            };
            assert_alike(&expected, &heard, sent.unwrap_or(""));
        }
    }
    let all: BTreeSet<_> = METHODS.iter().map(|info| info.name.to_owned()).collect();
    assert_eq!(shown, all, "every method, and none that is not there");
    for info in METHODS {
        assert!(
            text.contains(&format!("### `{}`", info.name)),
            "{}",
            info.name
        );
        for param in info.params {
            assert!(
                text.contains(&format!("`{}`", param.name)),
                "{} of {}",
                param.name,
                info.name
            );
        }
    }
    assert_eq!(run.child.wait().unwrap().code(), Some(0));
}

fn next(viewer: &mut RawControlClient, wanted: impl Fn(&Value) -> bool) -> Value {
    loop {
        let heard = viewer.hear();
        if wanted(&heard) {
            return heard;
        }
    }
}

#[track_caller]
fn assert_alike(expected: &Value, heard: &Value, about: &str) {
    match (expected, heard) {
        (Value::Object(expected), Value::Object(heard_members)) => {
            let names = |members: &serde_json::Map<String, Value>| {
                members.keys().cloned().collect::<Vec<_>>()
            };
            assert_eq!(names(expected), names(heard_members), "{about}: {heard}");
            for (name, value) in expected {
                match name.as_str() {
                    // Whatever a peer sent.
                    "raw" => {}
                    "code" | "jsonrpc" | "mode" | "action" | "method" | "format" => {
                        assert_eq!(value, &heard_members[name], "{about}: {heard}");
                    }
                    _ => assert_alike(value, &heard_members[name], about),
                }
            }
        }
        (Value::Array(expected), Value::Array(found)) => {
            assert_eq!(expected.is_empty(), found.is_empty(), "{about}: {heard}");
            if let (Some(expected), Some(heard)) = (expected.first(), found.first()) {
                assert_alike(expected, heard, about);
            }
        }
        (expected, heard) => assert_eq!(
            std::mem::discriminant(expected),
            std::mem::discriminant(heard),
            "{about}: {expected} {heard}"
        ),
    }
}
