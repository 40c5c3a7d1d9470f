//! Cutting a byte stream into lines, without I/O and without losing a byte.
//!
//! A line that lies whole in what was pushed is handed on as a slice of it; one that came in several pushes is joined.
//! How the stream was split into pushes never changes what the lines are.

use bytes::{Bytes, BytesMut};

use crate::MessageEnds;

/// What comes out of a [`LineSplitter`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineUnit {
    /// A whole line.
    Line {
        /// All its bytes, with the `\n` or `\r\n` at its end.
        wire: Bytes,
        /// The same without it.
        message: Bytes,
    },
    /// The end of a line that was given up.
    GivenUp(MessageEnds),
}

/// Cuts what is pushed into lines.
#[derive(Debug)]
pub struct LineSplitter {
    max: usize,
    /// The beginning of a line whose end has not come.
    held: BytesMut,
    /// What is known of a line that is skipped.
    given_up: Option<MessageEnds>,
}

impl LineSplitter {
    /// A splitter at the beginning of a stream. It gives up lines of more than `max` bytes.
    pub fn new(max: usize) -> LineSplitter {
        LineSplitter {
            max,
            held: BytesMut::new(),
            given_up: None,
        }
    }

    /// Takes the next bytes of the stream and appends what they complete to `out`.
    pub fn push(&mut self, data: impl Into<Bytes>, out: &mut Vec<LineUnit>) {
        let mut data = data.into();
        while let Some(end) = memchr::memchr(b'\n', &data) {
            let end = data.split_to(end + 1);
            out.push(self.complete(end));
        }
        if let Some(ends) = &mut self.given_up {
            ends.add(&data);
            return;
        }
        self.held.extend_from_slice(&data);
        // A CR at the end may belong to the line end.
        if self.held.len() - usize::from(self.held.ends_with(b"\r")) > self.max {
            self.give_up();
        }
    }

    /// How many bytes of an unfinished line wait for its end.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Gives up the line that is being collected. The rest of it is skipped, and [`LineUnit::GivenUp`] stands for its end.
    pub fn give_up(&mut self) {
        let held = std::mem::take(&mut self.held);
        self.given_up
            .get_or_insert_with(MessageEnds::default)
            .add(&held);
    }

    /// What is known so far of the line that was given up and whose end has not come.
    pub fn given_up(&self) -> Option<&MessageEnds> {
        self.given_up.as_ref()
    }

    /// The stream has ended: a last line without a line end is a line too.
    pub fn finish(&mut self, out: &mut Vec<LineUnit>) {
        if self.held.len() > self.max {
            self.give_up();
        }
        if let Some(ends) = self.given_up.take() {
            out.push(LineUnit::GivenUp(ends));
        } else if !self.held.is_empty() {
            let wire = std::mem::take(&mut self.held).freeze();
            let message = wire.clone();
            out.push(LineUnit::Line { wire, message });
        }
    }

    /// Takes the bytes up to and with the next LF.
    fn complete(&mut self, end: Bytes) -> LineUnit {
        if let Some(mut ends) = self.given_up.take() {
            ends.add(&end);
            return LineUnit::GivenUp(ends);
        }
        let wire = match self.held.is_empty() {
            true => end,
            false => {
                self.held.extend_from_slice(&end);
                std::mem::take(&mut self.held).freeze()
            }
        };
        let ending = if wire.ends_with(b"\r\n") { 2 } else { 1 };
        let message = wire.slice(..wire.len() - ending);
        if message.len() > self.max {
            return LineUnit::GivenUp(MessageEnds::of(&wire));
        }
        LineUnit::Line { wire, message }
    }
}
