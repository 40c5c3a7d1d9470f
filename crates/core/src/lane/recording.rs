//! The recording of messages: each frame that a lane reads gets its number, finds the request that it answers, and becomes
//! a line of the record. Nothing is decided here.

use std::sync::Arc;
use std::time::Duration;

use mcp_proxy_session::{Answers, Io, NewBody, NewMessage, PartAnswer};
use mcp_proxy_wire::{
    Body, Carriage, Chunk, Direction, ExchangeId, Frame, Kind, Message, Origin, Transport,
};

use super::Lane;
use crate::correlate::{About, Answer, Correlator, Noting, Seen};
use crate::large::Large;
use crate::link::LinkEnd;
use crate::pipeline::Ledger;
use crate::share::Whose;

impl Lane {
    /// Wraps and records one frame. `None`: it is not forwarded (a stray line).
    pub(super) fn receive_one(
        &mut self,
        ledger: &mut Ledger,
        frame: Frame,
        now: Duration,
    ) -> Result<Option<(Frame, Option<u64>)>, LinkEnd> {
        let Some(frame) = self.gather(frame) else {
            return Ok(None);
        };
        let sequence = match &frame.body {
            Body::Withheld(_) | Body::Instead(_) => None,
            Body::Whole(message) => {
                if self.is_stray(&frame.carriage, message.raw()) {
                    self.note_stray(ledger, message.raw(), now);
                    return Ok(None);
                }
                Some(self.record_whole(ledger, &frame, message, now))
            }
            Body::Empty => {
                self.record_empty(ledger, &frame, now);
                None
            }
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
                None
            }
            Body::More(chunk) => {
                self.more(chunk);
                None
            }
            Body::Close(chunk) => {
                self.more(chunk);
                self.record_large(ledger, frame.exchange, now)?
            }
        };
        Ok(Some((frame, sequence)))
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
        let wall = self.connection.pipeline.wall(now);
        let (sequence, id) = ledger.next(wall);
        let seen = Seen {
            direction: self.direction,
            exchange: frame.exchange,
            sequence,
            message: id,
            at: now,
            noting: self.noting(),
        };
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
        if let Some(recorder) = &mut ledger.recorder {
            recorder.message(&NewMessage {
                sequence,
                id,
                time: wall,
                mono: now,
                direction: self.direction,
                transport: self.transport(),
                connection: self.connection.id,
                exchange: frame.exchange.0,
                origin: self.origin(&frame.carriage),
                parent: None,
                carriage: &frame.carriage,
                body: NewBody::Whole(message),
                late: answer.as_ref().is_some_and(|a| a.late),
                duplicate: answer.as_ref().is_some_and(|a| a.duplicate),
                answers: answers(answer.as_ref(), now),
                parts: &parts,
            });
        }
        if seen.noting == Noting::About
            && let Some(answer) = answer
        {
            self.answers.push((sequence, answer));
        }
        sequence
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
            && let Some(share) = self.connection.share()
            && !self.connection.is_of_replay(message)
        {
            let Whose::Owned(exchange, id) = share.whose(message) else {
                return None;
            };
            return correlator.answer(self.direction, exchange, &id);
        }
        correlator.see(seen, message)
    }

    fn record_large(
        &mut self,
        ledger: &mut Ledger,
        exchange: ExchangeId,
        now: Duration,
    ) -> Result<Option<u64>, LinkEnd> {
        let Some(mut large) = self.large.take() else {
            return Ok(None);
        };
        let wall = self.connection.pipeline.wall(now);
        let (sequence, id) = ledger.next(wall);
        let head = large.head();
        let seen = Seen {
            direction: self.direction,
            exchange,
            sequence,
            message: id,
            at: now,
            noting: self.noting(),
        };
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
                correlator.answer(self.direction, exchange, asked)
            }
            _ => None,
        };
        drop(correlator);
        let file = large
            .finish(sequence)
            .map_err(|error| self.connection.pipeline.record_failed(&error))?;
        if let (Some(recorder), Some(file)) = (&mut ledger.recorder, &file) {
            recorder.message(&NewMessage {
                sequence,
                id,
                time: wall,
                mono: now,
                direction: self.direction,
                transport: self.transport(),
                connection: self.connection.id,
                exchange: exchange.0,
                origin: self.direction.from().into(),
                parent: None,
                carriage: &large.carriage,
                body: NewBody::Large {
                    file,
                    len: large.len,
                    head: &head,
                },
                late: answer.as_ref().is_some_and(|a| a.late),
                duplicate: answer.as_ref().is_some_and(|a| a.duplicate),
                answers: answers(answer.as_ref(), now),
                parts: &[],
            });
        }
        Ok(Some(sequence))
    }

    /// An HTTP request or response without a body, or an SSE block without data.
    fn record_empty(&self, ledger: &mut Ledger, frame: &Frame, now: Duration) {
        if let Some(recorder) = &mut ledger.recorder {
            recorder.io(
                self.connection.pipeline.wall(now),
                &Io::Http {
                    connection: self.connection.id,
                    exchange: frame.exchange.0,
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
            // A mock may have a process behind it.
            && matches!(self.connection.server(), Transport::Stdio | Transport::InProcess)
            && matches!(carriage, Carriage::Line(_))
            && !matches!(first_byte(line), Some(b'{' | b'['))
    }

    /// A whole message without a carriage was made here.
    fn origin(&self, carriage: &Carriage) -> Origin {
        match carriage {
            Carriage::Message => Origin::Proxy,
            _ => self.direction.from().into(),
        }
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

fn answers(answer: Option<&Answer>, now: Duration) -> Option<Answers> {
    answer.map(|answer| Answers {
        id: answer.asked.message,
        sequence: answer.asked.sequence,
        latency: now.saturating_sub(answer.asked.at),
    })
}
