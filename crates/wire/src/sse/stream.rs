//! An event that is cut through: its bytes go on as they come, and only the data lines among them are told apart.

use std::ops::Range;

use bytes::Bytes;

use super::SseUnit;
use super::splitter::Ending;
use crate::Chunk;

const DATA: &[u8] = b"data";

/// Where in a block the next byte stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// At the beginning of a line.
    Start,
    /// Behind so many bytes of the name `data`.
    Name(usize),
    /// Behind `data:`, where one space does not count.
    Colon,
    /// In the value of a data line, or at its end.
    Value,
    /// In a line that is no data line, or at its end.
    Other,
    /// Behind a CR that ended a line.
    AfterCr,
    /// Behind the CR of the empty line that ends the block. It is held back, since LF is expected.
    AfterLastCr,
}

/// The state inside an event that is cut through.
#[derive(Debug)]
pub(super) struct Stream {
    place: Place,
    /// The block was given up: its bytes are skipped.
    silent: bool,
}

/// The block has ended.
pub(super) struct Ended {
    /// It ended with a CR that is the last byte so far.
    pub after_cr: bool,
}

/// What was passed of a push and not handed out yet.
struct Passed<'a> {
    data: &'a Bytes,
    start: usize,
    at: usize,
    /// The part of it that is message.
    message: Range<usize>,
}

impl Stream {
    pub fn new(place: Place) -> Stream {
        Stream {
            place,
            silent: false,
        }
    }

    pub fn silent(place: Place) -> Stream {
        Stream {
            place,
            silent: true,
        }
    }

    /// Takes bytes up to the end of the block and leaves the rest in `data`.
    pub fn take(
        &mut self,
        data: &mut Bytes,
        ending: &mut Ending,
        out: &mut Vec<SseUnit>,
    ) -> Option<Ended> {
        if self.place == Place::AfterLastCr {
            let taken = if data.starts_with(b"\n") { 1 } else { 0 };
            *ending = if taken == 1 { Ending::CrLf } else { Ending::Cr };
            let wire = Bytes::from_static(&b"\r\n"[..1 + taken]);
            let _ = data.split_to(taken);
            self.emit(SseUnit::Close(Chunk::framing(wire)), out);
            return Some(Ended { after_cr: false });
        }
        let whole = data.clone();
        let mut passed = Passed {
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
                if self.place == Place::AfterLastCr {
                    let _ = data.split_to(1);
                }
                None
            }
        }
    }

    /// The stream has ended inside the block.
    pub fn finish(self, out: &mut Vec<SseUnit>) {
        let (wire, message): (&'static [u8], &'static [u8]) = match self.place {
            Place::AfterLastCr => (b"\r", b""),
            // A last line that is just the name is a data line without a value.
            Place::Name(4) => (b"", b"\n"),
            _ => (b"", b""),
        };
        let (wire, message) = (Bytes::from_static(wire), Bytes::from_static(message));
        self.emit(SseUnit::Close(Chunk { wire, message }), out);
    }

    fn walk(
        &mut self,
        passed: &mut Passed<'_>,
        ending: &mut Ending,
        out: &mut Vec<SseUnit>,
    ) -> Option<Ended> {
        while let Some(&byte) = passed.data.get(passed.at) {
            match (self.place, byte) {
                (Place::AfterCr, b'\n') => {
                    *ending = Ending::CrLf;
                    passed.at += 1;
                    self.place = Place::Start;
                }
                (Place::AfterCr, _) => {
                    *ending = Ending::Cr;
                    self.place = Place::Start;
                }
                (Place::Start, b'\n') => {
                    *ending = Ending::Lf;
                    passed.at += 1;
                    return Some(Ended { after_cr: false });
                }
                (Place::Start, b'\r') => match passed.data.get(passed.at + 1) {
                    None if *ending == Ending::CrLf => {
                        self.place = Place::AfterLastCr;
                        return None;
                    }
                    next => {
                        let lf = next == Some(&b'\n');
                        *ending = if lf { Ending::CrLf } else { Ending::Cr };
                        passed.at += 1 + usize::from(lf);
                        return Some(Ended {
                            after_cr: next.is_none(),
                        });
                    }
                },
                (Place::Start, _) => self.place = Place::Name(0),
                (Place::Name(seen), byte) if DATA.get(seen) == Some(&byte) => {
                    self.place = Place::Name(seen + 1);
                    passed.at += 1;
                }
                (Place::Name(4), b':' | b'\r' | b'\n') => {
                    self.join(passed, out);
                    self.place = if byte == b':' {
                        Place::Colon
                    } else {
                        Place::Other
                    };
                    passed.at += usize::from(byte == b':');
                }
                (Place::Name(_), _) => self.place = Place::Other,
                (Place::Colon, byte) => {
                    passed.at += usize::from(byte == b' ');
                    self.place = Place::Value;
                }
                (Place::Value | Place::Other, b'\n') => {
                    *ending = Ending::Lf;
                    passed.at += 1;
                    self.place = Place::Start;
                }
                (Place::Value | Place::Other, b'\r') => {
                    passed.at += 1;
                    self.place = Place::AfterCr;
                }
                (Place::Value, _) => {
                    let start = passed.at;
                    passed.skip_line();
                    passed.message = start..passed.at;
                }
                (Place::Other, _) => passed.skip_line(),
                (Place::AfterLastCr, _) => return None,
            }
        }
        None
    }

    /// Another data line begins: hands out what came before it, and the join.
    fn join(&self, passed: &mut Passed<'_>, out: &mut Vec<SseUnit>) {
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

impl Passed<'_> {
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
