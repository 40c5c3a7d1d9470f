//! One direction of a conversation: reads, passes through the pipeline, writes.
//!
//! A pump knows when its reader or its writer has ended, and not what that means: that is for [`carry`](super::carry()).

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mcp_proxy_wire::{Body, Direction, ErrorCode, Frame, Origin, Side, StreamId, error_response};
use tokio::sync::{Mutex, Notify};
use tokio::time::{Instant, sleep_until, timeout};

use super::CarryOptions;
use crate::connection::Connection;
use crate::link::{FrameReader, FrameWriter, LinkEnd, LinkFailure, OutgoingFrame};
use crate::message_pipeline::{MessagePipeline, PipelineOutput};
use crate::replay::{InjectionQueue, remove_replay_answers};

/// How often it is asked whether a client that has ended still reads.
const CLIENT_CHECK: Duration = Duration::from_millis(500);

pub(super) type SharedWriter = Mutex<Box<dyn FrameWriter>>;

/// One direction: reads, passes through the pipeline, writes.
pub(super) struct Pump {
    connection: Arc<Connection>,
    /// What others have for the server, in the pump towards it.
    injections: Option<InjectionQueue>,
    reader: Box<dyn FrameReader>,
    pipeline: MessagePipeline,
    direction: Direction,
    batch: Vec<Frame>,
    output: PipelineOutput,
    /// The record numbers of what is being written.
    sequences: Vec<u64>,
    messages: u64,
    stray_deadline: Option<Instant>,
    pub(super) settle: Arc<SettleSignal>,
    options: CarryOptions,
}

/// `None`: never.
async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// `None`: nobody injects any.
async fn next_injected(injections: &mut Option<InjectionQueue>) -> Frame {
    match injections {
        Some(injections) => injections.next().await,
        None => std::future::pending().await,
    }
}

/// Asks a pump to stop when no request of the client is open.
#[derive(Default)]
pub(super) struct SettleSignal {
    asked: AtomicBool,
    came: Notify,
}

impl SettleSignal {
    pub(super) fn request(&self) {
        self.asked.store(true, Ordering::Relaxed);
        self.came.notify_one();
    }
}

/// Which half ended a pump.
pub(super) enum PumpEnd {
    /// The side it reads from.
    Read(LinkEnd),
    /// The side it writes to (or the record).
    Written(LinkEnd),
    /// Neither: it was asked to stop when no request of the client is open, and none is.
    Settled,
}

impl Pump {
    pub(super) fn new(
        connection: &Arc<Connection>,
        injections: Option<InjectionQueue>,
        direction: Direction,
        reader: Box<dyn FrameReader>,
        options: CarryOptions,
    ) -> Pump {
        Pump {
            connection: Arc::clone(connection),
            injections,
            reader,
            pipeline: connection.message_pipeline(direction),
            direction,
            batch: Vec::new(),
            output: PipelineOutput::default(),
            sequences: Vec::new(),
            messages: 0,
            stray_deadline: None,
            settle: Arc::default(),
            options,
        }
    }

    pub(super) async fn run(&mut self, ahead: &SharedWriter, behind: &SharedWriter) -> PumpEnd {
        let settle = Arc::clone(&self.settle);
        // Made once and not for each message: to wait for a notification costs more than to be asked about one again.
        let mut settle_requested = pin!(settle.came.notified());
        loop {
            let settles = self.settle.asked.load(Ordering::Relaxed);
            if settles && !self.pipeline.has_held_messages() && !self.has_open() {
                return PumpEnd::Settled;
            }
            let garbage = self.update_stray_deadline();
            // A held message is forwarded as soon as it is released, whatever else arrives.
            let end = tokio::select! {
                biased;
                released = self.pipeline.release(&mut self.output), if self.pipeline.has_held_messages() => {
                    let written = match released {
                        Ok(()) => self.write(ahead, behind).await,
                        Err(end) => Err(end),
                    };
                    match written {
                        Ok(()) => continue,
                        Err(end) => return PumpEnd::Written(end),
                    }
                }
                () = &mut settle_requested, if !settles => continue,
                // Write injected messages between two client messages.
                frame = next_injected(&mut self.injections) => {
                    self.output.forward.push(frame.into());
                    match self.write(ahead, behind).await {
                        Ok(()) => continue,
                        Err(end) => return PumpEnd::Written(end),
                    }
                }
                () = until(garbage) => {
                    if self.has_open() {
                        return PumpEnd::Read(LinkEnd::Closed);
                    }
                    self.stray_deadline = None;
                    continue;
                }
                // Frames that came with the end of the stream are carried before the end is told.
                read = self.reader.read(&mut self.batch) => read.err(),
            };
            if let Err(end) = self.answer_refused() {
                return PumpEnd::Written(end);
            }
            if !(self.batch.is_empty() && self.output.reply.is_empty())
                && let Err(end) = self.step(ahead, behind).await
            {
                return PumpEnd::Written(end);
            }
            if let Some(end) = end {
                return match self.release_all(ahead, behind).await {
                    Ok(()) => PumpEnd::Read(end),
                    Err(end) => PumpEnd::Written(end),
                };
            }
            if self.messages == 0 && self.pipeline.stray_output().lines > self.options.stray_lines {
                return PumpEnd::Read(LinkEnd::Closed);
            }
        }
    }

    async fn step(&mut self, ahead: &SharedWriter, behind: &SharedWriter) -> Result<(), LinkEnd> {
        let now = self.connection.run.now();
        self.pipeline.pass(&mut self.batch, now, &mut self.output)?;
        self.messages += self.output.forward.len() as u64;
        self.write(ahead, behind).await
    }

    /// When to look again at a server that has printed stray lines and no message yet.
    fn update_stray_deadline(&mut self) -> Option<Instant> {
        if self.messages > 0 || self.pipeline.stray_output().lines == 0 {
            return None;
        }
        let wait = self.options.stray_wait;
        Some(
            *self
                .stray_deadline
                .get_or_insert_with(|| Instant::now() + wait),
        )
    }

    fn has_open(&self) -> bool {
        self.connection.has_open(Direction::ClientToServer)
    }

    /// The side it reads from has ended: what is still held is forwarded when it is released, or at its deadline.
    async fn release_all(
        &mut self,
        ahead: &SharedWriter,
        behind: &SharedWriter,
    ) -> Result<(), LinkEnd> {
        let connection = Arc::clone(&self.connection);
        while self.pipeline.has_held_messages() {
            tokio::select! {
                biased;
                released = self.pipeline.release(&mut self.output) => released?,
                () = drop_holds_without_client(&connection, behind), if self.direction == Direction::ClientToServer => {}
            }
            self.write(ahead, behind).await?;
        }
        Ok(())
    }

    /// Writes what came out of the pipeline.
    async fn write(&mut self, ahead: &SharedWriter, behind: &SharedWriter) -> Result<(), LinkEnd> {
        self.connection.run.durable().await?;
        if !self.output.reply.is_empty() {
            let replies = std::mem::take(&mut self.output.reply);
            self.write_answers(replies, behind, self.direction.from())
                .await;
        }
        if self.direction == Direction::ServerToClient {
            remove_replay_answers(&self.connection, &mut self.output);
        }
        if !self.output.forward.is_empty() {
            // A writer empties the vector, so the numbers are kept apart.
            self.sequences.clear();
            self.sequences
                .extend(written_sequences(&self.output.forward));
            let mut writer = ahead.lock().await;
            let written = timeout(self.options.stall, writer.write(&mut self.output.forward)).await;
            let outcome = written.unwrap_or_else(|_| Err(self.stalled(self.direction.to())));
            if let Err(end) = outcome {
                self.output.forward.clear();
                self.connection
                    .undelivered(&self.sequences, &end.to_string());
                return Err(end);
            }
        }
        self.output.forward.clear();
        Ok(())
    }

    /// Writes answers of the proxy's own. A side that does not take them shows that to the pump that writes to it.
    pub(super) async fn write_answers(
        &mut self,
        mut answers: Vec<OutgoingFrame>,
        writer: &SharedWriter,
        side: Side,
    ) {
        let sequences: Vec<u64> = written_sequences(&answers).collect();
        let mut writer = writer.lock().await;
        let written = timeout(self.options.stall, writer.write(&mut answers)).await;
        if let Err(end) = written.unwrap_or_else(|_| Err(self.stalled(side))) {
            self.connection.undelivered(&sequences, &end.to_string());
        }
    }

    /// What the reader refused is answered to its sender, and recorded as ours.
    fn answer_refused(&mut self) -> Result<(), LinkEnd> {
        let direction = self.direction.reverse();
        for answer in self.reader.refusals() {
            let now = self.connection.run.now();
            let frame = self
                .connection
                .author(direction, StreamId::Only, answer, now)?;
            self.output.reply.push(frame.into());
        }
        Ok(())
    }

    /// No more injected messages are taken; answers to them still are.
    pub(super) fn close_injections(&mut self) {
        if let Some(injections) = &mut self.injections {
            injections.close();
        }
    }

    /// Waits for the client's next request and answers it with why the server is gone.
    pub(super) async fn refuse_next(&mut self, failure: &LinkFailure) -> Vec<OutgoingFrame> {
        loop {
            if self.reader.read(&mut self.batch).await.is_err() && self.batch.is_empty() {
                return Vec::new();
            }
            let now = self.connection.run.now();
            if self
                .pipeline
                .pass(&mut self.batch, now, &mut self.output)
                .is_err()
            {
                return Vec::new();
            }
            let lost = self.output.take_sequences();
            self.connection.undelivered(&lost, &failure.text);
            // What a rule answers needs no server.
            let mut answers = std::mem::take(&mut self.output.reply);
            answers.extend(self.fail_open(failure));
            if !answers.is_empty() {
                return answers;
            }
        }
    }

    /// Error answers for every request of the client that is still open.
    pub(super) fn fail_open(&self, failure: &LinkFailure) -> Vec<OutgoingFrame> {
        let now = self.connection.run.now();
        let mut answers = self.connection.fail_open(failure, now);
        let awaited = self.connection.replay_waiters();
        awaited.take_failures(&mut answers, &failure.text);
        answers
    }

    /// The answers that could not be recorded are not sent. Their requests are answered with why.
    pub(super) fn take_unsent_answers(&mut self, failure: &LinkFailure) -> Vec<OutgoingFrame> {
        let unsent = std::mem::take(&mut self.output.forward);
        let unsent = unsent.into_iter().filter_map(OutgoingFrame::into_written);
        let answer_with_why = |frame: Frame| match &frame.body {
            Body::Message(message) if message.is_answer() => {
                let id = message.id();
                let message = error_response(id.as_ref(), failure.code, &failure.text, None);
                Some(Frame::message(frame.stream, Origin::Proxy, message).into())
            }
            _ => None,
        };
        unsent.filter_map(answer_with_why).collect()
    }

    fn stalled(&self, who: Side) -> LinkEnd {
        let seconds = self.options.stall.as_secs();
        LinkEnd::failed(
            who,
            ErrorCode::PEER_STALLED,
            format!("the {who} read nothing for {seconds} s and was given up"),
        )
    }

    /// Adds what the server printed instead of messages.
    pub(super) fn explain(&self, end: LinkEnd) -> LinkEnd {
        let stray = self.pipeline.stray_output();
        if stray.lines == 0 || self.messages > 0 {
            return end;
        }
        let text = match &end {
            LinkEnd::Closed => "the server's output is not MCP".to_owned(),
            LinkEnd::Failed(failure) => failure.text.clone(),
        };
        let printed = match stray.lines {
            1 => "a line on stdout that is not JSON-RPC".to_owned(),
            lines => format!("{lines} lines on stdout that are not JSON-RPC, the first"),
        };
        let code = match &end {
            LinkEnd::Closed => ErrorCode::SERVER_UNAVAILABLE,
            LinkEnd::Failed(failure) => failure.code,
        };
        LinkEnd::failed(
            Side::Server,
            code,
            format!("{text}; it printed {printed}: {}", stray.first),
        )
    }
}

/// The record numbers of the messages that are written.
fn written_sequences(frames: &[OutgoingFrame]) -> impl Iterator<Item = u64> {
    frames.iter().filter_map(|outgoing| match outgoing {
        OutgoingFrame::Frame(frame) | OutgoingFrame::Replacement { frame, .. } => frame.sequence,
        OutgoingFrame::Dropped(_)
        | OutgoingFrame::Cancelled(_)
        | OutgoingFrame::RequestReplaced(_) => None,
    })
}

/// Waits until the client, whose messages have ended, reads nothing any more either. Then what is held of its conversation is
/// dropped: nobody waits for it, whatever a viewer makes of it. A client that only has nothing more to say still reads answers.
pub(super) async fn drop_holds_without_client(connection: &Connection, to_client: &SharedWriter) {
    loop {
        tokio::time::sleep(CLIENT_CHECK).await;
        // If the lock is taken, a write is in progress and will notice the closed peer itself.
        let is_gone = to_client
            .try_lock()
            .is_ok_and(|writer| writer.is_peer_gone());
        if is_gone {
            let why = "its client has ended";
            let intercept = connection.run.intercept();
            intercept.drop_matching(why, |entry| entry.connection.id == connection.id);
            return;
        }
    }
}
