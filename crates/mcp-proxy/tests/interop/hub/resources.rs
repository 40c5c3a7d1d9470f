//! Resources of two servers with the same URIs, read back by clients that take URIs apart.

use std::time::Duration;

use serde_json::json;

use crate::fixtures::{self, PROXY};
use crate::process::{finish, said};

/// Every resource and filled-in template of both servers is read under its public URI.
fn check(python: &str) {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let server = |name: &str| {
        let script = fixtures::peer("reading_server.py");
        json!({"command": "python3", "args": [script, "last", name]})
    };
    let config = json!({"mcpServers": {"one": server("one"), "two": server("two")}});
    let path = folder.path().join("config.json");
    std::fs::write(&path, config.to_string()).expect("the config file can be written");
    let path = path.to_str().expect("a temporary name is UTF-8");
    let script = fixtures::peer("py_resources.py");
    let mut command = fixtures::command(python, &[&script, PROXY]);
    command.args("serve --headless --no-record --listen stdio --expose all --config".split(' '));
    command.arg(path).env("XDG_STATE_HOME", folder.path());
    let output = finish(&mut command, Duration::from_secs(60));
    assert!(output.status.success(), "{}", said(&output));
    let text = String::from_utf8_lossy(&output.stdout);
    let mut read: Vec<String> = text
        .lines()
        .map(|line| {
            let (_, text): (String, String) = serde_json::from_str(line).expect("it is a pair");
            text
        })
        .collect();
    read.sort();
    let uris = [
        "file:///srv/1",
        "file:///srv/example",
        "file://host/share",
        "urn:isbn:1",
        "urn:issn:1",
        "x://pub/1",
    ];
    let of = |name: &str| uris.map(|uri| format!("{name} {uri}"));
    assert_eq!(read, [of("one"), of("two")].concat(), "{text}");
}

#[test]
fn w1_python_1_reads_file_and_opaque_uris() {
    if let Some(python) = fixtures::magg_python() {
        check(&python);
    }
}

#[test]
fn w1_python_2_reads_file_and_opaque_uris() {
    check(&fixtures::python());
}
