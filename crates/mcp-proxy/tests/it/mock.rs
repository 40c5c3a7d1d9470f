//! A record plays the server it was made from.

use std::path::PathBuf;

use crate::control::live::SseClient;
use crate::control::test_home::TestHome;
use crate::programs::{INITIALIZE, INITIALIZED, ListeningProgram, PROXY, StdioProgram, pipe};

const ECHO: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hi"}}}"#;
const COUNT: &str = r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"count_down","arguments":{"from":2},"_meta":{"progressToken":"t"}}}"#;

/// A record of a real session, made by a real run.
pub fn record(folder: &tempfile::TempDir) -> PathBuf {
    let file = folder.path().join("s.jsonl");
    let flags = ["--session-file", file.to_str().unwrap(), "--quiet", "--"];
    let server = [PROXY, "demo-server", "stdio"];
    let mut talk = StdioProgram::start(&[&flags[..], &server[..]].concat());
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
fn sequential_answers_are_those_of_the_same_tool() {
    let folder = tempfile::tempdir().unwrap();
    let file = record(&folder);
    // In the record `echo` was called first.
    let count = COUNT.replace("\"from\":2", "\"from\":9");
    let other = ECHO.replace("\"echo\"", "\"never_called\"");
    let input = format!("{INITIALIZE}\n{INITIALIZED}\n{count}\n{other}\n");
    let said = play(file.to_str().unwrap(), &["--match", "sequential"], &input);
    let of = |id: &str| {
        said.lines()
            .find(|line| line.contains(id) && !line.contains("method"))
    };
    assert!(
        !of(r#""id":3"#).unwrap().contains(r#""text":"hi""#),
        "{said}"
    );
    assert!(of(r#""id":2"#).unwrap().contains("-31013"), "{said}");
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
fn a_mock_is_a_peer_in_process_and_the_server_behind_it_may_make_noise() {
    let folder = tempfile::tempdir().unwrap();
    let file = record(&folder);
    let new = folder.path().join("new.jsonl");
    let noisy = format!("echo noise; exec '{PROXY}' demo-server stdio");
    let flags = ["--session-file", new.to_str().unwrap()];
    let server = ["--unmatched", "forward", "--", "sh", "-c", &noisy];
    let other = ECHO.replace("hi", "live");
    let input = format!("{INITIALIZE}\n{INITIALIZED}\n{other}\n");
    let more = [&flags[..], &server[..]].concat();
    let said = play(file.to_str().unwrap(), &more, &input);
    assert!(
        said.contains(r#""text":"live""#) && !said.contains("noise"),
        "{said}"
    );
    let lines = std::fs::read_to_string(&new).unwrap();
    let line = |number: usize| {
        let line = lines.lines().nth(number).unwrap();
        serde_json::from_str::<serde_json::Value>(line).unwrap()
    };
    let mock = serde_json::json!({"name": "mock", "transport": "in_process"});
    assert_eq!(line(0)["server"], mock);
    assert_eq!(line(1)["kind"], "open");
    assert_eq!(line(1)["server"]["transport"], "in_process");
    assert!(lines.contains(r#""kind":"stray""#), "{lines}");
    let shown = pipe(&["inspect", new.to_str().unwrap()], b"");
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("  stdio ► mock "), "{shown}");
}

#[test]
fn over_http_each_session_is_a_conversation_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let file = record(&folder);
    let proxy = ListeningProgram::start(&[
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
    let proxy = ListeningProgram::start(&[&["mock", file.to_str().unwrap()][..], &words].concat());
    let mut client = SseClient::connect(&proxy);
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
    for (args, code, named) in [
        (&["mock", "/no/such/file"][..], 1, "no/such/file"),
        (&["mock", file, "--unmatched", "forward"], 2, "--unmatched"),
        (&["mock", file, "--", "cat"], 2, "--unmatched forward"),
    ] {
        let failed = pipe(args, b"");
        let said = String::from_utf8_lossy(&failed.stderr).into_owned();
        assert_eq!(failed.status.code(), Some(code), "{said}");
        assert!(said.contains(named), "{said}");
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
    let mut talk = StdioProgram::start(&[&flags[..], &[PROXY, "demo-server", "stdio"]].concat());
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
        refused.contains("-31013") && refused.contains("#4"),
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

/// Works on two calls at once: logs, reports and asks for both, and answers the second first.
const OVERLAPPING: &str = r#"
read a; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"0"}}}'
read a; echo '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
read a; read a
log() { echo '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"'$1'"}}'; }
progress() { echo '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"'$1'","progress":1}}'; }
ask() { echo '{"jsonrpc":"2.0","id":"'$1'","method":"sampling/createMessage","params":{}}'; }
answer() { echo '{"jsonrpc":"2.0","id":'$1',"result":{"content":[{"type":"text","text":"'$2'"}]}}'; }
log log-A; progress t2; log log-B; progress t3; ask ask-A; ask ask-B
read a; log late-B; answer 3 done-B
read a; log late-A; answer 2 done-A
log after
cat >/dev/null
"#;

fn call(id: u32, which: &str) -> String {
    let id_and_token = format!(
        r#""id":{id},"method":"tools/call","params":{{"_meta":{{"progressToken":"t{id}"}}"#
    );
    format!(
        r#"{{"jsonrpc":"2.0",{id_and_token},"name":"work","arguments":{{"which":"{which}"}}}}}}"#
    )
}

fn sampled(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":"{id}","result":{{"role":"assistant"}}}}"#)
}

/// What a line of the overlapping server is known by.
fn mark(line: &str) -> String {
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    let places = [
        "/params/data",
        "/params/progressToken",
        "/result/content/0/text",
        "/id",
        "/method",
    ];
    let mut found = places.iter().filter_map(|place| line.pointer(place));
    let mark = found.find_map(serde_json::Value::as_str);
    mark.unwrap().to_owned()
}

#[test]
fn of_calls_that_overlapped_each_plays_what_was_its_own_and_nothing_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.jsonl");
    let file = file.to_str().unwrap();
    let flags = ["--session-file", file, "--quiet", "--"];
    let mut talk = StdioProgram::start(&[&flags[..], &["sh", "-c", OVERLAPPING]].concat());
    let hear = |talk: &mut StdioProgram, lines: usize| -> Vec<String> {
        (0..lines).map(|_| mark(&talk.hear())).collect()
    };
    talk.say(INITIALIZE);
    talk.hear();
    talk.say(INITIALIZED);
    assert_eq!(hear(&mut talk, 1), ["notifications/tools/list_changed"]);
    talk.say(&call(2, "A"));
    talk.say(&call(3, "B"));
    assert_eq!(hear(&mut talk, 6).last().unwrap(), "ask-B");
    talk.say(&sampled("ask-B"));
    assert_eq!(hear(&mut talk, 2), ["late-B", "done-B"]);
    talk.say(&sampled("ask-A"));
    assert_eq!(hear(&mut talk, 3), ["late-A", "done-A", "after"]);
    assert_eq!(talk.end(), Some(0));

    let mut mock = StdioProgram::start(&["mock", file]);
    mock.say(INITIALIZE);
    mock.hear();
    mock.say(INITIALIZED);
    mock.say(&call(8, "B"));
    assert_eq!(hear(&mut mock, 3), ["log-B", "t8", "ask-B"]);
    // Meanwhile the other one, and the same once more: what waits for one does not wait for the other.
    mock.say(&call(9, "A"));
    let changed = "notifications/tools/list_changed";
    assert_eq!(hear(&mut mock, 4), [changed, "log-A", "t9", "ask-A"]);
    mock.say(&call(10, "B"));
    assert_eq!(hear(&mut mock, 3), ["log-B", "t10", "ask-B"]);
    mock.say(&sampled("ask-A"));
    assert_eq!(hear(&mut mock, 3), ["late-A", "done-A", "after"]);
    for _ in 0..2 {
        mock.say(&sampled("ask-B"));
        assert_eq!(hear(&mut mock, 2), ["late-B", "done-B"]);
    }
    assert_eq!(mock.end(), Some(0));
}

#[test]
fn d35_a_mock_serves_our_own_client() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.jsonl");
    let flags = ["--session-file", file.to_str().unwrap(), "--quiet", "--"];
    let server = [PROXY, "demo-server", "stdio"];
    let mut talk = StdioProgram::start(&[&flags[..], &server[..]].concat());
    let list = r#"{"jsonrpc":"2.0","id":4,"method":"tools/list"}"#;
    for (line, id) in [(INITIALIZE, 1), (INITIALIZED, 0), (list, 4), (ECHO, 2)] {
        talk.say(line);
        while id > 0 && !talk.hear().contains(&format!(r#""id":{id},"#)) {}
    }
    assert_eq!(talk.end(), Some(0));
    let mock = ["--", PROXY, "mock", file.to_str().unwrap()];
    let home = TestHome::new();
    let listed = home.run(&[&["tools", "list", "--json"], &mock[..]].concat());
    assert_eq!(listed.status.code(), Some(0), "{listed:?}");
    let tools: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert!(
        tools
            .as_array()
            .unwrap()
            .iter()
            .any(|tool| tool["name"] == "echo")
    );
    let called = home.run(&[&["call", "echo", "message=hi"], &mock[..]].concat());
    assert_eq!(called.stdout, b"hi\n", "{called:?}");
}
