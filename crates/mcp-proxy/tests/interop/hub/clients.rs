//! SDK clients with the official servers, all mounted together. `server-everything` has no prefix, so the clients find what
//! they know from the direct tests under the same names.

use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::{Sdk, ServerProfile, VersionMode, check};
use crate::endpoint::{
    EndpointKind, MountedServer, OnlyEra, TestEndpoint, demo, everything, filesystem, hub, memory,
    modern_hub, one_era_demo,
};
use crate::fixtures;
use crate::process::{finish, said};

/// The hub, and the folder that its servers use.
struct Reference {
    hub: TestEndpoint,
    _folder: TempDir,
}

fn reference(expose: &str, listen: EndpointKind) -> Reference {
    let (servers, folder) = official_servers();
    Reference {
        hub: hub(servers, expose, listen),
        _folder: folder,
    }
}

fn official_servers() -> (Vec<MountedServer>, TempDir) {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let mounted = |name, endpoint, options: Value| MountedServer {
        name,
        endpoint,
        options,
    };
    let servers = vec![
        mounted(
            "everything",
            everything(EndpointKind::Stdio),
            json!({ "prefix": null }),
        ),
        mounted("filesystem", filesystem(folder.path()), json!({})),
        mounted("memory", memory(folder.path()), json!({})),
    ];
    (servers, folder)
}

fn legacy(listen: EndpointKind) {
    for sdk in [Sdk::TypeScript, Sdk::Python] {
        let reference = reference("all", listen);
        let (mode, profile) = (VersionMode::Legacy, ServerProfile::Everything);
        check(sdk, mode, profile, &reference.hub, "2025-11-25");
    }
}

#[test]
fn legacy_clients_over_http() {
    legacy(EndpointKind::Http);
}

#[test]
fn legacy_clients_over_sse() {
    legacy(EndpointKind::Sse);
}

#[test]
fn legacy_clients_over_stdio() {
    legacy(EndpointKind::Stdio);
}

/// All works but the server's question, whose call ends with our error: a legacy server cannot ask a modern client.
#[test]
fn modern_clients_of_legacy_servers() {
    for sdk in [Sdk::TypeScript, Sdk::Python] {
        let (servers, _folder) = official_servers();
        let hub = modern_hub(servers, "all", EndpointKind::Http);
        let (mode, profile) = (VersionMode::Auto, ServerProfile::Everything);
        check(sdk, mode, profile, &hub, "2026-07-28");
    }
}

/// They fall back to the legacy era, in which the servers' questions reach them.
#[test]
fn e1_clients_of_both_eras_are_asked_by_legacy_servers() {
    for listen in [EndpointKind::Http, EndpointKind::Stdio] {
        for sdk in [Sdk::TypeScript, Sdk::Python] {
            let reference = reference("all", listen);
            let (mode, profile) = (VersionMode::Auto, ServerProfile::Everything);
            check(sdk, mode, profile, &reference.hub, "2025-11-25");
        }
    }
}

#[test]
fn e1_clients_of_both_eras_are_modern_where_all_servers_are() {
    let mounted = MountedServer {
        name: "demo",
        endpoint: one_era_demo(OnlyEra::Modern),
        options: json!({ "prefix": null }),
    };
    let hub = hub(vec![mounted], "all", EndpointKind::Http);
    for sdk in [Sdk::TypeScript, Sdk::Python] {
        let (mode, profile) = (VersionMode::Auto, ServerProfile::Demo);
        check(sdk, mode, profile, &hub, "2026-07-28");
    }
}

#[test]
fn modern_clients_of_a_modern_server() {
    for listen in [EndpointKind::Http, EndpointKind::Stdio] {
        for server in [EndpointKind::Http, EndpointKind::Stdio] {
            let mounted = MountedServer {
                name: "demo",
                endpoint: demo(server),
                options: json!({ "prefix": null }),
            };
            let hub = modern_hub(vec![mounted], "all", listen);
            for sdk in [Sdk::TypeScript, Sdk::Python] {
                check(
                    sdk,
                    VersionMode::Auto,
                    ServerProfile::Demo,
                    &hub,
                    "2026-07-28",
                );
            }
        }
    }
}

#[test]
fn fastmcp_uses_all_tools() {
    fastmcp("all", &[]);
}

#[test]
fn fastmcp_uses_the_proxy_tool() {
    fastmcp("proxy", &["--via-proxy-tool"]);
}

fn fastmcp(expose: &str, flags: &[&str]) {
    let Some(python) = fixtures::magg_python() else {
        return;
    };
    let reference = reference(expose, EndpointKind::Http);
    let script = fixtures::peer("fastmcp_client.py");
    let mut command = fixtures::command(&python, &[&script, reference.hub.to_url()]);
    let output = finish(command.args(flags), Duration::from_secs(150));
    assert!(output.status.success(), "{}", said(&output));
}
