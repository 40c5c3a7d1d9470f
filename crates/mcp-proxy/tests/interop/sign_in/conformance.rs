//! The suite's client authorization scenarios with our program as the client (`fixtures/peers/conformance_sign_in.mjs`).

use std::time::Duration;

use crate::fixtures;
use crate::process::{finish, said};

/// Scenarios that do not apply, each with its reason.
const NOT_OURS: &[(&str, &str)] = &[
    (
        "auth/client-credentials-jwt",
        "an extension: our machines have a secret, not a key",
    ),
    (
        "auth/enterprise-managed-authorization",
        "an extension: there is no identity provider of an organisation",
    ),
    ("auth/dpop", "an extension: our tokens are bearer tokens"),
    (
        "auth/dpop-nonce",
        "an extension: our tokens are bearer tokens",
    ),
    (
        "auth/wif-jwt-bearer",
        "an extension: there is no workload identity",
    ),
];

/// An authorization scenario of the suite, and the revisions that it is for.
struct Scenario {
    name: String,
    revisions: Vec<String>,
}

impl Scenario {
    /// Of a line such as `- auth/basic-cimd [2025-11-25,2026-07-28]`.
    fn parse(line: &str) -> Option<Scenario> {
        let line = line.trim().strip_prefix("- ")?.strip_suffix(']')?;
        let (name, revisions) = line.split_once(" [")?;
        name.starts_with("auth/").then(|| Scenario {
            name: name.to_owned(),
            revisions: revisions.split(',').map(str::to_owned).collect(),
        })
    }

    /// Exit status 0 means that every check passed, without a warning.
    fn run(&self, revision: Option<&str>) -> Result<(), String> {
        let (node, program) = (fixtures::node(), fixtures::npm_program("conformance"));
        let client = format!("{node} {}", fixtures::peer("conformance_sign_in.mjs"));
        let arguments = [
            &program,
            "client",
            "--command",
            &client,
            "--scenario",
            &self.name,
        ];
        let mut command = fixtures::command(&node, &arguments);
        if let Some(revision) = revision {
            command.args(["--spec-version", revision]);
        }
        let output = finish(&mut command, Duration::from_secs(120));
        match output.status.success() {
            true => Ok(()),
            false => Err(format!("{} {revision:?}: {}", self.name, said(&output))),
        }
    }
}

/// Every authorization scenario of a revision (or `extension`), those that do not apply apart.
fn scenarios(revision: &str) -> Vec<Scenario> {
    let program = fixtures::npm_program("conformance");
    let mut list = fixtures::command(&fixtures::node(), &[&program, "list", "--client"]);
    let output = finish(&mut list, Duration::from_secs(60));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let known: Vec<Scenario> = text.lines().filter_map(Scenario::parse).collect();
    let is_known = |name: &str| known.iter().any(|scenario| scenario.name == name);
    for (name, why) in NOT_OURS {
        assert!(is_known(name), "{name} ({why}) has left the suite");
    }
    let applies = |scenario: &Scenario| {
        let is_ours = NOT_OURS.iter().all(|(name, _)| *name != scenario.name);
        is_ours && scenario.revisions.iter().any(|of| of == revision)
    };
    let found: Vec<Scenario> = known.into_iter().filter(applies).collect();
    assert!(!found.is_empty(), "{}", said(&output));
    found
}

fn assert_all_pass(revision: &str, flag: Option<&str>) {
    let scenarios = scenarios(revision);
    let failed: Vec<String> = scenarios
        .iter()
        .filter_map(|scenario| scenario.run(flag).err())
        .collect();
    assert!(
        failed.is_empty(),
        "{} of {} scenarios fail:\n{}",
        failed.len(),
        scenarios.len(),
        failed.join("\n")
    );
}

#[test]
fn client_authorization_2025_03_26() {
    assert_all_pass("2025-03-26", Some("2025-03-26"));
}

#[test]
fn client_authorization_2025_11_25() {
    assert_all_pass("2025-11-25", Some("2025-11-25"));
}

#[test]
fn client_authorization_2026_07_28() {
    assert_all_pass("2026-07-28", Some("2026-07-28"));
}

#[test]
fn client_authorization_extensions() {
    assert_all_pass("extension", None);
}
