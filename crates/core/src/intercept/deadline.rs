//! What happens to a held message when nobody decides: how long it waits, who is told meanwhile, and what comes then.
//!
//! One task waits for whatever is due next, of all holds together; it ends when nothing is. So a message that was decided
//! leaves nothing behind that waits for its time.

use std::sync::Arc;
use std::time::Duration;

pub use mcp_proxy_control::HoldPolicy;
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::active_hold::ActiveHold;
use super::hold_table::HoldTable;
use super::hold_timer::HoldTimeout;
use super::{HoldId, InterceptAction, InterceptMode, Interceptor};

/// How holding is done in a run.
#[derive(Clone, Copy, Debug)]
pub struct HoldOptions {
    /// The mode at the start.
    pub mode: InterceptMode,
    /// `--hold-timeout`
    pub timeout: HoldTimeout,
    /// `--on-hold-timeout`
    pub policy: HoldPolicy,
    /// `--require-viewer`: the deadline runs only once a viewer has come.
    pub waits_for_viewer: bool,
    /// `--hold-progress`: how often a client that asked for progress is told that its request is held.
    pub progress: Option<Duration>,
}

impl HoldOptions {
    /// Clients give up after 60 s.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(55);
}

impl Default for HoldOptions {
    fn default() -> Self {
        HoldOptions {
            mode: InterceptMode::Passthrough,
            timeout: HoldTimeout::After(HoldOptions::DEFAULT_TIMEOUT),
            policy: HoldPolicy::Forward,
            waits_for_viewer: false,
            progress: None,
        }
    }
}

impl Interceptor {
    /// Starts what a new hold waits for: its time, unless the first viewer is awaited, and progress for its client, which is
    /// told either way.
    pub(super) fn start_timer(self: &Arc<Self>, inner: &mut HoldTable, hold: HoldId) {
        let now = Instant::now();
        let starts = inner.had_viewer || !self.options.waits_for_viewer;
        let Some(entry) = inner.holds.get_mut(&hold) else {
            return;
        };
        if starts {
            entry.timer.start(now);
        }
        let progress = self.options.progress;
        entry.next_progress = progress.and_then(|pause| now.checked_add(pause));
        let due = entry.next_due();
        self.wake_at(inner, due);
    }

    /// Makes sure that the task wakes at this time at the latest.
    pub(super) fn wake_at(self: &Arc<Self>, inner: &mut HoldTable, due: Option<Instant>) {
        let Some(due) = due else { return };
        match inner.wakes_at {
            Some(at) if at <= due => {}
            Some(_) => {
                inner.wakes_at = Some(due);
                self.rewind.notify_one();
            }
            None => {
                // A viewer may go when the program ends and its runtime is gone: then nothing is held any more.
                if let Ok(runtime) = Handle::try_current() {
                    inner.wakes_at = Some(due);
                    runtime.spawn(Arc::clone(self).keep_time());
                }
            }
        }
    }

    async fn keep_time(self: Arc<Self>) {
        // As long as this task runs, `wakes_at` is set.
        let mut wakes_at = self.inner().wakes_at;
        while let Some(at) = wakes_at {
            wakes_at = tokio::select! {
                () = tokio::time::sleep_until(at) => self.handle_due(),
                () = self.rewind.notified() => self.inner().wakes_at,
            };
        }
    }

    /// Decides what is due, tells clients that wait, and finds out when something is due again.
    fn handle_due(&self) -> Option<Instant> {
        let mut inner = self.inner();
        let now = Instant::now();
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        let over = inner.undecided(|entry| is_due(entry.timer.until()));
        for hold in &over {
            let given = inner.holds.get(hold).map(|entry| entry.timer.given());
            let seconds = given.unwrap_or_default().as_secs();
            let why = format!("nobody decided within {seconds} s");
            // Nobody else decides while the lock is held.
            drop(inner.decide(*hold, self.policy_action(), "timeout", &why));
        }
        for hold in inner.undecided(|entry| is_due(entry.next_progress)) {
            if let Some(entry) = inner.holds.get_mut(&hold) {
                let next = self.options.progress.filter(|_| tell_progress(entry));
                entry.next_progress = next.and_then(|pause| now.checked_add(pause));
            }
        }
        let undecided = inner.holds.values().filter(|entry| entry.decided.is_none());
        let next = undecided.filter_map(ActiveHold::next_due).min();
        inner.wakes_at = next;
        drop(inner);
        if !over.is_empty() {
            self.changed();
        }
        next
    }

    /// What the policy says.
    pub(super) fn policy_action(&self) -> InterceptAction {
        match self.options.policy {
            HoldPolicy::Forward => InterceptAction::Forward,
            HoldPolicy::Drop => InterceptAction::Drop,
            HoldPolicy::Error => InterceptAction::Error {
                code: mcp_proxy_wire::ErrorCode::WITHHELD.0,
                message: "the message was held by the proxy and nobody released it in time"
                    .to_owned(),
            },
        }
    }
}

/// Tells the client that its request is held; `false`: there is nothing more to tell.
fn tell_progress(entry: &ActiveHold) -> bool {
    let Some(progress) = entry.progress() else {
        return false;
    };
    match entry.release_queue.put_progress(progress) {
        None => true,
        Some(undelivered) => {
            undelivered.note(&entry.connection);
            false
        }
    }
}
