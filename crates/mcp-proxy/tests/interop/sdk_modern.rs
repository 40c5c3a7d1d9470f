//! SDK clients that are pinned to 2026-07-28, or settle on it, with our rmcp server. HTTP+SSE does not exist in this
//! era, so four pairings are left.

use crate::client::{Sdk, ServerProfile, VersionMode, check};
use crate::endpoint::{EndpointKind, TestEndpoint, demo};

fn run(endpoint: &TestEndpoint) {
    for sdk in [Sdk::TypeScript, Sdk::Python] {
        for mode in [VersionMode::Pinned, VersionMode::Auto] {
            check(sdk, mode, ServerProfile::Demo, endpoint, "2026-07-28");
        }
    }
}

fn through(listen: EndpointKind, server: EndpointKind) {
    run(&demo(server).behind_proxy(listen));
}

#[test]
fn direct_stdio() {
    run(&demo(EndpointKind::Stdio));
}

#[test]
fn direct_http() {
    run(&demo(EndpointKind::Http));
}

#[test]
fn stdio_to_stdio() {
    through(EndpointKind::Stdio, EndpointKind::Stdio);
}

#[test]
fn stdio_to_http() {
    through(EndpointKind::Stdio, EndpointKind::Http);
}

#[test]
fn http_to_stdio() {
    through(EndpointKind::Http, EndpointKind::Stdio);
}

#[test]
fn http_to_http() {
    through(EndpointKind::Http, EndpointKind::Http);
}
