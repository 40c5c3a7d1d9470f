//! jq programs of clients, each in a process of its own.
//!
//! A program of a client must not use up the memory of the hub, and what it has used must not stay. So it runs in a child of the
//! hub's own binary: with limits of the kernel on memory and computing time, a deadline, and an answer of bounded size.
//! The question is a line of JSON on stdin with the document after it, the answer a line of JSON with the values after it.
//!
//! Rules and filters are programs of the hub's owner. They run in the traffic, where a process for each message would take too long:
//! see `program_thread.rs` of the crate session.

use std::io::{self, BufRead, Read, Write};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use bytes::Bytes;
use mcp_proxy_session::{JqAnswer, JqQuery, JqRoom};
use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use serde_json::{Value, json};

use crate::SpillError;
use crate::line_index::char_boundary;

/// The first argument of a worker.
pub const JQ_WORKER_WORD: &str = "__jq";

/// Computing time of all threads of a worker, in seconds. Most of it is for making values of a document of the largest size.
const CPU_SECONDS: u64 = 15;
/// From the start of a worker to its answer. On a busy machine it may wait for the processor.
const DEADLINE: Duration = Duration::from_secs(30);
/// Address space of a worker, and what each byte of the document adds: a number of one digit becomes a value of many bytes.
const MEMORY: u64 = 512 << 20;
const MEMORY_PER_BYTE: u64 = 24;
/// The most bytes of the first line of an answer.
const LONGEST_HEAD: usize = 64 << 10;
/// The most bytes of an error.
const LONGEST_ERROR: usize = 8 << 10;

/// Where jq programs of clients run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JqRunner {
    /// In this process. Neither their time nor their memory is limited, so it is for programs that are trusted.
    InProcess,
    /// In a child: this program, started with [`JQ_WORKER_WORD`], calls [`jq_worker_main`].
    Worker(PathBuf),
}

impl JqRunner {
    /// What `filter` makes of a JSON document.
    pub(crate) fn run(
        &self,
        filter: &str,
        document: Bytes,
        room: JqRoom,
    ) -> Result<JqAnswer, SpillError> {
        match self {
            JqRunner::InProcess => run_here(filter, document, room).map_err(SpillError::BadFilter),
            JqRunner::Worker(program) => ask_worker(program, filter, document, room),
        }
    }
}

fn run_here(filter: &str, document: Bytes, room: JqRoom) -> Result<JqAnswer, String> {
    let query = JqQuery::parse(filter).map_err(|error| error.to_string())?;
    let answer = query.run(document, room);
    answer.map_err(|error| error.to_string())
}

/// A worker that is running. However its caller ends, nothing of it is left.
struct Worker(Child);

impl Drop for Worker {
    fn drop(&mut self) {
        // It fails if the worker has ended, and then there is nothing to stop.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn ask_worker(
    program: &Path,
    filter: &str,
    document: Bytes,
    room: JqRoom,
) -> Result<JqAnswer, SpillError> {
    let mut worker = Worker(
        Command::new(program)
            .arg(JQ_WORKER_WORD)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?,
    );
    let (Some(stdin), Some(stdout)) = (worker.0.stdin.take(), worker.0.stdout.take()) else {
        return Err(io::Error::other("the worker has no pipes").into());
    };
    let memory = MEMORY.saturating_add(MEMORY_PER_BYTE.saturating_mul(document.len() as u64));
    let question = json!({
        "filter": filter,
        "memory": memory,
        "bytes": room.bytes,
        "values": room.values,
    });
    let (tell, told) = sync_channel(1);
    // It ends when the worker does: its pipes are closed then.
    std::thread::Builder::new()
        .name("jq".to_owned())
        .spawn(move || {
            let said = exchange(stdin, stdout, &question, &document, room);
            // Nobody waits any more if the deadline has passed.
            let _ = tell.send(said);
        })?;
    let Ok(said) = told.recv_timeout(DEADLINE) else {
        let text = format!("it takes more than {} s", DEADLINE.as_secs());
        return Err(SpillError::BadFilter(text));
    };
    match read_answer(&said?) {
        Some(answer) => answer.map_err(SpillError::BadFilter),
        // Its output has ended, so the worker has, or is about to.
        None => Err(SpillError::BadFilter(unfinished(worker.0.wait()?, memory))),
    }
}

/// The worker reads everything before it writes anything, so neither waits for the other.
fn exchange(
    mut stdin: ChildStdin,
    stdout: ChildStdout,
    question: &Value,
    document: &[u8],
    room: JqRoom,
) -> io::Result<Vec<u8>> {
    // If the worker has ended, its status says why.
    let _ = writeln!(stdin, "{question}").and_then(|()| stdin.write_all(document));
    drop(stdin);
    let most = (LONGEST_HEAD + room.bytes) as u64;
    let mut said = Vec::new();
    stdout.take(most).read_to_end(&mut said)?;
    Ok(said)
}

/// `None` if the answer is not whole.
fn read_answer(said: &[u8]) -> Option<Result<JqAnswer, String>> {
    let end = memchr::memchr(b'\n', said)?;
    let head: Value = serde_json::from_slice(&said[..end]).ok()?;
    if let Some(error) = head["error"].as_str() {
        return Some(Err(error.to_owned()));
    }
    let values = std::str::from_utf8(&said[end + 1..]).ok()?.lines();
    let values: Vec<String> = values.map(str::to_owned).collect();
    let is_whole = head["count"].as_u64() == Some(values.len() as u64)
        && head["size"].as_u64() == Some((said.len() - end - 1) as u64);
    is_whole.then(|| {
        Ok(JqAnswer {
            values,
            truncated: head["truncated"] == true,
        })
    })
}

/// Why a worker has ended without a whole answer. A program that gets no memory aborts.
fn unfinished(status: ExitStatus, memory: u64) -> String {
    match status.signal() {
        Some(signal) if signal == Signal::ABORT.as_raw() => {
            format!("it takes more than {} MiB of memory", memory >> 20)
        }
        Some(signal) if signal == Signal::XCPU.as_raw() => {
            format!("it takes more than {CPU_SECONDS} s")
        }
        _ => "the process that runs it has failed".to_owned(),
    }
}

/// Runs as a worker.
pub fn jq_worker_main() -> ExitCode {
    match answer_question() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn answer_question() -> io::Result<()> {
    // A parent that has died cannot stop it.
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    limit(Resource::Core, 0, 0)?;
    limit(Resource::Cpu, CPU_SECONDS, 1)?;
    let mut stdin = io::stdin().lock();
    let mut head = String::new();
    stdin.read_line(&mut head)?;
    let head: Value = serde_json::from_str(&head)?;
    let number = |name: &str| head[name].as_u64().ok_or(io::ErrorKind::InvalidData);
    limit(Resource::As, number("memory")?, 0)?;
    let room = JqRoom {
        bytes: usize::try_from(number("bytes")?).unwrap_or(usize::MAX),
        values: usize::try_from(number("values")?).unwrap_or(usize::MAX),
    };
    let filter = head["filter"].as_str().ok_or(io::ErrorKind::InvalidData)?;
    let mut document = Vec::new();
    stdin.read_to_end(&mut document)?;
    let mut stdout = io::stdout().lock();
    match run_here(filter, document.into(), room) {
        Ok(answer) => {
            let size: usize = answer.values.iter().map(|value| value.len() + 1).sum();
            let count = answer.values.len();
            let head = json!({"count": count, "size": size, "truncated": answer.truncated});
            writeln!(stdout, "{head}")?;
            for value in &answer.values {
                writeln!(stdout, "{value}")?;
            }
        }
        Err(error) => {
            let end = char_boundary(error.as_bytes(), LONGEST_ERROR);
            writeln!(stdout, "{}", json!({"error": error[..end]}))?;
        }
    }
    stdout.flush()
}

/// Limits this process, and forbids it to raise the limit by more than `beyond`. A lower limit that it was started with stays.
fn limit(resource: Resource, most: u64, beyond: u64) -> io::Result<()> {
    let inherited = getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let limit = Rlimit {
        current: Some(most.min(inherited)),
        maximum: Some(most.saturating_add(beyond).min(inherited)),
    };
    Ok(setrlimit(resource, limit)?)
}
