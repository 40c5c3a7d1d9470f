//! Records with fixed ids and times, made the way the proxy makes them, and the binary run on them.

pub use mcp_proxy_session::testing::{SampleRecord, start};

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use mcp_proxy_session::testing::{event, header, post, response};
use mcp_proxy_session::{RecordEvent, SessionHeader};
use mcp_proxy_wire::{Direction, Origin};
use tempfile::TempDir;

/// A folder with a state directory and files of its own.
pub struct TestStore {
    pub folder: TempDir,
}

/// What a run of the binary gave.
pub struct CommandOutput {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl TestStore {
    pub fn new() -> TestStore {
        TestStore {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Where the binary looks for records.
    pub fn store(&self) -> PathBuf {
        self.path("state/mcp-proxy/sessions")
    }

    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-proxy"));
        command
            .args(words)
            .current_dir(self.folder.path())
            .env("XDG_STATE_HOME", self.path("state"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub fn run(&self, words: &[&str]) -> CommandOutput {
        let Output {
            status,
            stdout,
            stderr,
        } = self.command(words).output().unwrap();
        // Where the test's folder is differs from run to run.
        let here = self.folder.path().display().to_string();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().replace(&here, "[HERE]");
        CommandOutput {
            code: status.code(),
            stdout: text(stdout),
            stderr: text(stderr),
        }
    }

    /// Runs it, expects success and no words on stderr.
    pub fn print(&self, words: &[&str]) -> String {
        let ran = self.run(words);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{words:?}");
        ran.stdout
    }

    /// Runs it, expects a failure, and gives its text.
    pub fn fail(&self, words: &[&str], code: i32) -> String {
        let ran = self.run(words);
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (Some(code), ""),
            "{words:?}: {}",
            ran.stderr
        );
        ran.stderr
    }

    /// A record in the state directory, `number` hours after the first.
    pub fn stored(&self, number: u64) -> SampleRecord {
        let id = format!("019a888{number}-0000-7000-8000-00005e55000{number}");
        let started_at = start() + Duration::from_secs(3600 * number);
        let header = SessionHeader {
            id,
            started_at,
            ..header()
        };
        SampleRecord::at_place(
            mcp_proxy_session::RecordLocation::Folder(self.store()),
            &header,
        )
    }

    /// A record in `session.jsonl`.
    pub fn sample(&self) -> SampleRecord {
        SampleRecord::at_place(
            mcp_proxy_session::RecordLocation::File(self.path("session.jsonl")),
            &header(),
        )
    }
}

/// One of everything, hostile text included.
pub fn everything(sample: &mut SampleRecord) {
    let init = sample.client(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#);
    sample.answer(
        init,
        r#"{"result":{"capabilities":{}},"jsonrpc":"2.0","id":1}"#,
    );
    let call = sample.client(
        r#"{"jsonrpc":"2.0","id":"1","method":"tools/call","params":{"name":"read_file","arguments":{"n":12345678901234567890123,"n":1.0}}}"#,
    );
    let changed = r#"{"jsonrpc":"2.0","id":"1","method":"tools/call","params":{"name":"read_file","arguments":{}}}"#;
    sample.verdict("modify", call).raw(changed).write();
    sample.answer(call, "{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"error\":{\"code\":-32602,\"message\":\"no \\u001b[2J\u{202e}path\"}}");
    let failing = sample
        .client(r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"shout"}}"#);
    sample.answer(
        failing,
        r#"{"jsonrpc":"2.0","id":2,"result":{"content":[],"isError":true}}"#,
    );
    let dropped = sample
        .client(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    sample.verdict("drop", dropped).write();
    sample.stderr("warning: \x1b]0;title\x07");
    sample.io(&RecordEvent::Stray {
        connection: 1,
        direction: Direction::ServerToClient,
        bytes: b"hello",
    });
    sample.client("not \x1b[31mjson\nat all");
    sample.client(b"\xff\xfe");
    sample.client("{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 12345678901234567890123456789,\n  \"method\": \"pi\u{9b}ng\"\n}");
    over_http(sample);
    let again = sample
        .from_server(r#"{"jsonrpc":"2.0","id":2,"result":{}}"#)
        .answering(failing)
        .late()
        .duplicate()
        .write();
    sample.io(&RecordEvent::Undelivered {
        sequence: again,
        why: "the client is gone",
    });
    sample
        .from_server(r#"{"jsonrpc":"2.0","id":9,"error":{"code":-31002,"message":"exited"}}"#)
        .by(Origin::Proxy)
        .write();
    let big = format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/big\",\"params\":\"{}\"}}",
        "x".repeat(70_000)
    );
    sample.client(big);
    sample.exit(3, "exited");
    sample.io(&RecordEvent::Note {
        text: "the end is near",
    });
    sample.end();
}

fn over_http(sample: &mut SampleRecord) {
    let request = post(
        "/mcp",
        &[
            ("host", "127.0.0.1:8888"),
            ("authorization", "Bearer very-secret"),
        ],
    );
    let list = sample
        .from_client(r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#)
        .carried_by(&request)
        .on(2)
        .in_exchange(5)
        .write();
    sample
        .from_server(r#"{"jsonrpc":"2.0","id":7,"result":{"tools":[]}}"#)
        .carried_by(&event("e-1"))
        .on(2)
        .in_exchange(5)
        .answering(list)
        .write();
    let refused = response(404, &[("content-type", "application/json")]);
    sample
        .from_server(
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no session"}}"#,
        )
        .carried_by(&refused)
        .on(2)
        .in_exchange(6)
        .write();
}
