//! The pipeline's side of holding: which messages are left with the [`Interceptor`](crate::intercept::Interceptor), and how they
//! come back.

use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use mcp_proxy_session::{EnvelopeFacts, MessageFacts, MessageFlags, RequestFacts};
use mcp_proxy_wire::revision::names_version;
use mcp_proxy_wire::{Body, Direction, Field, Frame, Id, Kind, Message};

use super::{MessagePipeline, PipelineOutput, rule_actions};
use crate::correlator::Correlation;
use crate::intercept::{HoldOutcome, HoldReason, NewHold, ReleaseQueueReader};
use crate::link::{LinkEnd, OutgoingFrame};

impl MessagePipeline {
    /// Whether somebody may want to hold a message of this pipeline, or one is held.
    pub(super) fn may_hold(&self) -> bool {
        !self.never_holds && (self.connection.run.may_hold_or_change() || self.has_held_messages())
    }

    /// Whether a message of this pipeline is held, or released and not yet taken.
    pub fn has_held_messages(&self) -> bool {
        self.release_queue
            .as_ref()
            .is_some_and(|own| own.release_queue.has_pending())
    }

    /// Waits until a message is released, and gives it to the steps. Safe to cancel while it waits.
    pub async fn release(&mut self, output: &mut PipelineOutput) -> Result<(), LinkEnd> {
        let Some(own) = &self.release_queue else {
            return Ok(());
        };
        own.release_queue.wait_ready().await;
        let now = self.connection.run.now();
        self.apply(now, output)
    }

    /// The same for a body that is polled.
    pub fn poll_release(
        &mut self,
        cx: &mut Context<'_>,
        output: &mut PipelineOutput,
    ) -> Poll<Result<(), LinkEnd>> {
        let Some(own) = &self.release_queue else {
            return Poll::Ready(Ok(()));
        };
        ready!(own.release_queue.poll_ready(cx));
        let now = self.connection.run.now();
        Poll::Ready(self.apply(now, output))
    }

    /// Leaves what is to be held and takes what was released. Released messages go first, which keeps the order.
    pub(super) fn hold(&mut self, now: Duration, output: &mut PipelineOutput) {
        let frames = std::mem::take(&mut output.forward);
        self.take_released(output);
        for outgoing in frames {
            let ruled = match outgoing {
                OutgoingFrame::Frame(frame) => self.apply_rules(frame, now, output),
                decided => Some(decided),
            };
            let frame = match ruled {
                Some(OutgoingFrame::Frame(frame)) => frame,
                decided => {
                    self.take_released(output);
                    output.forward.extend(decided);
                    continue;
                }
            };
            match self.hold_reason(&frame, now) {
                Some((by, message)) => self.hold_message((frame, message), by, now, output),
                None => {
                    // Nobody wants to hold it, perhaps because intercept has just been switched off on another thread:
                    // what was released then goes first.
                    self.take_released(output);
                    self.note_cancel(&frame);
                    output.forward.push(frame.into());
                }
            }
        }
        self.correlations.clear();
    }

    fn take_released(&self, output: &mut PipelineOutput) {
        if let Some(own) = &self.release_queue {
            for released in own.release_queue.take() {
                self.note_released(released.forward.as_ref());
                append_outcome(released, output);
            }
        }
    }

    /// A request is forwarded now: until now it was held or delayed here, which is not its server's time.
    fn note_released(&self, outgoing: Option<&OutgoingFrame>) {
        let Some(OutgoingFrame::Frame(frame) | OutgoingFrame::Replacement { frame, .. }) = outgoing
        else {
            return;
        };
        if let (Body::Message(message), Some(sequence)) = (&frame.body, frame.sequence) {
            self.connection
                .note_released(self.direction, message, sequence);
        }
    }

    /// A cancel is forwarded; the request that it names is not, if it is still held. Whose request that is was decided when the
    /// cancel was recorded. Modern clients cancel over HTTP by closing the stream.
    fn note_cancel(&self, frame: &Frame) {
        let Body::Message(message) = &frame.body else {
            return;
        };
        let is_cancel = message.kind() == Kind::Notification
            && message.method().as_deref() == Some("notifications/cancelled")
            && !(frame.stream.exchange().is_some() && names_version(message));
        let named = is_cancel.then(|| message.span(Field::RequestId)).flatten();
        let Some(id) = named.map(|span| Id::from_token(message.slice(span)).key()) else {
            return;
        };
        let way = (self.connection.id, self.direction);
        let intercept = self.connection.run.intercept();
        let why = match self.direction {
            Direction::ClientToServer => "cancelled by its client",
            Direction::ServerToClient => "cancelled by its server",
        };
        intercept.drop_matching(why, |entry| {
            entry.ordering_key() == way && entry.asks(&id) && entry.is_given_up()
        });
    }

    /// Who wants to hold it.
    fn hold_reason(&self, frame: &Frame, now: Duration) -> Option<(HoldReason, Message)> {
        let (Body::Message(message), Some(sequence)) = (&frame.body, frame.sequence) else {
            return None;
        };
        let intercept = self.connection.run.intercept();
        if !intercept.is_active() {
            return None;
        }
        let facts = self.facts(frame, message, sequence, now);
        let by = intercept.hold_reason(&facts, &self.connection, |breakpoint| {
            let subject = HoldReason::Breakpoint(breakpoint).to_string();
            let text = rule_actions::too_slow(&subject, sequence);
            self.connection.note(&text);
        })?;
        Some((by, message.clone()))
    }

    /// What a message answers. They are noted in the order of their numbers.
    fn answer_to(&self, sequence: u64) -> Option<&Correlation> {
        let place = self
            .correlations
            .binary_search_by_key(&sequence, |(known, _)| *known);
        place.ok().map(|place| &self.correlations[place].1)
    }

    pub(super) fn facts<'a>(
        &'a self,
        frame: &'a Frame,
        message: &'a Message,
        sequence: u64,
        now: Duration,
    ) -> MessageFacts<'a> {
        let run = &self.connection.run;
        let answer = self.answer_to(sequence);
        MessageFacts {
            sequence,
            time: run.wall(now),
            direction: self.direction,
            origin: frame.origin,
            parent: self.connection.parent_of(frame, answer),
            transport: self.transport(),
            connection: self.connection.id,
            server: Some(self.connection.server_name()),
            exchange: frame.stream.exchange().map_or(0, |exchange| exchange.0),
            message,
            partial_head: None,
            request: answer.map(|answer| request_facts(answer, now)),
            envelope: EnvelopeFacts::Live(&frame.envelope),
            flags: MessageFlags {
                late: answer.is_some_and(|answer| answer.late),
                duplicate: answer.is_some_and(|answer| answer.duplicate),
                ..MessageFlags::default()
            },
        }
    }

    fn hold_message(
        &mut self,
        (frame, message): (Frame, Message),
        by: HoldReason,
        now: Duration,
        output: &mut PipelineOutput,
    ) {
        let connection = Arc::clone(&self.connection);
        let intercept = Arc::clone(connection.run.intercept());
        let own = self
            .release_queue
            .get_or_insert_with(|| ReleaseQueueReader::new(&connection));
        let release_queue = Arc::clone(&own.release_queue);
        let released = intercept.hold(NewHold {
            connection,
            direction: self.direction,
            frame,
            message,
            now,
            by,
            progress_support: self.progress_support,
            release_queue,
        });
        if let Some(released) = released {
            append_outcome(released, output);
        }
    }
}

fn request_facts(answer: &Correlation, now: Duration) -> RequestFacts<'_> {
    let subject = &answer.request.subject;
    RequestFacts {
        sequence: answer.request.sequence,
        method: Some(&subject.method),
        name: subject.name.as_deref(),
        latency: answer.request.latency(now),
        held: answer.request.held,
    }
}

pub(super) fn append_outcome(released: HoldOutcome, output: &mut PipelineOutput) {
    output.forward.extend(released.forward);
    output.reply.extend(released.reply);
}
