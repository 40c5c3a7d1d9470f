//! One message of a sample, described step by step and then written.

use super::{SALT, SampleRecord, bytes, transport_of};
use crate::{AnsweredRequest, MessageId, NewBatchPart, NewBody, NewMessage};
use mcp_proxy_wire::{Direction, Message, Origin, Transport, TransportEnvelope};
use std::time::Duration;

/// A message that is not written yet: [`SampleMessage::write`] does that.
#[derive(Debug)]
#[must_use = "a message is only written by `write`"]
pub struct SampleMessage<'a> {
    record: &'a mut SampleRecord,
    direction: Direction,
    message: Message,
    /// What stands in the place of the bytes.
    body: Option<NewBody<'a>>,
    envelope: TransportEnvelope,
    transport: Option<Transport>,
    connection: u32,
    exchange: u64,
    origin: Origin,
    parent: Option<u64>,
    answers: Option<u64>,
    request_held: Duration,
    late: bool,
    duplicate: bool,
    parts: &'a [NewBatchPart],
}

impl<'a> SampleMessage<'a> {
    pub(super) fn new(
        record: &'a mut SampleRecord,
        direction: Direction,
        raw: &[u8],
    ) -> SampleMessage<'a> {
        SampleMessage {
            direction,
            message: Message::parse(bytes(raw)),
            body: None,
            envelope: TransportEnvelope::Bare,
            transport: None,
            connection: record.connection,
            exchange: 0,
            origin: record.origin.unwrap_or(direction.from().into()),
            parent: None,
            answers: None,
            request_held: Duration::ZERO,
            late: false,
            duplicate: false,
            parts: &[],
            record,
        }
    }

    /// It came in this. HTTP and SSE make it one of streamable HTTP.
    pub fn carried_by(self, envelope: &TransportEnvelope) -> SampleMessage<'a> {
        SampleMessage {
            envelope: envelope.clone(),
            ..self
        }
    }

    /// It has this body instead of the bytes given: a large one, or none.
    pub fn with_body(self, body: NewBody<'a>) -> SampleMessage<'a> {
        SampleMessage {
            body: Some(body),
            ..self
        }
    }

    /// It was read from a link of this transport.
    pub fn over(self, transport: Transport) -> SampleMessage<'a> {
        SampleMessage {
            transport: Some(transport),
            ..self
        }
    }

    /// It is of this connection.
    pub fn on(self, connection: u32) -> SampleMessage<'a> {
        SampleMessage { connection, ..self }
    }

    /// It is of this HTTP exchange.
    pub fn in_exchange(self, exchange: u64) -> SampleMessage<'a> {
        SampleMessage { exchange, ..self }
    }

    /// This one wrote it.
    pub fn by(self, origin: Origin) -> SampleMessage<'a> {
        SampleMessage { origin, ..self }
    }

    /// The message with this number caused it.
    pub fn caused_by(self, parent: u64) -> SampleMessage<'a> {
        SampleMessage {
            parent: Some(parent),
            ..self
        }
    }

    /// It answers the message with this number.
    pub fn answering(self, request: u64) -> SampleMessage<'a> {
        SampleMessage {
            answers: Some(request),
            ..self
        }
    }

    /// Its request was held or delayed for this long.
    pub fn after_holding(self, request_held: Duration) -> SampleMessage<'a> {
        SampleMessage {
            request_held,
            ..self
        }
    }

    /// Its request was given up before.
    pub fn late(self) -> SampleMessage<'a> {
        SampleMessage { late: true, ..self }
    }

    /// Its request had an answer before.
    pub fn duplicate(self) -> SampleMessage<'a> {
        SampleMessage {
            duplicate: true,
            ..self
        }
    }

    /// What is known about the parts of a batch.
    pub fn with_parts(self, parts: &'a [NewBatchPart]) -> SampleMessage<'a> {
        SampleMessage { parts, ..self }
    }

    /// Writes it. Returns its sequence number.
    pub fn write(self) -> u64 {
        let record = self.record;
        let sequence = record.next;
        record.next += 1;
        let id = |sequence| MessageId::new(record.at(sequence), SALT, sequence);
        let new = NewMessage {
            sequence,
            id: id(sequence),
            time: record.at(sequence),
            mono: record.mono(sequence),
            direction: self.direction,
            transport: self.transport.unwrap_or(transport_of(&self.envelope)),
            connection: self.connection,
            exchange: self.exchange,
            origin: self.origin,
            parent: self.parent,
            envelope: &self.envelope,
            body: self.body.unwrap_or(NewBody::Whole(&self.message)),
            client_id: None,
            answered_request: self.answers.map(|request| AnsweredRequest {
                id: id(request),
                sequence: request,
                latency: record.latency(request, sequence),
                held: self.request_held,
            }),
            late: self.late,
            duplicate: self.duplicate,
            parts: self.parts,
        };
        record.recorder.record_message(&new);
        sequence
    }
}
