//! Recording: each frame that a pipeline reads gets its number, finds the request that it answers, and becomes a line of the
//! record. Nothing is decided here.

use std::sync::Arc;
use std::time::Duration;

use mcp_proxy_session::{NewBatchPart, NewBody, RecordEvent};
use mcp_proxy_wire::{Body, Chunk, Direction, Frame, Kind, Message, TransportEnvelope};

use super::MessagePipeline;
use crate::connection::{RecordLine, answers};
use crate::correlator::{Correlation, Correlator, Observation, RequestSubject, TrackingDetail};
use crate::cut_through::CutThroughMessage;
use crate::link::LinkEnd;
use crate::multiplexer::Recipient;
use crate::proxy_run::RecordWriter;

impl MessagePipeline {
    /// Records one frame and gives it its number. `None`: it is not forwarded (a stray line, or part of a message that is
    /// still being collected).
    pub(super) fn receive_one(
        &mut self,
        record_writer: &mut RecordWriter,
        frame: Frame,
        now: Duration,
    ) -> Result<Option<Frame>, LinkEnd> {
        let Some(mut frame) = self.gather(frame) else {
            return Ok(None);
        };
        match &frame.body {
            Body::Whole(message) => {
                if self.is_stray(&frame.envelope, message.raw()) {
                    self.note_stray(record_writer, message.raw(), now);
                    return Ok(None);
                }
                frame.sequence = Some(self.record_whole(record_writer, &frame, message, now));
            }
            Body::Empty => self.record_empty(record_writer, &frame, now),
            Body::Open(chunk) if self.is_stray(&frame.envelope, &chunk.message) => {
                // The record keeps its beginning; the rest of such a line is of no use to anybody.
                self.note_stray(record_writer, &chunk.message, now);
                self.skipping = true;
                return Ok(None);
            }
            Body::More(_) if self.skipping => return Ok(None),
            Body::Close(_) if self.skipping => {
                self.skipping = false;
                return Ok(None);
            }
            Body::Open(chunk) => {
                let mut large = CutThroughMessage::open(&frame, record_writer.recorder.as_mut());
                large.add(&chunk.message);
                self.cut_through = Some(Box::new(large));
            }
            Body::More(chunk) => self.more(chunk),
            Body::Close(chunk) => {
                self.more(chunk);
                // How a line ends is known only now.
                if let (Some(large), TransportEnvelope::Line(end)) =
                    (&mut self.cut_through, &frame.envelope)
                {
                    large.first.envelope = TransportEnvelope::Line(*end);
                }
                frame.sequence = self.record_large(record_writer, now)?;
            }
        }
        Ok(Some(frame))
    }

    fn more(&mut self, chunk: &Chunk) {
        if let Some(large) = &mut self.cut_through {
            large.add(&chunk.message);
        }
    }

    fn record_whole(
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
        if seen.detail == TrackingDetail::WithSubject
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
            detail: self.tracking_detail(),
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

    fn record_large(
        &mut self,
        record_writer: &mut RecordWriter,
        now: Duration,
    ) -> Result<Option<u64>, LinkEnd> {
        let Some(mut large) = self.cut_through.take() else {
            return Ok(None);
        };
        let head = large.head();
        let seen = self.seen(record_writer, &large.first, now);
        let mut correlator = self.connection.correlator();
        let answer = match (head.kind, &head.id) {
            (Kind::Request, Some(asked)) => {
                let about = head.method.clone().map(|method| RequestSubject {
                    method: method.into(),
                    name: head.name.as_deref().map(Arc::from),
                });
                correlator.track_request(seen, asked.clone(), about);
                None
            }
            (Kind::Response | Kind::Error, Some(asked)) => {
                correlator.match_answer(self.direction, seen.stream, asked)
            }
            _ => None,
        };
        drop(correlator);
        let file = large
            .finish(seen.sequence)
            .map_err(|error| self.connection.run.record_failed(&error))?;
        if let Some(file) = &file {
            self.connection.append(
                record_writer,
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
    pub(super) fn is_stray(&self, envelope: &TransportEnvelope, line: &[u8]) -> bool {
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
