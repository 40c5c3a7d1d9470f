//! The official conformance suite with the hub between it and our rmcp server: the server's tools under their own names, as
//! if the hub were not there. What is known to differ is in a list for each requirement set, which may only shrink.
//! A server that knows only the other era is compared with one that knows both: the hub translates.

use std::path::Path;
use std::time::Duration;

use serde_json::json;

use crate::conformance::run;
use crate::endpoint::{
    EndpointKind, MountedServer, OnlyEra, TestEndpoint, demo, hub, modern_hub, one_era_demo,
};
use crate::fixtures;
use crate::process::{finish, said};

/// What the hub answers by itself, with no server behind it.
const OWN_LEGACY: &[&str] = &[
    "server-initialize",
    "ping",
    "tools-list",
    "resources-list",
    "prompts-list",
    "logging-set-level",
    "dns-rebinding-protection",
    "server-session-lifecycle",
];
/// The same in the modern era.
const OWN_MODERN: &[&str] = &[
    "tools-list",
    "resources-list",
    "prompts-list",
    "caching",
    "http-header-validation",
    "dns-rebinding-protection",
    "sep-2164-resource-not-found",
];

fn transparent_hub(server: TestEndpoint) -> TestEndpoint {
    let mounted = MountedServer {
        name: "demo",
        endpoint: server,
        options: json!({ "prefix": null }),
    };
    modern_hub(vec![mounted], "all", EndpointKind::Http)
}

/// Compares the server itself with the hub in front of each of `servers`, which may differ as its list says.
fn compare<'a>(set: &str, servers: impl IntoIterator<Item = (TestEndpoint, &'a str)>) {
    let outputs = tempfile::tempdir().expect("a temporary directory");
    let direct = run(
        &demo(EndpointKind::Http),
        set,
        &outputs.path().join("direct"),
    );
    direct.assert_all_pass();
    for (place, (server, known)) in servers.into_iter().enumerate() {
        // It lives until its checks were compared: if they differ, what it said is part of the failure.
        let hub = transparent_hub(server);
        let through = run(&hub, set, &outputs.path().join(place.to_string()));
        direct.assert_known_differences(&through, known);
    }
}

#[test]
fn server_set_2025_11_25() {
    let over_http = include_str!("differences-2025-11-25.txt");
    let over_stdio = include_str!("differences-2025-11-25-stdio.txt");
    let servers = [
        (demo(EndpointKind::Http), over_http),
        (demo(EndpointKind::Stdio), over_stdio),
    ];
    compare("2025-11-25", servers);
}

#[test]
fn server_set_2026_07_28() {
    let known = include_str!("differences-2026-07-28.txt");
    let servers = [EndpointKind::Http, EndpointKind::Stdio].map(|kind| (demo(kind), known));
    compare("2026-07-28", servers);
}

#[test]
fn server_set_2025_11_25_with_a_modern_server() {
    let known = include_str!("differences-modern-server.txt");
    compare("2025-11-25", [(one_era_demo(OnlyEra::Modern), known)]);
}

#[test]
fn server_set_2026_07_28_with_a_legacy_server() {
    let known = include_str!("differences-legacy-server.txt");
    compare("2026-07-28", [(one_era_demo(OnlyEra::Legacy), known)]);
}

#[test]
fn the_hub_alone_is_a_conforming_server() {
    let outputs = tempfile::tempdir().expect("a temporary directory");
    let hub = hub(Vec::new(), "proxy", EndpointKind::Http);
    for (version, scenarios) in [("2025-11-25", OWN_LEGACY), ("2026-07-28", OWN_MODERN)] {
        for scenario in scenarios {
            pass_scenario(&hub, version, scenario, outputs.path());
        }
    }
}

fn pass_scenario(endpoint: &TestEndpoint, version: &str, scenario: &str, output: &Path) {
    let program = fixtures::npm_program("conformance");
    let mut command = fixtures::command(
        &fixtures::node(),
        &[&program, "server", "--url", endpoint.to_url()],
    );
    command.args(["--scenario", scenario, "--spec-version", version, "-o"]);
    let result = finish(command.arg(output), Duration::from_secs(60));
    assert!(
        result.status.success(),
        "{scenario} at {version}: {}",
        said(&result)
    );
}
