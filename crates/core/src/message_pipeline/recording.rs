//! Recording: each frame that a pipeline reads gets its number, finds the request that it answers, and becomes a line of the
//! record. Nothing is decided here.

use std::time::Duration;

use mcp_proxy_session::{NewBatchPart, NewBody, RecordEvent};
use mcp_proxy_wire::{Body, Direction, Frame, Kind, Message, TransportEnvelope};

use super::MessagePipeline;
use crate::connection::{RecordLine, answers};
use crate::correlator::{Correlation, Correlator, Observation};
use crate::multiplexer::Recipient;
use crate::proxy_run::RecordWriter;

impl MessagePipeline {
    /// Records one frame and gives it its number. `None`: it is a stray line, and is not forwarded.
    pub(super) fn receive_one(
        &mut self,
        record_writer: &mut RecordWriter,
        mut frame: Frame,
        now: Duration,
    ) -> Option<Frame> {
        match &frame.body {
            Body::Message(message) if self.is_stray(&frame.envelope, message.raw()) => {
                self.note_stray(record_writer, message.raw(), now);
                return None;
            }
            Body::Message(message) => {
                frame.sequence = Some(self.record_message(record_writer, &frame, message, now));
            }
            Body::Empty => self.record_empty(record_writer, &frame, now),
        }
        Some(frame)
    }

    fn record_message(
        &mut self,
        record_writer: &mut RecordWriter,
        frame: &Frame,
        message: &Message,
        now: Duration,
    ) -> u64 {
        let seen = self.seen(record_writer, frame, now);
        let mut correlator = self.connection.correlator();
        let mut parts = Vec::new();
        let answer = if message.kind() == Kind::Batch {
            for part in message.parts().unwrap_or_default() {
                let answer = correlator.observe(seen, &part);
                parts.push(NewBatchPart {
                    kind: part.kind(),
                    id: part.id(),
                    method: part.method().map(|method| method.into_owned()),
                    answered_request: answers(answer.as_ref(), now),
                });
            }
            None
        } else {
            self.correlate(&mut correlator, seen, message)
        };
        drop(correlator);
        self.connection.append(
            record_writer,
            seen,
            RecordLine {
                frame,
                body: NewBody::Whole(message),
                answer: answer.as_ref(),
                parts: &parts,
            },
        );
        if self.may_hold()
            && let Some(answer) = answer
        {
            self.correlations.push((seen.sequence, answer));
        }
        seen.sequence
    }

    /// Takes the next number for a message of this pipeline.
    fn seen(&self, record_writer: &mut RecordWriter, frame: &Frame, now: Duration) -> Observation {
        let (sequence, message) = record_writer.next_number(self.connection.run.wall(now));
        Observation {
            direction: self.direction,
            stream: frame.stream,
            sequence,
            message,
            at: now,
            parent: frame.parent.or(self.connection.parent()),
        }
    }

    /// On a shared connection the server's answer carries an id of ours; its owner's is what was asked. A cancel comes on an
    /// exchange of its own.
    fn correlate(
        &self,
        correlator: &mut Correlator,
        seen: Observation,
        message: &Message,
    ) -> Option<Correlation> {
        let Some(multiplexer) = self.connection.multiplexer() else {
            return correlator.observe(seen, message);
        };
        match (self.direction, message.kind()) {
            (Direction::ServerToClient, Kind::Response | Kind::Error)
                if !self.connection.is_of_replay(message) =>
            {
                let (stream, id) = match multiplexer.recipient(message) {
                    Recipient::Client(stream, id) => (stream, id),
                    _ => multiplexer.gone_request(message)?,
                };
                correlator.match_answer_on(self.direction, stream, &id)
            }
            (Direction::ClientToServer, Kind::Notification) => {
                if let Some((stream, id)) = multiplexer.cancelled_by(message) {
                    correlator.cancel_request(self.direction, stream, &id);
                }
                None
            }
            _ => correlator.observe(seen, message),
        }
    }

    /// An HTTP request or response without a body, or an SSE block without data.
    fn record_empty(&self, record_writer: &mut RecordWriter, frame: &Frame, now: Duration) {
        if let Some(recorder) = &mut record_writer.recorder {
            recorder.record_event(
                self.connection.run.wall(now),
                &RecordEvent::Http {
                    connection: self.connection.id,
                    exchange: frame.stream.exchange().map_or(0, |exchange| exchange.0),
                    direction: self.direction,
                    transport: self.transport(),
                    envelope: &frame.envelope,
                },
            );
        }
    }

    /// A line from a server's stdout that cannot be a message: empty, or opening with neither `{` nor `[`.
    fn is_stray(&self, envelope: &TransportEnvelope, line: &[u8]) -> bool {
        !self.connection.run.pass_noise
            && self.direction == Direction::ServerToClient
            && matches!(envelope, TransportEnvelope::Line(_))
            && !matches!(first_byte(line), Some(b'{' | b'['))
    }

    fn note_stray(&mut self, record_writer: &mut RecordWriter, line: &[u8], now: Duration) {
        self.stray.lines += 1;
        self.stray.bytes += line.len() as u64;
        if self.stray.first.is_empty() {
            let text = String::from_utf8_lossy(line);
            self.stray.first = text.trim().chars().take(120).collect();
            if !self.stray.first.is_empty() {
                self.connection.run.warn_stray(&self.stray.first);
            }
        }
        if let Some(recorder) = &mut record_writer.recorder {
            recorder.record_event(
                self.connection.run.wall(now),
                &RecordEvent::Stray {
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
