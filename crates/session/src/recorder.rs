//! The recorder: appends a session's lines to its record.
//!
//! It is not async and does no waiting of its own. `record_message`, `record_verdict` and `record_event` only append to a buffer in memory; `flush` writes
//! the buffer with one `write(2)`, newline last. The pipeline calls `flush` before it lets go of the messages it recorded, so a
//! message that a peer received is in the file even if the proxy is killed in the next instant. Messages that are ready together
//! share a flush.

mod chain;
mod event_lines;
mod fault;
mod line;
mod line_redaction;
mod sync;
#[cfg(test)]
mod tests;
mod transport_envelope;

pub(crate) use line::subject_field;
pub use line::subject_name;
pub use sync::DiskSync;

use crate::record_input::{NewBody, NewMessage, NewVerdict, RecordEvent};
use crate::{
    CredentialRedaction, Durability, Error, RecordErrorPolicy, RecordLocation, RecordOptions,
    Redaction, SessionHeader, SessionRecord,
};
use chain::RecordChain;
use fault::RecorderFaults;
use line::RecordLineWriter;
use line_redaction::LineRedaction;
use mcp_proxy_wire::{Message, TransportEnvelope};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime};
use sync::SyncThread;

/// A buffer that one huge batch has grown is given back.
const KEPT_BUFFER: usize = 1 << 20;

/// Building the index at the end reads the whole record; above this size it is left to the first reader, so that the proxy exits at once.
const INDEX_AT_END: u64 = 256 << 20;

/// Writes one session's record.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    file: File,
    lines: RecordLineWriter,
    /// Lines in the buffer.
    pending: u64,
    /// Bytes of the file that are whole lines.
    good: u64,
    /// The last write failed half-way and could not be taken back: the next one starts with a newline.
    torn: bool,
    /// The header, until it is on the disk: without it nothing else has a meaning.
    header: Vec<u8>,
    /// Lines that could not be written since the last that could.
    lost: u64,
    messages: u64,
    chain: RecordChain,
    /// When it was last seen that the file is still in its folder.
    seen_at: Instant,
    durability: Durability,
    on_error: RecordErrorPolicy,
    faults: Arc<RecorderFaults>,
    syncer: Option<SyncThread>,
    /// A failure in a call that returns nothing, kept for the next flush.
    failed: Option<Error>,
}

impl Recorder {
    /// Creates the record at `place` and writes its header.
    pub fn create(
        place: RecordLocation,
        options: RecordOptions,
        header: &SessionHeader,
    ) -> Result<Recorder, Error> {
        let (file, path) = place.create(header)?;
        Recorder::start(file, path, options, header)
    }

    /// Creates a record for the viewers of a run that keeps none. It has no name and holds the newest messages: when `limit` bytes
    /// are reached, the older half goes.
    pub fn temporary(
        limit: u64,
        credentials: CredentialRedaction,
        redaction: Option<Redaction>,
        header: &SessionHeader,
    ) -> Result<Recorder, Error> {
        let options = RecordOptions {
            durability: Durability::None,
            on_error: RecordErrorPolicy::Warn,
            credentials,
            redaction,
            max_size: Some(limit / 2),
        };
        let recorder = Recorder::create(RecordLocation::Temporary, options, header)?;
        Ok(Recorder {
            chain: recorder.chain.temporary(),
            ..recorder
        })
    }

    /// The same as [`Recorder::create`] on an open file. Tests pass `/dev/full` here.
    pub(crate) fn start(
        file: File,
        path: PathBuf,
        options: RecordOptions,
        header: &SessionHeader,
    ) -> Result<Recorder, Error> {
        let masks = options.credentials;
        let faults = Arc::new(RecorderFaults::default());
        let syncer =
            SyncThread::start(options.durability, options.on_error, &file, &path, &faults)?;
        let mut recorder = Recorder {
            header: header.line(&masks, options.redaction.as_ref(), None),
            chain: RecordChain::new(header, &path, options.max_size),
            seen_at: Instant::now(),
            lines: RecordLineWriter::new(masks, options.redaction),
            path,
            file,
            pending: 0,
            good: 0,
            torn: false,
            lost: 0,
            messages: 0,
            durability: options.durability,
            on_error: options.on_error,
            faults,
            syncer,
            failed: None,
        };
        recorder.write_out()?;
        Ok(recorder)
    }

    /// The record's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The files of the record so far, in order: the last is [`Recorder::path`].
    pub fn paths(&self) -> &[PathBuf] {
        self.chain.paths()
    }

    /// Whether it is gone at the end: see [`Recorder::temporary`].
    pub fn is_temporary(&self) -> bool {
        self.chain.is_temporary()
    }

    /// Whether something in messages is hidden from it.
    pub fn redacts(&self) -> bool {
        self.lines.redaction.is_some()
    }

    /// Messages recorded so far.
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// Appends a `msg` line to the buffer. Returns how many values were hidden in it.
    pub fn record_message(&mut self, message: &NewMessage<'_>) -> u32 {
        self.continue_if_full(message.time);
        self.begin_again_if_removed();
        match self.lines.redaction.clone() {
            None => {
                self.store(message, LineRedaction::Nothing);
                0
            }
            Some(redaction) => {
                let mut count = 0;
                line_redaction::redact_message(message, &redaction, |message, hidden| {
                    count = hidden.count();
                    self.store(message, hidden);
                });
                count
            }
        }
    }

    /// How many values of the next message were redacted before it came here.
    pub(crate) fn note_prior_redactions(&mut self, count: u32) {
        self.lines.hidden(count);
    }

    fn store(&mut self, message: &NewMessage<'_>, hidden: LineRedaction) {
        match message.body {
            NewBody::Whole(_) => self.lines.message(message, hidden),
            NewBody::Empty
                if !matches!(
                    message.envelope,
                    TransportEnvelope::Line(_) | TransportEnvelope::Bare
                ) =>
            {
                // The seed knows no message without a body; the HTTP and SSE facts are kept all the same.
                let io = RecordEvent::Http {
                    connection: message.connection,
                    exchange: message.exchange,
                    direction: message.direction,
                    transport: message.transport,
                    envelope: message.envelope,
                };
                return self.record_event(message.time, &io);
            }
            NewBody::Empty => self.lines.message(message, hidden),
        }
        self.messages += 1;
        self.chain.messages += 1;
        self.pending += 1;
    }

    /// Appends an `act` line: a verdict, before its effect.
    pub fn record_verdict(&mut self, act: &NewVerdict) {
        match self.lines.redaction.clone() {
            None => self.store_act(act, 0),
            Some(redaction) => {
                let (act, count) = line_redaction::redact_verdict(act, &redaction);
                self.store_act(&act, count);
            }
        }
    }

    fn store_act(&mut self, act: &NewVerdict, redacted: u32) {
        let lines = &mut self.lines;
        lines.open_verdict(act, redacted);
        for (key, bytes) in [("original_raw", &act.original_raw), ("raw", &act.raw)] {
            if let Some(bytes) = bytes {
                let message = Message::parse(bytes.clone());
                // Only the last member of a line keeps white space around it, so such bytes go as text here.
                let padded = bytes.trim_ascii().len() != bytes.len();
                lines.body_or_text(key, &message, padded);
            }
        }
        lines.close();
        self.pending += 1;
    }

    /// Appends an `io` line: something that is neither a message nor a verdict.
    pub fn record_event(&mut self, time: SystemTime, io: &RecordEvent<'_>) {
        let start = self.lines.out.len();
        self.lines.record_event(time, io);
        self.chain.note_connection(io, &self.lines.out[start..]);
        self.pending += 1;
    }

    /// Writes everything pending with one `write(2)`. [`Recorder::disk_sync`] tells when it is on the disk.
    ///
    /// Under [`RecordErrorPolicy::Warn`] a failure is not an error: see [`Recorder::warning`].
    pub fn flush(&mut self) -> Result<(), Error> {
        if let Some(error) = self.failed.take() {
            self.faults.by_policy(self.on_error, error)?;
        }
        if self.lines.out.is_empty() {
            return Ok(());
        }
        self.write_out()
    }

    /// Throws the pending lines away. For measuring what making them costs.
    #[doc(hidden)]
    pub fn discard_pending(&mut self) {
        self.lines.out.clear();
        self.pending = 0;
    }

    /// The file that the record continues in, once after it has begun.
    pub fn take_new_file(&mut self) -> Option<PathBuf> {
        self.chain.take_new()
    }

    /// The first failure since recording last worked, once.
    pub fn warning(&mut self) -> Option<String> {
        self.faults.take()
    }

    /// How far the record has reached the disk, where messages wait for that (`--durability fsync`).
    pub fn disk_sync(&self) -> Option<DiskSync> {
        let waits = self.durability == Durability::Fsync;
        let syncer = self.syncer.as_ref().filter(|_| waits)?;
        Some(syncer.progress().clone())
    }

    /// Lines that could not be written and are not yet accounted for in the record.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Writes the `end` line, forces everything onto the disk and stores the index next to the record.
    pub fn end(&mut self, time: SystemTime, why: &str) -> Result<(), Error> {
        let start = self.lines.out.len();
        self.lines.open("end", time);
        self.lines.text("why", why);
        self.lines.number("messages", self.chain.messages);
        self.lines.close();
        let last_line = self.lines.out[start..].to_vec();
        self.pending += 1;
        let flushed = self.flush();
        if self.lost > 0 {
            self.write_last_line(&last_line);
        }
        flushed?;
        if self.durability != Durability::None
            && let Err(error) = self.file.sync_data()
        {
            self.faults.by_policy(
                self.on_error,
                Error::io("force onto the disk", &self.path, error),
            )?;
        }
        if self.good <= INDEX_AT_END && !self.is_temporary() {
            // The index is a cache: without it the next reader makes one.
            let _ = SessionRecord::open(&self.path).map(|session| session.store_index());
        }
        Ok(())
    }

    /// Ends a record that could not be written to its end: a full disk often has room for one short line. Without it a reader
    /// would take the proxy for killed.
    fn write_last_line(&mut self, line: &[u8]) {
        let can_follow = self.header.is_empty() && !self.torn;
        if can_follow && self.file.write_all(line).is_err() {
            // The file ends with a whole line, as before.
            let _ = self.file.set_len(self.good);
        }
    }

    fn write_out(&mut self) -> Result<(), Error> {
        let in_order = self.header.is_empty() && self.lost == 0 && !self.torn;
        let block = if in_order {
            std::mem::take(&mut self.lines.out)
        } else {
            self.take_retry_block()
        };
        // One write(2) for regular files; `write_all` only loops if the system took less.
        match self.file.write_all(&block) {
            Ok(()) => {
                self.good += block.len() as u64;
                self.pending = 0;
                if let Some(syncer) = &self.syncer {
                    syncer.progress().note_write();
                }
                if !in_order {
                    self.header.clear();
                    self.lost = 0;
                    self.torn = false;
                    self.faults.clear();
                }
                self.reuse(block);
                Ok(())
            }
            Err(error) => {
                // Take back what was written of it, so that the file ends with a whole line.
                self.torn = self.file.set_len(self.good).is_err();
                self.lost += std::mem::take(&mut self.pending);
                self.reuse(block);
                self.faults
                    .by_policy(self.on_error, Error::io("write to", &self.path, error))
            }
        }
    }

    /// The pending lines, preceded by whatever an earlier failure left undone.
    fn take_retry_block(&mut self) -> Vec<u8> {
        let lines = std::mem::take(&mut self.lines.out);
        let mut block = Vec::with_capacity(lines.len() + self.header.len() + 256);
        if self.torn {
            block.push(b'\n');
        }
        block.extend_from_slice(&self.header);
        if self.lost > 0 {
            self.lines.gap(SystemTime::now(), self.lost);
            block.append(&mut self.lines.out);
        }
        block.extend_from_slice(&lines);
        block
    }

    fn reuse(&mut self, mut block: Vec<u8>) {
        block.clear();
        if block.capacity() > KEPT_BUFFER {
            block = Vec::with_capacity(4096);
        }
        self.lines.out = block;
    }
}
