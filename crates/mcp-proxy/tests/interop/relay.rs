//! The relay with WebSocket peers in other languages.

use std::process::Command;
use std::time::Duration;

use crate::fixtures::{self, PROXY};
use crate::process::{RunningProgram, finish, said};

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
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (secret, revoked) = (file("secret"), file("revoked"));
    let limit = Duration::from_secs(60);
    let mut init = Command::new(PROXY);
    init.args(["relay", "init", "--secret-file", &secret]);
    let made = finish(&mut init, limit);
    assert!(made.status.success(), "{}", said(&made));
    let mut issue = Command::new(PROXY);
    issue.args(["token", "issue", "--user", "ada", "--secret-file", &secret]);
    let made = finish(issue.args(["--revoked-file", &revoked]), limit);
    assert!(made.status.success(), "{}", said(&made));
    let token = String::from_utf8(made.stdout).unwrap();
    let mut relay = Command::new(PROXY);
    relay.args(["relay", "--listen-port", "0", "--no-record", "--headless"]);
    relay.args(["--jwt-secret-file", &secret, "--revoked-file", &revoked]);
    let relay = RunningProgram::start(&mut relay);
    let url = relay.wait_for("listening on ");
    let mut pair = fixtures::command(program, &[script, url.trim_end_matches('/'), token.trim()]);
    let ended = finish(&mut pair, limit);
    assert!(ended.status.success(), "{}", said(&ended));
}
