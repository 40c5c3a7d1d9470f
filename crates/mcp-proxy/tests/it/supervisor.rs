//! The supervisor with the real guard: servers that fork, escape, hang and die, and no process left afterwards.
//!
//! Every server of a test carries the test's own mark in its environment, which forks and `setsid` do not shed. A
//! test ends by asking `/proc` who still carries it.

mod again;
mod cycles;
mod ending;
mod environment;
mod orphans;
mod proxy;
mod running;

use std::ffi::OsString;
use std::future::Future;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use mcp_proxy_transport::process::{
    GuardProgram, ServerCommand, ServerProcess, StopDeadlines, Supervisor,
};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::unix::pipe;

const PROXY: &str = env!("CARGO_BIN_EXE_mcp-proxy");
const MARK: &str = "MCP_PROXY_TEST_MARK";

/// Says `up` and then sleeps, with children in every place a process can hide: the same group, its own session, and
/// a daemon that was forked twice and let go of its streams.
const FAMILY: &str = "sleep 1000 & setsid sleep 1000 &
    (setsid sh -c 'sleep 1000 & exec sleep 1000' </dev/null >/dev/null 2>&1 &)
    echo up; exec sleep 1000";

/// A name that every process of one test carries.
struct ProcessMark(String);

impl ProcessMark {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(format!("{}-{number}", std::process::id()))
    }

    fn env(&self) -> (OsString, OsString) {
        (MARK.into(), self.0.clone().into())
    }

    /// The processes that carry this mark now, guards included.
    fn carriers(&self) -> Vec<String> {
        let wanted = format!("{MARK}={}", self.0);
        let carries = |path: &Path| {
            let environ = std::fs::read(path.join("environ")).unwrap_or_default();
            environ
                .split(|byte| *byte == 0)
                .any(|entry| entry == wanted.as_bytes())
        };
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        processes
            .map(|entry| entry.path())
            .filter(|path| carries(path))
            .map(|path| {
                let cmdline = std::fs::read(path.join("cmdline")).unwrap_or_default();
                format!(
                    "{} {}",
                    path.display(),
                    String::from_utf8_lossy(&cmdline).replace('\0', " ")
                )
            })
            .collect()
    }

    #[track_caller]
    fn assert_gone(&self) {
        assert_eq!(self.carriers(), Vec::<String>::new());
    }

    /// For the cases in which nobody can tell us that the last process is gone.
    async fn wait_gone(&self) {
        until("no process is left", || self.carriers().is_empty()).await;
    }
}

/// Looks at a condition of the system until it holds; fails after a deadline.
async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..4000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("waited 20 s in vain until {what}");
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), future)
        .await
        .expect("took longer than 20 s")
}

fn supervisor() -> Supervisor {
    Supervisor::new(GuardProgram::at(PROXY))
}

fn hasty() -> Supervisor {
    supervisor().with_deadlines(StopDeadlines {
        stdin_closed: Duration::from_millis(50),
        term: Duration::from_millis(300),
        ..StopDeadlines::default()
    })
}

fn shell(script: &str, mark: &ProcessMark) -> ServerCommand {
    ServerCommand {
        program: "sh".into(),
        args: vec!["-c".into(), script.into()],
        env: vec![mark.env()],
        ..ServerCommand::default()
    }
}

async fn read_line(stdout: &mut BufReader<pipe::Receiver>) -> String {
    let mut line = String::new();
    within(stdout.read_line(&mut line)).await.unwrap();
    line
}

/// Everything the server writes until it closes its stdout.
async fn read_all(server: &mut ServerProcess) -> String {
    let mut text = String::new();
    let mut stdout = server.stdout.take().unwrap();
    within(stdout.read_to_string(&mut text)).await.unwrap();
    text
}

/// Waits for the `up` line of a server.
async fn wait_up(server: &mut ServerProcess) {
    let mut stdout = BufReader::new(server.stdout.take().unwrap());
    assert_eq!(read_line(&mut stdout).await, "up\n");
    server.stdout = Some(stdout.into_inner());
}

/// The direct children of a process, as the kernel lists them.
fn children(pid: u32) -> Vec<u32> {
    let list =
        std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_whitespace()
        .map(|word| word.parse().unwrap())
        .collect()
}
