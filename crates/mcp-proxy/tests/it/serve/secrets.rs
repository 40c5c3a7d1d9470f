//! What the configuration holds that nobody is told.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::forgetting::SessionServer;
use super::test_hub::{TestHub, time};
use crate::programs::request;

const SECRET: &str = "canary-5ecret-value";

/// Servers that fail and have secrets in all places.
fn servers_with_secrets() -> Value {
    json!({
        "leaky": {
            "command": "sh",
            "args": ["-c", "echo \"key $KEY\" >&2; exit 1"],
            "env": {"KEY": SECRET},
        },
        "argument": {"command": "sh", "args": ["-c", "exit 1", "--token", SECRET]},
        "remote": {
            "url": format!("http://user:{SECRET}@127.0.0.1:9/mcp?token={SECRET}"),
            "headers": {"Authorization": format!("Bearer {SECRET}"), "X-Custom": SECRET},
        },
        "time": time(),
    })
}

/// Looks for the secret in all that the hub says, and in all files that it writes.
fn assert_told_nowhere(hub: TestHub) {
    let mut told = vec![
        hub.answer("tools/call", &json!({"name": "leaky_x", "arguments": {}}))
            .to_string(),
        hub.answer("tools/call", &json!({"name": "remote_x", "arguments": {}}))
            .to_string(),
        hub.proxy(&json!({"action": "list", "type": "tool"}))
            .to_string(),
        hub.home.ctl(&["servers.list"]).to_string(),
        hub.home.ctl(&["hello"]).to_string(),
    ];
    let status = hub.home.run(&["status"]);
    told.push(String::from_utf8(status.stdout).unwrap());
    let health = request(&hub.program.address, "GET", "/healthz", &[], b"");
    assert_eq!(health.status, 200);
    told.push(health.text());
    let TestHub { home, program, .. } = hub;
    let (_, stderr) = program.end("-TERM");
    told.push(stderr);
    for file in files(&home.path("state")) {
        told.push(String::from_utf8_lossy(&std::fs::read(file).unwrap()).into_owned());
    }
    for text in told {
        assert!(!text.contains(SECRET), "{text}");
    }
}

pub fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .flat_map(|path| match path.is_dir() {
            true => files(&path),
            false => vec![path],
        })
        .collect()
}

fn wait_for_leak(hub: &TestHub) {
    hub.until("the leak is noticed", |hub| {
        hub.states()
            .contains(&("leaky".to_owned(), "failed".to_owned()))
    });
}

#[test]
fn secrets_of_the_configuration_are_told_nowhere() {
    let config = json!({"mcpServers": servers_with_secrets()});
    let hub = TestHub::start(&config, &["--expose", "all,proxy"]);
    wait_for_leak(&hub);
    assert_told_nowhere(hub);
}

#[test]
fn secrets_of_a_configuration_that_is_read_again_are_told_nowhere() {
    let config = json!({"mcpServers": {"time": time()}});
    let hub = TestHub::start(&config, &["--expose", "all,proxy"]);
    let config = json!({"mcpServers": servers_with_secrets()});
    std::fs::write(&hub.config, config.to_string()).unwrap();
    hub.home.ctl(&["servers.reload"]);
    wait_for_leak(&hub);
    assert_told_nowhere(hub);
}

#[test]
fn a_secret_in_the_path_of_a_url_is_not_written_to_disk() {
    const KEY: &str = "0a1b2c3d4e5f0a1b2c3d4e5f";
    let server = SessionServer::start(("404 Not Found", ""));
    let url = format!("http://{}/s/{KEY}/mcp", server.address);
    let config = json!({"mcpServers": {"keyed": {"url": url}}});
    let hub = TestHub::start(&config, &["--expose", "all"]);
    let folder = hub.home.path("state").join("mcp-proxy");
    let listing = folder.join("listings/keyed.json");
    hub.until("the lists are kept", |_| listing.exists());
    assert_eq!(hub.tool_names(), ["keyed_write"]);
    let TestHub { home, program, .. } = hub;
    let (_, stderr) = program.end("-TERM");
    assert!(!stderr.contains(KEY), "{stderr}");
    for file in files(&home.path("state")) {
        let text = std::fs::read(&file).unwrap();
        let text = String::from_utf8_lossy(&text);
        assert!(!text.contains(KEY), "{}: {text}", file.display());
    }
}
