//! The closed loop over stdio: a number of requests in flight on one pair of pipes.
//!
//! It does what every client of an SDK does and no less, since its pace decides what `direct` is: pipes as the system
//! makes them (64 KiB), each request written by itself, each answer collected whole and its envelope parsed. Reads and
//! writes are plain blocking ones: what is in flight is far smaller than a pipe, so a write never waits for a read.

use std::io::{Read, Write};
use std::process::{ChildStdin, ChildStdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use memchr::memchr;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{LoadPlan, MeasuredWindow, Measurement};
use crate::canned::{self, AnswerSize, BenchEra, FIRST_ID};
use crate::processes::BenchProcess;
use crate::usage;

/// Send times are kept for the last this many ids; far more than can be in flight.
const REMEMBERED: usize = 1 << 12;

struct StdioLoadClient {
    input: ChildStdin,
    output: ChildStdout,
    buffer: Vec<u8>,
    /// The beginning of a line whose end is not here yet.
    begun: Vec<u8>,
}

#[derive(Deserialize)]
struct AnswerHead<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
}

/// Measures `running`, whose stdin and stdout must be pipes; `is_proxy` is false for the server itself.
pub fn measure(running: &mut BenchProcess, load: &LoadPlan, is_proxy: bool) -> Result<Measurement> {
    let guard = running.end_after(load.limit());
    let process = running.child.id();
    let mut client = StdioLoadClient::open(running, load.era)?;
    let idle = usage::of_tree(process);
    let mut calls = CallLoop::new(load);
    calls.run(&mut client, load.warm_up)?;
    let before = usage::of_tree(process);
    let window = calls.run(&mut client, load.time)?;
    let after = usage::of_tree(process);
    drop(guard);
    let mut sample = window.sample(load.size, &before, &after, is_proxy);
    sample.idle_mb = is_proxy.then_some(idle.proxy.resident_megabytes);
    Ok(sample)
}

/// One call at a time, whose answers are read and nothing more: how long the server itself takes to send them.
pub fn measure_transfer(running: &mut BenchProcess, load: &LoadPlan) -> Result<Measurement> {
    let guard = running.end_after(load.limit());
    let mut client = StdioLoadClient::open(running, load.era)?;
    let mut calls = CallLoop::new(load);
    calls.transfer(&mut client, load.warm_up)?;
    let window = calls.transfer(&mut client, load.time)?;
    drop(guard);
    let unused = usage::TreeUsage::default();
    Ok(window.sample(load.size, &unused, &unused, false))
}

/// A server that sends a large answer again and again to a thread that only reads it, until this is dropped.
pub struct PacedTransfers {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl PacedTransfers {
    /// Starts them. There is one answer in each `period`, unless it takes longer.
    pub fn start(
        mut running: BenchProcess,
        load: &LoadPlan,
        period: Duration,
    ) -> Result<PacedTransfers> {
        let guard = running.end_after(load.limit());
        let mut client = StdioLoadClient::open(&mut running, load.era)?;
        let mut calls = CallLoop::new(load);
        let is_over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            let _running = (running, guard);
            while !told.load(Ordering::Relaxed) {
                let next = Instant::now() + period;
                calls.send(&mut client)?;
                client.skip_line()?;
                thread::sleep(next.saturating_duration_since(Instant::now()));
            }
            Ok(())
        });
        let thread = Some(thread);
        Ok(PacedTransfers { is_over, thread })
    }

    /// Ends them. Fails if they ended before.
    pub fn finish(mut self) -> Result<()> {
        self.is_over.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        ended
            .and_then(Result::ok)
            .context("the transfers panicked")?
    }
}

impl Drop for PacedTransfers {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// Sends `initialize` and reads its answer: the end of a start.
pub fn open_once(running: &mut BenchProcess) -> Result<()> {
    let guard = running.end_after(Duration::from_secs(10));
    let client = StdioLoadClient::open(running, BenchEra::Legacy)?;
    drop(guard);
    // Kept open until the memory is read: a proxy whose client goes away ends.
    running.child.stdin = Some(client.input);
    running.child.stdout = Some(client.output);
    Ok(())
}

/// The same, and reads the tools.
pub fn list_once(running: &mut BenchProcess) -> Result<()> {
    let guard = running.end_after(Duration::from_secs(10));
    let mut client = StdioLoadClient::open(running, BenchEra::Legacy)?;
    client
        .input
        .write_all(format!("{}\n", canned::list(None)).as_bytes())?;
    let mut listed = false;
    while !listed {
        client.read_answers(|answer| {
            listed |= answer.result.is_some();
            Ok(())
        })?;
    }
    drop(guard);
    Ok(())
}

impl StdioLoadClient {
    fn open(running: &mut BenchProcess, era: BenchEra) -> Result<StdioLoadClient> {
        let input = running.child.stdin.take().context("its stdin is a pipe")?;
        let output = running
            .child
            .stdout
            .take()
            .context("its stdout is a pipe")?;
        let mut client = StdioLoadClient {
            input,
            output,
            buffer: vec![0; 64 * 1024],
            begun: Vec::new(),
        };
        client
            .input
            .write_all(format!("{}\n", canned::opening(era)).as_bytes())?;
        let mut answered = false;
        while !answered {
            client.read_answers(|answer| {
                answered |= answer.number() == Some(FIRST_ID);
                Ok(())
            })?;
        }
        if era == BenchEra::Legacy {
            client
                .input
                .write_all(format!("{}\n", canned::initialized()).as_bytes())?;
        }
        Ok(client)
    }

    /// Reads to the end of a line behind which there is nothing yet, and gives its length.
    fn skip_line(&mut self) -> Result<usize> {
        let mut bytes = 0;
        loop {
            let count = self.output.read(&mut self.buffer)?;
            if count == 0 {
                bail!("its stdout was closed");
            }
            bytes += count;
            if self.buffer[count - 1] == b'\n' {
                return Ok(bytes);
            }
        }
    }

    /// One read; `seen` gets each answer that it completes.
    fn read_answers(&mut self, mut seen: impl FnMut(&AnswerHead<'_>) -> Result<()>) -> Result<()> {
        let count = self.output.read(&mut self.buffer)?;
        if count == 0 {
            bail!("its stdout was closed");
        }
        let mut rest = &self.buffer[..count];
        while let Some(length) = memchr(b'\n', rest) {
            let (end, behind) = (&rest[..length], &rest[length + 1..]);
            let line = if self.begun.is_empty() {
                end
            } else {
                self.begun.extend_from_slice(end);
                &self.begun
            };
            seen(
                &serde_json::from_slice(line)
                    .context("a line on stdout is not a JSON-RPC message")?,
            )?;
            self.begun.clear();
            rest = behind;
        }
        self.begun.extend_from_slice(rest);
        Ok(())
    }
}

impl AnswerHead<'_> {
    fn number(&self) -> Option<u32> {
        self.id?.get().parse().ok()
    }
}

/// The requests of one measurement, with the times they were sent.
struct CallLoop {
    request: Vec<u8>,
    id_at: usize,
    next: u32,
    sent: Vec<Instant>,
    in_flight: usize,
    size: AnswerSize,
    most: u64,
}

impl CallLoop {
    fn new(load: &LoadPlan) -> CallLoop {
        let request = format!("{}\n", canned::call(load.era, load.size.tool())).into_bytes();
        let id_at = canned::id_offset(&request).unwrap_or_default();
        CallLoop {
            request,
            id_at,
            next: FIRST_ID + 1,
            sent: vec![Instant::now(); REMEMBERED],
            in_flight: load.in_flight,
            size: load.size,
            most: load.most_requests,
        }
    }

    /// Fills the window, keeps it full for `time`, then waits for what is still open.
    fn run(&mut self, client: &mut StdioLoadClient, time: Duration) -> Result<MeasuredWindow> {
        let start = Instant::now();
        let mut latencies = Vec::with_capacity(1 << 20);
        let mut open = 0;
        let mut wanted = self.in_flight;
        loop {
            for _ in 0..wanted {
                self.send(client)?;
            }
            open += wanted;
            if open == 0 {
                return Ok(MeasuredWindow {
                    latencies,
                    elapsed: start.elapsed(),
                });
            }
            let answered = self.read(client, &mut latencies)?;
            open -= answered;
            let goes_on = start.elapsed() < time && (latencies.len() as u64) < self.most;
            wanted = if goes_on { answered } else { 0 };
        }
    }

    /// Calls one after the other for `time`.
    fn transfer(&mut self, client: &mut StdioLoadClient, time: Duration) -> Result<MeasuredWindow> {
        let start = Instant::now();
        let mut latencies = Vec::new();
        while start.elapsed() < time {
            let sent = Instant::now();
            self.send(client)?;
            let bytes = client.skip_line()?;
            ensure!(bytes > self.size.bytes(), "an answer has {bytes} bytes");
            latencies.push(u32::try_from(sent.elapsed().as_nanos()).unwrap_or(u32::MAX));
        }
        Ok(MeasuredWindow {
            latencies,
            elapsed: start.elapsed(),
        })
    }

    fn send(&mut self, client: &mut StdioLoadClient) -> Result<()> {
        canned::write_id(&mut self.request, self.id_at, self.next);
        self.sent[self.next as usize % REMEMBERED] = Instant::now();
        self.next += 1;
        Ok(client.input.write_all(&self.request)?)
    }

    fn read(&self, client: &mut StdioLoadClient, latencies: &mut Vec<u32>) -> Result<usize> {
        let mut answered = 0;
        client.read_answers(|answer| {
            // What a server says by itself has no id of ours.
            let Some(id) = answer.number() else {
                return Ok(());
            };
            let whole = answer
                .result
                .is_some_and(|result| result.get().len() > self.size.bytes());
            ensure!(
                id < self.next && whole,
                "request {id} was answered with an error or in part"
            );
            let waited = self.sent[id as usize % REMEMBERED].elapsed();
            latencies.push(u32::try_from(waited.as_nanos()).unwrap_or(u32::MAX));
            answered += 1;
            Ok(())
        })?;
        Ok(answered)
    }
}
