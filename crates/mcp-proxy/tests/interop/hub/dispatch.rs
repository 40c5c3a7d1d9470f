//! `proxy-dispatch` with a client that knows nothing of our code, and large results with the official clients.

use std::time::Duration;

use serde_json::{Value, json};

use crate::endpoint::{
    EndpointAddress, EndpointKind, MountedServer, TestEndpoint, demo, everything, filesystem, hub,
};
use crate::fixtures::{self, PROXY};
use crate::process::{RunningProgram, finish, said};
use crate::texts;

fn check(listen: EndpointKind) {
    let server = |name, endpoint: TestEndpoint| MountedServer {
        name,
        endpoint,
        options: json!({}),
    };
    let servers = vec![server("everything", everything(EndpointKind::Stdio))];
    let hub = hub(servers, "dispatch", listen);
    let script = fixtures::peer("dispatch_client.py");
    let mut command = fixtures::command(&fixtures::python(), &[&script]);
    match &hub.address {
        EndpointAddress::Url(url) => command.arg(url),
        EndpointAddress::Command(words) => command.args(words),
    };
    let output = finish(&mut command, Duration::from_secs(90));
    let report = String::from_utf8_lossy(&output.stdout);
    let passes = report
        .lines()
        .filter(|line| line.starts_with("PASS"))
        .count();
    assert!(
        output.status.success() && passes > 50,
        "{passes} passed: {}",
        said(&output)
    );
}

#[test]
fn an_independent_client_over_http() {
    check(EndpointKind::Http);
}

#[test]
fn an_independent_client_over_stdio() {
    check(EndpointKind::Stdio);
}

/// The official server returns a text twice, in `content` and in `structuredContent`.
#[test]
fn d2_a_large_text_of_the_filesystem_server_is_a_text_file() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("numbers.txt");
    let text: String = (1..=20_000).map(|line| format!("{line}\n")).collect();
    std::fs::write(&path, text).expect("the text can be written");
    let server = MountedServer {
        name: "filesystem",
        endpoint: filesystem(folder.path()),
        options: json!({}),
    };
    let hub = hub(vec![server], "dispatch", EndpointKind::Http);
    let EndpointAddress::Url(url) = &hub.address else {
        panic!("it is a URL");
    };
    let script = fixtures::peer("py_text_file.py");
    let path = path.to_str().expect("a temporary name is UTF-8");
    let mut command = fixtures::command(&fixtures::python(), &[&script, url, path]);
    let output = finish(&mut command, Duration::from_secs(90));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    assert_eq!(report["ok"], true, "{}", said(&output));
}

/// The hub in front of the demo server, with a threshold that most results exceed.
fn shortening_hub(folder: &tempfile::TempDir) -> (RunningProgram, String) {
    let EndpointAddress::Command(server) = demo(EndpointKind::Stdio).address else {
        panic!("it is a command");
    };
    let config = json!({"mcpServers": {"demo": {"command": server[0], "args": server[1..]}}});
    let path = folder.path().join("config.json");
    std::fs::write(&path, config.to_string()).expect("the config file can be written");
    let path = path.to_str().expect("a temporary name is UTF-8");
    let words = "serve --headless --no-record --listen http --listen-port 0 --expose all --era modern --spill-threshold 60";
    let mut command = fixtures::command(PROXY, &[]);
    command.args(words.split(' ')).args(["--config", path]);
    let running = RunningProgram::start(&mut command);
    let url = running.wait_for(texts::LISTENING_ON);
    (running, url)
}

fn check_links(program: &str, script: &str) {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let (_running, url) = shortening_hub(&folder);
    for version in ["legacy", "2026-07-28"] {
        let script = fixtures::peer(script);
        let mut command = fixtures::command(program, &[&script, version, &url]);
        let output = finish(&mut command, Duration::from_secs(60));
        let report: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{version}: {error}\n{}", said(&output)));
        assert_eq!(report["ok"], true, "{version}: {}", said(&output));
    }
}

#[test]
fn the_typescript_client_follows_links() {
    check_links(&fixtures::node(), "ts_links.mjs");
}

#[test]
fn the_python_client_follows_links() {
    check_links(&fixtures::python(), "py_links.py");
}
