//! The suite's client scenarios with a small client of ours on the TypeScript SDK: direct, and through the proxy.
//! OAuth is left out: through a reverse proxy the metadata names another server, and the client rightly stops. Our own program
//! is the client of those scenarios in `sign_in/conformance.rs`.

use std::path::Path;
use std::time::Duration;

use crate::checks::ConformanceChecks;
use crate::fixtures;
use crate::process::{finish, said};

/// The scored scenarios of each set, OAuth apart, and the unscored one on schemas.
const SETS: &[(&str, &[&str])] = &[
    (
        "2025-11-25",
        &[
            "initialize",
            "tools_call",
            "elicitation-sep1034-client-defaults",
            "sse-retry",
            "json-schema-2020-12-preservation",
        ],
    ),
    (
        "2026-07-28",
        &[
            "tools_call",
            "request-metadata",
            "sep-2322-client-request-state",
            "http-standard-headers",
            "http-custom-headers",
            "http-invalid-tool-headers",
            "json-schema-ref-no-deref",
            "json-schema-2020-12-preservation",
        ],
    ),
];

/// Runs scenarios one by one: asked for a whole set, the suite would also try all of OAuth.
fn run(client: &str, set: &str, scenarios: &[&str], output: &Path) -> ConformanceChecks {
    let program = fixtures::npm_program("conformance");
    for scenario in scenarios {
        let mut command = fixtures::command(
            &fixtures::node(),
            &[&program, "client", "--command", client],
        );
        command
            .args(["--scenario", scenario, "--spec-version", set, "-o"])
            .arg(output);
        let result = finish(&mut command, Duration::from_secs(60));
        assert!(
            result.status.success(),
            "{set} {scenario} with {client}: {}",
            said(&result)
        );
    }
    ConformanceChecks::read(output)
}

fn compare(set: &str, scenarios: &[&str]) {
    let outputs = tempfile::tempdir().expect("a temporary directory");
    let (node, client) = (fixtures::node(), fixtures::peer("conformance_client.mjs"));
    let direct = run(
        &format!("{node} {client}"),
        set,
        scenarios,
        &outputs.path().join("direct"),
    );
    direct.assert_all_pass();
    let wrapped = format!("{node} {} {client}", fixtures::peer("through.mjs"));
    let through = run(&wrapped, set, scenarios, &outputs.path().join("through"));
    direct.assert_same(&through);
}

#[test]
fn client_set_2025_11_25() {
    compare(SETS[0].0, SETS[0].1);
}

#[test]
fn client_set_2026_07_28() {
    compare(SETS[1].0, SETS[1].1);
}
