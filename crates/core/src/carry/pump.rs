//! One direction of a conversation: reads, passes through the lane, writes.
//!
//! A pump knows when its reader or its writer has ended, and not what that means: that is for [`carry`](super::carry()).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mcp_proxy_wire::{Body, Direction, ErrorCode, Frame, Side, StreamId};
use tokio::sync::{Mutex, Notify};
use tokio::time::{Instant, sleep_until, timeout};

use super::CarryOptions;
use crate::connection::Connection;
use crate::lane::{Lane, Passed};
use crate::link::{Failure, FrameReader, FrameWriter, LinkEnd, Outgoing};
use crate::replay::{Inlet, Sieve};

pub(super) type Writer = Mutex<Box<dyn FrameWriter>>;

/// One direction: reads, passes through the lane, writes.
pub(super) struct Pump {
    connection: Arc<Connection>,
    inlet: Arc<Inlet>,
    /// Takes out what is not the client's.
    sieve: Sieve,
    /// A large message has begun to go ahead and has not ended.
    amid: bool,
    reader: Box<dyn FrameReader>,
    lane: Lane,
    direction: Direction,
    batch: Vec<Frame>,
    passed: Passed,
    /// The record numbers of what is being written.
    sequences: Vec<u64>,
    messages: u64,
    garbage_until: Option<Instant>,
    pub(super) settle: Arc<Settle>,
    options: CarryOptions,
}

/// `None`: never.
async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Asks a pump to stop when no request of the client is open.
#[derive(Default)]
pub(super) struct Settle {
    asked: AtomicBool,
    came: Notify,
}

impl Settle {
    pub(super) fn ask(&self) {
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
        inlet: &Arc<Inlet>,
        direction: Direction,
        reader: Box<dyn FrameReader>,
        options: CarryOptions,
    ) -> Pump {
        Pump {
            connection: Arc::clone(connection),
            inlet: Arc::clone(inlet),
            sieve: Sieve::default(),
            amid: false,
            reader,
            lane: connection.lane(direction),
            direction,
            batch: Vec::new(),
            passed: Passed::default(),
            sequences: Vec::new(),
            messages: 0,
            garbage_until: None,
            settle: Arc::default(),
            options,
        }
    }

    pub(super) async fn run(&mut self, ahead: &Writer, behind: &Writer) -> PumpEnd {
        loop {
            let settles = self.settle.asked.load(Ordering::Relaxed);
            if settles && !self.lane.holds() && !self.has_open() {
                return PumpEnd::Settled;
            }
            let garbage = self.garbage_until();
            let takes = self.direction == Direction::ClientToServer && !self.amid;
            // What was held goes on when it is let go, whatever else comes.
            let end = tokio::select! {
                biased;
                released = self.lane.release(&mut self.passed), if self.lane.holds() => {
                    let written = match released {
                        Ok(()) => self.write(ahead, behind).await,
                        Err(end) => Err(end),
                    };
                    match written {
                        Ok(()) => continue,
                        Err(end) => return PumpEnd::Written(end),
                    }
                }
                () = self.settle.came.notified(), if !settles => continue,
                // What others have for the server goes between two messages of the client.
                frame = self.inlet.next(), if takes => {
                    self.passed.on.push(frame.into());
                    match self.write(ahead, behind).await {
                        Ok(()) => continue,
                        Err(end) => return PumpEnd::Written(end),
                    }
                }
                () = until(garbage) => {
                    if self.has_open() {
                        return PumpEnd::Read(self.explain(LinkEnd::Closed));
                    }
                    self.garbage_until = None;
                    continue;
                }
                // Frames that came with the end of the stream are carried before the end is told.
                read = self.reader.read(&mut self.batch) => read.err(),
            };
            if let Err(end) = self.answer_refused() {
                return PumpEnd::Written(end);
            }
            if !(self.batch.is_empty() && self.passed.back.is_empty())
                && let Err(end) = self.step(ahead, behind).await
            {
                return PumpEnd::Written(end);
            }
            if let Some(end) = end {
                return match self.let_go_all(ahead, behind).await {
                    Ok(()) => PumpEnd::Read(end),
                    Err(end) => PumpEnd::Written(end),
                };
            }
            if self.messages == 0 && self.lane.stray().lines > self.options.stray_lines {
                return PumpEnd::Read(self.explain(LinkEnd::Closed));
            }
        }
    }

    async fn step(&mut self, ahead: &Writer, behind: &Writer) -> Result<(), LinkEnd> {
        let now = self.connection.pipeline.now();
        let reader = &mut self.reader;
        // What came while others were ready shares their write.
        let more = |batch: &mut Vec<Frame>| reader.read_ready(batch);
        self.lane
            .pass_together(&mut self.batch, now, &mut self.passed, more)
            .await?;
        self.messages += self.passed.on.len() as u64;
        self.write(ahead, behind).await
    }

    /// When a server that has printed what is no message, and no message yet, is looked at again.
    fn garbage_until(&mut self) -> Option<Instant> {
        if self.messages > 0 || self.lane.stray().lines == 0 {
            return None;
        }
        let wait = self.options.stray_wait;
        Some(
            *self
                .garbage_until
                .get_or_insert_with(|| Instant::now() + wait),
        )
    }

    fn has_open(&self) -> bool {
        self.connection.has_open(Direction::ClientToServer)
    }

    /// The side it reads from has ended: what is still held of it goes on when it is let go, or at its deadline.
    async fn let_go_all(&mut self, ahead: &Writer, behind: &Writer) -> Result<(), LinkEnd> {
        while self.lane.holds() {
            self.lane.release(&mut self.passed).await?;
            self.write(ahead, behind).await?;
        }
        Ok(())
    }

    /// Writes what came out of the lane.
    async fn write(&mut self, ahead: &Writer, behind: &Writer) -> Result<(), LinkEnd> {
        self.connection.pipeline.durable().await?;
        if !self.passed.back.is_empty() {
            let mut writer = behind.lock().await;
            drop(timeout(self.options.stall, writer.write(&mut self.passed.back)).await);
            self.passed.back.clear();
        }
        if self.direction == Direction::ServerToClient {
            self.sieve.sift(&self.connection, &mut self.passed);
        }
        if let Some(last) = self.passed.on.last() {
            self.amid = matches!(last.frame().body, Body::Open(_) | Body::More(_));
            // A writer empties the vector, so the numbers are kept apart.
            self.sequences.clear();
            let sequences = self.passed.on.iter().filter_map(|out| out.frame().sequence);
            self.sequences.extend(sequences);
            let mut writer = ahead.lock().await;
            let written = timeout(self.options.stall, writer.write(&mut self.passed.on)).await;
            let outcome = written.unwrap_or_else(|_| Err(self.stalled()));
            if let Err(end) = outcome {
                self.passed.on.clear();
                self.connection
                    .undelivered(&self.sequences, &end.to_string());
                return Err(end);
            }
            for (sequence, why) in writer.untaken() {
                self.connection.undelivered(&[sequence], &why);
            }
        }
        self.passed.on.clear();
        Ok(())
    }

    /// What the reader refused is answered to its sender, and recorded as ours.
    fn answer_refused(&mut self) -> Result<(), LinkEnd> {
        let direction = self.direction.reverse();
        for answer in self.reader.refusals() {
            let now = self.connection.pipeline.now();
            let frame = self
                .connection
                .author(direction, StreamId::Only, answer, now)?;
            self.passed.back.push(frame.into());
        }
        Ok(())
    }

    /// Waits for the client's next request and answers it with why the server is gone.
    pub(super) async fn refuse_next(&mut self, failure: &Failure) -> Vec<Outgoing> {
        loop {
            if self.reader.read(&mut self.batch).await.is_err() && self.batch.is_empty() {
                return Vec::new();
            }
            let now = self.connection.pipeline.now();
            if self
                .lane
                .pass(&mut self.batch, now, &mut self.passed)
                .is_err()
            {
                return Vec::new();
            }
            let lost = self.passed.take_sequences();
            self.connection.undelivered(&lost, &failure.text);
            // What a rule answers needs no server.
            let mut answers = std::mem::take(&mut self.passed.back);
            answers.extend(self.fail_open(failure));
            if !answers.is_empty() {
                return answers;
            }
        }
    }

    /// Error answers for every request of the client that is still open.
    pub(super) fn fail_open(&self, failure: &Failure) -> Vec<Outgoing> {
        let now = self.connection.pipeline.now();
        let mut answers = self.connection.fail_open(failure.code, &failure.text, now);
        let awaited = self.connection.awaited();
        awaited.take_failures(&mut answers, &failure.text);
        answers
    }

    fn stalled(&self) -> LinkEnd {
        let seconds = self.options.stall.as_secs();
        let who = self.direction.to();
        LinkEnd::failed(
            who,
            ErrorCode::PEER_STALLED,
            format!("the {who} read nothing for {seconds} s and was given up"),
        )
    }

    /// Adds what the server printed instead of messages.
    pub(super) fn explain(&self, end: LinkEnd) -> LinkEnd {
        let stray = self.lane.stray();
        if stray.lines == 0 || self.messages > 0 {
            return end;
        }
        let text = match &end {
            LinkEnd::Closed => "the server's output is no MCP".to_owned(),
            LinkEnd::Failed(failure) => failure.text.clone(),
        };
        let code = match &end {
            LinkEnd::Closed => ErrorCode::SERVER_UNAVAILABLE,
            LinkEnd::Failed(failure) => failure.code,
        };
        LinkEnd::failed(
            Side::Server,
            code,
            format!(
                "{text}; it printed {} line(s) on stdout that are no JSON-RPC, the first: {}",
                stray.lines, stray.first
            ),
        )
    }
}
