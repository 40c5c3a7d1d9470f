//! `kill -9` of a server: between two calls it costs no call, and during a call that call alone.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::Scope;

use serde_json::{Value, json};

use super::test_hub::TestHub;
use crate::control::test_home::until;

/// A server of shell commands that tells its process id in every answer. The first call with `hold` tells it in the pipe
/// `told` as well, and is answered once something comes through the pipe `go`. `look` is read-only, `write` is not.
const SERVER: &str = r#"
cd "$1"
say() { echo '{"jsonrpc":"2.0","id":'"$id"',"result":'"$1"'}'; }
while read -r line; do
  id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  case $line in
  *'"initialize"'*) say '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
  *'"tools/list"'*) say '{"tools":[{"name":"write","inputSchema":{"type":"object"}},{"name":"look","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}' ;;
  *'"tools/call"'*)
    case $line in *'"hold"'*) mkdir held 2>/dev/null && { echo $$ > told; read -r x < go; } ;; esac
    say '{"content":[{"type":"text","text":"'$$'"}]}' ;;
  esac
done
"#;

/// A folder for one such server, with its pipes.
pub(super) struct ServerFolder(tempfile::TempDir);

impl ServerFolder {
    pub(super) fn new() -> ServerFolder {
        let folder = ServerFolder(tempfile::tempdir().unwrap());
        for name in ["told", "go"] {
            let made = Command::new("mkfifo").arg(folder.path(name)).status();
            assert!(made.unwrap().success());
        }
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(super) fn entry(&self) -> Value {
        let folder = self.0.path().to_str().unwrap();
        json!({"command": "sh", "args": ["-c", SERVER, "server", folder]})
    }

    /// Waits until a call is held; the process that holds it.
    pub(super) fn told(&self) -> String {
        let told = std::fs::read_to_string(self.path("told")).unwrap();
        told.trim().to_owned()
    }

    /// Lets the held call be answered.
    pub(super) fn go(&self) {
        std::fs::write(self.path("go"), "go\n").unwrap();
    }
}

/// A hub in front of two such servers.
struct Pair {
    one: ServerFolder,
    other: ServerFolder,
    hub: TestHub,
}

impl Pair {
    fn start() -> Pair {
        let (one, other) = (ServerFolder::new(), ServerFolder::new());
        let config = json!({"mcpServers": {"one": one.entry(), "other": other.entry()}});
        let hub = TestHub::start(&config, &["--expose", "all"]);
        // What a tool says about itself is known once it is listed.
        hub.until("both servers are up", |hub| hub.tool_names().len() == 4);
        Pair { one, other, hub }
    }

    fn call(&self, tool: &str, arguments: &Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        self.hub.answer("tools/call", &params)
    }

    /// The process that answers a call.
    #[track_caller]
    fn process(&self, tool: &str) -> String {
        process_in(&self.call(tool, &json!({})))
    }

    /// A call that its server holds, from a client of its own.
    fn hold<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        tool: &'static str,
    ) -> std::thread::ScopedJoinHandle<'scope, Value> {
        scope.spawn(move || {
            let session = self.hub.program.session();
            let params = json!({"name": tool, "arguments": {"hold": true}});
            self.hub.answer_in(&session, "tools/call", &params)
        })
    }
}

#[track_caller]
fn process_in(answer: &Value) -> String {
    let text = answer["result"]["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("{answer}")).to_owned()
}

fn kill(process: &str) {
    let killed = Command::new("kill").args(["-KILL", process]).status();
    assert!(killed.unwrap().success());
}

fn is_running(process: &str) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(process).join("stat"));
    // The state is the letter after the command's name; `Z` has ended and waits for its parent.
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn between_two_calls_it_costs_no_call() {
    let pair = Pair::start();
    let undisturbed = pair.process("other_write");
    for _ in 0..5 {
        let before = pair.process("one_write");
        kill(&before);
        // The hub may not have noticed yet. What nobody has read can be sent again.
        until("the process is gone", || !is_running(&before));
        assert_ne!(pair.process("one_write"), before);
    }
    assert_eq!(pair.process("other_write"), undisturbed);
}

#[test]
fn a_call_of_a_read_only_tool_may_come_before_the_end_is_noticed() {
    let pair = Pair::start();
    for _ in 0..5 {
        let before = pair.process("one_look");
        kill(&before);
        until("the process is gone", || !is_running(&before));
        assert_ne!(pair.process("one_look"), before);
    }
}

#[test]
fn a_call_that_is_open_gets_an_error_and_no_other_call_does() {
    let pair = Pair::start();
    std::thread::scope(|scope| {
        let (lost, kept) = (
            pair.hold(scope, "one_write"),
            pair.hold(scope, "other_write"),
        );
        let (killed, undisturbed) = (pair.one.told(), pair.other.told());
        kill(&killed);
        let lost = lost.join().unwrap();
        assert_eq!(lost["error"]["code"], -31002, "{lost}");
        let text = lost["error"]["message"].as_str().unwrap();
        assert!(text.contains("one") && text.contains('9'), "{text}");
        assert_ne!(pair.process("one_write"), killed);
        pair.other.go();
        assert_eq!(process_in(&kept.join().unwrap()), undisturbed);
    });
}

#[test]
fn an_open_call_of_a_read_only_tool_is_sent_again() {
    let pair = Pair::start();
    std::thread::scope(|scope| {
        let call = pair.hold(scope, "one_look");
        let killed = pair.one.told();
        kill(&killed);
        assert_ne!(process_in(&call.join().unwrap()), killed);
    });
}
