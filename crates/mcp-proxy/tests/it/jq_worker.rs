//! jq programs of clients, in a process of their own.

use std::fs::Permissions;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use mcp_proxy_spill::{
    JQ_WORKER_WORD, JqRunner, ReadLimit, ReadRequest, SpillError, SpillOptions, SpillOwner,
    SpillStore,
};
use serde_json::json;
use tempfile::TempDir;

/// A folder with one document.
struct Folder(TempDir);

impl Folder {
    fn with(document: &str) -> Folder {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("document.json"), document).unwrap();
        Folder(folder)
    }

    /// What a client gets for `filter`: the text and whether it was cut, or the error.
    fn jq(&self, runner: JqRunner, filter: &str, bytes: u64) -> Result<(String, bool), SpillError> {
        let folder = self.0.path();
        let store = SpillStore::open(SpillOptions {
            directory: folder.join("spill"),
            quota: 1 << 20,
            ttl: Duration::from_secs(60),
            roots: vec![folder.to_owned()],
            spawn_sweeper: None,
            jq: runner,
        });
        let file = folder.join("document.json");
        let request = ReadRequest::Jq {
            filter: filter.to_owned(),
        };
        let answer = store.unwrap().read(
            SpillOwner(1),
            file.to_str().unwrap(),
            &request,
            ReadLimit::bytes(bytes),
            Instant::now(),
        )?;
        Ok((answer.text.unwrap(), answer.truncated))
    }

    /// A program in place of a worker.
    fn script(&self, lines: &str) -> JqRunner {
        let path = self.0.path().join("worker.sh");
        std::fs::write(&path, format!("#!/bin/sh\n{lines}\n")).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o700)).unwrap();
        JqRunner::Worker(path)
    }
}

fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_mcp-proxy"))
}

/// A worker that was asked a question, and waits for the document.
fn asked(memory: u64) -> Child {
    let mut worker = Command::new(program())
        .arg(JQ_WORKER_WORD)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let question = json!({"filter": "length", "memory": memory, "bytes": 1000, "values": 10});
    writeln!(worker.stdin.as_mut().unwrap(), "{question}").unwrap();
    worker
}

fn failure(result: Result<(String, bool), SpillError>) -> String {
    match result {
        Err(SpillError::BadFilter(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a12_a_worker_answers_like_this_process() {
    let folder = Folder::with(r#"{"rows": [1.50, "a\nb", {"é": null}, []]}"#);
    for filter in [
        ".rows[]",
        "empty",
        ".rows | length",
        "[.rows[]]",
        ".",
        ".rows | .a",
        ".rows | |",
        "error(\"x\" * 100000)",
        "[range(2000000)]",
    ] {
        // More than the answer has room for, and less.
        for bytes in [10, 1000] {
            let here = folder.jq(JqRunner::InProcess, filter, bytes);
            let there = folder.jq(JqRunner::Worker(program()), filter, bytes);
            match (here, there) {
                (Ok(here), Ok(there)) => assert_eq!(here, there, "{filter}"),
                (here, there) => {
                    let (here, there) = (failure(here), failure(there));
                    assert!(
                        here.starts_with(&there) && !there.is_empty(),
                        "{filter}: {there}"
                    );
                }
            }
        }
    }
}

#[test]
fn a12_a_worker_has_limits_of_the_kernel() {
    let mut worker = asked(1 << 30);
    let limits = format!("/proc/{}/limits", worker.id());
    let deadline = Instant::now() + Duration::from_secs(30);
    let limits = loop {
        let limits = std::fs::read_to_string(&limits).unwrap();
        if limits
            .lines()
            .any(|line| line.starts_with("Max address space") && line.contains("1073741824"))
        {
            break limits;
        }
        assert!(Instant::now() < deadline, "{limits}");
        std::thread::yield_now();
    };
    for (name, value) in [("Max cpu time", "15"), ("Max core file size", "0")] {
        let line = limits.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(line.split_whitespace().any(|word| word == value), "{line}");
    }
    worker.kill().unwrap();
    worker.wait().unwrap();
}

#[test]
fn a12_what_takes_more_memory_than_it_may_is_stopped() {
    let mut worker = asked(200 << 20);
    let document = format!("[{}1]", "1,".repeat(5 << 20));
    // It may be gone before it has read all of it.
    let _ = worker.stdin.take().unwrap().write_all(document.as_bytes());
    let mut said = String::new();
    worker
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert_eq!(said, "");
    const ABORTED: i32 = 6;
    assert_eq!(worker.wait().unwrap().signal(), Some(ABORTED));
}

#[test]
fn a12_whatever_a_worker_does_the_client_gets_an_error() {
    let folder = Folder::with("[1]");
    let reason = |lines: &str| failure(folder.jq(folder.script(lines), ".", 1000));
    assert!(reason("kill -ABRT $$").contains("MiB of memory"));
    assert!(reason("kill -XCPU $$").contains(" s"));
    for lines in ["exit 1", "cat >/dev/null; echo '{}'", "echo no; exit 0"] {
        assert!(!reason(lines).is_empty(), "{lines}");
    }
    // It never stops to write.
    let endless = format!(
        "echo $$ > {}; exec yes",
        folder.0.path().join("pid").display()
    );
    assert!(!reason(&endless).is_empty());
    let pid = std::fs::read_to_string(folder.0.path().join("pid")).unwrap();
    assert!(!Path::new("/proc").join(pid.trim()).exists());
    let missing = JqRunner::Worker(folder.0.path().join("no-such-program"));
    assert!(matches!(
        folder.jq(missing, ".", 1000),
        Err(SpillError::Io(_))
    ));
}
