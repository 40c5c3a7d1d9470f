//! What keeps a run's lines: a file, or with `--no-record` a little memory for viewers.
//!
//! The pipeline records in one way, whichever it is.

use super::{Recorder, Ring, SideFile};
use crate::Error;
use crate::entry::{Act, Io, NewMessage};
use std::time::SystemTime;

/// A record on disk, or the last of one in memory.
#[derive(Debug)]
pub enum Keeper {
    /// A record.
    File(Box<Recorder>),
    /// The newest lines only.
    Ring(Box<Ring>),
}

impl Keeper {
    /// Whether something in messages is hidden from it.
    pub fn redacts(&self) -> bool {
        match self {
            Keeper::File(recorder) => recorder.lines.redaction.is_some(),
            Keeper::Ring(ring) => ring.redaction().is_some(),
        }
    }

    /// See [`Recorder::message`].
    pub fn message(&mut self, message: &NewMessage<'_>) {
        match self {
            Keeper::File(recorder) => recorder.message(message),
            Keeper::Ring(ring) => ring.message(message),
        }
    }

    /// See [`Recorder::act`].
    pub fn act(&mut self, act: &Act) {
        match self {
            Keeper::File(recorder) => recorder.act(act),
            Keeper::Ring(ring) => ring.act(act),
        }
    }

    /// See [`Recorder::io`].
    pub fn io(&mut self, time: SystemTime, io: &Io<'_>) {
        match self {
            Keeper::File(recorder) => recorder.io(time, io),
            Keeper::Ring(ring) => ring.io(time, io),
        }
    }

    /// See [`Recorder::side_file`]. A ring keeps no large bodies.
    pub fn side_file(&mut self) -> Result<SideFile, Error> {
        match self {
            Keeper::File(recorder) => recorder.side_file(),
            Keeper::Ring(ring) => Ok(ring.side_file()),
        }
    }

    /// Whether lines wait in a buffer until they are flushed.
    pub fn is_file(&self) -> bool {
        matches!(self, Keeper::File(_))
    }
}

impl From<Recorder> for Keeper {
    fn from(recorder: Recorder) -> Keeper {
        Keeper::File(Box::new(recorder))
    }
}

impl From<Ring> for Keeper {
    fn from(ring: Ring) -> Keeper {
        Keeper::Ring(Box::new(ring))
    }
}
