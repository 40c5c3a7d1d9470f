//! The life of a message, in one place: record, rules, holds, steps.
//!
//! A [`MessagePipeline`] is one direction of one conversation. A pump reads frames, passes all that are ready through the
//! pipeline together, and writes what comes out. The lines of those frames share one `write(2)`, which has
//! returned before [`MessagePipeline::pass`] does: a message that a peer received is always in the record.

use std::sync::Arc;
use std::time::Duration;

use mcp_proxy_wire::{Body, Direction, Frame, Kind, Side, Transport};

use crate::connection::Connection;
use crate::correlator::Correlation;
use crate::intercept::ReleaseQueueReader;
use crate::link::{LinkEnd, OutgoingFrame};
use crate::step::{Step, StepContext};

mod holding;
mod recording;
mod redirection;
mod rule_actions;

/// One direction of one conversation.
pub struct MessagePipeline {
    connection: Arc<Connection>,
    direction: Direction,
    steps: &'static [Step],
    /// Nobody can hold its messages: they go no further.
    never_holds: bool,
    /// Whether who waits for a held message can be told so.
    progress_support: ProgressSupport,
    stray: StrayOutput,
    /// Messages that were held come back here. None was held yet: there is none.
    release_queue: Option<ReleaseQueueReader>,
    /// What messages answer, for those who choose what to hold. Filled only while somebody does.
    correlations: Vec<(u64, Correlation)>,
}

/// What comes out of a pipeline: frames for the peer ahead and for the peer behind.
#[derive(Default)]
pub struct PipelineOutput {
    /// For the side the frames were travelling to.
    pub forward: Vec<OutgoingFrame>,
    /// For the side they came from.
    pub reply: Vec<OutgoingFrame>,
}

impl PipelineOutput {
    /// Removes the frames for the side ahead and returns the record numbers of their messages.
    pub fn take_sequences(&mut self) -> Vec<u64> {
        let written = self
            .forward
            .drain(..)
            .filter_map(OutgoingFrame::into_written);
        written.filter_map(|frame| frame.sequence).collect()
    }
}

/// What became of a single frame.
#[expect(
    clippy::large_enum_variant,
    reason = "it is matched where it is returned, and a box would cost an allocation for each message"
)]
pub enum PassResult {
    /// What came out for the peer ahead, or for the one behind if that is all.
    Passed(Option<OutgoingFrame>),
    /// It is held.
    Held,
}

/// Whether messages can go to the sender of a message while that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgressSupport {
    /// There is a way to it.
    Yes,
    /// It waits for one answer, and that is all it takes.
    No,
}

/// Stray output of a stdio server: lines that are not messages.
#[derive(Clone, Debug, Default)]
pub struct StrayOutput {
    /// How many lines.
    pub lines: u64,
    /// How many bytes.
    pub bytes: u64,
    /// The first one, shortened, for error texts.
    pub first: String,
}

impl MessagePipeline {
    pub(crate) fn new(connection: Arc<Connection>, direction: Direction) -> MessagePipeline {
        let steps = Step::for_connection(&connection);
        MessagePipeline {
            steps,
            never_holds: false,
            ..MessagePipeline::record_only(connection, direction)
        }
    }

    pub(crate) fn record_only(
        connection: Arc<Connection>,
        direction: Direction,
    ) -> MessagePipeline {
        MessagePipeline {
            connection,
            direction,
            steps: &[],
            never_holds: true,
            progress_support: ProgressSupport::Yes,
            stray: StrayOutput::default(),
            release_queue: None,
            correlations: Vec::new(),
        }
    }

    /// Passes everything that is ready: records it with one write, then applies rules, holds and steps.
    pub fn pass(
        &mut self,
        frames: &mut Vec<Frame>,
        now: Duration,
        output: &mut PipelineOutput,
    ) -> Result<(), LinkEnd> {
        let connection = Arc::clone(&self.connection);
        let mut record_writer = connection.run.lock_record_writer();
        for frame in frames.drain(..) {
            let received = self.receive_one(&mut record_writer, frame, now);
            output.forward.extend(received.map(OutgoingFrame::Frame));
        }
        connection.run.flush(&mut record_writer)?;
        drop(record_writer);
        self.apply(now, output)
    }

    /// Passes a single frame and returns the frame to send: forward if there is one, otherwise the reply. Waits while the
    /// message is held.
    pub async fn pass_one(
        &mut self,
        frame: Frame,
        now: Duration,
    ) -> Result<Option<OutgoingFrame>, LinkEnd> {
        match self.try_pass(frame, now)? {
            PassResult::Passed(frame) => Ok(frame),
            PassResult::Held => self.wait_released(|_| {}).await,
        }
    }

    /// Passes a single frame without waiting: a message that is held comes out of [`MessagePipeline::wait_released`].
    pub fn try_pass(&mut self, frame: Frame, now: Duration) -> Result<PassResult, LinkEnd> {
        let mut output = PipelineOutput::default();
        self.pass(&mut vec![frame], now, &mut output)?;
        if output.forward.is_empty() && output.reply.is_empty() && self.has_held_messages() {
            return Ok(PassResult::Held);
        }
        Ok(PassResult::Passed(
            output.forward.pop().or(output.reply.pop()),
        ))
    }

    /// Waits for the message that was offered and held, as [`MessagePipeline::pass_one`] does. `tell` gets what its sender is to
    /// know meanwhile, if the pipeline is one that tells.
    pub async fn wait_released(
        &mut self,
        mut tell: impl FnMut(Frame),
    ) -> Result<Option<OutgoingFrame>, LinkEnd> {
        let mut output = PipelineOutput::default();
        while self.has_held_messages() && output.forward.is_empty() && output.reply.is_empty() {
            self.release(&mut output).await?;
            // A notification is not the answer to a message: it is progress.
            for frame in std::mem::take(&mut output.reply) {
                match frame {
                    OutgoingFrame::Frame(frame) if is_notification(&frame) => tell(frame),
                    other => output.reply.push(other),
                }
            }
        }
        Ok(output.forward.pop().or(output.reply.pop()))
    }

    /// The verdicts on what is recorded now: rules and holds first, then the steps.
    fn apply(&mut self, now: Duration, output: &mut PipelineOutput) -> Result<(), LinkEnd> {
        if self.release_queue.is_some() || self.may_hold() {
            self.hold(now, output);
        }
        let context = StepContext {
            connection: &self.connection,
            direction: self.direction,
            now,
        };
        self.steps
            .iter()
            .try_for_each(|step| step.apply(&context, output))
    }

    /// The same pipeline, for a message whose sender can be told something before its answer, or cannot.
    #[must_use]
    pub fn with_progress_support(mut self, telling: ProgressSupport) -> MessagePipeline {
        self.progress_support = telling;
        self
    }

    /// The side whose frames pass here.
    pub fn from(&self) -> Side {
        self.direction.from()
    }

    /// What the server printed that was not a message.
    pub fn stray_output(&self) -> &StrayOutput {
        &self.stray
    }

    fn transport(&self) -> Transport {
        self.connection.transport_from(self.direction)
    }
}

fn is_notification(frame: &Frame) -> bool {
    matches!(&frame.body, Body::Message(message) if message.kind() == Kind::Notification)
}
