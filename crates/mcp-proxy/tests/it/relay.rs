//! `relay` over real sockets.

mod audit;
mod direct;
mod hostile;
mod key_sets;
mod large_messages;
mod pairing;
mod peers;
mod record;
mod rules;

use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Message, WebSocket};
use tokio_tungstenite::tungstenite::{self, client::client_with_config};

use crate::control::test_home::until;
use crate::programs::{ListeningProgram, PROXY};

/// A running relay with its own secret.
struct TestRelay {
    program: ListeningProgram,
    folder: TempDir,
}

/// A peer of the relay.
struct Peer {
    socket: WebSocket<TcpStream>,
}

impl TestRelay {
    fn start(more: &[&str]) -> TestRelay {
        let folder = tempfile::tempdir().unwrap();
        let secret = folder.path().join("secret");
        let made = Command::new(PROXY)
            .args(["relay", "init", "--secret-file"])
            .arg(&secret)
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        let revoked = folder.path().join("revoked");
        let (secret, revoked) = (secret.to_str().unwrap(), revoked.to_str().unwrap());
        let mut args = vec!["--jwt-secret-file", secret, "--revoked-file", revoked];
        args.extend(more);
        TestRelay::start_in(&args, folder)
    }

    /// One whose flags say what tokens are checked with, if they are.
    fn start_without_keys(flags: &[&str]) -> TestRelay {
        TestRelay::start_in(flags, tempfile::tempdir().unwrap())
    }

    fn start_in(flags: &[&str], folder: TempDir) -> TestRelay {
        let mut args = vec!["relay", "--listen-port", "0", "--headless"];
        args.extend(flags);
        std::fs::create_dir(folder.path().join("runtime")).unwrap();
        let folders = [
            ("XDG_STATE_HOME", folder.path().join("state")),
            ("XDG_CONFIG_HOME", folder.path().join("config")),
            ("XDG_RUNTIME_DIR", folder.path().join("runtime")),
        ];
        let program = ListeningProgram::start_with(&args, &folders);
        TestRelay { program, folder }
    }

    /// What `/healthz` says.
    fn health(&self) -> Value {
        let answer = crate::programs::request(&self.program.address, "GET", "/healthz", &[], b"");
        serde_json::from_str(&answer.text()).unwrap()
    }

    /// Waits for something that the relay counts.
    fn until_counted(&self, name: &str, count: u64) {
        until(name, || self.health()[name] == json!(count));
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A token of a user, made by the program itself.
    fn token(&self, user: &str) -> String {
        let made = Command::new(PROXY)
            .args(["token", "issue", "--user", user, "--secret-file"])
            .arg(self.file("secret"))
            .arg("--revoked-file")
            .arg(self.file("revoked"))
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        String::from_utf8(made.stdout).unwrap().trim().to_owned()
    }

    /// Revokes a token, or those of a user.
    fn revoke(&self, what: &str) {
        let revoked = Command::new(PROXY)
            .args(["token", "revoke", what, "--revoked-file"])
            .arg(self.file("revoked"))
            .status();
        assert!(revoked.unwrap().success());
    }

    fn signal(&self, name: &str) {
        let pid = self.program.pid().to_string();
        let sent = Command::new("kill").args([name, &pid]).status();
        assert!(sent.unwrap().success());
    }

    fn open(&self, path: &str) -> Peer {
        Peer {
            socket: self.try_open(path, &[]).unwrap(),
        }
    }

    fn try_open(
        &self,
        path: &str,
        headers: &[(&'static str, &str)],
    ) -> Result<WebSocket<TcpStream>, Option<u16>> {
        let url = format!("ws://{}{path}", self.program.address);
        let mut request = url.into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        let stream = TcpStream::connect(&self.program.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let config = WebSocketConfig::default()
            .max_frame_size(None)
            .max_message_size(None);
        match client_with_config(request, stream, Some(config)) {
            Ok((socket, _)) => Ok(socket),
            Err(tungstenite::HandshakeError::Failure(tungstenite::Error::Http(answer))) => {
                Err(Some(answer.status().as_u16()))
            }
            Err(_) => Err(None),
        }
    }

    /// An extension that has joined.
    fn extension(&self, user: &str, client_id: &str) -> Peer {
        let mut peer = self.open("/extension");
        let asked = peer.hear();
        assert_eq!(asked["method"], "authenticate");
        peer.say(&json!({"id": asked["id"], "result": {
            "name": "Chrome 141", "access_token": self.token(user), "client_id": client_id}}));
        assert_eq!(peer.hear_method("authenticated")["params"]["user_id"], user);
        peer
    }

    /// A client that has joined.
    fn client(&self, user: &str, client_id: &str) -> Peer {
        let mut peer = self.open("/mcp");
        let token = self.token(user);
        let params = json!({"accessToken": token, "client_id": client_id});
        let answer = peer.ask(1, "mcp_handshake", &params);
        assert_eq!(answer["result"]["authenticated"], true, "{answer}");
        peer
    }
}

impl Peer {
    fn say(&mut self, message: &Value) {
        self.say_text(&message.to_string());
    }

    fn say_text(&mut self, text: &str) {
        self.socket.send(Message::text(text)).unwrap();
    }

    /// The next message. Pings are answered by the library.
    fn hear(&mut self) -> Value {
        loop {
            match self.socket.read().unwrap() {
                Message::Text(text) => return serde_json::from_str(&text).unwrap(),
                Message::Ping(_) => {}
                other => panic!("heard {other:?}"),
            }
        }
    }

    /// The next message that is not a notice about connections.
    fn hear_command(&mut self) -> Value {
        loop {
            let heard = self.hear();
            let notice = heard["method"].as_str().unwrap_or_default();
            if !["status", "connection_status"].contains(&notice) {
                return heard;
            }
        }
    }

    fn hear_method(&mut self, method: &str) -> Value {
        loop {
            let heard = self.hear();
            if heard["method"] == method {
                return heard;
            }
        }
    }

    fn ask(&mut self, id: u64, method: &str, params: &Value) -> Value {
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        self.hear_answer(&json!(id))
    }

    fn hear_answer(&mut self, id: &Value) -> Value {
        loop {
            let heard = self.hear();
            if heard["id"] == *id && heard.get("method").is_none() {
                return heard;
            }
        }
    }

    /// The close frame, after whatever else comes.
    fn hear_close(&mut self) -> CloseFrame {
        loop {
            match self.socket.read() {
                Ok(Message::Close(Some(frame))) => return frame,
                Ok(_) => {}
                Err(error) => panic!("no close frame: {error}"),
            }
        }
    }

    fn connect(&mut self, id: u64, extension: &str) -> String {
        let answer = self.ask(id, "connect", &json!({"extension_id": extension}));
        let connection = answer["result"]["connection_id"].as_str();
        connection.unwrap_or_else(|| panic!("{answer}")).to_owned()
    }
}

#[test]
fn a_command_crosses_and_its_answer_comes_back() {
    let relay = TestRelay::start(&["--no-record"]);
    let mut extension = relay.extension("ada", "chrome-1");
    let mut client = relay.client("ada", "laptop");
    let listed = client.ask(2, "list_extensions", &json!({}));
    assert_eq!(listed["result"]["extensions"][0]["id"], "ext-chrome-1");
    let connection = client.connect(3, "ext-chrome-1");
    client.say(&json!({"id": "a", "method": "createTab", "params": {"url": "https://a.test"}}));
    let asked = extension.hear_command();
    assert_eq!(asked["id"], format!("{connection}:a"));
    extension.say(&json!({"id": asked["id"], "result": {"tab": {"id": 7}}}));
    assert_eq!(client.hear_answer(&json!("a"))["result"]["tab"]["id"], 7);
    let health = relay.health();
    assert_eq!(
        (&health["users"], &health["sockets"], &health["commands"]),
        (&json!(1), &json!(2), &json!(1))
    );
}

#[test]
fn the_address_is_that_of_a_web_socket() {
    let relay = TestRelay::start(&["--no-record"]);
    assert_eq!(relay.program.scheme, "ws");
}

#[test]
fn one_path_serves_both_roles() {
    let relay = TestRelay::start(&["--no-record"]);
    let mut extension = relay.open("/");
    let asked = extension.hear();
    extension.say(&json!({"id": asked["id"], "result": {
        "name": "Chrome", "accessToken": relay.token("ada"), "client_id": "x"}}));
    extension.hear_method("authenticated");
    let mut client = relay.open("/");
    assert_eq!(client.hear()["method"], "authenticate");
    let params = json!({"access_token": relay.token("ada")});
    assert_eq!(
        client.ask(1, "mcp_handshake", &params)["result"]["authenticated"],
        true
    );
    client.connect(2, "ext-x");
}

#[test]
fn a_large_answer_crosses_whole() {
    let relay = TestRelay::start(&["--no-record"]);
    let mut extension = relay.extension("ada", "c");
    let mut client = relay.client("ada", "l");
    client.connect(2, "ext-c");
    client.say(&json!({"id": 3, "method": "getTabs"}));
    let asked = extension.hear_command();
    let picture = "x".repeat(20 << 20);
    extension.say(&json!({"id": asked["id"], "result": {"data": picture}}));
    let answer = client.hear_answer(&json!(3));
    assert_eq!(
        answer["result"]["data"].as_str().map(str::len),
        Some(20 << 20)
    );
}

#[test]
fn a_stop_is_announced_before_the_sockets_close() {
    let relay = TestRelay::start(&["--no-record"]);
    let mut extension = relay.extension("ada", "c");
    let mut client = relay.client("ada", "l");
    let TestRelay {
        program,
        folder: _folder,
    } = relay;
    let ending = std::thread::spawn(move || program.end("-TERM"));
    extension.hear_method("serverShuttingDown");
    assert_eq!(u16::from(extension.hear_close().code), 1012);
    assert_eq!(u16::from(client.hear_close().code), 1012);
    let (code, _) = ending.join().unwrap();
    assert_eq!(code, Some(143));
}

#[test]
fn a_relay_that_stops_admits_nobody() {
    let relay = TestRelay::start(&["--no-record"]);
    // It hears the news, but does not agree to the close: the relay waits for it.
    let mut extension = relay.extension("ada", "c");
    relay.signal("-TERM");
    extension.hear_method("serverShuttingDown");
    let mut early = relay.open("/extension");
    assert_eq!(u16::from(early.hear_close().code), 1012);
}

#[test]
fn a_relay_takes_as_many_open_files_as_it_may() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    let made = Command::new(PROXY)
        .args(["relay", "init", "--secret-file"])
        .arg(&secret)
        .status();
    assert!(made.unwrap().success());
    let mut relay = Command::new("sh")
        .args(["-c", r#"ulimit -Sn 300; exec "$0" "$@""#, PROXY])
        .args([
            "relay",
            "--listen-port",
            "0",
            "--headless",
            "--no-record",
            "--jwt-secret-file",
        ])
        .arg(&secret)
        .arg("--revoked-file")
        .arg(folder.path().join("revoked"))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut stderr = BufReader::new(relay.stderr.take().unwrap());
    stderr.read_line(&mut line).unwrap();
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", relay.id())).unwrap();
    relay.kill().unwrap();
    relay.wait().unwrap();
    let files = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let [.., soft, hard, _] = files.unwrap().split_whitespace().collect::<Vec<_>>()[..] else {
        panic!("{limits}");
    };
    assert_eq!(soft, hard, "{line}");
}

#[test]
fn a_revoked_token_closes_its_sockets() {
    let relay = TestRelay::start(&["--no-record"]);
    let mut extension = relay.extension("ada", "c");
    let mut other = relay.client("bob", "l");
    relay.revoke("user:ada");
    assert_eq!(u16::from(extension.hear_close().code), 4401);
    assert!(other.ask(2, "list_extensions", &json!({}))["result"].is_object());
}

#[test]
fn ctl_stats_shows_what_was_counted() {
    let relay = TestRelay::start(&["--no-record"]);
    let mut extension = relay.extension("ada", "c");
    let mut client = relay.client("ada", "l");
    client.connect(2, "ext-c");
    client.say(&json!({"id": 3, "method": "getTabs"}));
    let asked = extension.hear_command();
    extension.say(&json!({"id": asked["id"], "result": {"tabs": []}}));
    client.hear_answer(&json!(3));
    let refused = client.ask(4, "connect", &json!({"extension_id": "ext-c"}));
    assert_eq!(refused["error"]["code"], -32001);
    let mut stranger = relay.open("/mcp");
    stranger.ask(1, "mcp_handshake", &json!({"accessToken": "nonsense"}));
    assert_eq!(u16::from(stranger.hear_close().code), 4401);
    let asked = Command::new(PROXY)
        .args(["ctl", "stats"])
        .env("XDG_RUNTIME_DIR", relay.file("runtime"))
        .env("TMPDIR", relay.file("runtime"))
        .output()
        .unwrap();
    let stats: Value = serde_json::from_slice(&asked.stdout).unwrap();
    let mut expected = json!({
        "users": 1, "sockets": 2, "extensions": 1, "clients": 1, "sockets_opened": 3,
        "commands": 1, "answers": 1, "refused": 1, "denied": 0, "rate_limited": 0, "queue_full": 0,
        "too_large": 0, "connection_limit": 0, "socket_limit": 0, "admission_limit": 0,
        "refused_tokens": 1, "refused_pairings": 0, "timeouts": 0, "lost": 0, "late_answers": 0,
        "ignored": 0, "slow_readers": 0, "silent_peers": 0, "oversized": 0,
    });
    assert_eq!(stats["relay"], expected, "{asked:?}");
    for name in ["extensions", "clients"] {
        expected.as_object_mut().unwrap().remove(name);
    }
    expected["status"] = json!("ok");
    assert_eq!(relay.health(), expected);
}

#[test]
fn a_second_init_keeps_the_secret_and_says_again_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    let init = || {
        let mut command = Command::new(PROXY);
        command.args(["relay", "init", "--secret-file"]);
        command.arg(&secret).output().unwrap()
    };
    let first = init();
    let made = std::fs::read(&secret).unwrap();
    let second = init();
    assert_eq!(second.status.code(), Some(0));
    assert_eq!(std::fs::read(&secret).unwrap(), made);
    let steps = |output: &std::process::Output| {
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        let (told, steps) = text.split_once("\n\n").unwrap();
        assert!(told.contains(secret.to_str().unwrap()), "{told}");
        steps.to_owned()
    };
    assert_eq!(steps(&first), steps(&second));
    std::fs::write(&secret, "short").unwrap();
    assert_eq!(init().status.code(), Some(1));
}
