//! A server's event stream on its way to the client, through a pipeline.
//!
//! hyper polls it when the client takes bytes, it polls the server's body, and each event goes through the pipeline, and so
//! into the record, on the way: no task, no queue, and a slow client slows only its own stream.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::Frame as BodyFrame;
use mcp_proxy_core::replay::remove_replay_answers;
use mcp_proxy_core::{
    Connection, DurableWait, LinkEnd, MessagePipeline, OutgoingFrame, PipelineOutput,
};
use mcp_proxy_wire::{
    Body, Direction, ExchangeId, Frame, Id, Kind, Message, Origin, Side, SseEvent, SseUnit,
    TransportEnvelope, encode_event, error_response,
};

use super::event_collector::EventCollector;
use super::incoming_body::IncomingBody;
use super::outgoing_body::BodyError;
use super::tool_headers::ToolHeaders;
use crate::refused_message::RefusedMessage;

/// A server's event stream on its way to the client.
pub struct RelayedEvents {
    incoming: IncomingBody,
    events: EventCollector,
    max: usize,
    connection: Arc<Connection>,
    pipeline: MessagePipeline,
    exchange: ExchangeId,
    /// Where the tools that the stream lists are noted.
    tools: Option<Arc<ToolHeaders>>,
    batch: Vec<Frame>,
    output: PipelineOutput,
    /// What is to be sent, with the record's number of its message.
    out: VecDeque<(Bytes, Option<u64>)>,
    /// `out` waits until its messages are on the disk, if it must.
    durable: DurableWait,
    ended: bool,
    /// It has brought an answer.
    has_answer: bool,
    /// An answer was dropped: nothing follows it.
    dropped: bool,
}

impl RelayedEvents {
    /// The events of a stream, each of `max` bytes at most.
    pub fn new(
        incoming: IncomingBody,
        (connection, pipeline, exchange): (Arc<Connection>, MessagePipeline, ExchangeId),
        max: usize,
        tools: Option<Arc<ToolHeaders>>,
    ) -> RelayedEvents {
        RelayedEvents {
            incoming,
            events: EventCollector::new(max, connection.run.memory()),
            max,
            connection,
            pipeline,
            exchange,
            tools,
            batch: Vec::new(),
            output: PipelineOutput::default(),
            out: VecDeque::new(),
            durable: DurableWait::default(),
            ended: false,
            has_answer: false,
            dropped: false,
        }
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
            if let Some((bytes, _)) = self.out.pop_front() {
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

    /// A stream can still tell what it will not bring: the requests of its POST are answered, and it ends.
    fn answer_instead(&mut self, end: &LinkEnd) {
        let LinkEnd::Failed(failure) = end else {
            return;
        };
        // What came before it goes first.
        if failure.side == Side::Client || self.run_pipeline().is_err() {
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

    /// Skips an event that did not fit into memory. The request that it answers gets an error instead.
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
        let mut units = Vec::new();
        let refused = self.events.push(bytes, &mut units);
        self.take_units(units)?;
        if let Some(refused) = refused {
            self.answer_refused(&refused);
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), LinkEnd> {
        let mut units = Vec::new();
        self.events.finish(&mut units);
        self.take_units(units)
    }

    fn take_units(&mut self, units: Vec<SseUnit>) -> Result<(), LinkEnd> {
        for unit in units {
            match unit {
                SseUnit::Event(event) => {
                    let (envelope, body) = event_frame(event);
                    let frame = Frame::new(self.exchange, Origin::Server, envelope, body);
                    self.batch.push(frame);
                }
                SseUnit::TooLarge => {
                    return Err(crate::lines::too_large(Side::Server, self.max));
                }
                SseUnit::GivenUp(_) => {}
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
        remove_replay_answers(&self.connection, &mut self.output);
        for outgoing in self.output.forward.drain(..) {
            if let OutgoingFrame::Dropped(frame) = &outgoing {
                if !is_answer(frame) {
                    continue;
                }
                self.ended = true;
                self.dropped = true;
                break;
            }
            let Some(frame) = outgoing.into_written() else {
                continue;
            };
            if let (Some(tools), Body::Message(message)) = (&self.tools, &frame.body) {
                tools.note(message);
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

impl Drop for RelayedEvents {
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
    matches!(&frame.body, Body::Message(message) if matches!(message.kind(), Kind::Response | Kind::Error))
}

/// The bytes of an event as they stand in a stream.
fn wire_bytes(frame: Frame) -> Bytes {
    match (frame.body, frame.envelope) {
        (_, TransportEnvelope::Event(event)) => event.wire,
        (Body::Message(message), _) => message.into_raw(),
        _ => Bytes::new(),
    }
}

/// An event as a frame: its data is the message, unless it is an event of the transport's own.
pub(crate) fn event_frame(event: SseEvent) -> (TransportEnvelope, Body) {
    let is_message = event.event.as_deref().is_none_or(|name| name == "message");
    let body = match &event.data {
        Some(data) if is_message && !data.is_empty() => Body::Message(Message::parse(data.clone())),
        _ => Body::Empty,
    };
    (TransportEnvelope::Event(Box::new(event)), body)
}
