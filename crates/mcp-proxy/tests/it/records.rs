//! Records on the command line: reading, following, exporting, importing, listing and removing them.

mod files;
mod follow;
mod rules;
pub mod sample;
mod store;

use std::os::unix::fs::PermissionsExt as _;

use crate::programs::{INITIALIZE, ListeningProgram, pipe};
use mcp_proxy_session::{NewBody, PeerInfo};
use mcp_proxy_wire::{Origin, Transport};
use sample::*;

/// A place with `session.jsonl` in it.
fn place() -> TestStore {
    let place = TestStore::new();
    everything(&mut place.sample());
    place
}

#[test]
fn a_table_for_the_eye() {
    let place = place();
    insta::assert_snapshot!("table", place.print(&["inspect", "session.jsonl"]));
    insta::assert_snapshot!(
        "table-all",
        place.print(&["inspect", "session.jsonl", "--all"])
    );
    insta::assert_snapshot!(
        "table-words",
        place.print(&["inspect", "session.jsonl", "tools", "READ_file"])
    );
}

#[test]
fn one_connection_needs_no_column() {
    let place = TestStore::new();
    let mut sample = place.sample();
    sample.client(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    sample.from_client("").with_body(NewBody::Empty).write();
    sample.end();
    insta::assert_snapshot!(
        "table-one-connection",
        place.print(&["inspect", "session.jsonl"])
    );
}

#[test]
fn a_message_of_an_event_stream_is_shown_with_the_head_of_its_stream() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("s.jsonl");
    let record = record.to_str().unwrap();
    let demo = ListeningProgram::demo();
    let words = ["proxy", "--listen", "http", "--listen-port", "0"];
    let target = [
        "--transport",
        "streamable-http",
        "--target-url",
        &demo.url(),
    ];
    let words = [&words[..], &target, &["--session-file", record]].concat();
    let proxy = ListeningProgram::start(&words);
    let answer = proxy.post(&[], INITIALIZE);
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    let session = answer.header("mcp-session-id").unwrap().to_owned();
    proxy.end("-TERM");
    let shown = pipe(&["inspect", record, "--seq", "2"], b"").stdout;
    let shown = String::from_utf8(shown).unwrap();
    assert!(shown.contains("content-type: text/event-stream"), "{shown}");
    assert!(shown.contains(&session), "{shown}");
}

#[test]
fn causes_are_told_from_both_ends() {
    let place = TestStore::new();
    let mut sample = place.sample();
    let server = PeerInfo {
        name: Some("files".to_owned()),
        ..PeerInfo::new(Transport::Stdio)
    };
    let hub = PeerInfo::in_process("hub");
    sample.opened(1, &PeerInfo::new(Transport::Stdio), &hub);
    let call = sample.call(1, "proxy", "{}");
    sample.opened_by(call, 2, &hub, &server);
    for id in 0..25 {
        sample.on(2).call(id, "read_file", "{}");
    }
    let again = r#"{"jsonrpc":"2.0","method":"notifications/again"}"#;
    let again = sample.from_client(again).on(1).by(Origin::Replay);
    again.write();
    sample.end();
    let shown = |words: &[&str]| place.print(&[&["inspect", "session.jsonl"], words].concat());
    insta::assert_snapshot!(
        "causes",
        [
            shown(&["--seq", "1"]),
            shown(&["--seq", "2"]),
            shown(&["--all"])
        ]
        .join("\n")
    );
    let json = shown(&["--json", "--seq", "2"]);
    assert!(json.contains(r#""parent":1,"#), "{json}");
}

#[test]
fn everything_about_some_messages() {
    let place = place();
    let details = place.print(&["inspect", "session.jsonl", "--seq", "1..15"]);
    assert!(
        !details.contains("very-secret")
            && !details.contains('\u{1b}')
            && !details.contains('\u{202e}')
    );
    insta::assert_snapshot!("detail", details);
    let large = place.print(&["inspect", "session.jsonl", "--seq", "16"]);
    assert!(
        large.contains(" 70058 ") && large.contains(&"x".repeat(70_000)),
        "{}",
        &large[..400]
    );
    let few = place.print(&["inspect", "session.jsonl", "--seq", "1..9", "isError"]);
    assert!(few.starts_with("#6 ") && !few.contains("\n#"), "{few}");
}

#[test]
fn json_has_everything_and_keeps_tokens() {
    let place = place();
    let lines = place.print(&["inspect", "session.jsonl", "--json", "--seq", "..15"]);
    insta::assert_snapshot!("json", lines);
    for line in lines.lines() {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(value["t"], "msg");
    }
    assert!(lines.contains(r#""jsonrpc_id":12345678901234567890123456789,"#));
    let all = place.print(&["inspect", "session.jsonl", "--json", "--all", "--follow"]);
    assert!(
        all.contains("\"kind\":\"stderr\"") && all.contains("\"t\":\"act\""),
        "{all}"
    );
}

#[test]
fn raw_is_the_exact_bytes() {
    let place = place();
    let raw = |words: &[&str]| {
        place
            .command(&[&["inspect", "session.jsonl", "--raw"], words].concat())
            .output()
            .unwrap()
            .stdout
    };
    assert_eq!(
        raw(&["--seq", "1"]),
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{}}\n"
    );
    assert_eq!(
        raw(&["--seq", "8..9"]),
        b"not \x1b[31mjson\nat all\n\xff\xfe\n"
    );
    assert!(
        raw(&["--seq", "3"]).ends_with(b"\"arguments\":{}}}\n"),
        "what went on"
    );
    assert_eq!(raw(&["--seq", "16"]).len(), 70_059);
    assert_eq!(raw(&["no such words"]), b"");
}

#[test]
fn every_export() {
    let place = place();
    for format in ["json", "jsonl", "har", "markdown"] {
        let text = place.print(&["export", "session.jsonl", "--output-format", format]);
        assert!(!text.contains("very-secret"), "{format}");
        insta::assert_snapshot!(
            format!("export-{format}"),
            text.replace(&"x".repeat(1000), "…")
        );
        let to_file = place.run(&[
            "export",
            "session.jsonl",
            "--output-format",
            format,
            "--output",
            &format!("x.{format}"),
        ]);
        assert_eq!((to_file.code, to_file.stdout.as_str()), (Some(0), ""));
        let told = &to_file.stderr;
        assert!(told.contains(&format!(" x.{format} ")), "{told}");
        assert_eq!(
            std::fs::read_to_string(place.path(&format!("x.{format}"))).unwrap(),
            text
        );
    }
    // The name of the file can say it, too.
    for (file, format) in [("y.har", "har"), ("y.MD", "markdown"), ("y", "json")] {
        place.run(&["export", "session.jsonl", "--output", file]);
        let text = std::fs::read_to_string(place.path(file)).unwrap();
        let same = std::fs::read_to_string(place.path(&format!("x.{format}"))).unwrap();
        assert_eq!(text, same, "{file}");
    }
    // D20: no other ending is taken for json.
    let unknown = place.fail(&["export", "session.jsonl", "-o", "x.pdf"], 2);
    for ending in [".json", ".jsonl", ".har", ".md"] {
        assert!(unknown.contains(ending), "{unknown}");
    }
    assert!(!place.path("x.pdf").exists());
    let before = std::fs::read(place.path("x.json")).unwrap();
    let refused = place.fail(&["export", "session.jsonl", "-o", "x.json"], 1);
    assert!(
        refused.contains("x.json") && refused.contains("--force"),
        "{refused}"
    );
    assert_eq!(std::fs::read(place.path("x.json")).unwrap(), before);
    assert_eq!(
        place
            .run(&["export", "session.jsonl", "-o", "x.json", "--force"])
            .code,
        Some(0)
    );
    let record = std::fs::read(place.path("session.jsonl")).unwrap();
    let onto_itself = ["export", "session.jsonl", "-o", "session.jsonl", "--force"];
    let itself = place.fail(&onto_itself, 1);
    assert!(itself.contains("session.jsonl"), "{itself}");
    assert_eq!(std::fs::read(place.path("session.jsonl")).unwrap(), record);
    insta::assert_snapshot!("export-refused", refused + &itself);
}

#[test]
fn an_import_gives_the_same_session() {
    let place = place();
    let json = place.print(&["export", "session.jsonl"]);
    std::fs::write(place.path("s.json"), &json).unwrap();
    let first = place.run(&["import", "s.json", "--session-file", "new.jsonl"]);
    assert_eq!(
        (first.code, first.stdout.as_str()),
        (Some(0), "[HERE]/new.jsonl\n")
    );
    let told = &first.stderr;
    assert!(
        told.contains("mcp-proxy inspect [HERE]/new.jsonl"),
        "{told}"
    );
    let again = place.print(&["export", "new.jsonl"]);
    let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let (mut again, json) = (value(&again), value(&json));
    assert_ne!(again["id"], json["id"]);
    again["id"] = json["id"].clone();
    let from = again["metadata"].as_object_mut().unwrap();
    assert_eq!(from.remove("imported_from").as_ref(), Some(&json["id"]));
    assert_eq!(again, json);
    let second = place.run(&["import", "s.json", "--session-file", "new.jsonl"]);
    assert_eq!(second.stdout, "[HERE]/new.2.jsonl\n");
    assert!(
        second.stderr.contains("[HERE]/new.2.jsonl"),
        "{}",
        second.stderr
    );
    assert!(
        place
            .run(&["import", "s.json"])
            .stdout
            .starts_with("[HERE]/state/mcp-proxy/sessions/20261115T180000Z-")
    );
    assert!(
        place
            .print(&["inspect", "LAST", "read_file"])
            .contains("tools/call read_file")
    );
}

#[test]
fn mistakes_are_named() {
    let place = place();
    std::fs::write(place.path("notes.txt"), "just text\n").unwrap();
    std::fs::write(place.path("empty.jsonl"), "").unwrap();
    std::fs::write(
        place.path("new.jsonl"),
        "{\"t\":\"session\",\"format\":99}\n",
    )
    .unwrap();
    std::fs::write(place.path("bad.json"), "{\"messages\":[{\"direction\":\"\\u001b[2J\",\"raw\":1}],\"started_at\":\"2026-11-15T18:00:00Z\"}").unwrap();
    let mistakes: &[(&[&str], i32)] = &[
        (&["inspect", "no/such.jsonl"], 1),
        (&["inspect", "missing.jsonl"], 1),
        (&["inspect", "019a"], 1),
        (&["inspect", "LAST"], 1),
        (&["inspect", "."], 1),
        (&["inspect", "notes.txt"], 1),
        (&["inspect", "notes.txt", ".method =="], 2),
        (&["inspect", "notes.txt", "/a(/"], 2),
        (&["export", "notes.txt", "--filter", "(foo)"], 2),
        (&["inspect", "empty.jsonl"], 1),
        (&["inspect", "new.jsonl"], 1),
        (&["inspect", "session.jsonl", "--seq", "99"], 1),
        (&["inspect", "session.jsonl", "--seq", "9..7"], 2),
        (&["export", "session.jsonl", "--output-format", "xml"], 2),
        (
            &["export", "session.jsonl", "--output", "no/such/folder.json"],
            1,
        ),
        (&["export", "notes.txt"], 1),
        (&["import", "missing.json"], 1),
        (&["import", "notes.txt", "--session-file", "a.jsonl"], 1),
        (&["import", "bad.json", "--session-file", "b.jsonl"], 1),
        (&["prune"], 2),
        (&["prune", "--older-than", "soon"], 2),
        (&["prune", "zz"], 1),
    ];
    let mut told = String::new();
    for (words, code) in mistakes {
        let text = place.fail(words, *code);
        assert!(!text.contains('\u{1b}'), "{words:?}");
        told.push_str(&format!("$ mcp-proxy {}\n{text}\n", words.join(" ")));
    }
    insta::assert_snapshot!("mistakes", told);
}

#[test]
fn damage_is_reported_and_the_rest_shown() {
    let place = place();
    let text = std::fs::read_to_string(place.path("session.jsonl")).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.insert(2, "garbage");
    let torn = lines.join("\n");
    std::fs::write(place.path("torn.jsonl"), &torn[..torn.len() - 10]).unwrap();
    let ran = place.run(&["inspect", "torn.jsonl"]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.stdout.contains("initialize"), "{}", ran.stdout);
    let last = ran.stdout.lines().last().unwrap_or_default();
    insta::assert_snapshot!("damage", format!("{}{last}", ran.stderr));
    let exported = place.run(&["export", "torn.jsonl", "--output-format", "jsonl"]);
    let rest = ran.stderr.split_inclusive('\n').next_back().unwrap();
    assert_eq!((exported.code, exported.stderr.as_str()), (Some(0), rest));
}

#[test]
fn a_torn_last_line_is_cut_off_by_whoever_opens_the_record_and_kept() {
    let place = place();
    let whole = std::fs::read(place.path("session.jsonl")).unwrap();
    let torn = &whole[..whole.len() - 10];
    let last = torn.iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    for (number, words) in [
        &["inspect", "torn.jsonl"][..],
        &["export", "torn.jsonl", "--output-format", "jsonl"],
        &["mock", "torn.jsonl", "--no-record", "--listen", "stdio"],
    ]
    .iter()
    .enumerate()
    {
        std::fs::write(place.path("torn.jsonl"), torn).unwrap();
        let ran = place.run(words);
        let kept = match number {
            0 => "torn.jsonl.torn".to_owned(),
            _ => format!("torn.jsonl.torn.{}", number + 1),
        };
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let told = ran.stderr.lines().next().unwrap();
        let cut = format!(" {} ", torn.len() - last);
        assert!(told.contains(&cut) && told.ends_with(&kept), "{told}");
        assert_eq!(
            std::fs::read(place.path("torn.jsonl")).unwrap(),
            &whole[..last]
        );
        assert_eq!(std::fs::read(place.path(&kept)).unwrap(), &torn[last..]);
    }
    place.print(&["inspect", "torn.jsonl"]);
}

#[test]
fn a_torn_record_that_may_not_be_written_to_is_only_reported() {
    let place = place();
    let whole = std::fs::read(place.path("session.jsonl")).unwrap();
    let torn = &whole[..whole.len() - 10];
    let path = place.path("torn.jsonl");
    std::fs::write(&path, torn).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o400)).unwrap();
    let ran = place.run(&["inspect", "torn.jsonl"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("torn.jsonl"), "{}", ran.stderr);
    assert_eq!(std::fs::read(&path).unwrap(), torn);
    assert!(!place.path("torn.jsonl.torn").exists());
}

#[test]
fn words_are_found_however_their_letters_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.jsonl");
    let file = file.to_str().unwrap();
    // A notification and a large one, as Python's json.dumps writes them.
    let small =
        r#"{"jsonrpc":"2.0","method":"n/small","params":{"text":"Gr\u00fc\u00dfe \ud83d\ude00"}}"#;
    let large = small.replace("small", "large");
    let large = large.replace(" \\ud83d", &format!("{} \\ud83d", "x".repeat(200_000)));
    let input = format!("{small}\n{large}\n");
    let flags = ["proxy", "--quiet", "--session-file", file, "--", "cat"];
    pipe(&flags, input.as_bytes());
    for word in ["grüße", "😀", r"\u00fc", "Gr\\u00FC"] {
        let found = pipe(&["inspect", file, word], b"");
        let found = String::from_utf8(found.stdout).unwrap();
        assert!(
            found.contains("n/small") && found.contains("n/large"),
            "{word}: {found}"
        );
    }
    let found = pipe(&["inspect", file, "größe"], b"");
    let found = String::from_utf8(found.stdout).unwrap();
    assert!(!found.contains("n/"), "{found}");
}
