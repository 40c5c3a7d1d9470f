//! What keeps a run's lines: a file, or with `--no-record` a little memory for viewers.
//!
//! The pipeline records in one way, whichever it is.

use super::{RecentMessages, Recorder};
use crate::record_input::{NewMessage, NewVerdict, RecordEvent};
use std::time::SystemTime;

/// A record on disk, or the last of one in memory.
#[derive(Debug)]
pub enum RecordSink {
    /// A record.
    File(Box<Recorder>),
    /// The newest lines only.
    Memory(Box<RecentMessages>),
}

impl RecordSink {
    /// Whether something in messages is hidden from it.
    pub fn redacts(&self) -> bool {
        match self {
            RecordSink::File(recorder) => recorder.lines.redaction.is_some(),
            RecordSink::Memory(ring) => ring.redaction().is_some(),
        }
    }

    /// See [`Recorder::record_message`].
    pub fn record_message(&mut self, message: &NewMessage<'_>) -> u32 {
        match self {
            RecordSink::File(recorder) => recorder.record_message(message),
            RecordSink::Memory(ring) => ring.record_message(message),
        }
    }

    /// See [`Recorder::record_verdict`].
    pub fn record_verdict(&mut self, act: &NewVerdict) {
        match self {
            RecordSink::File(recorder) => recorder.record_verdict(act),
            RecordSink::Memory(ring) => ring.record_verdict(act),
        }
    }

    /// See [`Recorder::record_event`].
    pub fn record_event(&mut self, time: SystemTime, io: &RecordEvent<'_>) {
        match self {
            RecordSink::File(recorder) => recorder.record_event(time, io),
            RecordSink::Memory(ring) => ring.record_event(time, io),
        }
    }

    /// Whether lines wait in a buffer until they are flushed.
    pub fn is_file(&self) -> bool {
        matches!(self, RecordSink::File(_))
    }
}

impl From<Recorder> for RecordSink {
    fn from(recorder: Recorder) -> RecordSink {
        RecordSink::File(Box::new(recorder))
    }
}

impl From<RecentMessages> for RecordSink {
    fn from(ring: RecentMessages) -> RecordSink {
        RecordSink::Memory(Box::new(ring))
    }
}
