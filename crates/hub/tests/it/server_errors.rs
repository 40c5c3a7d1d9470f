//! What clients and the operator are told about servers that fail.

use std::time::Duration;

use mcp_proxy_hub::{ServerChange, ServerSettings};

use crate::dispatch::last;
use crate::transcript::{ECHO, Transcript, call, server, settings};

#[test]
fn d32_a_server_that_fails_in_the_same_way_prints_its_lines_once() {
    let mut hub = Transcript::new(settings(), vec![server("a")]);
    for _ in 0..3 {
        hub.server_opens(1);
        hub.prints("Traceback (most recent call last):");
        hub.prints("KeyError: 'TOKEN'");
        hub.server_ends(1, "it ended with exit status 1");
        hub.wait(Duration::from_secs(60));
    }
    let text = hub.take();
    assert_eq!(
        text.matches("a line that was shown before").count(),
        4,
        "{text}"
    );
    let told: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("! log"))
        .collect();
    assert!(told[0].contains("KeyError"), "{told:?}");
    assert!(
        told[1..].iter().all(|line| !line.contains("KeyError")),
        "{told:?}"
    );
}

#[test]
fn every_error_about_a_server_names_it() {
    let errors = |hub: &mut Transcript| -> Vec<(i64, String)> {
        let text = hub.take();
        let lines = text.lines().filter_map(|line| line.strip_prefix("C1< "));
        let parsed = lines.map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let errors = parsed.filter(|answer| answer.get("error").is_some());
        let parts = |answer: serde_json::Value| {
            let error = &answer["error"];
            let text = error["message"].as_str().unwrap().to_owned();
            (error["code"].as_i64().unwrap(), text)
        };
        errors.map(parts).collect()
    };
    // The link itself says that its server has gone, that it takes no more, or that an answer is too large.
    for code in [-31001, -31002, -31003, -31005, -31008] {
        let mut hub = Transcript::ready(ECHO);
        hub.client_says(1, &call(1, "a_echo"));
        hub.take();
        let gone = format!(
            r#"{{"jsonrpc":"2.0","id":3,"error":{{"code":{code},"message":"the server closed the connection"}}}}"#
        );
        hub.server_says(1, &gone);
        let told = errors(&mut hub);
        if let Some((told_code, text)) = told.first() {
            assert_eq!(*told_code, code);
            assert!(text.starts_with("server a closed the connection"), "{text}");
        } else {
            panic!("{code}: no error");
        }
    }
    // It takes too long.
    let mut hub = Transcript::ready(ECHO);
    hub.client_says(1, &call(1, "a_echo"));
    hub.wait(Duration::from_secs(61));
    let told = errors(&mut hub);
    assert!(
        told[0].0 == -31008 && told[0].1.contains("server a "),
        "{told:?}"
    );
    // It is disabled.
    hub.change(ServerChange::Disable);
    hub.client_says(1, &call(2, "a_echo"));
    let told = errors(&mut hub);
    assert!(told[0].1.contains('a'), "{told:?}");
}

#[test]
fn a_lost_call_tells_how_its_server_comes_back() {
    let gone =
        r#"{"jsonrpc":"2.0","id":3,"error":{"code":-31002,"message":"the server has gone"}}"#;
    for (is_remote, way) in [(true, "connects to it again"), (false, "starts it again")] {
        for ends_first in [true, false] {
            let remote = ServerSettings {
                is_remote,
                ..server("a")
            };
            let mut hub = Transcript::new(settings(), vec![remote]);
            hub.start_server(1, ECHO);
            hub.client();
            hub.initialize(1, "{}");
            hub.client_says(1, &call(1, "a_echo"));
            hub.take();
            match ends_first {
                true => hub.server_ends(1, "the connection was closed"),
                false => hub.server_says(1, gone),
            }
            let failed = last(&hub.take(), "C1");
            assert_eq!(failed["error"]["code"], -31002);
            let text = failed["error"]["message"].as_str().unwrap();
            assert!(text.ends_with(way), "{text}");
        }
    }
}
