//! What of the proxy's environment a server sees.

use std::collections::BTreeSet;

use mcp_proxy_transport::process::{Environment, MINIMAL_VARIABLES};
use tokio::process::Command;

use super::*;

/// Variables that a shell makes for itself.
const OF_THE_SHELL: [&str; 4] = ["PWD", "OLDPWD", "SHLVL", "_"];

async fn names(environment: Environment, mark: &ProcessMark) -> BTreeSet<String> {
    let command = ServerCommand {
        environment,
        ..shell("env | sed -n 's/^\\([A-Za-z_0-9]*\\)=.*/\\1/p'", mark)
    };
    let mut server = supervisor().spawn(&command).unwrap();
    let names = read_all(&mut server).await;
    assert!(within(server.wait()).await.success());
    names.lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn a_minimal_environment_has_what_is_listed_and_what_is_configured() {
    let mark = ProcessMark::new();
    let inherited = names(Environment::Inherit, &mark).await;
    // Cargo sets this one for tests.
    assert!(inherited.contains("CARGO_MANIFEST_DIR"), "{inherited:?}");
    let minimal = names(Environment::Minimal, &mark).await;
    assert!(
        minimal.contains("PATH") && minimal.contains(MARK),
        "{minimal:?}"
    );
    let is_listed = |name: &&String| {
        name.as_str() == MARK
            || OF_THE_SHELL.contains(&name.as_str())
            || MINIMAL_VARIABLES.contains(&name.as_str())
    };
    let others: Vec<_> = minimal.iter().filter(|name| !is_listed(name)).collect();
    assert!(others.is_empty(), "{others:?}");
}

/// Runs the proxy with a secret in its environment; returns the server's environment and its guard's.
async fn run(flags: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let seen = folder.path().join("seen");
    let script = format!("cat /proc/$$/environ /proc/$PPID/environ > {seen:?}");
    let mut proxy = Command::new(PROXY)
        .args(["proxy", "--listen", "stdio", "--no-record", "--quiet"])
        .args(["--no-control", "--env", "GIVEN=for-the-server"])
        .args(flags)
        .args(["--", "sh", "-c", &script])
        .env("PROXY_TOKEN", "for-the-proxy")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    within(proxy.wait()).await.unwrap();
    let seen = std::fs::read(&seen).unwrap();
    String::from_utf8_lossy(&seen).replace('\0', "\n")
}

#[tokio::test]
async fn a_secret_of_the_proxy_reaches_neither_guard_nor_server() {
    for flags in [&[][..], &["--env-mode", "inherit"]] {
        let seen = run(flags).await;
        assert_eq!(seen.matches("for-the-proxy").count(), 2, "{seen}");
        assert_eq!(seen.matches("GIVEN=for-the-server").count(), 2, "{seen}");
    }
    let seen = run(&["--env-mode", "minimal"]).await;
    assert_eq!(seen.matches("for-the-proxy").count(), 0, "{seen}");
    assert_eq!(seen.matches("GIVEN=for-the-server").count(), 2, "{seen}");
    assert_eq!(seen.matches("\nPATH=").count(), 2, "{seen}");
}
