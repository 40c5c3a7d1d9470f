//! A record plays the server it was made from.

use std::path::PathBuf;

use crate::control::live::Sse;
use crate::run::{INITIALIZE, INITIALIZED, Listening, PROXY, Talk, pipe};

const ECHO: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hi"}}}"#;
const COUNT: &str = r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"count_down","arguments":{"from":2},"_meta":{"progressToken":"t"}}}"#;

/// A record of a real session, made by a real run.
pub fn record(folder: &tempfile::TempDir) -> PathBuf {
    let file = folder.path().join("s.jsonl");
    let flags = ["--session-file", file.to_str().unwrap(), "--quiet", "--"];
    let server = [PROXY, "demo-server", "stdio"];
    let mut talk = Talk::start(&[&flags[..], &server[..]].concat());
    for (line, id) in [(INITIALIZE, 1), (INITIALIZED, 0), (ECHO, 2), (COUNT, 3)] {
        talk.say(line);
        while id > 0 && !talk.hear().contains(&format!(r#""id":{id},"#)) {}
    }
    assert_eq!(talk.end(), Some(0));
    file
}

fn play(file: &str, more: &[&str], input: &str) -> String {
    let args = [&["mock", file], more].concat();
    let played = pipe(&args, input.as_bytes());
    assert!(played.status.success(), "{played:?}");
    String::from_utf8(played.stdout).unwrap()
}

#[test]
fn requests_are_answered_as_recorded_with_ids_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let file = record(&folder);
    let file = file.to_str().unwrap();
    let input = [
        INITIALIZE.replace("\"name\":\"test\"", "\"name\":\"another\""),
        INITIALIZED.to_owned(),
        // Other ids, another order of members, another token.
        r#"{"params":{"arguments":{"message":"hi"},"name":"echo"},"method":"tools/call","id":"x-9","jsonrpc":"2.0"}"#.to_owned(),
        COUNT.replace("\"t\"", "77").replace("\"id\":3", "\"id\":4"),
        ECHO.replace("hi", "never said").replace("\"id\":2", "\"id\":5"),
    ]
    .join("\n");
    let said = play(file, &[], &format!("{input}\n"));
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].contains("protocolVersion"), "{said}");
    assert!(
        lines[1].contains(r#""id":"x-9""#) && lines[1].contains("hi"),
        "{said}"
    );
    assert!(said.contains(r#""progressToken":77"#), "{said}");
    let counted = lines
        .iter()
        .find(|line| line.contains(r#""id":4"#))
        .unwrap();
    assert!(counted.contains("result"), "{said}");
    assert!(
        said.contains("-31013") && said.contains(r#""id":5"#),
        "{said}"
    );
}

#[test]
fn sequential_and_strict_look_less_and_more_closely() {
    let folder = tempfile::tempdir().unwrap();
    let file = record(&folder);
    let file = file.to_str().unwrap();
    let other = ECHO.replace("hi", "other");
    let input = format!("{INITIALIZE}\n{INITIALIZED}\n{other}\n");
    let said = play(file, &["--match", "sequential"], &input);
    assert!(said.contains(r#""text":"hi""#), "{said}");
    let said = play(file, &["--match", "strict"], &input);
    assert!(said.contains("-31013"), "{said}");
    let input = format!("{INITIALIZE}\n{INITIALIZED}\n{ECHO}\n{COUNT}\n");
    let said = play(file, &["--match", "strict"], &input);
    assert!(
        !said.contains("-31013") && said.contains(r#""id":3"#),
        "{said}"
    );
}

#[test]
fn a_ping_is_answered_also_if_none_was_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let file = record(&folder);
    let file = file.to_str().unwrap();
    let ping = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;
    let input = format!("{INITIALIZE}\n{INITIALIZED}\n{ping}\n");
    for matching in ["params", "sequential"] {
        let said = play(file, &["--match", matching], &input);
        let pong = r#"{"jsonrpc":"2.0","id":"p","result":{}}"#;
        assert_eq!(said.lines().last(), Some(pong), "{said}");
    }
    let said = play(file, &["--match", "strict"], &input);
    assert!(said.contains("-31013"), "{said}");
}

#[test]
fn what_is_not_recorded_can_go_to_a_real_server() {
    let folder = tempfile::tempdir().unwrap();
    let file = record(&folder);
    let other = ECHO.replace("hi", "live");
    let input = format!("{INITIALIZE}\n{INITIALIZED}\n{ECHO}\n{other}\n");
    let more = [
        "--unmatched",
        "forward",
        "--",
        PROXY,
        "demo-server",
        "stdio",
    ];
    let said = play(file.to_str().unwrap(), &more, &input);
    assert!(
        said.contains(r#""text":"hi""#) && said.contains(r#""text":"live""#),
        "{said}"
    );
}

#[test]
fn over_http_each_session_is_a_conversation_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let file = record(&folder);
    let proxy = Listening::start(&[
        "mock",
        file.to_str().unwrap(),
        "--listen",
        "http",
        "--listen-port",
        "0",
    ]);
    for _ in 0..2 {
        let session = proxy.session();
        let answer = proxy.post(&[("mcp-session-id", &session)], ECHO);
        assert_eq!(answer.status, 200);
        assert!(answer.text().contains("hi"), "{}", answer.text());
        let answer = proxy.post(&[("mcp-session-id", &session)], COUNT);
        assert!(answer.text().contains("progressToken"), "{}", answer.text());
    }
}

#[test]
fn over_sse_it_plays_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let file = record(&folder);
    let words = ["--listen", "sse", "--listen-port", "0"];
    let proxy = Listening::start(&[&["mock", file.to_str().unwrap()][..], &words].concat());
    let mut client = Sse::connect(&proxy);
    assert!(client.round(INITIALIZE).contains("serverInfo"));
    client.say(INITIALIZED);
    let heard = client.round(ECHO);
    assert!(heard.contains("hi"), "{heard}");
}

#[test]
fn a_record_that_cannot_play_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let file = record(&folder);
    let file = file.to_str().unwrap();
    for (args, text) in [
        (&["mock", "/no/such/file"][..], "no/such/file"),
        (&["mock", file, "--unmatched", "forward"], "needs a server"),
        (&["mock", file, "--", "cat"], "--unmatched forward"),
    ] {
        let failed = pipe(args, b"");
        let said = String::from_utf8_lossy(&failed.stderr).into_owned();
        assert!(!failed.status.success() && said.contains(text), "{said}");
    }
}

#[test]
fn an_answer_with_redacted_values_is_not_played_as_if_it_were_whole() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.jsonl");
    let file = file.to_str().unwrap();
    let path = "$.result.content[*].text";
    let flags = [
        "--session-file",
        file,
        "--quiet",
        "--redact-path",
        path,
        "--",
    ];
    let mut talk = Talk::start(&[&flags[..], &[PROXY, "demo-server", "stdio"]].concat());
    for line in [INITIALIZE, ECHO] {
        talk.say(line);
        talk.hear();
    }
    assert_eq!(talk.end(), Some(0));
    let input = format!("{INITIALIZE}\n{ECHO}\n");
    let said = play(file, &[], &input);
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].contains("protocolVersion"), "{said}");
    let refused = lines[1];
    assert!(
        refused.contains("-31013") && refused.contains("redacted (message #4)"),
        "{said}"
    );
    assert!(!said.contains("[redacted:"), "{said}");
    let said = play(file, &["--play-redacted"], &input);
    assert!(
        said.contains("[redacted:") && !said.contains("error"),
        "{said}"
    );
    // A real server knows what the record does not.
    let more = [
        "--unmatched",
        "forward",
        "--",
        PROXY,
        "demo-server",
        "stdio",
    ];
    let said = play(file, &more, &input);
    assert!(said.contains(r#""text":"hi""#), "{said}");
}
