//! The lines of messages in the record, and messages that neither peer sent.

use std::time::Duration;

use mcp_proxy_session::{NewBody, NewMessage};
use mcp_proxy_wire::{Direction, Frame, Message, Origin, StreamId};

use super::{Connection, RecordLine, answers};
use crate::correlator::{Correlation, Observation};
use crate::link::LinkEnd;
use crate::proxy_run::RecordWriter;

impl Connection {
    /// A message that the proxy writes itself, recorded as such and ready to be sent.
    pub fn author(
        &self,
        direction: Direction,
        stream: impl Into<StreamId>,
        message: Message,
        now: Duration,
    ) -> Result<Frame, LinkEnd> {
        self.inject(
            direction,
            Frame::message(stream, Origin::Proxy, message.clone()),
            &message,
            now,
        )
    }

    /// A message that somebody sends again on the client's session, recorded as such and ready to be sent.
    pub fn replay(
        &self,
        stream: impl Into<StreamId>,
        message: Message,
        now: Duration,
    ) -> Result<Frame, LinkEnd> {
        let frame = Frame::message(stream, Origin::Replay, message.clone());
        self.inject(Direction::ClientToServer, frame, &message, now)
    }

    /// Records a message that neither peer sent.
    fn inject(
        &self,
        direction: Direction,
        mut frame: Frame,
        message: &Message,
        now: Duration,
    ) -> Result<Frame, LinkEnd> {
        let mut record_writer = self.run.lock_record_writer();
        let (sequence, id) = record_writer.next_number(self.run.wall(now));
        let seen = Observation {
            direction,
            stream: frame.stream,
            sequence,
            message: id,
            at: now,
            parent: frame.parent.or(self.parent),
        };
        let answer = self.correlator().observe(seen, message);
        // What the proxy says itself is not late or duplicate, whatever else answered the request.
        let answer = answer.map(|answer| Correlation {
            late: false,
            duplicate: false,
            ..answer
        });
        self.append(
            &mut record_writer,
            seen,
            RecordLine {
                frame: &frame,
                body: NewBody::Whole(message),
                answer: answer.as_ref(),
                parts: &[],
            },
        );
        self.run.flush(&mut record_writer)?;
        frame.sequence = Some(sequence);
        Ok(frame)
    }

    /// Adds the line of a message to what is written next.
    pub(crate) fn append(
        &self,
        record_writer: &mut RecordWriter,
        seen: Observation,
        line: RecordLine<'_>,
    ) {
        let Some(recorder) = &mut record_writer.recorder else {
            return;
        };
        let redacted = recorder.record_message(&NewMessage {
            sequence: seen.sequence,
            id: seen.message,
            time: self.run.wall(seen.at),
            mono: seen.at,
            direction: seen.direction,
            transport: self.transport_from(seen.direction),
            connection: self.id,
            exchange: seen.stream.exchange().map_or(0, |exchange| exchange.0),
            origin: line.frame.origin,
            parent: self.parent_of(line.frame, line.answer),
            envelope: &line.frame.envelope,
            body: line.body,
            late: line.answer.is_some_and(|answer| answer.late),
            duplicate: line.answer.is_some_and(|answer| answer.duplicate),
            answered_request: answers(line.answer, seen.at),
            client_id: match &self.multiplexer {
                Some(_) => line.answer.map(|answer| &answer.request.id),
                None => None,
            },
            parts: line.parts,
        });
        if redacted > 0
            && seen.direction == Direction::ClientToServer
            && let NewBody::Whole(message) = line.body
            && self.run.injection_queues().replays_enabled()
        {
            let unredacted = &mut record_writer.unredacted;
            unredacted.keep(seen.sequence, message.raw());
        }
    }
}
