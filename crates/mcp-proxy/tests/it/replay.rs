//! A record plays its clients, to the server it was made with and to others.

mod asked;

use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::control::test_home::until;
use crate::mock::record;
use crate::programs::{ListeningProgram, PROXY, pipe, record_lines};

/// A server that answers everything, and writes what it heard into the file `$HEARD`.
const LOGGING: &str = r#"n=0; while read -r line; do
    case "$line" in *\"id\"*) n=$((n+1)); echo "$line" >>"$HEARD"; echo "{\"jsonrpc\":\"2.0\",\"id\":$n,\"result\":{\"pid\":$$}}";; *) n=$((n+1));; esac
done"#;

fn replay(folder: &tempfile::TempDir, more: &[&str]) -> Output {
    let file = record(folder);
    let new = folder.path().join("new.jsonl");
    let flags = [
        "replay",
        file.to_str().unwrap(),
        "--session-file",
        new.to_str().unwrap(),
        "--quiet",
    ];
    pipe(&[&flags[..], more].concat(), b"")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The verdicts that `--json` prints, in the order of the alphabet.
#[track_caller]
fn verdicts(output: &Output) -> Vec<String> {
    let lines = record_lines(&text(output));
    let verdicts = lines.iter().map(|line| line["verdict"].as_str());
    let mut verdicts: Vec<_> = verdicts.map(|it| it.unwrap().to_owned()).collect();
    verdicts.sort();
    verdicts
}

#[test]
fn a_record_with_its_lines_in_another_order_is_played_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let file = record(&folder);
    let text = std::fs::read_to_string(&file).unwrap();
    let (head, mut lines): (Vec<&str>, Vec<&str>) = text
        .lines()
        .partition(|line| !line.contains(r#""t":"msg""#));
    lines.reverse();
    let mixed = [head, lines].concat().join("\n") + "\n";
    let file = folder.path().join("mixed.jsonl");
    std::fs::write(&file, mixed).unwrap();
    let flags = ["replay", file.to_str().unwrap(), "--no-record", "--quiet"];
    let server = ["--json", "--", PROXY, "demo-server", "stdio"];
    let played = pipe(&[&flags[..], &server].concat(), b"");
    assert_eq!(
        played.status.code().map(|code| code < 2),
        Some(true),
        "{played:?}"
    );
    assert!(!verdicts(&played).is_empty());
}

#[test]
fn the_same_server_answers_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let played = replay(&folder, &["--", PROXY, "demo-server", "stdio"]);
    assert_eq!(played.status.code(), Some(0), "{played:?}");
    let told = text(&played).replace(folder.path().to_str().unwrap(), "[HERE]");
    insta::assert_snapshot!("replay-same", told);
    let new = folder.path().join("new.jsonl");
    let shown = pipe(&["inspect", new.to_str().unwrap()], b"");
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(
        shown.contains("initialize") && shown.contains("echo"),
        "{shown}"
    );
    let title = shown.lines().next().unwrap();
    assert!(
        title.contains("  replay ") && title.contains("► stdio"),
        "{shown}"
    );
    let header = |name: &str| {
        let lines = std::fs::read_to_string(folder.path().join(name)).unwrap();
        serde_json::from_str::<serde_json::Value>(lines.lines().next().unwrap()).unwrap()
    };
    let (old, new) = (header("s.jsonl"), header("new.jsonl"));
    assert_eq!(
        new["client"],
        serde_json::json!({"name": "replay", "transport": "in_process"})
    );
    assert_eq!(new["metadata"]["replay_of"], old["id"]);
    // A replay can be replayed.
    let again = folder.path().join("new.jsonl");
    let flags = ["replay", again.to_str().unwrap(), "--no-record", "--quiet"];
    let server = ["--json", "--", PROXY, "demo-server", "stdio"];
    let played = pipe(&[&flags[..], &server].concat(), b"");
    assert_eq!(played.status.code(), Some(0), "{played:?}");
    assert_eq!(verdicts(&played), ["same"; 3]);
}

#[test]
fn over_http_too_and_side_by_side() {
    let server = ListeningProgram::demo();
    let folder = tempfile::tempdir().unwrap();
    let url = server.url();
    let played = replay(&folder, &["--json", "--concurrency", "4", &url]);
    // The fixtures' server offers more, so its instructions and capabilities may differ; the tools do not.
    let lines = record_lines(&text(&played));
    assert_eq!(lines.len(), 3, "{played:?}");
    for line in &lines {
        let may_differ = line["method"] == "initialize" && line["verdict"] == "different";
        assert!(may_differ || line["verdict"] == "same", "{played:?}");
    }
}

#[test]
fn what_differs_is_named_and_can_be_ignored() {
    let server = r#"while read line; do case "$line" in
        *initialize\"*) echo '{"jsonrpc":"2.0","id":1,"result":{}}';;
        *echo*) echo '{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"HO"}],"isError":false}}';;
        esac; done"#;
    let target = [
        "--answer-timeout",
        "300ms",
        "--filter",
        "echo",
        "--",
        "sh",
        "-c",
        server,
    ];
    let folder = tempfile::tempdir().unwrap();
    let played = replay(&folder, &target);
    let said = text(&played);
    assert_eq!(played.status.code(), Some(1), "{played:?}");
    assert!(
        said.contains(r#"$.result.content[0].text: "hi" != "HO""#),
        "{said}"
    );
    let folder = tempfile::tempdir().unwrap();
    let ignoring = [
        "--ignore",
        "$.result.content[*].text",
        "--ignore",
        "$.result.*",
    ];
    let played = replay(&folder, &[&ignoring[..], &target].concat());
    assert_eq!(played.status.code(), Some(0), "{played:?}");
    let folder = tempfile::tempdir().unwrap();
    let played = replay(&folder, &[&["--json"][..], &target].concat());
    let said = text(&played);
    let line = said.lines().find(|line| line.contains("echo")).unwrap();
    assert!(line.contains(r#""verdict":"different""#), "{said}");
}

#[test]
fn a_server_that_cannot_be_played_to_is_exit_code_2() {
    let folder = tempfile::tempdir().unwrap();
    let played = replay(&folder, &["--", "sh", "-c", "echo no >&2; exit 3"]);
    assert_eq!(played.status.code(), Some(2), "{played:?}");
    let folder = tempfile::tempdir().unwrap();
    let played = replay(&folder, &["--connection", "9", "--", "cat"]);
    let said = String::from_utf8_lossy(&played.stderr).into_owned();
    assert_eq!(played.status.code(), Some(2), "{said}");
    assert!(said.contains("c9") && said.contains("c1"), "{said}");
}

#[test]
fn a_speed_that_is_none_is_refused_before_anything_is_played() {
    for speed in ["0", "-1", "nan", "inf", "1e-300"] {
        let folder = tempfile::tempdir().unwrap();
        let played = replay(&folder, &["--speed", speed, "--", "cat"]);
        assert_eq!(played.status.code(), Some(2), "{played:?}");
        let said = String::from_utf8_lossy(&played.stderr).into_owned();
        assert!(said.contains("--speed"), "{said}");
        assert!(!folder.path().join("new.jsonl").exists());
    }
}

/// A record of two clients that speak in turn: the second begins before the first has said everything.
fn record_of_two(folder: &tempfile::TempDir) -> String {
    let file = folder.path().join("two.jsonl");
    let file = file.to_str().unwrap().to_owned();
    let listen = ["proxy", "--listen", "http", "--listen-port", "0"];
    let flags = ["--session-file", &file, "--", PROXY, "demo-server", "stdio"];
    let proxy = ListeningProgram::start(&[&listen[..], &flags].concat());
    let call = |session: &str, word: &str| {
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"echo","arguments":{{"message":"{word}"}}}}}}"#
        );
        let answer = proxy.post(&[("mcp-session-id", session)], &call);
        assert!(answer.text().contains(word), "{answer:?}");
    };
    let first = proxy.session();
    call(&first, "one");
    let second = proxy.session();
    call(&second, "two");
    call(&first, "three");
    proxy.end("-TERM");
    file
}

#[test]
fn all_connections_are_played_each_as_a_session_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let file = record_of_two(&folder);
    let new = folder.path().join("new.jsonl");
    let flags = ["replay", &file, "--session-file", new.to_str().unwrap()];
    let server = ["--quiet", "--json", "--", PROXY, "demo-server", "stdio"];
    let played = pipe(&[&flags[..], &server].concat(), b"");
    assert_eq!(played.status.code(), Some(0), "{played:?}");
    assert_eq!(verdicts(&played), ["same"; 5]);
    let shown = pipe(&["inspect", new.to_str().unwrap(), "--json"], b"");
    let shown = text(&shown);
    for word in ["one", "two", "three"] {
        let conn = if word == "two" { "c2" } else { "c1" };
        let row = shown.lines().find(|line| line.contains(word)).unwrap();
        assert!(row.contains(&format!(r#""conn":"{conn}""#)), "{row}");
    }
}

#[test]
fn they_speak_in_the_recorded_order_and_what_differs_is_told_for_each() {
    let folder = tempfile::tempdir().unwrap();
    let file = record_of_two(&folder);
    let heard = folder.path().join("heard");
    let variable = format!("HEARD={}", heard.display());
    let flags = [
        "replay",
        &file,
        "--no-record",
        "--quiet",
        "--env",
        &variable,
    ];
    let all = ["--json", "--", "sh", "-c", LOGGING];
    let played = pipe(&[&flags[..], &all].concat(), b"");
    assert_eq!(played.status.code(), Some(1), "{played:?}");
    assert_eq!(verdicts(&played), ["different"; 5]);
    let calls = record_lines(&text(&played));
    let calls = calls.iter().filter(|line| line["name"] == "echo");
    let on: Vec<_> = calls.map(|line| line["conn"].as_str().unwrap()).collect();
    assert!(on.contains(&"c1") && on.contains(&"c2"), "{played:?}");
    let heard_all = std::fs::read_to_string(&heard).unwrap();
    let word = |line: &str| {
        let words = ["initialize", "one", "two", "three"];
        words.into_iter().find(|word| line.contains(word))
    };
    let words: Vec<_> = heard_all.lines().filter_map(word).collect();
    assert_eq!(words, ["initialize", "one", "initialize", "two", "three"]);
    // One of them.
    std::fs::remove_file(&heard).unwrap();
    let chosen = ["--connection", "c2", "--json", "--", "sh", "-c", LOGGING];
    let said = text(&pipe(&[&flags[..], &chosen].concat(), b""));
    assert_eq!(said.lines().count(), 2, "{said}");
    assert!(
        said.lines().all(|line| line.contains(r#""conn":"c2""#)),
        "{said}"
    );
    // A connection of which the filter wants nothing is not played.
    let chosen = ["--filter", "three", "--json", "--", "sh", "-c", LOGGING];
    let said = text(&pipe(&[&flags[..], &chosen].concat(), b""));
    assert_eq!(said.lines().count(), 2, "{said}");
    assert!(
        said.lines().all(|line| line.contains(r#""conn":"c1""#)),
        "{said}"
    );
}

#[test]
fn a_session_that_breaks_off_does_not_keep_the_others_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let file = record_of_two(&folder);
    // Whoever is first here ends after the handshake; the others are whole servers.
    let lock = folder.path().join("first");
    let server = format!(
        "if mkdir {} 2>/dev/null; then read -r line; exit 3; fi; exec {PROXY} demo-server stdio",
        lock.display()
    );
    let flags = ["replay", &file, "--no-record", "--quiet"];
    let server = ["--json", "--", "sh", "-c", &server];
    let played = pipe(&[&flags[..], &server].concat(), b"");
    assert_eq!(played.status.code(), Some(1), "{played:?}");
    let same = record_lines(&text(&played));
    let same = same.iter().filter(|line| line["verdict"] == "same");
    let same: Vec<_> = same.map(|line| line["conn"].as_str().unwrap()).collect();
    assert_eq!(same, ["c2", "c2"], "{played:?}");
    let why = String::from_utf8_lossy(&played.stderr).into_owned();
    assert!(why.contains("c1"), "{why}");
}

#[test]
fn an_answer_that_the_record_does_not_have_is_called_new() {
    let folder = tempfile::tempdir().unwrap();
    let file = record(&folder);
    // The record as it is when the proxy was killed before the last answer.
    let whole = std::fs::read_to_string(&file).unwrap();
    let asked = whole
        .lines()
        .position(|line| line.contains(r#""jsonrpc_id":3"#));
    let torn: Vec<&str> = whole.lines().take(asked.unwrap() + 1).collect();
    let torn_file = folder.path().join("torn.jsonl");
    std::fs::write(&torn_file, torn.join("\n") + "\n").unwrap();
    let flags = ["replay", torn_file.to_str().unwrap(), "--no-record"];
    let server = ["--", PROXY, "demo-server", "stdio"];
    let played = pipe(&[&flags[..], &server].concat(), b"");
    assert_eq!(played.status.code(), Some(1), "{played:?}");
    insta::assert_snapshot!("replay-new", text(&played));
    let played = pipe(&[&flags[..], &["--json"], &server].concat(), b"");
    let said = text(&played);
    let last: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    assert_eq!(last["verdict"], "new", "{said}");
    assert_eq!(verdicts(&played), ["new", "same", "same"]);
}

/// Whatever stops it, what is known by then is told, and nothing stays behind.
#[test]
fn a_signal_ends_it_in_order() {
    let server = r#"read -r line; echo '{"jsonrpc":"2.0","id":1,"result":{}}'
        read -r line; read -r line; echo $$ >"$HEARD.new"; mv "$HEARD.new" "$HEARD"; exec sleep 1000"#;
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let folder = tempfile::tempdir().unwrap();
        let file = record_of_two(&folder);
        let (new, heard) = (folder.path().join("new.jsonl"), folder.path().join("heard"));
        let played = Command::new(PROXY)
            .args(["replay", &file, "--quiet", "--json", "--session-file"])
            .arg(&new)
            .args(["--env", &format!("HEARD={}", heard.display())])
            .args(["--", "sh", "-c", server])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        until("the second request is heard", || heard.exists());
        let kill = format!("kill -{signal} {}", played.id());
        let killed = Command::new("sh").args(["-c", &kill]).status().unwrap();
        assert!(killed.success());
        let played = played.wait_with_output().unwrap();
        assert_eq!(played.status.code(), Some(code), "{played:?}");
        let told = record_lines(&text(&played));
        let told: Vec<_> = told
            .iter()
            .map(|it| [&it["conn"], &it["method"], &it["verdict"]])
            .collect();
        let expected = [
            ["c1", "initialize", "different"],
            ["c1", "tools/call", "unanswered"],
        ];
        assert_eq!(told, expected, "{played:?}");
        let why = String::from_utf8_lossy(&played.stderr).into_owned();
        for named in [&format!("SIG{signal}"), "2", "5"] {
            assert!(why.contains(named), "{why}");
        }
        let record = std::fs::read_to_string(&new).unwrap();
        let last = record_lines(&record).pop().unwrap();
        assert_eq!(last["t"], "end", "{last}");
        let why = last["why"].as_str().unwrap();
        assert!(why.contains(&format!("SIG{signal}")), "{last}");
        let server = std::fs::read_to_string(&heard).unwrap();
        let server = std::path::Path::new("/proc").join(server.trim());
        assert!(!server.exists(), "the server goes on");
    }
}
