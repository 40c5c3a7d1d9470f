//! The life of a message, in one place: wrap, record, steps, verdict.
//!
//! A [`Lane`] is one direction of one conversation. A pump reads frames, passes all that are ready through the
//! lane together, and writes what comes out. The records of those frames share one `write(2)`, which has
//! returned before [`Lane::pass`] does: a message that a peer received is always in the record.

use std::sync::Arc;
use std::time::Duration;

use mcp_proxy_wire::{Body, Direction, Frame, Kind, Side, Transport};

use crate::connection::Connection;
use crate::correlate::Answer;
use crate::intercept::LaneMailbox;
use crate::large::Large;
use crate::link::{LinkEnd, Outgoing};
use crate::pipeline::Ticket;
use crate::rules::KnownRules;
use crate::step::{Stage, Step};

mod gather;
mod holding;
mod recording;
mod redirecting;
mod ruling;

/// One direction of one conversation.
pub struct Lane {
    connection: Arc<Connection>,
    direction: Direction,
    steps: &'static [Step],
    /// Nobody can hold its messages: they go no further, or are on their way in pieces already.
    unheld: bool,
    /// Whether who waits for a held message can be told so.
    telling: Telling,
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
    pub on: Vec<Outgoing>,
    /// For the side they came from.
    pub back: Vec<Outgoing>,
}

impl Passed {
    /// Removes the frames for the side ahead and returns the record numbers of their messages.
    pub fn take_sequences(&mut self) -> Vec<u64> {
        let written = self.on.drain(..).filter_map(Outgoing::into_written);
        written.filter_map(|frame| frame.sequence).collect()
    }
}

/// What became of a single frame.
#[expect(
    clippy::large_enum_variant,
    reason = "it is matched where it is returned, and a box would cost an allocation for each message"
)]
pub enum Offered {
    /// What came out for the peer ahead, or for the one behind if that is all.
    Passed(Option<Outgoing>),
    /// It is held.
    Held,
}

/// Whether messages can go to the sender of a message while that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Telling {
    /// There is a way to it.
    Yes,
    /// It waits for one answer, and that is all it takes.
    No,
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
            telling: Telling::Yes,
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
        if let Some(ticket) = self.receive(frames, now, passed)? {
            self.connection.pipeline.flush_since(ticket)?;
        }
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
        if let Some(mut ticket) = self.receive(frames, now, passed)? {
            tokio::task::yield_now().await;
            more(frames);
            let pipeline = Arc::clone(&self.connection.pipeline);
            if !frames.is_empty()
                && let Some(later) = self.receive(frames, pipeline.now(), passed)?
            {
                ticket = ticket.with(later);
            }
            pipeline.flush_since(ticket)?;
        }
        self.apply(now, passed)
    }

    /// The same for a single frame: what comes out for the peer ahead, or for the one behind if that is all. Waits
    /// while the message is held.
    pub async fn pass_one(
        &mut self,
        frame: Frame,
        now: Duration,
    ) -> Result<Option<Outgoing>, LinkEnd> {
        match self.offer(frame, now).await? {
            Offered::Passed(frame) => Ok(frame),
            Offered::Held => self.released(|_| {}).await,
        }
    }

    /// The same without waiting: a message that is held comes out of [`Lane::released`].
    pub async fn offer(&mut self, frame: Frame, now: Duration) -> Result<Offered, LinkEnd> {
        if !self.steps.is_empty() || self.may_hold() {
            let mut passed = Passed::default();
            self.pass_together(&mut vec![frame], now, &mut passed, |_| {})
                .await?;
            if passed.on.is_empty() && passed.back.is_empty() && self.holds() {
                return Ok(Offered::Held);
            }
            return Ok(Offered::Passed(passed.on.pop().or(passed.back.pop())));
        }
        let pipeline = Arc::clone(&self.connection.pipeline);
        let (received, ticket) = {
            let mut ledger = pipeline.ledger();
            let received = self.receive_one(&mut ledger, frame, now)?;
            (received, ledger.ticket())
        };
        if let Some(ticket) = ticket {
            tokio::task::yield_now().await;
            pipeline.flush_since(ticket)?;
        }
        Ok(Offered::Passed(received.map(Outgoing::Frame)))
    }

    /// Waits for the message that was offered and held, as [`Lane::pass_one`] does. `tell` gets what its sender is to
    /// know meanwhile, if the lane is one that tells.
    pub async fn released(
        &mut self,
        mut tell: impl FnMut(Frame),
    ) -> Result<Option<Outgoing>, LinkEnd> {
        let mut passed = Passed::default();
        while self.holds() && passed.on.is_empty() && passed.back.is_empty() {
            self.release(&mut passed).await?;
            // The answer to a message is no notification: that is progress.
            for frame in std::mem::take(&mut passed.back) {
                match frame {
                    Outgoing::Frame(frame) if is_notification(&frame) => tell(frame),
                    other => passed.back.push(other),
                }
            }
        }
        Ok(passed.on.pop().or(passed.back.pop()))
    }

    /// Wraps and records. The ticket tells later whether the lines have been written; `None`: there is no record.
    fn receive(
        &mut self,
        frames: &mut Vec<Frame>,
        now: Duration,
        passed: &mut Passed,
    ) -> Result<Option<Ticket>, LinkEnd> {
        let connection = Arc::clone(&self.connection);
        let mut ledger = connection.pipeline.ledger();
        for frame in frames.drain(..) {
            let received = self.receive_one(&mut ledger, frame, now)?;
            passed.on.extend(received.map(Outgoing::Frame));
        }
        Ok(ledger.ticket())
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

    /// The same lane, for a message whose sender can be told something before its answer, or cannot.
    #[must_use]
    pub fn telling(mut self, telling: Telling) -> Lane {
        self.telling = telling;
        self
    }

    /// The side whose frames pass here.
    pub fn from(&self) -> Side {
        self.direction.from()
    }

    /// What the server printed that was no message.
    pub fn stray(&self) -> &Stray {
        &self.stray
    }

    fn transport(&self) -> Transport {
        self.connection.transport_from(self.direction)
    }
}

fn is_notification(frame: &Frame) -> bool {
    matches!(&frame.body, Body::Whole(message) if message.kind() == Kind::Notification)
}
