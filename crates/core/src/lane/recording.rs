//! Recording: each frame that a lane reads gets its number, finds the request that it answers, and becomes a line of the
//! record. Nothing is decided here.

use std::sync::Arc;
use std::time::Duration;

use mcp_proxy_session::{Io, NewBody, PartAnswer};
use mcp_proxy_wire::{Body, Carriage, Chunk, Direction, Frame, Kind, Message};

use super::Lane;
use crate::connection::{RecordLine, answers};
use crate::correlate::{About, Answer, Correlator, Noting, Seen};
use crate::large::Large;
use crate::link::LinkEnd;
use crate::multiplexer::Recipient;
use crate::pipeline::Ledger;

impl Lane {
    /// Records one frame and gives it its number. `None`: it is not forwarded (a stray line, or part of a message that is
    /// still being collected).
    pub(super) fn receive_one(
        &mut self,
        ledger: &mut Ledger,
        frame: Frame,
        now: Duration,
    ) -> Result<Option<Frame>, LinkEnd> {
        let Some(mut frame) = self.gather(frame) else {
            return Ok(None);
        };
        match &frame.body {
            Body::Whole(message) => {
                if self.is_stray(&frame.carriage, message.raw()) {
                    self.note_stray(ledger, message.raw(), now);
                    return Ok(None);
                }
                frame.sequence = Some(self.record_whole(ledger, &frame, message, now));
            }
            Body::Empty => self.record_empty(ledger, &frame, now),
            Body::Open(chunk) if self.is_stray(&frame.carriage, &chunk.message) => {
                // The record keeps its beginning; the rest of such a line is of no use to anybody.
                self.note_stray(ledger, &chunk.message, now);
                self.skipping = true;
                return Ok(None);
            }
            Body::More(_) if self.skipping => return Ok(None),
            Body::Close(_) if self.skipping => {
                self.skipping = false;
                return Ok(None);
            }
            Body::Open(chunk) => {
                let mut large = Large::open(&frame, ledger.recorder.as_mut());
                large.add(&chunk.message);
                self.large = Some(large);
            }
            Body::More(chunk) => self.more(chunk),
            Body::Close(chunk) => {
                self.more(chunk);
                frame.sequence = self.record_large(ledger, now)?;
            }
        }
        Ok(Some(frame))
    }

    fn more(&mut self, chunk: &Chunk) {
        if let Some(large) = &mut self.large {
            large.add(&chunk.message);
        }
    }

    fn record_whole(
        &mut self,
        ledger: &mut Ledger,
        frame: &Frame,
        message: &Message,
        now: Duration,
    ) -> u64 {
        let seen = self.seen(ledger, frame, now);
        let mut correlator = self.connection.correlator();
        let mut parts = Vec::new();
        let answer = if message.kind() == Kind::Batch {
            for part in message.parts().unwrap_or_default() {
                let answer = correlator.see(seen, &part);
                parts.push(PartAnswer {
                    kind: part.kind(),
                    id: part.id(),
                    method: part.method().map(|method| method.into_owned()),
                    answers: answers(answer.as_ref(), now),
                });
            }
            None
        } else {
            self.correlate(&mut correlator, seen, message)
        };
        drop(correlator);
        self.connection.append(
            ledger,
            seen,
            RecordLine {
                frame,
                body: NewBody::Whole(message),
                answer: answer.as_ref(),
                parts: &parts,
            },
        );
        if seen.noting == Noting::About
            && let Some(answer) = answer
        {
            self.answers.push((seen.sequence, answer));
        }
        seen.sequence
    }

    /// Takes the next number for a message of this lane.
    fn seen(&self, ledger: &mut Ledger, frame: &Frame, now: Duration) -> Seen {
        let (sequence, message) = ledger.next(self.connection.pipeline.wall(now));
        Seen {
            direction: self.direction,
            stream: frame.stream,
            sequence,
            message,
            at: now,
            noting: self.noting(),
        }
    }

    /// On a shared connection the server's answer carries an id of ours; its owner's is what was asked.
    fn correlate(
        &self,
        correlator: &mut Correlator,
        seen: Seen,
        message: &Message,
    ) -> Option<Answer> {
        if self.direction == Direction::ServerToClient
            && matches!(message.kind(), Kind::Response | Kind::Error)
            && let Some(multiplexer) = self.connection.multiplexer()
            && !self.connection.is_of_replay(message)
        {
            let Recipient::Client(stream, id) = multiplexer.recipient(message) else {
                return None;
            };
            return correlator.answer(self.direction, stream, &id);
        }
        correlator.see(seen, message)
    }

    fn record_large(&mut self, ledger: &mut Ledger, now: Duration) -> Result<Option<u64>, LinkEnd> {
        let Some(mut large) = self.large.take() else {
            return Ok(None);
        };
        let head = large.head();
        let seen = self.seen(ledger, &large.first, now);
        let mut correlator = self.connection.correlator();
        let answer = match (head.kind, &head.id) {
            (Kind::Request, Some(asked)) => {
                let about = head.method.clone().map(|method| About {
                    method: method.into(),
                    name: head.name.as_deref().map(Arc::from),
                });
                correlator.ask(seen, asked.clone(), about);
                None
            }
            (Kind::Response | Kind::Error, Some(asked)) => {
                correlator.answer(self.direction, seen.stream, asked)
            }
            _ => None,
        };
        drop(correlator);
        let file = large
            .finish(seen.sequence)
            .map_err(|error| self.connection.pipeline.record_failed(&error))?;
        if let Some(file) = &file {
            self.connection.append(
                ledger,
                seen,
                RecordLine {
                    frame: &large.first,
                    body: NewBody::Large {
                        file,
                        len: large.len,
                        head: &head,
                    },
                    answer: answer.as_ref(),
                    parts: &[],
                },
            );
        }
        Ok(Some(seen.sequence))
    }

    /// An HTTP request or response without a body, or an SSE block without data.
    fn record_empty(&self, ledger: &mut Ledger, frame: &Frame, now: Duration) {
        if let Some(recorder) = &mut ledger.recorder {
            recorder.io(
                self.connection.pipeline.wall(now),
                &Io::Http {
                    connection: self.connection.id,
                    exchange: frame.stream.exchange().map_or(0, |exchange| exchange.0),
                    direction: self.direction,
                    transport: self.transport(),
                    carriage: &frame.carriage,
                },
            );
        }
    }

    /// A line from a server's stdout that cannot be a message: empty, or opening with neither `{` nor `[`.
    pub(super) fn is_stray(&self, carriage: &Carriage, line: &[u8]) -> bool {
        !self.connection.pipeline.pass_noise
            && self.direction == Direction::ServerToClient
            && matches!(carriage, Carriage::Line(_))
            && !matches!(first_byte(line), Some(b'{' | b'['))
    }

    fn note_stray(&mut self, ledger: &mut Ledger, line: &[u8], now: Duration) {
        self.stray.lines += 1;
        self.stray.bytes += line.len() as u64;
        if self.stray.first.is_empty() {
            let text = String::from_utf8_lossy(line);
            self.stray.first = text.trim().chars().take(120).collect();
        }
        if let Some(recorder) = &mut ledger.recorder {
            recorder.io(
                self.connection.pipeline.wall(now),
                &Io::Stray {
                    connection: self.connection.id,
                    direction: self.direction,
                    bytes: line,
                },
            );
        }
    }
}

fn first_byte(line: &[u8]) -> Option<u8> {
    line.iter()
        .copied()
        .find(|byte| !byte.is_ascii_whitespace())
}
