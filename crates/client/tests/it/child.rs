//! Servers that are started.

use std::time::Duration;

use mcp_proxy_client::{ClientError, ClientTarget, ProxyClient, ServerStderr};

fn is_running(pid: &str) -> bool {
    std::path::Path::new("/proc").join(pid.trim()).exists()
}

/// Waits until the process whose id is in `file` has ended.
async fn ends(file: &std::path::Path) {
    let pid = std::fs::read_to_string(file).unwrap();
    let gone = async {
        while is_running(&pid) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), gone)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_program_that_does_not_exist_cannot_be_connected_to() {
    let error = ProxyClient::connect("no-such-program --at all")
        .await
        .unwrap_err();
    let ClientError::Connect { target, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(target, "no-such-program --at all");
}

#[tokio::test]
async fn a_program_that_is_not_a_server_is_ended_with_what_it_started() {
    let folder = tempfile::tempdir().unwrap();
    let script = "sleep 1000 & echo $! >sleep.pid; echo $$ >shell.pid; trap '' TERM; while read line; do :; done; sleep 1000";
    let target = ClientTarget::command("sh", ["-c", script])
        .current_dir(folder.path())
        .stderr(ServerStderr::Discard);
    let builder = ProxyClient::builder().timeout(Duration::from_secs(1));
    let error = builder.connect(target).await.unwrap_err();
    assert!(matches!(error, ClientError::Connect { .. }), "{error}");
    for file in ["sleep.pid", "shell.pid"] {
        ends(&folder.path().join(file)).await;
    }
}

#[tokio::test]
async fn a_program_that_ends_at_once_is_an_error() {
    let error = ProxyClient::connect("true").await.unwrap_err();
    assert!(matches!(error, ClientError::Connect { .. }), "{error}");
}
