//! Redaction by the real program: peers get everything, the record has none of what was hidden.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use mcp_proxy_session::SessionRecord;

use crate::control::test_home::{TestHome, TestProxy};
use crate::programs::{ListeningProgram, PROXY, pipe};

const SECRET: &str = "S3CRET-VALUE";
const PIN: &str = "four-digits";

fn holds(bytes: &[u8], word: &str) -> bool {
    bytes
        .windows(word.len())
        .any(|part| part == word.as_bytes())
}

/// All bytes of all files, hidden ones too.
fn everything_in(folder: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            bytes.extend(everything_in(&path));
        } else {
            bytes.extend(std::fs::read(&path).unwrap());
        }
    }
    bytes
}

fn call(pad: usize) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"login","arguments":{{"password":"{SECRET}","x":"{}"}}}}}}"#,
        "y".repeat(pad)
    )
}

#[test]
fn the_peer_gets_everything_and_the_record_has_none_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.jsonl");
    let server = format!("echo 'logging in with {SECRET}' >&2; exec cat");
    let args = [
        "proxy",
        "--listen",
        "stdio",
        "--redact-key",
        "PASSWORD",
        "--redact-value",
        "S3CRET-[A-Z]+",
        "--output-format",
        "json",
        "--session-file",
        file.to_str().unwrap(),
        "--",
        "sh",
        "-c",
        &server,
    ];
    // Small, larger than a line holds, and cut off; a batch; text.
    let input = format!(
        "{}\n{}\n[{}]\n{{\"password\":\"{SECRET}\n",
        call(0),
        call(300_000),
        call(0)
    );
    let output = pipe(&args, input.as_bytes());
    assert!(
        output.stdout == input.as_bytes(),
        "what is forwarded is whole"
    );
    let bytes = everything_in(folder.path());
    assert!(!holds(&bytes, SECRET));
    assert!(holds(&bytes, "logging in with [redacted:"));
    let session = SessionRecord::open(&file).unwrap();
    let nonce = &session.redaction().unwrap().nonce;
    let messages: Vec<_> = session.messages(0).map(Result::unwrap).collect();
    assert_eq!(messages.len(), 8);
    assert!(messages.iter().all(|message| message.redacted == 1));
    let mark = format!("[redacted:{nonce}:1]");
    let large = messages
        .iter()
        .find(|message| message.len > 300_000)
        .unwrap();
    let shown = String::from_utf8(large.raw.to_bytes().into()).unwrap();
    assert_eq!(shown, call(300_000).replace(SECRET, &mark));
    assert_eq!(large.method.as_deref(), Some("tools/call"));
}

#[test]
fn over_http_too_large_bodies_and_all() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.jsonl");
    let demo = ListeningProgram::demo();
    let proxy = ListeningProgram::start(&[
        "proxy",
        "--listen",
        "http",
        "--listen-port",
        "0",
        "--redact-path",
        "$.params.arguments.message",
        "--redact-path",
        "$.result.content[*].text",
        "--session-file",
        file.to_str().unwrap(),
        &demo.url(),
    ]);
    let session = proxy.session();
    for pad in [0, 200_000] {
        let message = format!("{SECRET}{}", "z".repeat(pad));
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"echo","arguments":{{"message":"{message}"}}}}}}"#
        );
        let headers = [
            ("mcp-session-id", session.as_str()),
            ("mcp-protocol-version", "2025-11-25"),
        ];
        let answer = proxy.post(&headers, &body);
        assert!(answer.text().contains(&message), "{}", answer.status);
    }
    proxy.end("-TERM");
    let bytes = everything_in(folder.path());
    assert!(!holds(&bytes, SECRET));
    let session = SessionRecord::open(&file).unwrap();
    let hidden: Vec<u32> = session
        .messages(0)
        .map(|message| message.unwrap().redacted)
        .collect();
    assert_eq!(
        hidden.iter().filter(|count| **count == 1).count(),
        4,
        "{hidden:?}"
    );
}

/// Kills the proxy when a large message has passed; everything that is on the disk then.
fn killed_midway(redact: &[&str]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.jsonl");
    let mut child: Child = Command::new(PROXY)
        .args([
            "proxy",
            "--listen",
            "stdio",
            "--session-file",
            file.to_str().unwrap(),
        ])
        .args(redact)
        .args(["--", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let small = format!("{}\n", call(0));
    stdin.write_all(small.as_bytes()).unwrap();
    let large = format!("{}\n", call(150_000));
    stdin.write_all(large.as_bytes()).unwrap();
    stdin.flush().unwrap();
    // What has come back of it went through the proxy twice.
    let mut seen = vec![0; small.len() + large.len()];
    stdout.read_exact(&mut seen).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    everything_in(folder.path())
}

#[test]
fn a_killed_proxy_leaves_nothing_unredacted() {
    let plain = killed_midway(&[]);
    assert!(
        holds(&plain, SECRET) && plain.len() > 66_000,
        "the test tests nothing"
    );
    let redacted = killed_midway(&["--redact-key", "password"]);
    assert!(!holds(&redacted, SECRET));
    assert!(holds(&redacted, "[redacted:"));
}

#[test]
fn an_export_hides_on_its_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.jsonl");
    let path = file.to_str().unwrap();
    let args = [
        "proxy",
        "--listen",
        "stdio",
        "--session-file",
        path,
        "--",
        "cat",
    ];
    let input = format!("{}\n{}\n", call(0), call(100_000));
    pipe(&args, input.as_bytes());
    assert!(holds(&everything_in(folder.path()), SECRET));
    for format in ["json", "jsonl", "har", "markdown"] {
        let plain = pipe(&["export", path, "--output-format", format], b"");
        assert!(holds(&plain.stdout, SECRET), "{format}");
        assert!(!holds(&plain.stdout, "redacted"), "{format}");
        let args = [
            "export",
            path,
            "--output-format",
            format,
            "--redact-preset",
            "keys",
        ];
        let hidden = pipe(&args, b"");
        assert!(hidden.status.success());
        assert!(!holds(&hidden.stdout, SECRET), "{format}");
        assert!(holds(&hidden.stdout, "[redacted:"), "{format}");
    }
    let table = pipe(&["inspect", path], b"");
    assert!(!holds(&table.stdout, "redacted"));
}

#[test]
fn inspect_shows_less_and_finds_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.jsonl");
    let path = file.to_str().unwrap();
    let server = format!(
        r#"echo 'password={SECRET}' >&2; read -r line; printf '{{"jsonrpc":"2.0","id":1,"error":{{"code":-1,"message":"not {SECRET}"}}}}\n'"#
    );
    let flags = ["--listen", "stdio", "--session-file", path, "--"];
    let args = [&["proxy"][..], &flags, &["sh", "-c", &server]].concat();
    // Its name is in the index, in its own row and in that of its answer.
    let call = call(0).replace("login", SECRET);
    pipe(&args, format!("{call}\n").as_bytes());
    let hide = ["--redact-value", SECRET];
    for form in [
        &[][..],
        &["--json", "--all"],
        &["--raw"],
        &["--seq", "1.."],
        &["--all"],
    ] {
        let plain = pipe(&[&["inspect", path][..], form].concat(), b"");
        assert!(holds(&plain.stdout, SECRET), "{form:?}");
        let hidden = pipe(&[&["inspect", path][..], form, &hide].concat(), b"");
        assert!(hidden.status.success(), "{hidden:?}");
        let text = String::from_utf8_lossy(&hidden.stdout).into_owned();
        assert!(!text.contains(SECRET), "{form:?}: {text}");
        assert!(text.contains("redacted"), "{form:?}: {text}");
    }
    // A filter looks at the record as it is.
    let filter = format!(".params.name == {SECRET:?}");
    let found = pipe(
        &[&["inspect", path, &filter, "--raw"][..], &hide].concat(),
        b"",
    );
    assert!(holds(&found.stdout, "tools/call"), "{found:?}");
    let wrong = pipe(&["inspect", path, "--redact-value", "("], b"");
    assert_eq!(wrong.status.code(), Some(2), "{wrong:?}");
}

#[test]
fn a_redacted_message_is_played_again_once_its_value_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (first, second) = (path("s.jsonl"), path("again.jsonl"));
    let server = r#"while read -r line; do printf '{"jsonrpc":"2.0","id":1,"result":{}}\n'; done"#;
    let args = [
        "proxy",
        "--listen",
        "stdio",
        "--redact-key",
        "password",
        "--session-file",
        &first,
        "--",
        "sh",
        "-c",
        server,
    ];
    pipe(&args, format!("{}\n", call(0)).as_bytes());
    let replay = |more: &[&str]| {
        let mut args = vec!["replay", first.as_str(), "--session-file", second.as_str()];
        args.extend(more);
        args.extend(["--", "sh", "-c", server]);
        pipe(&args, b"")
    };
    let refused = replay(&[]);
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{text}");
    assert!(text.contains("--fill 1:1=…"), "{text}");
    assert!(!Path::new(&second).exists());
    let fill = format!("1:1={SECRET}");
    let played = replay(&["--fill", &fill]);
    let text = String::from_utf8_lossy(&played.stdout).into_owned();
    assert!(played.status.success(), "{text}");
    let session = SessionRecord::open(&second).unwrap();
    let said = session.message(0).unwrap();
    assert!(holds(
        said.raw.bytes().unwrap(),
        &format!("\"password\":\"{SECRET}\"")
    ));
    assert!(
        !session
            .header()
            .argv
            .iter()
            .any(|word| word.contains(SECRET))
    );
}

#[test]
fn the_server_is_shown_as_the_record_has_it() {
    let rules = ["--redact-value", "S3CRET-[A-Z]+", "--redact-key", "pin"];
    for more in [&[][..], &["--no-record"]] {
        let house = TestHome::new();
        let flags = [&rules[..], more].concat();
        // `cat` reads its input, the argument is only to be seen.
        let server = ["--", "sh", "-c", "exec cat", SECRET];
        let mut run = house.start_before(&flags, &server, TestProxy::wait_for_id);
        shown_nowhere(&house, "exec cat");
        assert_eq!(run.end(), Some(0));
        let url = format!("http://127.0.0.1:9/mcp?pin={PIN}&k={SECRET}");
        let listen = ["proxy", "--listen", "http", "--listen-port", "0"];
        let words = [&listen[..], &flags, &[&url]].concat();
        let _proxy = ListeningProgram::start_with(&words, &house.env());
        shown_nowhere(&house, "127.0.0.1:9/mcp?pin=");
    }
}

/// The only running proxy shows its server with what is known of it, and without the secret.
fn shown_nowhere(house: &TestHome, known: &str) {
    let hello = house.ctl(&["hello"]).to_string();
    let listed = String::from_utf8(house.run(&["ls", "--json"]).stdout).unwrap();
    for shown in [&hello, &listed] {
        assert!(shown.contains(known), "{shown}");
    }
    let descriptor = house.files().into_iter().find(|it| it.ends_with(".json"));
    let descriptor = house.sockets().join(descriptor.unwrap());
    let descriptor = std::fs::read_to_string(descriptor).unwrap();
    for shown in [&hello, &listed, &descriptor] {
        assert!(!shown.contains(SECRET) && !shown.contains(PIN), "{shown}");
    }
}

#[test]
fn secrets_in_flags_are_masked_in_what_the_server_prints() {
    let script = r#"printf 'token %s\n\377raw\n' "$TOKEN" >&2; cat"#;
    let words = ["proxy", "--listen", "stdio", "--no-record"];
    let server = ["--env", "TOKEN=s3cr3t-value", "--", "sh", "-c", script];
    let output = crate::programs::pipe(&[&words[..], &server].concat(), b"");
    let stderr = &output.stderr;
    let has = |text: &[u8]| stderr.windows(text.len()).any(|part| part == text);
    assert!(!has(b"s3cr3t-value"), "{output:?}");
    assert!(has(b"token ["), "{output:?}");
    assert!(has(b"\xffraw\n"), "{output:?}");
}
