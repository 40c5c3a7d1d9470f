//! An SDK's client over stdio, its proxy, and a viewer in another process: every request is answered, whatever the viewer
//! does, in both eras. A proxy that draws on its client's pipes instead answers none of them, which is why ours is looked at over a socket.

use std::collections::BTreeSet;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::client::Sdk;
use crate::endpoint::{EndpointAddress, EndpointKind, demo, everything};
use crate::fixtures::{self, PROXY};
use crate::piped_program::PipedProgram;
use crate::process::{finish, said};
use crate::texts;

/// What a client is told to do in one session: to connect, and then as many requests as are left.
const REQUESTS: usize = 21;

/// The revision that a client is told to speak, and with it the server: `server-everything` knows the legacy era only.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ClientEra {
    Legacy,
    Modern,
}

impl ClientEra {
    /// What the client's program is told: the server, and the revision.
    fn words(self) -> [&'static str; 2] {
        match self {
            ClientEra::Legacy => ["everything", "legacy"],
            ClientEra::Modern => ["demo", "2026-07-28"],
        }
    }

    fn server(self) -> Vec<String> {
        let endpoint = match self {
            ClientEra::Legacy => everything(EndpointKind::Stdio),
            ClientEra::Modern => demo(EndpointKind::Stdio),
        };
        match endpoint.address {
            EndpointAddress::Command(command) => command,
            EndpointAddress::Url(url) => panic!("a stdio server is a command, not {url}"),
        }
    }

    /// Whether the client first asks a server of its own which revisions it knows, and then starts another one. What the
    /// first one writes to stderr is not passed on.
    fn has_probe(self, sdk: Sdk) -> bool {
        self == ClientEra::Modern && matches!(sdk, Sdk::TypeScript)
    }

    /// Has every message held, but for those of a probe: nobody could know how its proxy is called.
    fn holding(self) -> &'static [&'static str] {
        match self {
            ClientEra::Legacy => &["--intercept"],
            ClientEra::Modern => &["--break", r#".method != "server/discover""#],
        }
    }

    /// How many of the requests are sent to connect.
    fn opening(self) -> usize {
        match self {
            ClientEra::Legacy => 1,
            ClientEra::Modern => 0,
        }
    }
}

/// An SDK's client that makes its next request when it is told to.
struct SteppedClient {
    program: PipedProgram,
    answered: usize,
}

impl SteppedClient {
    /// Starts a client of `server`. It is connecting, which is not yet waited for.
    fn start(sdk: Sdk, era: ClientEra, home: &Path, server: &[String]) -> SteppedClient {
        let (program, script) = match sdk {
            Sdk::TypeScript => (fixtures::node(), fixtures::peer("ts_asks.mjs")),
            Sdk::Python => (fixtures::python(), fixtures::peer("py_asks.py")),
        };
        let mut command = fixtures::command(&program, &[&script]);
        command
            .env("XDG_RUNTIME_DIR", home)
            .args(era.words())
            .args(server);
        let mut client = SteppedClient {
            program: PipedProgram::start(&mut command),
            answered: 0,
        };
        client.ask();
        client
    }

    /// Has the next request sent.
    fn ask(&mut self) {
        self.program.say("");
    }

    /// Waits for the answer to what was asked last.
    fn hear(&mut self) {
        let line = self.program.stdout.next().expect("the client goes on");
        let report: Value = serde_json::from_str(&line).expect("the client reports in JSON");
        self.answered += 1;
        assert_eq!(report["asked"], self.answered, "{line}");
        assert_eq!(report["ok"], true, "{line}");
    }

    /// Asks and hears until so many are answered.
    fn go_on_to(&mut self, answered: usize) {
        while self.answered < answered {
            self.ask();
            self.hear();
        }
    }

    fn end(mut self) {
        assert_eq!(self.answered, REQUESTS);
        assert_eq!(self.program.end(), Vec::<String>::new());
    }
}

/// A client with its proxy, in folders of their own.
struct SteppedSession {
    client: SteppedClient,
    sdk: Sdk,
    era: ClientEra,
    /// How viewers name the proxy.
    id: String,
    home: TempDir,
}

impl SteppedSession {
    /// Starts a client that starts the proxy with `flags`.
    fn start(sdk: Sdk, era: ClientEra, flags: &[&str]) -> SteppedSession {
        let home = tempfile::tempdir().expect("a temporary directory");
        let record = home.path().join("session.jsonl");
        let record = record.to_str().expect("a temporary name is UTF-8");
        let proxy = [&[PROXY, "proxy", "--session-file", record], flags, &["--"]].concat();
        let command = proxy.into_iter().map(String::from).chain(era.server());
        let client = SteppedClient::start(sdk, era, home.path(), &command.collect::<Vec<_>>());
        // The SDKs pass a server's stderr on, as applications do.
        let said = &client.program.stderr;
        let id = said.wait_for(texts::ATTACH_WITH);
        SteppedSession {
            client,
            sdk,
            era,
            id,
            home,
        }
    }

    /// `mcp-proxy` with these arguments in a process of its own.
    fn run(&self, arguments: &[&str]) -> PipedProgram {
        let mut command = fixtures::command(PROXY, arguments);
        PipedProgram::start(command.env("XDG_RUNTIME_DIR", self.home.path()))
    }

    /// Prints messages as they come.
    fn follow(&self) -> PipedProgram {
        self.run(&["inspect", &self.id, "--follow"])
    }

    /// A viewer that subscribes and then never reads.
    fn attach_deaf(&self) -> UnixStream {
        let path = self.home.path().join("mcp-proxy");
        let mut stream = UnixStream::connect(path.join(format!("{}.sock", self.id)))
            .expect("the proxy listens for viewers");
        stream
            .write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"subscribe\"}\n")
            .expect("the proxy reads what viewers write");
        stream
    }

    /// Ends the client, then counts in the record: every request, and an answer to each. Returns the number of messages.
    fn end(self) -> usize {
        self.client.end();
        let record = match self.era.has_probe(self.sdk) {
            true => "session.2.jsonl",
            false => "session.jsonl",
        };
        let rows = inspect(self.home.path().join(record));
        let ids = |direction: &str, kind: &str| -> BTreeSet<String> {
            let wanted = rows
                .iter()
                .filter(|row| row["direction"] == direction && row["kind"] == kind);
            wanted.map(|row| row["jsonrpc_id"].to_string()).collect()
        };
        let asked = ids("client_to_server", "request");
        let by_itself = match self.sdk {
            Sdk::TypeScript => 0,
            // After the first call it lists the tools, to check results against their schemas.
            Sdk::Python => 1,
        };
        let told = REQUESTS - 1 + self.era.opening();
        assert_eq!(asked.len(), told + by_itself, "{rows:#?}");
        assert_eq!(asked, ids("server_to_client", "response"));
        rows.len()
    }
}

/// The messages of a record, as `inspect --json` gives them.
fn inspect(record: PathBuf) -> Vec<Value> {
    let mut command = fixtures::command(PROXY, &["inspect", "--json"]);
    let output = finish(command.arg(record), Duration::from_secs(30));
    assert!(output.status.success(), "{}", said(&output));
    let rows = String::from_utf8(output.stdout).expect("JSON is UTF-8");
    rows.lines()
        .map(|line| serde_json::from_str(line).expect("each line is JSON"))
        .filter(|row: &Value| row["t"] == "msg")
        .collect()
}

/// Without a proxy: what the client and the server do by themselves.
fn direct(sdk: Sdk, era: ClientEra) {
    let home = tempfile::tempdir().expect("a temporary directory");
    let mut client = SteppedClient::start(sdk, era, home.path(), &era.server());
    client.hear();
    client.go_on_to(REQUESTS);
    client.end();
}

/// Watched by one that reads and one that does not.
fn watched(sdk: Sdk, era: ClientEra) {
    let mut session = SteppedSession::start(sdk, era, &[]);
    let mut viewer = session.follow();
    let deaf = session.attach_deaf();
    if era == ClientEra::Legacy {
        viewer.stdout.wait_for("► initialize");
    }
    session.client.hear();
    session.client.go_on_to(REQUESTS);
    let messages = session.end();
    // The viewer has seen the same, to the end.
    viewer
        .stdout
        .wait_for(&format!("{messages} messages; ended"));
    viewer.end();
    drop(deaf);
}

/// Each message held, and released by a script.
fn held(sdk: Sdk, era: ClientEra) {
    let mut session = SteppedSession::start(sdk, era, era.holding());
    let notices = session.run(&["ctl", &session.id, "subscribe"]);
    let forwarding = forward(notices, session.id.clone(), session.home.path().to_owned());
    session.client.hear();
    session.client.go_on_to(REQUESTS);
    let messages = session.end();
    let forwarded = forwarding.join().expect("the script ends with the proxy");
    assert_eq!(forwarded, messages, "every message was held once");
}

/// Forwards each held message, as a script does: `ctl subscribe` tells which are held, `ctl hold.resolve` decides. Returns
/// their number when the proxy ends.
fn forward(notices: PipedProgram, id: String, home: PathBuf) -> JoinHandle<usize> {
    thread::spawn(move || {
        let mut forwarded = BTreeSet::new();
        while let Some(line) = notices.stdout.next() {
            let notice: Value = serde_json::from_str(&line).expect("each line is JSON");
            // The first line is the result of the request, the others are notices.
            let held = notice
                .get("held")
                .or_else(|| notice.pointer("/params/held"));
            for hold in held.and_then(Value::as_array).into_iter().flatten() {
                if !forwarded.insert(hold.as_u64()) {
                    continue;
                }
                let hold = format!("hold={hold}");
                let words = ["ctl", &id, "hold.resolve", &hold, "action=forward"];
                let mut command = fixtures::command(PROXY, &words);
                let output = finish(
                    command.env("XDG_RUNTIME_DIR", &home),
                    Duration::from_secs(30),
                );
                assert!(output.status.success(), "{}", said(&output));
            }
        }
        forwarded.len()
    })
}

/// The viewer is killed while a request is on its way; another one comes later.
fn killed(sdk: Sdk, era: ClientEra) {
    let mut session = SteppedSession::start(sdk, era, &[]);
    let mut viewer = session.follow();
    session.client.hear();
    session.client.go_on_to(REQUESTS / 2);
    viewer.stdout.wait_for("↩ tools/call");
    session.client.ask();
    viewer.kill();
    session.client.hear();
    session.client.go_on_to(REQUESTS - 1);
    let mut second = session.follow();
    second.stdout.wait_for("↩ tools/call");
    session.client.go_on_to(REQUESTS);
    let messages = session.end();
    second
        .stdout
        .wait_for(&format!("{messages} messages; ended"));
    second.end();
}

#[test]
fn typescript_direct() {
    direct(Sdk::TypeScript, ClientEra::Legacy);
}

#[test]
fn python_direct() {
    direct(Sdk::Python, ClientEra::Legacy);
}

#[test]
fn typescript_watched() {
    watched(Sdk::TypeScript, ClientEra::Legacy);
}

#[test]
fn python_watched() {
    watched(Sdk::Python, ClientEra::Legacy);
}

#[test]
fn typescript_held_and_forwarded() {
    held(Sdk::TypeScript, ClientEra::Legacy);
}

#[test]
fn python_held_and_forwarded() {
    held(Sdk::Python, ClientEra::Legacy);
}

#[test]
fn typescript_viewer_killed() {
    killed(Sdk::TypeScript, ClientEra::Legacy);
}

#[test]
fn python_viewer_killed() {
    killed(Sdk::Python, ClientEra::Legacy);
}

#[test]
fn typescript_modern_direct() {
    direct(Sdk::TypeScript, ClientEra::Modern);
}

#[test]
fn python_modern_direct() {
    direct(Sdk::Python, ClientEra::Modern);
}

#[test]
fn typescript_modern_watched() {
    watched(Sdk::TypeScript, ClientEra::Modern);
}

#[test]
fn python_modern_watched() {
    watched(Sdk::Python, ClientEra::Modern);
}

#[test]
fn typescript_modern_held_and_forwarded() {
    held(Sdk::TypeScript, ClientEra::Modern);
}

#[test]
fn python_modern_held_and_forwarded() {
    held(Sdk::Python, ClientEra::Modern);
}

#[test]
fn typescript_modern_viewer_killed() {
    killed(Sdk::TypeScript, ClientEra::Modern);
}

#[test]
fn python_modern_viewer_killed() {
    killed(Sdk::Python, ClientEra::Modern);
}
