//! The life of a message, in one place: wrap, record, steps, verdict.
//!
//! A [`Lane`] is one direction of one conversation. A pump reads frames, passes all that are ready through the
//! lane together, and writes what comes out. The records of those frames share one `write(2)`, which has
//! returned before [`Lane::pass`] does: a message that a peer received is always in the record.

use std::sync::Arc;
use std::time::Duration;

use mcp_proxy_session::{Answers, Io, NewBody, NewMessage, Origin, PartAnswer};
use mcp_proxy_wire::{
    Body, Carriage, Chunk, Direction, ExchangeId, Frame, Kind, Message, Side, Transport,
};

use crate::connection::Connection;
use crate::correlate::{About, Answer, Correlator, Noting, Seen};
use crate::intercept::LaneMailbox;
use crate::large::Large;
use crate::link::LinkEnd;
use crate::pipeline::Ledger;
use crate::rules::KnownRules;
use crate::share::Whose;
use crate::step::{Stage, Step};

mod gather;
mod holding;
mod redirecting;
mod ruling;

/// One direction of one conversation.
pub struct Lane {
    connection: Arc<Connection>,
    direction: Direction,
    steps: &'static [Step],
    /// Nobody can hold its messages: they go no further, or are on their way in pieces already.
    unheld: bool,
    large: Option<Large>,
    stray: Stray,
    /// Inside a stray line that is too long to be whole.
    skipping: bool,
    /// A large message that somebody may want to hold, so far.
    gathering: Option<gather::Gathering>,
    /// Messages that were held come back here. None was held yet: there is none.
    mailbox: Option<LaneMailbox>,
    /// What messages answer, for those who choose what to hold. Filled only while somebody does.
    answers: Vec<(u64, Answer)>,
    /// The rules that the last message was judged by.
    rules: KnownRules,
}

/// What comes out of a lane: frames for the peer ahead and for the peer behind.
#[derive(Default)]
pub struct Passed {
    /// For the side the frames were travelling to.
    pub on: Vec<Frame>,
    /// For the side they came from.
    pub back: Vec<Frame>,
    /// The numbers of the messages in `on`, side by side with it; `None` for a frame that ends no message.
    pub sequences: Vec<Option<u64>>,
}

/// Stray output of a stdio server: lines that are no messages.
#[derive(Clone, Debug, Default)]
pub struct Stray {
    /// How many lines.
    pub lines: u64,
    /// How many bytes.
    pub bytes: u64,
    /// The first one, shortened, for error texts.
    pub first: String,
}

impl Lane {
    pub(crate) fn new(connection: Arc<Connection>, direction: Direction) -> Lane {
        let steps = Step::between(&connection);
        Lane {
            steps,
            unheld: false,
            ..Lane::recording(connection, direction)
        }
    }

    pub(crate) fn recording(connection: Arc<Connection>, direction: Direction) -> Lane {
        Lane {
            connection,
            direction,
            steps: &[],
            unheld: true,
            large: None,
            stray: Stray::default(),
            skipping: false,
            gathering: None,
            mailbox: None,
            answers: Vec::new(),
            rules: KnownRules::default(),
        }
    }

    /// Passes everything that is ready: wrap, record, one write, then the steps' verdicts.
    pub fn pass(
        &mut self,
        frames: &mut Vec<Frame>,
        now: Duration,
        passed: &mut Passed,
    ) -> Result<(), LinkEnd> {
        self.receive(frames, now, passed)?;
        self.connection.pipeline.flush_now()?;
        self.apply(now, passed)
    }

    /// The same for pumps: their records share one write with those of other connections that are ready as well, and
    /// with what `more` finds to have come meanwhile.
    pub async fn pass_together(
        &mut self,
        frames: &mut Vec<Frame>,
        now: Duration,
        passed: &mut Passed,
        more: impl FnOnce(&mut Vec<Frame>),
    ) -> Result<(), LinkEnd> {
        self.receive(frames, now, passed)?;
        let connection = Arc::clone(&self.connection);
        if let Some(mut ticket) = connection.pipeline.ticket() {
            tokio::task::yield_now().await;
            more(frames);
            if !frames.is_empty() {
                self.receive(frames, connection.pipeline.now(), passed)?;
                ticket = connection.pipeline.ticket().unwrap_or(ticket);
            }
            connection.pipeline.flush_since(ticket)?;
        }
        self.apply(now, passed)
    }

    /// The same for a single frame: what comes out for the peer ahead, or for the one behind if that is all. Waits
    /// while the message is held.
    pub async fn pass_one(
        &mut self,
        frame: Frame,
        now: Duration,
    ) -> Result<Option<Frame>, LinkEnd> {
        if !self.steps.is_empty() || self.may_hold() {
            let mut passed = Passed::default();
            self.pass_together(&mut vec![frame], now, &mut passed, |_| {})
                .await?;
            if passed.on.is_empty() && passed.back.is_empty() && self.holds() {
                self.release(&mut passed).await?;
            }
            return Ok(passed.on.pop().or(passed.back.pop()));
        }
        let connection = Arc::clone(&self.connection);
        let received = self.receive_one(&mut connection.pipeline.ledger(), frame, now)?;
        connection.pipeline.flush_together().await?;
        Ok(received.map(|(frame, _)| frame))
    }

    /// Wraps and records.
    fn receive(
        &mut self,
        frames: &mut Vec<Frame>,
        now: Duration,
        passed: &mut Passed,
    ) -> Result<(), LinkEnd> {
        let connection = Arc::clone(&self.connection);
        let mut ledger = connection.pipeline.ledger();
        for frame in frames.drain(..) {
            if let Some((frame, sequence)) = self.receive_one(&mut ledger, frame, now)? {
                passed.on.push(frame);
                passed.sequences.push(sequence);
            }
        }
        Ok(())
    }

    /// The verdicts on what is recorded now: holds first, then the steps.
    fn apply(&mut self, now: Duration, passed: &mut Passed) -> Result<(), LinkEnd> {
        if self.mailbox.is_some() || self.may_hold() {
            self.hold(now, passed);
        }
        let stage = Stage {
            connection: &self.connection,
            direction: self.direction,
            now,
        };
        self.steps
            .iter()
            .try_for_each(|step| step.take(&stage, passed))
    }

    /// The side whose frames pass here.
    pub fn from(&self) -> Side {
        self.direction.from()
    }

    /// What the server printed that was no message.
    pub fn stray(&self) -> &Stray {
        &self.stray
    }

    /// Wraps and records one frame. `None`: it is not forwarded (a stray line).
    fn receive_one(
        &mut self,
        ledger: &mut Ledger,
        frame: Frame,
        now: Duration,
    ) -> Result<Option<(Frame, Option<u64>)>, LinkEnd> {
        let Some(frame) = self.gather(frame) else {
            return Ok(None);
        };
        let sequence = match &frame.body {
            Body::Withheld(_) => None,
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
                origin: origin(&frame.carriage),
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
                origin: Origin::Peer,
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
    fn is_stray(&self, carriage: &Carriage, line: &[u8]) -> bool {
        !self.connection.pipeline.pass_noise
            && self.direction == Direction::ServerToClient
            && self.connection.server() == Transport::Stdio
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

    fn transport(&self) -> Transport {
        self.connection.transport_from(self.direction)
    }
}

fn first_byte(line: &[u8]) -> Option<u8> {
    line.iter()
        .copied()
        .find(|byte| !byte.is_ascii_whitespace())
}

/// A whole message without a carriage was made here.
fn origin(carriage: &Carriage) -> Origin {
    match carriage {
        Carriage::Message => Origin::Proxy,
        _ => Origin::Peer,
    }
}

fn answers(answer: Option<&Answer>, now: Duration) -> Option<Answers> {
    answer.map(|answer| Answers {
        id: answer.asked.message,
        sequence: answer.asked.sequence,
        latency: now.saturating_sub(answer.asked.at),
    })
}
