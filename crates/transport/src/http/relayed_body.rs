//! A peer's body on its way to the other peer, through a pipeline.
//!
//! hyper polls it when the receiving peer takes bytes, it polls the sending peer's body, and each piece goes through
//! the pipeline, and so into the record, on the way: no task, no queue, and a slow peer slows only its own.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame as BodyFrame, SizeHint};
use mcp_proxy_core::replay::ReplayAnswerFilter;
use mcp_proxy_core::{
    Connection, DurableWait, LinkEnd, MessagePipeline, OutgoingFrame, PipelineOutput,
};
use mcp_proxy_wire::{
    Body, Chunk, Direction, ExchangeId, Frame, Id, Kind, Limits, Message, Side, TransportEnvelope,
    encode_event, error_response,
};

use super::incoming_body::IncomingBody;
use super::outgoing_body::BodyError;
use super::tool_headers::ToolHeaders;
use crate::refused_message::RefusedMessage;

mod relayed_events;

use relayed_events::RelayedEvents;
pub(crate) use relayed_events::event_frame;

/// A peer's body on its way to the other peer.
pub struct RelayedBody {
    incoming: IncomingBody,
    connection: Arc<Connection>,
    pipeline: MessagePipeline,
    exchange: ExchangeId,
    shape: RelayedShape,
    batch: Vec<Frame>,
    output: PipelineOutput,
    /// Takes out what is not the client's.
    replay_filter: ReplayAnswerFilter,
    /// What is to be sent, with the record's number of the message that ends there.
    out: VecDeque<(Bytes, Option<u64>)>,
    /// The record's number of the first message that the receiving side took whole.
    taken: Arc<OnceLock<u64>>,
    /// `out` waits until its messages are on the disk, if it must.
    durable: DurableWait,
    /// Bytes of the whole body, when its head told.
    length: Option<u64>,
    ended: bool,
    /// It has brought an answer.
    has_answer: bool,
    /// An event was dropped: nothing follows it.
    dropped: bool,
}

/// What the body is made of.
enum RelayedShape {
    /// One large message. The last piece seen waits until it is known whether it is the last of all.
    Cut {
        last: Option<Bytes>,
        opened: bool,
        seen: usize,
        max: usize,
        envelope: TransportEnvelope,
    },
    /// An SSE stream.
    Events(RelayedEvents),
}

impl RelayedBody {
    /// A body of one message that is larger than fits into memory at once. `first` was read already.
    pub fn cut(
        incoming: IncomingBody,
        first: Bytes,
        envelope: TransportEnvelope,
        (connection, pipeline, exchange): (Arc<Connection>, MessagePipeline, ExchangeId),
        length: Option<u64>,
        max: usize,
    ) -> RelayedBody {
        let (seen, pipeline) = (first.len(), pipeline.without_holds());
        let shape = RelayedShape::Cut {
            last: Some(first),
            opened: false,
            seen,
            max,
            envelope,
        };
        RelayedBody::new(incoming, (connection, pipeline, exchange), shape, length)
    }

    /// An SSE stream.
    pub fn events(
        incoming: IncomingBody,
        (connection, pipeline, exchange): (Arc<Connection>, MessagePipeline, ExchangeId),
        limits: Limits,
        tools: Option<Arc<ToolHeaders>>,
    ) -> RelayedBody {
        let memory = connection.run.memory();
        let shape = RelayedShape::Events(RelayedEvents::new(limits, memory, tools));
        RelayedBody::new(incoming, (connection, pipeline, exchange), shape, None)
    }

    fn new(
        incoming: IncomingBody,
        (connection, pipeline, exchange): (Arc<Connection>, MessagePipeline, ExchangeId),
        shape: RelayedShape,
        length: Option<u64>,
    ) -> RelayedBody {
        RelayedBody {
            incoming,
            connection,
            pipeline,
            exchange,
            shape,
            batch: Vec::new(),
            output: PipelineOutput::default(),
            replay_filter: ReplayAnswerFilter::default(),
            out: VecDeque::new(),
            taken: Arc::default(),
            durable: DurableWait::default(),
            length,
            ended: false,
            has_answer: false,
            dropped: false,
        }
    }

    /// The record's number of its message, once the receiving side has taken all of it.
    pub(super) fn taken(&self) -> Arc<OnceLock<u64>> {
        Arc::clone(&self.taken)
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
                let durable = self.connection.run.poll_durable(cx, &mut self.durable);
                ready!(durable).map_err(BodyError::Stopped)?;
            }
            if let Some((bytes, sequence)) = self.out.pop_front() {
                if let Some(sequence) = sequence {
                    let _ = self.taken.set(sequence);
                }
                return Poll::Ready(Some(Ok(BodyFrame::data(bytes))));
            }
            if !self.dropped
                && self.pipeline.has_held_messages()
                && self
                    .pipeline
                    .poll_release(cx, &mut self.output)
                    .map_err(BodyError::Stopped)?
                    .is_ready()
            {
                self.take_output().map_err(BodyError::Stopped)?;
                continue;
            }
            if self.ended {
                match self.pipeline.has_held_messages() && !self.dropped {
                    true => return Poll::Pending,
                    false => return Poll::Ready(None),
                }
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
            if let Err(end) = outcome.and_then(|()| self.run_pipeline()) {
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
        let between =
            matches!(&self.shape, RelayedShape::Events(events) if events.is_between_events());
        let LinkEnd::Failed(failure) = end else {
            return;
        };
        // What came before it goes first.
        if !between || failure.side == Side::Client || self.run_pipeline().is_err() {
            return;
        }
        for asked in self.connection.open_requests(Direction::ClientToServer) {
            if asked.stream != self.exchange.into() {
                continue;
            }
            let answer = error_response(Some(&asked.id), failure.code, &failure.text, None);
            self.send_answer(answer);
        }
    }

    /// An event that there was no room for is skipped. The request that it answers gets an error in its place.
    fn answer_refused(&mut self, refused: &RefusedMessage) {
        let open = self.connection.open_requests(Direction::ClientToServer);
        let here = open
            .iter()
            .filter(|asked| asked.stream == self.exchange.into());
        let here: Vec<Id> = here.map(|asked| asked.id.clone()).collect();
        if let Some(answer) = refused.answer_among(&here)
            && open
                .iter()
                .any(|asked| Some(&asked.id) == answer.id().as_ref())
        {
            self.send_answer(answer);
        }
    }

    fn send_answer(&mut self, answer: Message) {
        let (now, direction) = (self.connection.run.now(), Direction::ServerToClient);
        let event = encode_event(None, Some("message"), answer.raw());
        let authored = self
            .connection
            .author(direction, self.exchange, answer, now);
        if authored.is_ok() {
            self.has_answer = true;
            self.out.push_back((event, None));
        }
    }

    fn more(&mut self, bytes: Bytes) -> Result<(), LinkEnd> {
        match &mut self.shape {
            RelayedShape::Cut {
                last,
                opened,
                seen,
                max,
                envelope,
            } => {
                *seen += bytes.len();
                if *seen > *max {
                    return Err(crate::lines::too_large(self.pipeline.from(), *seen, *max));
                }
                if let Some(piece) = last.replace(bytes) {
                    let body = chunk_body(piece, opened);
                    let envelope = std::mem::replace(envelope, TransportEnvelope::Bare);
                    let origin = self.pipeline.from().into();
                    self.batch
                        .push(Frame::new(self.exchange, origin, envelope, body));
                }
            }
            RelayedShape::Events(events) => {
                let from = self.pipeline.from();
                if let Some(refused) = events.push(bytes, self.exchange, from, &mut self.batch)? {
                    self.answer_refused(&refused);
                }
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), LinkEnd> {
        match &mut self.shape {
            RelayedShape::Cut {
                last,
                opened,
                envelope,
                ..
            } => {
                let piece = last.take().unwrap_or_default();
                let chunk = Chunk {
                    wire: piece.clone(),
                    message: piece,
                };
                if !*opened {
                    // It ended with its first piece after all: open and close in one go.
                    let envelope = std::mem::replace(envelope, TransportEnvelope::Bare);
                    let empty = Chunk {
                        wire: Bytes::new(),
                        message: Bytes::new(),
                    };
                    let body = Body::Open(empty);
                    let origin = self.pipeline.from().into();
                    self.batch
                        .push(Frame::new(self.exchange, origin, envelope, body));
                }
                let (origin, body) = (self.pipeline.from().into(), Body::Close(chunk));
                self.batch.push(Frame::new(
                    self.exchange,
                    origin,
                    TransportEnvelope::Bare,
                    body,
                ));
            }
            RelayedShape::Events(events) => {
                events.finish(self.exchange, self.pipeline.from(), &mut self.batch)?;
            }
        }
        Ok(())
    }

    /// Whether it has brought all answers that its exchange awaits. Clients need not read it to its end then.
    fn is_answered(&self) -> bool {
        let open = || self.connection.open_requests(Direction::ClientToServer);
        self.has_answer
            && !open()
                .iter()
                .any(|asked| asked.stream == self.exchange.into())
    }

    fn run_pipeline(&mut self) -> Result<(), LinkEnd> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let now = self.connection.run.now();
        self.pipeline.pass(&mut self.batch, now, &mut self.output)?;
        self.take_output()
    }

    /// Forwards what came out of the pipeline. A stream ends where an answer was withheld; without any other event it continues.
    fn take_output(&mut self) -> Result<(), LinkEnd> {
        let in_stream = matches!(self.shape, RelayedShape::Events(_));
        if in_stream {
            self.replay_filter
                .filter(&self.connection, &mut self.output);
        }
        for outgoing in self.output.forward.drain(..) {
            if let OutgoingFrame::Dropped(frame) = &outgoing {
                if in_stream && !is_answer(frame) {
                    continue;
                }
                self.ended = true;
                self.dropped = true;
                break;
            }
            let Some(frame) = outgoing.into_written() else {
                continue;
            };
            if let RelayedShape::Events(events) = &self.shape {
                events.note_tools(&frame);
            }
            let sequence = frame.sequence;
            self.has_answer |= is_answer(&frame);
            let bytes = wire_bytes(frame);
            if !bytes.is_empty() {
                self.out.push_back((bytes, sequence));
            }
        }
        for outgoing in self.output.reply.drain(..) {
            if let Some(frame) = outgoing.into_written() {
                self.connection.deliver(self.exchange, frame);
            }
        }
        Ok(())
    }
}

impl Drop for RelayedBody {
    fn drop(&mut self) {
        let unread = self.out.iter().filter_map(|(_, sequence)| *sequence);
        let unread: Vec<u64> = unread.collect();
        let why = "the receiving side went away before it took the message";
        self.connection.undelivered(&unread, why);
        if !self.ended && !self.is_answered() {
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
    match (frame.body, frame.envelope) {
        (Body::Open(chunk) | Body::More(chunk) | Body::Close(chunk), _) => chunk.wire,
        (_, TransportEnvelope::Event(event)) => event.wire,
        (Body::Whole(message), _) => message.into_raw(),
        (Body::Empty, _) => Bytes::new(),
    }
}
