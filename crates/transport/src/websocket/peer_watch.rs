//! Whether a peer that says nothing is still there.
//!
//! A connection whose other end was unplugged looks like a silent one. So a silent peer gets a ping, and one that does not even
//! answer that is given up. A ping that travels with a message costs no write of its own, so the writing half sends it early if it
//! has something to write. There is one timer, which a peer that talks leaves alone: it looks back when it fires.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

use super::SilenceLimits;

/// What both halves of a socket know about its peer's silence.
#[derive(Debug)]
pub(super) struct PeerSilence {
    limits: SilenceLimits,
    state: Mutex<SilenceState>,
}

#[derive(Debug)]
struct SilenceState {
    heard_at: Instant,
    /// Since then.
    pinged_at: Option<Instant>,
}

/// Waits for what a silence calls for.
#[derive(Debug)]
pub(super) struct PeerWatch {
    silence: Arc<PeerSilence>,
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

impl PeerSilence {
    pub(super) fn new(limits: SilenceLimits) -> PeerSilence {
        PeerSilence {
            limits,
            state: Mutex::new(SilenceState {
                heard_at: Instant::now(),
                pinged_at: None,
            }),
        }
    }

    /// Whether a ping is to travel with the message that is written now.
    pub(super) fn takes_ping(&self) -> bool {
        let mut state = self.state();
        let is_early = state.heard_at.elapsed() < self.limits.ping_after / 2;
        if is_early || state.pinged_at.is_some() {
            return false;
        }
        state.pinged_at = Some(Instant::now());
        true
    }

    fn state(&self) -> MutexGuard<'_, SilenceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PeerWatch {
    pub(super) fn new(silence: Arc<PeerSilence>) -> PeerWatch {
        PeerWatch {
            timer: Box::pin(sleep(silence.limits.ping_after)),
            silence,
        }
    }

    /// The peer has sent something, whatever it is.
    pub(super) fn heard(&mut self) {
        let mut state = self.silence.state();
        state.heard_at = Instant::now();
        if state.pinged_at.take().is_some() {
            // To move a timer is cheaper than to wake the task for nothing.
            let ping_at = state.heard_at + self.silence.limits.ping_after;
            self.timer.as_mut().reset(ping_at);
        }
    }

    /// Waits until something is to be done. May be dropped and called again.
    pub(super) async fn next_step(&mut self) -> WatchStep {
        let limits = self.silence.limits;
        loop {
            self.timer.as_mut().await;
            let mut state = self.silence.state();
            let now = Instant::now();
            let due = match state.pinged_at {
                Some(pinged_at) => pinged_at + limits.answer_within,
                None => state.heard_at + limits.ping_after,
            };
            if now < due {
                self.timer.as_mut().reset(due);
                continue;
            }
            if state.pinged_at.is_some() {
                return WatchStep::GiveUp(now - state.heard_at);
            }
            state.pinged_at = Some(now);
            self.timer.as_mut().reset(now + limits.answer_within);
            return WatchStep::Ping;
        }
    }
}
