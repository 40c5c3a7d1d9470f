//! What the players of one record share: whose turn it is.
//!
//! Each connection of the record has a player of its own, but what was said on one may be why another was answered as it
//! was. So lines are said in the order of the record across all of them, and requests count together towards the number
//! that may be open at once.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::PlaybackOptions;
use super::plan::{MessagePurpose, PlannedMessage, ReplayPlan};

/// The order of all lines of all plans.
pub struct ReplaySchedule {
    order: Mutex<ScheduleState>,
    changed: Notify,
    pub(super) pace: PlaybackOptions,
}

#[derive(Default)]
struct ScheduleState {
    /// Lines that were not said yet, by their number.
    unsaid: BTreeSet<u64>,
    /// Requests without an answer.
    open: usize,
    /// When the first line was said, now and then.
    begin: Option<(Instant, Duration)>,
    /// Nothing more is said, and what is unsaid stays so.
    stopped: bool,
}

/// Whether a line may be said.
pub(super) enum Turn {
    Now,
    /// Not before this.
    Later(Instant),
    /// When something has changed.
    Wait,
}

impl ReplaySchedule {
    /// A stage for players of these plans.
    pub fn new<'a>(
        plans: impl IntoIterator<Item = &'a ReplayPlan>,
        pace: PlaybackOptions,
    ) -> Arc<ReplaySchedule> {
        let lines = plans.into_iter().flat_map(|plan| &plan.messages);
        Arc::new(ReplaySchedule {
            order: Mutex::new(ScheduleState {
                unsaid: lines.map(|line| line.sequence).collect(),
                ..ScheduleState::default()
            }),
            changed: Notify::new(),
            pace,
        })
    }

    /// Waits until everything before the line with this number was said.
    pub async fn wait_until_reached(&self, sequence: u64) {
        loop {
            let changed = self.changed();
            if self.order().is_next(sequence) {
                return;
            }
            changed.await;
        }
    }

    /// From now on nothing is said. Players are not ended by this.
    pub fn stop(&self) {
        self.order().stopped = true;
    }

    /// Whether a line was said before the stage was stopped, or could have been.
    pub fn was_played(&self, sequence: u64) -> bool {
        !self.order().unsaid.contains(&sequence)
    }

    pub(super) fn turn(&self, line: &PlannedMessage, now: Instant) -> Turn {
        let mut order = self.order();
        if order.stopped || !order.is_next(line.sequence) {
            return Turn::Wait;
        }
        let cancels = line.purpose == MessagePurpose::Cancel;
        // A notification follows the requests before it when they go one by one; a cancel is for one of them.
        let follows = line.expects_answer() || self.pace.concurrency <= 1;
        if order.open >= self.pace.concurrency.max(1) && follows && !cancels {
            return Turn::Wait;
        }
        if let Some(speed) = self.pace.speed {
            let (start, first) = *order.begin.get_or_insert((now, line.at));
            let pause = line.at.saturating_sub(first).div_f64(speed.max(0.001));
            if now < start + pause {
                return Turn::Later(start + pause);
            }
        }
        Turn::Now
    }

    /// A line is said.
    pub(super) fn mark_sent(&self, line: &PlannedMessage) {
        let mut order = self.order();
        order.unsaid.remove(&line.sequence);
        if line.expects_answer() {
            order.open += 1;
        }
        self.changed.notify_waiters();
    }

    /// `count` more requests were answered or given up.
    pub(super) fn mark_finished(&self, count: usize) {
        // Waiting tasks call this too, and must not wake each other without news.
        if count == 0 {
            return;
        }
        let mut order = self.order();
        order.open = order.open.saturating_sub(count);
        self.changed.notify_waiters();
    }

    /// Lines that will never be said: nobody waits for them.
    pub(super) fn skip_messages<'a>(&self, lines: impl IntoIterator<Item = &'a PlannedMessage>) {
        let mut order = self.order();
        if order.stopped {
            return;
        }
        for line in lines {
            order.unsaid.remove(&line.sequence);
        }
        self.changed.notify_waiters();
    }

    /// Something else that a player may wait for.
    pub(super) fn notify_players(&self) {
        self.changed.notify_waiters();
    }

    /// Resolves at the next change after this call.
    pub(super) fn changed(&self) -> impl Future<Output = ()> + '_ {
        self.changed.notified()
    }

    fn order(&self) -> MutexGuard<'_, ScheduleState> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ScheduleState {
    fn is_next(&self, sequence: u64) -> bool {
        self.unsaid.first().is_none_or(|next| *next >= sequence)
    }
}
