//! An event that is cut through: its bytes are forwarded as they arrive, and only the data lines among them are told apart.

use std::ops::Range;

use bytes::Bytes;

use super::SseUnit;
use super::splitter::SseLineEnd;
use crate::Chunk;

const DATA: &[u8] = b"data";

/// Where in a block the next byte stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BlockPosition {
    /// At the beginning of a line.
    Start,
    /// After this many bytes of the name `data`.
    Name(usize),
    /// Behind `data:`, where one space does not count.
    Colon,
    /// In the value of a data line, or at its end.
    Value,
    /// In a line that is not a data line, or at its end.
    Other,
    /// Behind a CR that ended a line.
    AfterCr,
    /// Behind the CR of the empty line that ends the block. It is held back, since LF is expected.
    AfterLastCr,
}

/// The state inside an event that is cut through.
#[derive(Debug)]
pub(super) struct CutThroughEvent {
    place: BlockPosition,
    /// The block was given up: its bytes are skipped.
    silent: bool,
}

/// The block has ended.
pub(super) struct BlockEnd {
    /// It ended with a CR that is the last byte so far.
    pub after_cr: bool,
}

/// What was passed of a push and not handed out yet.
struct PendingChunk<'a> {
    data: &'a Bytes,
    start: usize,
    at: usize,
    /// The part of it that is message.
    message: Range<usize>,
}

impl CutThroughEvent {
    pub(super) fn new(place: BlockPosition) -> CutThroughEvent {
        CutThroughEvent {
            place,
            silent: false,
        }
    }

    pub(super) fn silent(place: BlockPosition) -> CutThroughEvent {
        CutThroughEvent {
            place,
            silent: true,
        }
    }

    /// Takes bytes up to the end of the block and leaves the rest in `data`.
    pub(super) fn take(
        &mut self,
        data: &mut Bytes,
        ending: &mut SseLineEnd,
        out: &mut Vec<SseUnit>,
    ) -> Option<BlockEnd> {
        if self.place == BlockPosition::AfterLastCr {
            let taken = if data.starts_with(b"\n") { 1 } else { 0 };
            *ending = if taken == 1 {
                SseLineEnd::CrLf
            } else {
                SseLineEnd::Cr
            };
            let wire = Bytes::from_static(&b"\r\n"[..1 + taken]);
            let _ = data.split_to(taken);
            self.emit(SseUnit::Close(Chunk::framing(wire)), out);
            return Some(BlockEnd { after_cr: false });
        }
        let whole = data.clone();
        let mut passed = PendingChunk {
            data: &whole,
            start: 0,
            at: 0,
            message: 0..0,
        };
        let ended = self.walk(&mut passed, ending, out);
        let _ = data.split_to(passed.at);
        match ended {
            Some(ended) => {
                self.emit(SseUnit::Close(passed.chunk()), out);
                Some(ended)
            }
            None => {
                if passed.at > passed.start {
                    self.emit(SseUnit::More(passed.chunk()), out);
                }
                if self.place == BlockPosition::AfterLastCr {
                    let _ = data.split_to(1);
                }
                None
            }
        }
    }

    /// The stream has ended inside the block.
    pub(super) fn finish(self, out: &mut Vec<SseUnit>) {
        let (wire, message): (&'static [u8], &'static [u8]) = match self.place {
            BlockPosition::AfterLastCr => (b"\r", b""),
            // A last line that is just the name is a data line without a value.
            BlockPosition::Name(4) => (b"", b"\n"),
            _ => (b"", b""),
        };
        let (wire, message) = (Bytes::from_static(wire), Bytes::from_static(message));
        self.emit(SseUnit::Close(Chunk { wire, message }), out);
    }

    fn walk(
        &mut self,
        passed: &mut PendingChunk<'_>,
        ending: &mut SseLineEnd,
        out: &mut Vec<SseUnit>,
    ) -> Option<BlockEnd> {
        while let Some(&byte) = passed.data.get(passed.at) {
            match (self.place, byte) {
                (BlockPosition::AfterCr, b'\n') => {
                    *ending = SseLineEnd::CrLf;
                    passed.at += 1;
                    self.place = BlockPosition::Start;
                }
                (BlockPosition::AfterCr, _) => {
                    *ending = SseLineEnd::Cr;
                    self.place = BlockPosition::Start;
                }
                (BlockPosition::Start, b'\n') => {
                    *ending = SseLineEnd::Lf;
                    passed.at += 1;
                    return Some(BlockEnd { after_cr: false });
                }
                (BlockPosition::Start, b'\r') => match passed.data.get(passed.at + 1) {
                    None if *ending == SseLineEnd::CrLf => {
                        self.place = BlockPosition::AfterLastCr;
                        return None;
                    }
                    next => {
                        let lf = next == Some(&b'\n');
                        *ending = if lf { SseLineEnd::CrLf } else { SseLineEnd::Cr };
                        passed.at += 1 + usize::from(lf);
                        return Some(BlockEnd {
                            after_cr: next.is_none(),
                        });
                    }
                },
                (BlockPosition::Start, _) => self.place = BlockPosition::Name(0),
                (BlockPosition::Name(seen), byte) if DATA.get(seen) == Some(&byte) => {
                    self.place = BlockPosition::Name(seen + 1);
                    passed.at += 1;
                }
                (BlockPosition::Name(4), b':' | b'\r' | b'\n') => {
                    self.join(passed, out);
                    self.place = if byte == b':' {
                        BlockPosition::Colon
                    } else {
                        BlockPosition::Other
                    };
                    passed.at += usize::from(byte == b':');
                }
                (BlockPosition::Name(_), _) => self.place = BlockPosition::Other,
                (BlockPosition::Colon, byte) => {
                    passed.at += usize::from(byte == b' ');
                    self.place = BlockPosition::Value;
                }
                (BlockPosition::Value | BlockPosition::Other, b'\n') => {
                    *ending = SseLineEnd::Lf;
                    passed.at += 1;
                    self.place = BlockPosition::Start;
                }
                (BlockPosition::Value | BlockPosition::Other, b'\r') => {
                    passed.at += 1;
                    self.place = BlockPosition::AfterCr;
                }
                (BlockPosition::Value, _) => {
                    let start = passed.at;
                    passed.skip_line();
                    passed.message = start..passed.at;
                }
                (BlockPosition::Other, _) => passed.skip_line(),
                (BlockPosition::AfterLastCr, _) => return None,
            }
        }
        None
    }

    /// Another data line begins: hands out what came before it, and the join.
    fn join(&self, passed: &mut PendingChunk<'_>, out: &mut Vec<SseUnit>) {
        if passed.at > passed.start {
            self.emit(SseUnit::More(passed.chunk()), out);
        }
        passed.start = passed.at;
        passed.message = passed.at..passed.at;
        self.emit(
            SseUnit::More(Chunk {
                wire: Bytes::new(),
                message: Bytes::from_static(b"\n"),
            }),
            out,
        );
    }

    fn emit(&self, unit: SseUnit, out: &mut Vec<SseUnit>) {
        if !self.silent {
            out.push(unit);
        }
    }
}

impl PendingChunk<'_> {
    fn skip_line(&mut self) {
        let rest = &self.data[self.at..];
        self.at += memchr::memchr2(b'\r', b'\n', rest).unwrap_or(rest.len());
    }

    fn chunk(&self) -> Chunk {
        Chunk {
            wire: self.data.slice(self.start..self.at),
            message: self.data.slice(self.message.clone()),
        }
    }
}
