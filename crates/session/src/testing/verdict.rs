//! One verdict of a sample, described step by step and then written.

use super::{SALT, SampleRecord, bytes};
use crate::{MessageId, NewVerdict, ReplayOrigin};
use std::time::Duration;

/// A verdict that is not written yet: [`SampleVerdict::write`] does that.
#[derive(Debug)]
#[must_use = "a verdict is only written by `write`"]
pub struct SampleVerdict<'a> {
    record: &'a mut SampleRecord,
    act: NewVerdict,
}

impl<'a> SampleVerdict<'a> {
    pub(super) fn new(
        record: &'a mut SampleRecord,
        kind: &'static str,
        sequence: u64,
    ) -> SampleVerdict<'a> {
        let time = record.at(sequence);
        SampleVerdict {
            act: NewVerdict {
                time,
                sequence: Some(sequence),
                message: Some(MessageId::new(time, SALT, sequence)),
                kind,
                by: "user".to_owned(),
                why: "as asked".to_owned(),
                delay: None,
                replay_of: None,
                original_raw: None,
                raw: None,
            },
            record,
        }
    }

    /// Who decided.
    pub fn by(mut self, by: &str) -> SampleVerdict<'a> {
        self.act.by = by.to_owned();
        self
    }

    /// Why.
    pub fn why(mut self, why: &str) -> SampleVerdict<'a> {
        self.act.why = why.to_owned();
        self
    }

    /// It was decided this long after the message came.
    pub fn after(mut self, time: Duration) -> SampleVerdict<'a> {
        self.act.time += time;
        self
    }

    /// It delays the message.
    pub fn delay(mut self, delay: Duration) -> SampleVerdict<'a> {
        self.act.delay = Some(delay);
        self
    }

    /// It is a replay of this message.
    pub fn replay_of(mut self, origin: ReplayOrigin) -> SampleVerdict<'a> {
        self.act.replay_of = Some(origin);
        self
    }

    /// The bytes before the change.
    pub fn original(mut self, raw: impl AsRef<[u8]>) -> SampleVerdict<'a> {
        self.act.original_raw = Some(bytes(raw));
        self
    }

    /// The bytes after the change.
    pub fn raw(mut self, raw: impl AsRef<[u8]>) -> SampleVerdict<'a> {
        self.act.raw = Some(bytes(raw));
        self
    }

    /// Writes it.
    pub fn write(self) {
        self.record.recorder.record_verdict(&self.act);
    }
}
