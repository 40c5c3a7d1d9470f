//! The lane's side of holding: which messages are left with [`Intercept`](crate::intercept::Intercept), and how they
//! come back.

use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use mcp_proxy_session::{AskedFacts, Budget, Carried, Facts, Marks};
use mcp_proxy_wire::revision::names_version;
use mcp_proxy_wire::{Body, Field, Frame, Id, Kind, Message};

use super::{Lane, Passed, ruling};
use crate::correlate::{Answer, Noting};
use crate::intercept::{HeldBy, LaneMailbox, NewHold, Released};
use crate::link::{LinkEnd, Outgoing};

impl Lane {
    /// Whether somebody may want to hold a message of this lane. While one is held, all are needed whole: it may come
    /// back at any time, and not amid another.
    pub(super) fn may_hold(&self) -> bool {
        !self.unheld && (self.connection.pipeline.may_stop() || self.holds())
    }

    /// Whether answers need to know what was asked.
    pub(super) fn noting(&self) -> Noting {
        match self.may_hold() {
            true => Noting::About,
            false => Noting::Nothing,
        }
    }

    /// The same lane for a message that is on its way in pieces already, with its length announced.
    #[must_use]
    pub fn unheld(mut self) -> Lane {
        self.unheld = true;
        self
    }

    /// Whether a message of this lane is held, or let go and not yet taken.
    pub fn holds(&self) -> bool {
        self.mailbox
            .as_ref()
            .is_some_and(|own| own.mailbox.awaits())
    }

    /// Waits until a message is let go, and gives it to the steps. Safe to cancel while it waits.
    pub async fn release(&mut self, passed: &mut Passed) -> Result<(), LinkEnd> {
        let Some(own) = &self.mailbox else {
            return Ok(());
        };
        own.mailbox.came().await;
        let now = self.connection.pipeline.now();
        self.apply(now, passed)
    }

    /// The same for a body that is polled.
    pub fn poll_release(
        &mut self,
        cx: &mut Context<'_>,
        passed: &mut Passed,
    ) -> Poll<Result<(), LinkEnd>> {
        let Some(own) = &self.mailbox else {
            return Poll::Ready(Ok(()));
        };
        ready!(own.mailbox.poll_came(cx));
        let now = self.connection.pipeline.now();
        Poll::Ready(self.apply(now, passed))
    }

    /// Leaves what is to be held and takes what was let go, which goes first: that keeps the order.
    pub(super) fn hold(&mut self, now: Duration, passed: &mut Passed) {
        let frames = std::mem::take(&mut passed.on);
        if let Some(own) = &self.mailbox {
            for released in own.mailbox.take() {
                give(released, passed);
            }
        }
        for outgoing in frames {
            let ruled = match outgoing {
                Outgoing::Frame(frame) => self.rule(frame, now, passed),
                decided => Some(decided),
            };
            let frame = match ruled {
                Some(Outgoing::Frame(frame)) => frame,
                decided => {
                    passed.on.extend(decided);
                    continue;
                }
            };
            match self.wanted(&frame, now) {
                Some((by, message)) => self.leave((frame, message), by, now, passed),
                None => {
                    self.note_cancel(&frame);
                    passed.on.push(frame.into());
                }
            }
        }
        self.answers.clear();
    }

    /// A cancel goes on; the request that it names does not, if that is still held. Modern clients cancel over HTTP by
    /// closing the stream: many share a connection, and an id alone would not say whose request is meant.
    fn note_cancel(&self, frame: &Frame) {
        let Body::Whole(message) = &frame.body else {
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
        let intercept = self.connection.pipeline.intercept();
        intercept.give_up("its sender cancelled it", |entry| {
            entry.way() == way && entry.asks(&id)
        });
    }

    /// Who wants to hold it.
    fn wanted(&self, frame: &Frame, now: Duration) -> Option<(HeldBy, Message)> {
        let (Body::Whole(message), Some(sequence)) = (&frame.body, frame.sequence) else {
            return None;
        };
        let intercept = self.connection.pipeline.intercept();
        if !intercept.is_active() {
            return None;
        }
        let facts = self.facts(frame, message, sequence, now);
        let by = intercept.wants(&facts, &self.connection, |breakpoint| {
            let subject = HeldBy::Breakpoint(breakpoint).to_string();
            let text = ruling::too_slow(&subject, sequence, Budget::LIVE);
            self.connection.note(&text);
        })?;
        Some((by, message.clone()))
    }

    /// What a message answers. They are noted in the order of their numbers.
    fn answer_to(&self, sequence: u64) -> Option<&Answer> {
        let place = self
            .answers
            .binary_search_by_key(&sequence, |(known, _)| *known);
        place.ok().map(|place| &self.answers[place].1)
    }

    pub(super) fn facts<'a>(
        &'a self,
        frame: &'a Frame,
        message: &'a Message,
        sequence: u64,
        now: Duration,
    ) -> Facts<'a> {
        let pipeline = &self.connection.pipeline;
        let answer = self.answer_to(sequence);
        Facts {
            sequence,
            time: pipeline.wall(now),
            direction: self.direction,
            transport: self.transport(),
            connection: self.connection.id,
            exchange: frame.stream.exchange().map_or(0, |exchange| exchange.0),
            message,
            cut: None,
            asked: answer.map(|answer| asked_facts(answer, now)),
            carried: Carried::By(&frame.carriage),
            marks: Marks {
                late: answer.is_some_and(|answer| answer.late),
                duplicate: answer.is_some_and(|answer| answer.duplicate),
                ..Marks::default()
            },
        }
    }

    fn leave(
        &mut self,
        (frame, message): (Frame, Message),
        by: HeldBy,
        now: Duration,
        passed: &mut Passed,
    ) {
        let connection = Arc::clone(&self.connection);
        let intercept = Arc::clone(connection.pipeline.intercept());
        let own = self
            .mailbox
            .get_or_insert_with(|| LaneMailbox::new(&intercept));
        let mailbox = Arc::clone(&own.mailbox);
        let released = intercept.hold(NewHold {
            connection,
            direction: self.direction,
            frame,
            message,
            now,
            by,
            telling: self.telling,
            mailbox,
        });
        if let Some(released) = released {
            give(released, passed);
        }
    }
}

fn asked_facts(answer: &Answer, now: Duration) -> AskedFacts<'_> {
    let about = answer.asked.about.as_ref();
    AskedFacts {
        sequence: answer.asked.sequence,
        method: about.map(|about| about.method.as_ref()),
        name: about.and_then(|about| about.name.as_deref()),
        latency: now.saturating_sub(answer.asked.at),
    }
}

pub(super) fn give(released: Released, passed: &mut Passed) {
    passed.on.extend(released.on);
    passed.back.extend(released.back);
}
