//! The relay with WebSocket peers in other languages, and with a real browser.

mod browser;
mod client;
mod in_browser;

use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::fixtures::{self, PROXY};
use crate::process::{RunningProgram, finish, said};
use crate::texts;

const LIMIT: Duration = Duration::from_secs(60);

/// A relay's secret, and the tokens made with it.
struct RelayKeys {
    folder: TempDir,
}

impl RelayKeys {
    fn new() -> RelayKeys {
        let folder = tempfile::tempdir().unwrap();
        let keys = RelayKeys { folder };
        keys.run(&["relay", "init", "--secret-file", &keys.file("secret")]);
        keys
    }

    fn file(&self, name: &str) -> String {
        let path = self.folder.path().join(name);
        path.to_str().unwrap().to_owned()
    }

    fn run(&self, arguments: &[&str]) -> String {
        let ended = finish(Command::new(PROXY).args(arguments), LIMIT);
        assert!(ended.status.success(), "{}", said(&ended));
        String::from_utf8(ended.stdout).unwrap().trim().to_owned()
    }

    fn token(&self, user: &str) -> String {
        let (secret, revoked) = (self.file("secret"), self.file("revoked"));
        let files = ["--secret-file", &secret, "--revoked-file", &revoked];
        self.run(&[&["token", "issue", "--user", user][..], &files].concat())
    }

    /// A relay that checks tokens with this secret, and its URL without a path. Port 0 is any.
    fn start(&self, port: u16, flags: &[&str]) -> (RunningProgram, String) {
        let mut relay = Command::new(PROXY);
        relay.args(["relay", "--no-record", "--headless", "--listen-port"]);
        relay.arg(port.to_string()).args(flags);
        relay.args(["--jwt-secret-file", &self.file("secret")]);
        relay.args(["--revoked-file", &self.file("revoked")]);
        let relay = RunningProgram::start(&mut relay);
        let url = relay.wait_for(texts::LISTENING_ON);
        (relay, url.trim_end_matches('/').to_owned())
    }
}

#[test]
fn python_peers_talk_through_the_relay() {
    let Some(python) = fixtures::magg_python() else {
        return;
    };
    check(&python, &fixtures::peer("relay_pair.py"));
}

#[test]
fn node_peers_talk_through_the_relay() {
    check(&fixtures::node(), &fixtures::peer("relay_pair.mjs"));
}

fn check(program: &str, script: &str) {
    let keys = RelayKeys::new();
    let (_relay, url) = keys.start(0, &[]);
    let mut pair = fixtures::command(program, &[script, &url, &keys.token("ada")]);
    let ended = finish(&mut pair, LIMIT);
    assert!(ended.status.success(), "{}", said(&ended));
}
