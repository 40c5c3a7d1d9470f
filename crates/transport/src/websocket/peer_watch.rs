//! Whether a peer that says nothing is still there.
//!
//! A connection whose other end was unplugged looks like a silent one. So a silent peer gets a ping, and one that does not even
//! answer that is given up. There is one timer, which is not touched when something comes: it looks back when it fires.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

use super::SilenceLimits;

/// When a peer was heard last, and what was done about its silence.
#[derive(Debug)]
pub(super) struct PeerWatch {
    limits: SilenceLimits,
    heard_at: Instant,
    has_pinged: bool,
    timer: Pin<Box<Sleep>>,
}

/// What a silence calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WatchStep {
    /// Ask the peer for a sign of life.
    Ping,
    /// It gave none. It was silent for this long.
    GiveUp(Duration),
}

impl PeerWatch {
    pub(super) fn new(limits: SilenceLimits) -> PeerWatch {
        PeerWatch {
            limits,
            heard_at: Instant::now(),
            has_pinged: false,
            timer: Box::pin(sleep(limits.ping_after)),
        }
    }

    /// The peer has sent something, whatever it is.
    pub(super) fn heard(&mut self) {
        self.heard_at = Instant::now();
        self.has_pinged = false;
    }

    /// Waits until something is to be done. May be dropped and called again.
    pub(super) async fn next_step(&mut self) -> WatchStep {
        loop {
            self.timer.as_mut().await;
            if self.has_pinged {
                return WatchStep::GiveUp(self.heard_at.elapsed());
            }
            let ping_at = self.heard_at + self.limits.ping_after;
            if Instant::now() >= ping_at {
                self.has_pinged = true;
                let give_up_at = Instant::now() + self.limits.answer_within;
                self.timer.as_mut().reset(give_up_at);
                return WatchStep::Ping;
            }
            self.timer.as_mut().reset(ping_at);
        }
    }
}
