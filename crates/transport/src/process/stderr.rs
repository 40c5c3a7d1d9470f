//! The server's stderr: cut into lines with their time, kept for the record, and the last few for error
//! texts.
//!
//! A server must never wait because nobody takes its log lines. So they are read at once, and when more pile up than
//! the bound, the oldest are dropped and counted.
//!
//! The reading task owns the read end of the pipe, which the guard watches: when the task ends, so does the server.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use bytes::{Bytes, BytesMut};
use tokio::net::unix::pipe;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::exit::GUARD_PREFIX;

/// Longer lines are cut here.
const LINE_LIMIT: usize = 64 * 1024;
/// What may wait to be taken, in bytes and in lines.
const QUEUE_BYTES: usize = 1 << 20;
const QUEUE_LINES: usize = 4096;
/// What is kept for error texts: lines, and bytes of each.
const RECENT_LINES: usize = 20;
const RECENT_LINE_BYTES: usize = 1024;
/// How much is read at once; a stderr pipe holds 64 KiB, and most lines are short.
const READ_SIZE: usize = 4096;

/// One line of a server's stderr.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StderrLine {
    /// When its end was read.
    pub time: SystemTime,
    /// The line without its line end, byte for byte.
    pub bytes: Bytes,
    /// Bytes at its end that were dropped because it is longer than 64 KiB.
    pub cut: usize,
    /// Lines before this one that were dropped because nobody took them in time.
    pub lost_before: u64,
}

/// Takes a server's stderr lines as they come. Dropping it is fine: lines are then read and dropped.
#[derive(Debug)]
pub struct StderrLines {
    shared: Arc<StderrShared>,
}

impl StderrLines {
    /// The next line; `None` once stderr is closed and every line was taken. Cancel safe.
    pub async fn next(&mut self) -> Option<StderrLine> {
        loop {
            // Registered before the look, so that a line that comes in between is not missed.
            let changed = self.shared.changed.notified();
            {
                let mut state = self.shared.lock();
                if let Some(line) = state.take() {
                    return Some(line);
                }
                if state.closed {
                    return None;
                }
            }
            changed.await;
        }
    }
}

/// The running reader of one server's stderr.
#[derive(Debug)]
pub(super) struct StderrReader {
    shared: Arc<StderrShared>,
    task: JoinHandle<()>,
}

impl StderrReader {
    pub(super) fn start(pipe: pipe::Receiver) -> (Self, StderrLines) {
        let shared = Arc::new(StderrShared::default());
        let lines = StderrLines {
            shared: shared.clone(),
        };
        let task = tokio::spawn(read(pipe, shared.clone()));
        (Self { shared, task }, lines)
    }

    /// The last lines, oldest first.
    pub(super) fn recent(&self) -> Vec<String> {
        self.shared.lock().recent.iter().cloned().collect()
    }

    /// The guard's own line, if it was the only one.
    pub(super) fn guard_line(&self) -> Option<String> {
        let state = self.shared.lock();
        let line = String::from_utf8_lossy(&state.guard_line.as_ref()?.bytes).into_owned();
        line.strip_prefix(GUARD_PREFIX).map(str::to_owned)
    }

    /// Waits until everything is read, which is when nobody holds the write end any more. Cancel safe.
    pub(super) async fn finished(&mut self) {
        if !self.task.is_finished() {
            let _ = (&mut self.task).await;
        }
    }

    /// Closes the read end: the guard takes this for the end of the proxy.
    pub(super) fn close(&self) {
        self.task.abort();
    }
}

impl Drop for StderrReader {
    fn drop(&mut self) {
        self.close();
    }
}

#[derive(Debug, Default)]
struct StderrShared {
    state: Mutex<StderrState>,
    changed: Notify,
}

impl StderrShared {
    fn lock(&self) -> MutexGuard<'_, StderrState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Default)]
struct StderrState {
    queue: VecDeque<StderrLine>,
    queued_bytes: usize,
    lost: u64,
    recent: VecDeque<String>,
    /// A first line that looks like the guard's own. It counts as the server's only if more lines follow.
    guard_line: Option<StderrLine>,
    any_seen: bool,
    closed: bool,
}

impl StderrState {
    fn put(&mut self, line: StderrLine) {
        let first = !std::mem::replace(&mut self.any_seen, true);
        if first && line.bytes.starts_with(GUARD_PREFIX.as_bytes()) {
            self.guard_line = Some(line);
            return;
        }
        if let Some(held) = self.guard_line.take() {
            self.keep(held);
        }
        self.keep(line);
    }

    fn keep(&mut self, line: StderrLine) {
        if self.recent.len() == RECENT_LINES {
            self.recent.pop_front();
        }
        let shown = &line.bytes[..line.bytes.len().min(RECENT_LINE_BYTES)];
        self.recent
            .push_back(String::from_utf8_lossy(shown).into_owned());
        self.queued_bytes += line.bytes.len();
        self.queue.push_back(line);
        while self.queue.len() > QUEUE_LINES || self.queued_bytes > QUEUE_BYTES {
            let Some(oldest) = self.queue.pop_front() else {
                break;
            };
            self.queued_bytes -= oldest.bytes.len();
            self.lost += 1;
        }
    }

    fn take(&mut self) -> Option<StderrLine> {
        let mut line = self.queue.pop_front()?;
        self.queued_bytes -= line.bytes.len();
        line.lost_before = std::mem::take(&mut self.lost);
        Some(line)
    }
}

/// Marks the end for the taker, also when the task is aborted.
struct CloseOnDrop(Arc<StderrShared>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.changed.notify_waiters();
    }
}

async fn read(pipe: pipe::Receiver, shared: Arc<StderrShared>) {
    let shared = CloseOnDrop(shared);
    let mut cutter = LineCutter::default();
    let mut buffer = [0; READ_SIZE];
    while pipe.readable().await.is_ok() {
        match pipe.try_read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => cutter.push(&buffer[..count], &shared.0),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => break,
        }
    }
    cutter.finish(&shared.0);
}

/// Cuts a byte stream into lines of bounded length.
#[derive(Debug, Default)]
struct LineCutter {
    line: BytesMut,
    cut: usize,
}

impl LineCutter {
    fn push(&mut self, data: &[u8], shared: &StderrShared) {
        for piece in data.split_inclusive(|byte| *byte == b'\n') {
            let text = piece.strip_suffix(b"\n").unwrap_or(piece);
            let room = LINE_LIMIT - self.line.len();
            let (kept, cut) = text.split_at(text.len().min(room));
            self.line.extend_from_slice(kept);
            self.cut += cut.len();
            if text.len() < piece.len() {
                self.end_line(shared);
            }
        }
    }

    /// A last line without its line end is a line too.
    fn finish(&mut self, shared: &StderrShared) {
        if !self.line.is_empty() {
            self.end_line(shared);
        }
    }

    fn end_line(&mut self, shared: &StderrShared) {
        if self.line.last() == Some(&b'\r') {
            self.line.truncate(self.line.len() - 1);
        }
        shared.lock().put(StderrLine {
            time: SystemTime::now(),
            bytes: self.line.split().freeze(),
            cut: std::mem::take(&mut self.cut),
            lost_before: 0,
        });
        shared.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
