//! SDK clients that speak, or settle on, the legacy era with `server-everything`, over all nine pairings of the
//! three transports. The first word of a test's name is the client's side.

use crate::client::{Mode, Profile, Sdk, check};
use crate::endpoint::{Endpoint, Kind, everything};

fn run(endpoint: &Endpoint) {
    for sdk in [Sdk::TypeScript, Sdk::Python] {
        for mode in [Mode::Legacy, Mode::Auto] {
            check(sdk, mode, Profile::Everything, endpoint, "2025-11-25");
        }
    }
}

fn through(listen: Kind, server: Kind) {
    run(&everything(server).behind_proxy(listen));
}

#[test]
fn direct_stdio() {
    run(&everything(Kind::Stdio));
}

#[test]
fn direct_http() {
    run(&everything(Kind::Http));
}

#[test]
fn direct_sse() {
    run(&everything(Kind::Sse));
}

#[test]
fn stdio_to_stdio() {
    through(Kind::Stdio, Kind::Stdio);
}

#[test]
fn stdio_to_http() {
    through(Kind::Stdio, Kind::Http);
}

#[test]
fn stdio_to_sse() {
    through(Kind::Stdio, Kind::Sse);
}

#[test]
fn http_to_stdio() {
    through(Kind::Http, Kind::Stdio);
}

#[test]
fn http_to_http() {
    through(Kind::Http, Kind::Http);
}

#[test]
fn http_to_sse() {
    through(Kind::Http, Kind::Sse);
}

#[test]
fn sse_to_stdio() {
    through(Kind::Sse, Kind::Stdio);
}

#[test]
fn sse_to_http() {
    through(Kind::Sse, Kind::Http);
}

#[test]
fn sse_to_sse() {
    through(Kind::Sse, Kind::Sse);
}
