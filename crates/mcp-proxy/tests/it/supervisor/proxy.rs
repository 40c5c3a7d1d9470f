//! The proxy itself, or a guard, is killed: nothing stays.

use std::process::Stdio;

use tokio::process::{Child, Command};

use super::*;

/// A proxy in front of [`FAMILY`], all of them carrying `mark`; up when this returns.
async fn start(mark: &ProcessMark) -> Child {
    let (name, value) = mark.env();
    let mut proxy = Command::new(PROXY)
        .args([
            "proxy",
            "--listen",
            "stdio",
            "--no-record",
            "--",
            "sh",
            "-c",
            FAMILY,
        ])
        .env(name, value)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    until("the family is up", || mark.carriers().len() == 7).await;
    proxy.stdout.take();
    proxy
}

async fn signal(pid: u32, name: &str) {
    let args = [format!("-{name}"), pid.to_string()];
    assert!(
        Command::new("kill")
            .args(args)
            .status()
            .await
            .unwrap()
            .success()
    );
}

#[tokio::test]
async fn any_death_of_the_proxy_takes_the_server_along() {
    for name in ["TERM", "INT", "HUP", "KILL", "QUIT", "ABRT"] {
        let mark = ProcessMark::new();
        let mut proxy = start(&mark).await;
        signal(proxy.id().unwrap(), name).await;
        within(proxy.wait()).await.unwrap();
        mark.wait_gone().await;
    }
}

#[tokio::test]
async fn a_killed_guard_takes_the_server_along() {
    let mark = ProcessMark::new();
    let mut proxy = start(&mark).await;
    let [guard] = children(proxy.id().unwrap())[..] else {
        panic!("the proxy has one child")
    };
    signal(guard, "KILL").await;
    within(proxy.wait()).await.unwrap();
    mark.wait_gone().await;
}

#[tokio::test]
async fn a_killed_guard_is_noticed_while_its_server_is_silent() {
    let mark = ProcessMark::new();
    let mut proxy = start(&mark).await;
    // The client stays: nothing but the guard's death ends the server.
    let stdin = proxy.stdin.take();
    let [guard] = children(proxy.id().unwrap())[..] else {
        panic!("the proxy has one child")
    };
    signal(guard, "KILL").await;
    until("only the proxy is left", || mark.carriers().len() <= 1).await;
    drop(stdin);
    within(proxy.wait()).await.unwrap();
}

#[tokio::test]
async fn killing_all_that_is_named_like_the_proxy_spares_the_guard() {
    let mark = ProcessMark::new();
    let proxy = start(&mark).await;
    let [guard] = children(proxy.id().unwrap())[..] else {
        panic!("the proxy has one child")
    };
    let cmdline = std::fs::read_to_string(format!("/proc/{guard}/cmdline")).unwrap();
    assert!(
        cmdline.starts_with("mcp-guard\0__guard\0--\0sh\0"),
        "{cmdline}"
    );
    drop(proxy);
    mark.wait_gone().await;
}
