//! Cutting a byte stream into lines, without I/O and without losing a byte.
//!
//! A line that lies whole in what was pushed is handed on as a slice of it. A line longer than [`Limits::cut`] is not
//! waited for: its pieces are forwarded as they arrive. How the stream was split into pushes never changes what the lines are.

mod held_parts;

use bytes::Bytes;

use crate::{Chunk, Limits};
use held_parts::HeldParts;

/// How much of a message that is given up is kept, so that its id can still be read.
const FRONT: usize = 64 * 1024;

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
    /// The first piece of a line that is cut through.
    Open(Chunk),
    /// A further piece.
    More(Chunk),
    /// The last piece, with the end of the line.
    Close(Chunk),
    /// A line that was collected grew over [`Limits::max`]. The rest of it will be skipped.
    TooLarge {
        /// How many bytes of it had come by then.
        seen: usize,
        /// Its first bytes, up to 64 KiB, for [`head_from_ends`](crate::read_partial_head).
        front: Bytes,
    },
}

impl LineUnit {
    /// The bytes to write on a link of the same kind.
    pub fn wire(&self) -> &[u8] {
        match self {
            LineUnit::Line { wire, .. } => wire,
            LineUnit::Open(chunk) | LineUnit::More(chunk) | LineUnit::Close(chunk) => &chunk.wire,
            LineUnit::TooLarge { .. } => &[],
        }
    }
}

/// Cuts what is pushed into lines.
#[derive(Debug)]
pub struct LineSplitter {
    limits: Limits,
    mode: Mode,
    /// The beginning of a line that is being collected; its length without a CR at the end is never over a limit.
    held: HeldParts,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Collecting,
    /// Inside a line that is cut through.
    Cutting,
    /// The same, and a CR is held back: it belongs to the line end if LF follows, else to the message.
    CuttingAfterCr,
    /// Inside a line that was given up.
    Skipping,
}

impl LineSplitter {
    /// A splitter at the beginning of a stream.
    pub fn new(limits: Limits) -> LineSplitter {
        LineSplitter {
            limits: limits.settled(),
            mode: Mode::Collecting,
            held: HeldParts::default(),
        }
    }

    /// Takes the next bytes of the stream and appends what they complete to `out`.
    pub fn push(&mut self, data: impl Into<Bytes>, out: &mut Vec<LineUnit>) {
        let mut data = data.into();
        while !data.is_empty() {
            let Some(end) = memchr::memchr(b'\n', &data) else {
                self.take_part(data, out);
                return;
            };
            let line = data.split_to(end + 1);
            self.take_end(line, out);
        }
    }

    /// How many bytes of an unfinished line wait for its end.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Gives up the line that is being collected, and skips the rest of it. Returns what was held of it.
    pub fn give_up(&mut self) -> Bytes {
        if self.mode == Mode::Collecting {
            self.mode = Mode::Skipping;
        }
        self.held.take()
    }

    /// The stream has ended: a last line without a line end is a line too, and a line that was cut through gets its
    /// `Close`.
    pub fn finish(&mut self, out: &mut Vec<LineUnit>) {
        match self.mode {
            Mode::Collecting if self.held.is_empty() => {}
            Mode::Collecting => {
                let wire = self.held.take();
                // Here a CR at the end is content, so this is the one place where it counts.
                if wire.len() > self.limits.cut {
                    out.push(LineUnit::Open(Chunk::content(wire)));
                    out.push(LineUnit::Close(Chunk::default()));
                } else if wire.len() > self.limits.max {
                    out.push(too_large(wire.len(), wire));
                } else {
                    out.push(LineUnit::Line {
                        message: wire.clone(),
                        wire,
                    });
                }
            }
            Mode::Cutting => out.push(LineUnit::Close(Chunk::default())),
            Mode::CuttingAfterCr => {
                out.push(LineUnit::Close(Chunk::content(Bytes::from_static(b"\r"))))
            }
            Mode::Skipping => {}
        }
        self.mode = Mode::Collecting;
    }

    /// Takes bytes that hold no line end.
    fn take_part(&mut self, part: Bytes, out: &mut Vec<LineUnit>) {
        match self.mode {
            Mode::Skipping => {}
            Mode::Cutting | Mode::CuttingAfterCr => {
                self.release_cr(out);
                self.pass(part, LineUnit::More, out);
            }
            Mode::Collecting => {
                let length = self.held.len() + part.len();
                let length = length - usize::from(part.ends_with(b"\r"));
                if length > self.limits.cut {
                    self.open(part, out);
                } else if length > self.limits.max {
                    self.held.push(part);
                    out.push(too_large(self.held.len(), self.held.take()));
                    self.mode = Mode::Skipping;
                } else {
                    self.held.push(part);
                }
            }
        }
    }

    /// Takes the bytes up to and with the next LF.
    fn take_end(&mut self, end: Bytes, out: &mut Vec<LineUnit>) {
        match self.mode {
            Mode::Skipping => {}
            Mode::Cutting => out.push(LineUnit::Close(closing(end))),
            Mode::CuttingAfterCr if end.len() == 1 => {
                out.push(LineUnit::Close(Chunk::framing(Bytes::from_static(b"\r\n"))));
            }
            Mode::CuttingAfterCr => {
                self.release_cr(out);
                out.push(LineUnit::Close(closing(end)));
            }
            Mode::Collecting => self.complete(end, out),
        }
        self.mode = Mode::Collecting;
    }

    fn complete(&mut self, end: Bytes, out: &mut Vec<LineUnit>) {
        let before = self.held.len();
        let ending = match end.as_ref() {
            [.., b'\r', b'\n'] => 2,
            [b'\n'] if self.held.ends_with_cr() => 2,
            _ => 1,
        };
        let length = before + end.len() - ending;
        if length > self.limits.cut {
            let mut end = end;
            // What is held was no longer than `cut`, so something of `end` is left for `Close`.
            let first = if before > 0 {
                self.held.take()
            } else {
                end.split_to(self.limits.cut.max(1))
            };
            out.push(LineUnit::Open(Chunk::content(first)));
            out.push(LineUnit::Close(closing(end)));
        } else if length > self.limits.max {
            self.held.push(end);
            out.push(too_large(length, self.held.take()));
        } else {
            let wire = if before > 0 {
                self.held.push(end);
                self.held.take()
            } else {
                end
            };
            let message = wire.slice(..length);
            out.push(LineUnit::Line { wire, message });
        }
    }

    /// Begins to cut through: `part` takes the line over the limit.
    fn open(&mut self, part: Bytes, out: &mut Vec<LineUnit>) {
        self.mode = Mode::Cutting;
        if self.held.is_empty() {
            self.pass(part, LineUnit::Open, out);
        } else {
            out.push(LineUnit::Open(Chunk::content(self.held.take())));
            self.pass(part, LineUnit::More, out);
        }
    }

    /// Hands on a piece of a line that is cut through, holding back a CR at its end.
    fn pass(&mut self, mut part: Bytes, unit: fn(Chunk) -> LineUnit, out: &mut Vec<LineUnit>) {
        if part.ends_with(b"\r") {
            part.truncate(part.len() - 1);
            self.mode = Mode::CuttingAfterCr;
        }
        if !part.is_empty() {
            out.push(unit(Chunk::content(part)));
        }
    }

    /// The CR that was held back turned out to be content.
    fn release_cr(&mut self, out: &mut Vec<LineUnit>) {
        if self.mode == Mode::CuttingAfterCr {
            out.push(LineUnit::More(Chunk::content(Bytes::from_static(b"\r"))));
            self.mode = Mode::Cutting;
        }
    }
}

/// The last piece of a line, which ends in LF or CRLF.
fn closing(wire: Bytes) -> Chunk {
    let ending = if wire.ends_with(b"\r\n") { 2 } else { 1 };
    let message = wire.slice(..wire.len() - ending);
    Chunk { wire, message }
}

fn too_large(seen: usize, line: Bytes) -> LineUnit {
    LineUnit::TooLarge {
        seen,
        front: front(&line),
    }
}

/// A copy of the first bytes of a message that is given up, so that they do not keep all of it alive.
pub(crate) fn front(message: &[u8]) -> Bytes {
    Bytes::copy_from_slice(&message[..message.len().min(FRONT)])
}
