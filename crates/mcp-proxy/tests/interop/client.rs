//! The official SDK clients. Each lists and calls tools, reads a resource, gets a prompt, receives progress and a log
//! line and answers an elicitation (`fixtures/peers`), and reports how each step went.

use std::time::Duration;

use serde_json::Value;

use crate::endpoint::{EndpointAddress, EndpointKind, TestEndpoint};
use crate::fixtures;
use crate::process::{finish, said};

#[derive(Clone, Copy, Debug)]
pub enum Sdk {
    TypeScript,
    Python,
}

/// How the client settles the protocol revision.
#[derive(Clone, Copy, Debug)]
pub enum VersionMode {
    Legacy,
    Auto,
    Pinned,
}

/// The tool names to expect.
#[derive(Clone, Copy, Debug)]
pub enum ServerProfile {
    Everything,
    Demo,
}

/// Runs one client through all its steps; panics with its report unless every step succeeded at `version`.
pub fn check(
    sdk: Sdk,
    mode: VersionMode,
    profile: ServerProfile,
    endpoint: &TestEndpoint,
    version: &str,
) {
    let (program, script) = match sdk {
        Sdk::TypeScript => (fixtures::node(), fixtures::peer("ts_client.mjs")),
        Sdk::Python => (fixtures::python(), fixtures::peer("py_client.py")),
    };
    let mode_word = match mode {
        VersionMode::Legacy => "legacy",
        VersionMode::Auto => "auto",
        VersionMode::Pinned => "2026-07-28",
    };
    let profile_word = match profile {
        ServerProfile::Everything => "everything",
        ServerProfile::Demo => "demo",
    };
    let mut command = fixtures::command(
        &program,
        &[&script, "--server", profile_word, "--mode", mode_word],
    );
    if endpoint.kind == EndpointKind::Sse {
        command.arg("--sse");
    }
    match &endpoint.address {
        EndpointAddress::Url(url) => command.args(["--url", url]),
        EndpointAddress::Command(server) => command.arg("--").args(server),
    };
    let output = finish(&mut command, Duration::from_secs(90));
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{sdk:?} {mode:?}: no report: {error}\n{}", said(&output)));
    let succeeded = output.status.success() && report["ok"] == true && report["version"] == version;
    assert!(
        succeeded,
        "{sdk:?} {mode:?} at {:?}: {}",
        endpoint.address,
        said(&output)
    );
}
