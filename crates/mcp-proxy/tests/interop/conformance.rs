//! The official conformance suite against our rmcp server: direct, through the proxy over HTTP on both sides, and
//! as a stdio server behind the proxy's HTTP listener. One test per requirement set, so that the direct run, which
//! the others are compared with, is made once.

use std::path::Path;
use std::time::Duration;

use crate::checks::ConformanceChecks;
use crate::endpoint::{EndpointKind, TestEndpoint, demo};
use crate::fixtures;
use crate::process::{finish, said};

/// Scenarios about how an HTTP server behaves, which a stdio server behind our listener cannot show. Each has its reason.
const HTTP_BEHAVIOUR: &[&str] = &[
    // Priming events, retry fields and a stream that the server closes on purpose are rmcp's own HTTP side.
    "server-server-sse-polling",
    // Counts event streams. Our listener answers with plain JSON unless the response takes long.
    "server-server-sse-multiple-streams",
];

/// Runs one requirement set. Exit status 0 means that every scored check passed.
pub fn run(endpoint: &TestEndpoint, set: &str, output: &Path) -> ConformanceChecks {
    let program = fixtures::npm_program("conformance");
    let mut command = fixtures::command(
        &fixtures::node(),
        &[&program, "server", "--url", endpoint.to_url()],
    );
    let result = finish(
        command.args(["--requirements", set, "-o"]).arg(output),
        Duration::from_secs(300),
    );
    // What the comparison then says is more to the point than the exit status, except where nothing was compared.
    assert!(
        result.status.success() || output.is_dir(),
        "{}",
        said(&result)
    );
    ConformanceChecks::read(output)
}

fn compare(set: &str) {
    let outputs = tempfile::tempdir().expect("a temporary directory");
    let server = demo(EndpointKind::Http);
    let direct = run(&server, set, &outputs.path().join("direct"));
    direct.assert_all_pass();

    // Each proxy lives until its checks were compared: if they differ, what it said is part of the failure.
    let proxy = server.behind_proxy(EndpointKind::Http);
    direct.assert_same(&run(&proxy, set, &outputs.path().join("http")));
    drop(proxy);

    let bridge = demo(EndpointKind::Stdio).behind_proxy(EndpointKind::Http);
    direct.assert_passes_kept(
        &run(&bridge, set, &outputs.path().join("stdio")),
        HTTP_BEHAVIOUR,
    );
}

#[test]
fn server_set_2025_11_25() {
    compare("2025-11-25");
}

#[test]
fn server_set_2026_07_28() {
    compare("2026-07-28");
}
