//! SDK clients that cancel a call: the server that has it is told with the id it knows, and nobody else is.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::Sdk;
use crate::endpoint::{
    EndpointAddress, EndpointKind, MountedServer, TestEndpoint, demo, modern_hub,
};
use crate::fixtures;
use crate::process::{finish, said};

const LEGACY: (&str, &str) = ("legacy", "2025-11-25");
const MODERN: (&str, &str) = ("2026-07-28", "2026-07-28");

fn two_servers(listen: EndpointKind) -> TestEndpoint {
    let mounted = |name| MountedServer {
        name,
        endpoint: demo(EndpointKind::Stdio),
        options: json!({}),
    };
    modern_hub(vec![mounted("one"), mounted("other")], "all", listen)
}

fn check(sdk: Sdk, listen: EndpointKind, (mode, version): (&str, &str)) {
    let hub = two_servers(listen);
    let (program, script) = match sdk {
        Sdk::TypeScript => (fixtures::node(), fixtures::peer("ts_cancels.mjs")),
        Sdk::Python => (fixtures::python(), fixtures::peer("py_cancels.py")),
    };
    let mut command = fixtures::command(&program, &[&script, mode]);
    match &hub.address {
        EndpointAddress::Url(url) => command.arg(url),
        EndpointAddress::Command(words) => command.args(words),
    };
    let output = finish(&mut command, Duration::from_secs(90));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    assert!(
        report["ok"] == true && report["version"] == version,
        "{sdk:?} {mode} {listen:?}: {}",
        said(&output)
    );
    assert_one_cancel(&hub.record(), &format!("{sdk:?} {mode} {listen:?}"));
}

/// In all that the hub sent to servers there is one cancel, and it has the id of the long call to `one`.
fn assert_one_cancel(record: &[Value], context: &str) {
    let opened = record.iter().filter(|line| line["kind"] == "open");
    let servers: BTreeMap<&str, &str> = opened
        .filter_map(|line| Some((line["conn"].as_str()?, line["server"]["name"].as_str()?)))
        .collect();
    let server_of = |line: &Value| servers.get(line["conn"].as_str()?).copied();
    let sent = |line: &&Value| {
        line["direction"] == "client_to_server" && server_of(line).is_some_and(|name| name != "hub")
    };
    let sent: Vec<&Value> = record.iter().filter(sent).collect();
    let cancels: Vec<_> = sent
        .iter()
        .filter(|line| line["method"] == "notifications/cancelled")
        .map(|line| (server_of(line), &line["raw"]["params"]["requestId"]))
        .collect();
    let long_call = sent
        .iter()
        .find(|line| line["name"] == "count_down" && server_of(line) == Some("one"))
        .expect("the call is recorded");
    let expected = [(Some("one"), &long_call["jsonrpc_id"])];
    assert_eq!(cancels, expected, "{context}");
}

#[test]
fn legacy_clients_over_http() {
    for sdk in [Sdk::TypeScript, Sdk::Python] {
        check(sdk, EndpointKind::Http, LEGACY);
    }
}

#[test]
fn legacy_clients_over_stdio() {
    for sdk in [Sdk::TypeScript, Sdk::Python] {
        check(sdk, EndpointKind::Stdio, LEGACY);
    }
}

#[test]
fn modern_clients_over_http() {
    for sdk in [Sdk::TypeScript, Sdk::Python] {
        check(sdk, EndpointKind::Http, MODERN);
    }
}

/// Only Python: on a pipe the modern TypeScript client gives its call up without a word.
#[test]
fn modern_clients_over_stdio() {
    check(Sdk::Python, EndpointKind::Stdio, MODERN);
}
