//! The closed loop over stdio: a number of requests in flight on one pair of pipes.
//!
//! Pipes are as the system makes them (64 KiB), each request is written by itself and each answer collected whole, as
//! clients of an SDK do. Reads and writes are plain blocking ones: what is in flight is far smaller than a pipe, so a
//! write never waits for a read.

use std::io::{Read, Write};
use std::process::{ChildStdin, ChildStdout};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use memchr::{memchr, memmem};
use tokio::task::spawn_blocking;

use super::{Load, Window, Work};
use crate::canned::{self, BenchEra, Request};
use crate::process::BenchProcess;

const FIRST_ID: u32 = 2_000_000;
/// Send times are kept for the last this many ids; far more than can be in flight.
const REMEMBERED: usize = 1 << 12;

/// A session on the pipes of a process.
pub struct StdioSession {
    input: ChildStdin,
    output: ChildStdout,
    buffer: Vec<u8>,
    /// The beginning of a line whose end is not here yet.
    begun: Vec<u8>,
}

impl StdioSession {
    /// Takes the pipes of `process` and sends the first request. A process that is dropped meanwhile ends the wait.
    pub async fn open(process: &mut BenchProcess, era: BenchEra) -> Result<StdioSession> {
        let mut session = StdioSession {
            input: process.child.stdin.take().context("its stdin is a pipe")?,
            output: process
                .child
                .stdout
                .take()
                .context("its stdout is a pipe")?,
            buffer: vec![0; 64 * 1024],
            begun: Vec::new(),
        };
        spawn_blocking(move || {
            session.write_line(canned::opening(era).as_bytes())?;
            let mut answered = false;
            while !answered {
                session.read_lines(|line| {
                    answered |= memmem::find(line, br#""result":"#).is_some();
                    Ok(())
                })?;
            }
            if era == BenchEra::Legacy {
                session.write_line(canned::initialized().as_bytes())?;
            }
            Ok(session)
        })
        .await?
    }

    /// Measures after a warm-up.
    pub(super) fn run(&mut self, load: &Load) -> Result<Window> {
        let [Work::Call(request)] = &load.work[..] else {
            bail!("a client over stdio repeats one call");
        };
        let mut calls = CallLoop {
            request,
            in_flight: load.in_flight,
            next: FIRST_ID,
            sent: vec![Instant::now(); REMEMBERED],
        };
        calls.run(self, Instant::now() + load.warm_up())?;
        calls.run(self, Instant::now() + load.time)
    }

    fn write_line(&mut self, message: &[u8]) -> Result<()> {
        Ok(self.input.write_all(&[message, b"\n"].concat())?)
    }

    /// One read; `seen` gets each line that it completes.
    fn read_lines(&mut self, mut seen: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let count = self.output.read(&mut self.buffer)?;
        ensure!(count > 0, "its stdout was closed");
        let mut rest = &self.buffer[..count];
        while let Some(length) = memchr(b'\n', rest) {
            if self.begun.is_empty() {
                seen(&rest[..length])?;
            } else {
                self.begun.extend_from_slice(&rest[..length]);
                seen(&self.begun)?;
                self.begun.clear();
            }
            rest = &rest[length + 1..];
        }
        self.begun.extend_from_slice(rest);
        Ok(())
    }
}

/// The requests of one measurement, with the times they were sent.
struct CallLoop<'a> {
    request: &'a Request,
    in_flight: usize,
    next: u32,
    sent: Vec<Instant>,
}

impl CallLoop<'_> {
    /// Keeps calls in flight until `end`, then waits for those that are still open.
    fn run(&mut self, session: &mut StdioSession, end: Instant) -> Result<Window> {
        let start = Instant::now();
        let mut latencies = Vec::new();
        let mut open = 0;
        let mut wanted = self.in_flight;
        loop {
            for _ in 0..wanted {
                self.sent[self.next as usize % REMEMBERED] = Instant::now();
                session.write_line(&self.request.with_id(self.next))?;
                self.next += 1;
            }
            open += wanted;
            if open == 0 {
                let elapsed = start.elapsed();
                return Ok(Window { latencies, elapsed });
            }
            let known = latencies.len();
            session.read_lines(|line| {
                // What a server says by itself has no id of ours.
                if let Some(id) = self.answered_id(line) {
                    ensure!(
                        self.request.is_answered_by(line, id),
                        "request {id} was answered with an error or in part"
                    );
                    latencies.push(self.sent[id as usize % REMEMBERED].elapsed());
                }
                Ok(())
            })?;
            let answered = latencies.len() - known;
            open -= answered;
            wanted = if Instant::now() < end { answered } else { 0 };
        }
    }

    /// The id of an answer, wherever the server writes it.
    fn answered_id(&self, line: &[u8]) -> Option<u32> {
        const KEY: &[u8] = br#""id":"#;
        let at = memmem::find(line, KEY)? + KEY.len();
        let id = str::from_utf8(line.get(at..at + 7)?).ok()?.parse().ok()?;
        (FIRST_ID..self.next).contains(&id).then_some(id)
    }
}
