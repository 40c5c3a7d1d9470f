//! The three forms of a filter on messages that a table names.

use mcp_proxy_session::filter::field_names;
use mcp_proxy_session::{
    Change, EnvelopeFacts, Filter, JqError, MessageFacts, MessageFlags, RequestFacts,
};
use mcp_proxy_wire::{Direction, Message, Origin, Transport, TransportEnvelope};
use proptest::prelude::*;
use std::time::{Duration, SystemTime};

const CALL: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"read_file","arguments":{"path":"/etc/passwd","n":[1,2,3]}}}"#;
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"Root:x"}],"isError":true}}"#;

fn facts(message: &Message) -> MessageFacts<'_> {
    let answer = message.method().is_none();
    MessageFacts {
        sequence: 3,
        time: SystemTime::UNIX_EPOCH + Duration::from_micros(1_794_765_600_001_002),
        direction: if answer {
            Direction::ServerToClient
        } else {
            Direction::ClientToServer
        },
        origin: if answer {
            Origin::Server
        } else {
            Origin::Client
        },
        parent: answer.then_some(1),
        transport: Transport::Stdio,
        connection: 1,
        server: Some("files"),
        exchange: 0,
        message,
        partial_head: None,
        request: answer.then_some(RequestFacts {
            held: Duration::ZERO,
            sequence: 2,
            method: Some("tools/call"),
            name: Some("read_file"),
            latency: Duration::from_millis(1500),
        }),
        envelope: EnvelopeFacts::Live(&TransportEnvelope::Bare),
        flags: MessageFlags::default(),
    }
}

fn judged(filter: &str, message: &str) -> Result<bool, JqError> {
    let message = Message::parse(message.to_owned());
    Filter::parse(filter).unwrap().judge(&facts(&message))
}

#[test]
fn what_matches() {
    for (filter, call, answer) in [
        ("", true, true),
        ("tools/call READ_file", true, true),
        ("root:X", false, true),
        ("/etc/passwd", true, false),
        ("/[Rr]oot:./", false, true),
        ("/ROOT/i", false, true),
        ("/ROOT/", false, false),
        (".method == \"tools/call\"", true, true),
        (".tool == \"read_file\"", true, true),
        (
            ".tool == .name and .uri == null and .prompt == null",
            true,
            true,
        ),
        (".kind == \"request\"", true, false),
        (".origin == \"client\" and .parent == null", true, false),
        (".parent == 1", false, true),
        (".status == \"error\"", false, true),
        (".status == \"none\"", true, false),
        (".latency_ms == 1500", false, true),
        (".latency_ms > 1000", false, true),
        (".answers == 2", false, true),
        (".id == 7", true, true),
        (".direction == \"client_to_server\"", true, false),
        (".params.arguments.path | startswith(\"/etc\")", true, false),
        (".params.arguments.n[] == 3", true, false),
        ("any(.params.arguments.n[]?; . > 2)", true, false),
        (".params.arguments.n | length == 3", true, false),
        (
            ".result.content[0].text | test(\"root\"; \"i\")",
            false,
            true,
        ),
        ("select(.error) | true", false, false),
        (".raw | contains(\"Root\")", false, true),
        (".size == (.raw | utf8bytelength)", true, true),
        (".message.jsonrpc == \"2.0\"", true, true),
        (".time == \"2026-11-15T18:00:00.001002Z\"", true, true),
        (".time | fromdate > 1794765600", true, true),
        ("jq:keys | length > 20", true, true),
        ("jq:[.params, .result] | any", true, true),
        (".. | strings | select(test(\"^Root\"))", false, true),
        (".params.arguments.n | add == 6", true, false),
        (
            ".params | to_entries | map(.key) | index(\"name\") == 0",
            true,
            false,
        ),
        ("[.params.arguments.n[]? * 2] == [2,4,6]", true, false),
        ("\"\\(.sequence)-\\(.connection)\" == \"3-1\"", false, false),
        (
            "jq:\"\\(.sequence)-\\(.connection)\" == \"3-1\"",
            true,
            true,
        ),
    ] {
        // Words and patterns do not fail, and a program that does has not chosen.
        assert_eq!(
            judged(filter, CALL).unwrap_or(false),
            call,
            "{filter} on the call"
        );
        assert_eq!(
            judged(filter, ANSWER).unwrap_or(false),
            answer,
            "{filter} on the answer"
        );
    }
}

#[test]
fn what_is_wrong_names_the_place() {
    let wrong = [
        (".method ==", Some(11)),
        (".method == )", Some(12)),
        (".method | foo(1)", Some(11)),
        (".method == $x", Some(12)),
        (".nmae == 1", Some(2)),
        ("select(.tol)", Some(9)),
        ("def f: f; f", Some(5)),
        ("(1 | debug)", Some(6)),
        ("/a(b/", Some(2)),
        ("/(?<a/", Some(5)),
    ];
    let errors = wrong.map(|(filter, place)| {
        let error = Filter::parse(filter).unwrap_err();
        assert_eq!(error.place(), place, "{filter}");
        error.to_string()
    });
    insta::assert_snapshot!("filter_errors", errors.join("\n"));
}

#[test]
fn no_message_waits_for_an_endless_program() {
    let start = std::time::Instant::now();
    for program in [
        "(range(1e12) | select(false))",
        "[range(1e12)]",
        "last(range(1e12))",
        "[repeat(1)] | length",
        "(0 | until(false; . + 1))",
        "(1 | while(true; .)) | empty",
        "(0 | recurse(. + 1) | empty)",
        "try repeat(1) catch 1 | empty",
        "([limit(1e9; repeat(.))] | length)",
        "(.. | .. | .. | .. | empty) , last(range(1e12))",
    ] {
        let filter = Filter::parse(&format!("jq:{program}")).unwrap();
        let message = Message::parse(CALL);
        let judge = || filter.judge(&facts(&message));
        assert_eq!(judge(), Err(JqError::TooSlow), "{program}");
        assert_eq!(judge(), Err(JqError::SwitchedOff), "{program}");
    }
    // A loaded machine takes longer, but not for ever.
    assert!(start.elapsed() < Duration::from_secs(60));
}

#[test]
fn a_slow_search_does_not_hold_up_the_traffic() {
    let text = "ab".repeat(8 << 20);
    let message = Message::parse(format!(r#"{{"id":1,"method":"m","params":"{text}"}}"#));
    for filter in [
        "/(a|b)*a(a|b){200}c/",
        ".params | test(\"(a|b)*a(a|b){200}c\")",
    ] {
        let filter = Filter::parse(filter).unwrap();
        let begun = std::time::Instant::now();
        let judged = filter.judge(&facts(&message));
        // A quick machine may finish it.
        assert!(
            matches!(judged, Err(JqError::TooSlow) | Ok(false)),
            "{filter}: {judged:?}"
        );
        assert!(begun.elapsed() < Duration::from_secs(30), "{filter}");
    }
}

#[test]
fn odd_messages_are_no_trouble() {
    let deep = format!(
        "{{\"id\":1,\"params\":{}{}}}",
        "[".repeat(900),
        "]".repeat(900)
    );
    let digits = format!("{{\"id\":1,\"params\":{}}}", "9".repeat(200_000));
    let nested = format!("{{\"id\":1,\"params\":\"{}\"}}", "[".repeat(100_000));
    for message in [
        &deep,
        &digits,
        &nested,
        r#"{"id":1,"id":2,"method":"a","params":{"a":1,"a":2}}"#,
        r#"{"id":1e999,"method":"\ud800","params":[-0,1E400,0.1e-9,"\ud83d"]}"#,
        "[{\"id\":1},2]",
        "",
        "{",
        "null",
        "\u{feff}{\"id\":1}",
    ] {
        for field in field_names() {
            judged(&format!(".{field} == 1"), message).unwrap();
        }
        let _ = judged("jq:[.. | tojson] | length > 0", message);
        let _ = judged(".params | fromjson", message);
        let _ = judged(".params + .params * 2 | . - 1", message);
    }
    assert_eq!(
        judged(
            ".params.a == 2",
            r#"{"id":1,"method":"a","params":{"a":1,"a":2}}"#
        ),
        Ok(true)
    );
    let big = r#"{"id":1,"method":"a","params":[9007199254740993]}"#;
    assert_eq!(judged(".params[0] == 9007199254740992", big), Ok(false));
}

/// The first cells of a table in the documentation, as code.
fn documented(heading: &str) -> Vec<String> {
    let page = include_str!("../../../../docs/filters.md");
    let section = page.split(heading).nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| row.split("` | ").next().unwrap().replace("\\|", "|"))
        .collect()
}

#[test]
fn the_documented_examples_work() {
    let examples = documented("\n## Examples\n");
    assert!(examples.len() > 10, "{examples:?}");
    for example in examples {
        let filter = Filter::parse(&example).unwrap();
        let message = Message::parse(CALL);
        let _ = filter.judge(&facts(&message));
    }
}

#[test]
fn every_field_is_documented() {
    let names: Vec<String> = field_names()
        .iter()
        .map(|name| format!(".{name}"))
        .collect();
    assert_eq!(documented("\n## The fields that jq sees\n"), names);
}

#[test]
fn filters_can_be_shared() {
    fn shared<T: Send + Sync + Clone>() {}
    shared::<Filter>();
    shared::<Change>();
}

proptest! {
    #[test]
    fn no_bytes_make_a_filter_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), place in 0..3usize) {
        let mut raw = CALL.as_bytes().to_vec();
        match place {
            0 => raw = bytes,
            1 => raw.truncate(bytes.len()),
            _ => {
                let at = bytes.len() % raw.len();
                raw.splice(at..(at + 3).min(raw.len()), bytes);
            }
        }
        let message = Message::parse(raw);
        for filter in ["a b", "/a.c/i", "jq:[..] | tojson", ".params.arguments.n[]? > 1", ".raw | test(\"a\")"] {
            let _ = Filter::parse(filter).unwrap().judge(&facts(&message));
        }
    }

    #[test]
    fn no_text_makes_parsing_panic(text in "[-.a-z0-9()\\[\\]{}|/\"$@ :;,=<>+*\\\\]{0,40}") {
        let message = Message::parse(CALL);
        for text in [text.clone(), format!("jq:{text}"), format!("/{text}/")] {
            if let Ok(filter) = Filter::parse(&text) {
                let _ = filter.judge(&facts(&message));
            }
        }
    }
}
