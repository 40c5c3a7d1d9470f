//! A peer's body on its way to the other peer, through a lane.
//!
//! hyper polls it when the receiving peer takes bytes, it polls the sending peer's body, and each piece goes through
//! the lane, and so into the record, on the way: no task, no queue, and a slow peer slows only its own.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame as BodyFrame, SizeHint};
use mcp_proxy_core::replay::Sieve;
use mcp_proxy_core::{Connection, DurableWait, Lane, LinkEnd, Outgoing, Passed};
use mcp_proxy_wire::{
    Body, Carriage, Chunk, Direction, ExchangeId, Frame, Kind, Limits, Side, Transport,
    encode_event, error_response,
};
use tokio::sync::mpsc;

use super::inflow::Inflow;
use super::payload::BodyError;

mod events;

use events::Events;
pub use events::{Rewrite, event_frame};

/// A peer's body on its way to the other peer.
pub struct Through {
    incoming: Inflow,
    connection: Arc<Connection>,
    lane: Lane,
    exchange: ExchangeId,
    shape: Shape,
    batch: Vec<Frame>,
    passed: Passed,
    /// Takes out what is not the client's.
    sieve: Sieve,
    /// What is to be sent, with the record's number of the message that ends there.
    out: VecDeque<(Bytes, Option<u64>)>,
    /// `out` waits until its messages are on the disk, if it must.
    durable: DurableWait,
    /// Bytes of the whole body, when its head told.
    length: Option<u64>,
    ended: bool,
    /// An event was not let go on: nothing follows it.
    withheld: bool,
}

/// What the body is made of.
enum Shape {
    /// One large message. The last piece seen waits until it is known whether it is the last of all.
    Cut {
        last: Option<Bytes>,
        opened: bool,
        seen: usize,
        max: usize,
        carriage: Carriage,
    },
    /// An SSE stream.
    Events(Events),
}

impl Through {
    /// A body of one message that is larger than fits into memory at once. `first` was read already.
    pub fn cut(
        incoming: Inflow,
        first: Bytes,
        carriage: Carriage,
        (connection, lane, exchange): (Arc<Connection>, Lane, ExchangeId),
        length: Option<u64>,
        max: usize,
    ) -> Through {
        let (seen, lane) = (first.len(), lane.unheld());
        let shape = Shape::Cut {
            last: Some(first),
            opened: false,
            seen,
            max,
            carriage,
        };
        Through::new(incoming, (connection, lane, exchange), shape, length)
    }

    /// An SSE stream.
    pub fn events(
        incoming: Inflow,
        (connection, lane, exchange): (Arc<Connection>, Lane, ExchangeId),
        limits: Limits,
        rewrite: Rewrite,
    ) -> Through {
        let shape = Shape::Events(Events::new(limits, rewrite));
        Through::new(incoming, (connection, lane, exchange), shape, None)
    }

    /// The same stream with events of ours between its own.
    #[must_use]
    pub fn with(mut self, inserted: mpsc::Receiver<Bytes>) -> Through {
        if let Shape::Events(events) = &mut self.shape {
            events.insert(inserted);
        }
        self
    }

    fn new(
        incoming: Inflow,
        (connection, lane, exchange): (Arc<Connection>, Lane, ExchangeId),
        shape: Shape,
        length: Option<u64>,
    ) -> Through {
        Through {
            incoming,
            connection,
            lane,
            exchange,
            shape,
            batch: Vec::new(),
            passed: Passed::default(),
            sieve: Sieve::default(),
            out: VecDeque::new(),
            durable: DurableWait::default(),
            length,
            ended: false,
            withheld: false,
        }
    }

    /// How long it is, if that is known.
    pub(super) fn size(&self) -> SizeHint {
        self.length
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }

    /// The next piece.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<BodyFrame<Bytes>, BodyError>>> {
        loop {
            if !self.out.is_empty() {
                let durable = self.connection.pipeline.poll_durable(cx, &mut self.durable);
                ready!(durable).map_err(BodyError::Stopped)?;
            }
            if let Some((bytes, _)) = self.out.pop_front() {
                return Poll::Ready(Some(Ok(BodyFrame::data(bytes))));
            }
            if !self.withheld
                && self.lane.holds()
                && self
                    .lane
                    .poll_release(cx, &mut self.passed)
                    .map_err(BodyError::Stopped)?
                    .is_ready()
            {
                self.take_passed().map_err(BodyError::Stopped)?;
                continue;
            }
            if self.ended {
                match self.lane.holds() && !self.withheld {
                    true => return Poll::Pending,
                    false => return Poll::Ready(None),
                }
            }
            if let Shape::Events(events) = &mut self.shape
                && let Poll::Ready(event) = events.poll_inserted(cx)
            {
                return Poll::Ready(Some(Ok(BodyFrame::data(event))));
            }
            let outcome = match ready!(self.incoming.poll_data(cx)) {
                Some(Ok(bytes)) => self.more(bytes),
                Some(Err(error)) => {
                    self.ended = true;
                    self.connection
                        .close_exchange(self.exchange, "the body broke off");
                    return Poll::Ready(Some(Err(error.into())));
                }
                None => {
                    self.ended = true;
                    self.finish()
                }
            };
            if let Err(end) = outcome.and_then(|()| self.through_lane()) {
                self.ended = true;
                let why = format!("the body was broken off: {end}");
                self.connection.close_exchange(self.exchange, &why);
                self.answer_instead(&end);
                if self.out.is_empty() {
                    return Poll::Ready(Some(Err(BodyError::Stopped(end))));
                }
            }
        }
    }

    /// Between two events a stream can still tell what it will not bring: the requests of its POST are answered, and it ends.
    fn answer_instead(&mut self, end: &LinkEnd) {
        let between = matches!(&self.shape, Shape::Events(events) if events.is_between());
        let LinkEnd::Failed(failure) = end else {
            return;
        };
        // What came before it goes first.
        if !between || failure.side == Side::Client || self.through_lane().is_err() {
            return;
        }
        let (now, direction) = (self.connection.pipeline.now(), Direction::ServerToClient);
        for asked in self.connection.open(direction.reverse()) {
            if asked.stream != self.exchange.into() {
                continue;
            }
            let answer = error_response(Some(&asked.id), failure.code, &failure.text, None);
            let event = encode_event(None, Some("message"), answer.raw());
            let authored = self
                .connection
                .author(direction, self.exchange, answer, now);
            if authored.is_ok() {
                self.out.push_back((event, None));
            }
        }
    }

    fn more(&mut self, bytes: Bytes) -> Result<(), LinkEnd> {
        match &mut self.shape {
            Shape::Cut {
                last,
                opened,
                seen,
                max,
                carriage,
            } => {
                *seen += bytes.len();
                if *seen > *max {
                    return Err(crate::lines::too_large(self.lane.from(), *seen, *max));
                }
                if let Some(piece) = last.replace(bytes) {
                    let body = chunk_body(piece, opened);
                    let carriage = std::mem::replace(carriage, Carriage::Message);
                    let origin = self.lane.from().into();
                    self.batch
                        .push(Frame::new(self.exchange, origin, carriage, body));
                }
            }
            Shape::Events(events) => {
                let units = events.push(bytes);
                events.take(units, self.exchange, self.lane.from(), &mut self.batch)?;
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), LinkEnd> {
        match &mut self.shape {
            Shape::Cut {
                last,
                opened,
                carriage,
                ..
            } => {
                let piece = last.take().unwrap_or_default();
                let chunk = Chunk {
                    wire: piece.clone(),
                    message: piece,
                };
                if !*opened {
                    // It ended with its first piece after all: open and close in one go.
                    let carriage = std::mem::replace(carriage, Carriage::Message);
                    let empty = Chunk {
                        wire: Bytes::new(),
                        message: Bytes::new(),
                    };
                    let body = Body::Open(empty);
                    let origin = self.lane.from().into();
                    self.batch
                        .push(Frame::new(self.exchange, origin, carriage, body));
                }
                let (origin, body) = (self.lane.from().into(), Body::Close(chunk));
                self.batch
                    .push(Frame::new(self.exchange, origin, Carriage::Message, body));
            }
            Shape::Events(events) => {
                let units = events.finish();
                events.take(units, self.exchange, self.lane.from(), &mut self.batch)?;
            }
        }
        Ok(())
    }

    fn through_lane(&mut self) -> Result<(), LinkEnd> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let now = self.connection.pipeline.now();
        self.lane.pass(&mut self.batch, now, &mut self.passed)?;
        self.take_passed()
    }

    /// What came out of the lane goes on. A stream ends where an answer was withheld, unless it is all that a client has;
    /// without any other event it goes on.
    fn take_passed(&mut self) -> Result<(), LinkEnd> {
        let in_stream = matches!(self.shape, Shape::Events(_));
        let is_all = self.connection.client.transport == Transport::Sse;
        if in_stream {
            self.sieve.sift(&self.connection, &mut self.passed);
        }
        for outgoing in self.passed.on.drain(..) {
            if let Outgoing::Dropped(frame) = &outgoing {
                if in_stream && (is_all || !is_answer(frame)) {
                    continue;
                }
                self.ended = true;
                self.withheld = true;
                break;
            }
            let Some(mut frame) = outgoing.into_written() else {
                continue;
            };
            if let Shape::Events(events) = &mut self.shape {
                frame = events.rewrite(frame)?;
            }
            let sequence = frame.sequence;
            let bytes = wire_bytes(frame);
            if !bytes.is_empty() {
                self.out.push_back((bytes, sequence));
            }
        }
        for outgoing in self.passed.back.drain(..) {
            if let Some(frame) = outgoing.into_written() {
                self.connection.deliver(self.exchange, frame);
            }
        }
        Ok(())
    }
}

impl Drop for Through {
    fn drop(&mut self) {
        let unread = self.out.iter().filter_map(|(_, sequence)| *sequence);
        let unread: Vec<u64> = unread.collect();
        let why = "the receiving side went away before it took the message";
        self.connection.undelivered(&unread, why);
        if !self.ended {
            self.connection.close_exchange(
                self.exchange,
                "the receiving side went away before the body's end",
            );
        }
    }
}

fn is_answer(frame: &Frame) -> bool {
    matches!(&frame.body, Body::Whole(message) if matches!(message.kind(), Kind::Response | Kind::Error))
}

fn chunk_body(piece: Bytes, opened: &mut bool) -> Body {
    let chunk = Chunk {
        wire: piece.clone(),
        message: piece,
    };
    if std::mem::replace(opened, true) {
        Body::More(chunk)
    } else {
        Body::Open(chunk)
    }
}

/// The bytes of a frame as they stand on the wire of the same kind of transport.
fn wire_bytes(frame: Frame) -> Bytes {
    match (frame.body, frame.carriage) {
        (Body::Open(chunk) | Body::More(chunk) | Body::Close(chunk), _) => chunk.wire,
        (_, Carriage::Event(event)) => event.wire,
        (Body::Whole(message), _) => message.into_raw(),
        (Body::Empty, _) => Bytes::new(),
    }
}
