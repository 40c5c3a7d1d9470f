//! SDK clients that speak, or settle on, the legacy era with `server-everything`, over all nine pairings of the
//! three transports. The first word of a test's name is the client's side.

use crate::client::{Sdk, ServerProfile, VersionMode, check};
use crate::endpoint::{EndpointKind, TestEndpoint, everything};

fn run(endpoint: &TestEndpoint) {
    for sdk in [Sdk::TypeScript, Sdk::Python] {
        for mode in [VersionMode::Legacy, VersionMode::Auto] {
            check(sdk, mode, ServerProfile::Everything, endpoint, "2025-11-25");
        }
    }
}

fn through(listen: EndpointKind, server: EndpointKind) {
    run(&everything(server).behind_proxy(listen));
}

#[test]
fn direct_stdio() {
    run(&everything(EndpointKind::Stdio));
}

#[test]
fn direct_http() {
    run(&everything(EndpointKind::Http));
}

#[test]
fn direct_sse() {
    run(&everything(EndpointKind::Sse));
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
fn stdio_to_sse() {
    through(EndpointKind::Stdio, EndpointKind::Sse);
}

#[test]
fn http_to_stdio() {
    through(EndpointKind::Http, EndpointKind::Stdio);
}

#[test]
fn http_to_http() {
    through(EndpointKind::Http, EndpointKind::Http);
}

#[test]
fn http_to_sse() {
    through(EndpointKind::Http, EndpointKind::Sse);
}

#[test]
fn sse_to_stdio() {
    through(EndpointKind::Sse, EndpointKind::Stdio);
}

#[test]
fn sse_to_http() {
    through(EndpointKind::Sse, EndpointKind::Http);
}

#[test]
fn sse_to_sse() {
    through(EndpointKind::Sse, EndpointKind::Sse);
}
