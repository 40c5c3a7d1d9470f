//! SDK clients that are pinned to 2026-07-28, or settle on it, with our rmcp server. HTTP+SSE does not exist in this
//! era, so four pairings are left.

use crate::client::{Mode, Profile, Sdk, check};
use crate::endpoint::{Endpoint, Kind, demo};

fn run(endpoint: &Endpoint) {
    for sdk in [Sdk::TypeScript, Sdk::Python] {
        for mode in [Mode::Pinned, Mode::Auto] {
            check(sdk, mode, Profile::Demo, endpoint, "2026-07-28");
        }
    }
}

fn through(listen: Kind, server: Kind) {
    run(&demo(server).behind_proxy(listen));
}

#[test]
fn direct_stdio() {
    run(&demo(Kind::Stdio));
}

#[test]
fn direct_http() {
    run(&demo(Kind::Http));
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
fn http_to_stdio() {
    through(Kind::Http, Kind::Stdio);
}

#[test]
fn http_to_http() {
    through(Kind::Http, Kind::Http);
}
