//! Holding messages until somebody decides: the engine behind `--intercept` and breakpoints.
//!
//! Intercept mode holds everything of a run, a server or a connection, and keeps order: a message that was decided waits until those before it on the
//! same connection and in the same direction are. A breakpoint holds single messages and delays no other. A pipeline
//! leaves a message here and finds it again in its `ReleaseQueue`; the viewer that decides never touches the traffic, so a
//! slow, stopped or killed viewer costs nothing. A hold has a time limit, unless the user set none, and their number is limited.

mod active_hold;
mod batch_messages;
mod breakpoint;
mod deadline;
mod hold;
mod hold_table;
mod hold_timer;
mod modes;
mod release_queue;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcp_proxy_control::ModeOverride;
use mcp_proxy_session::MessageFacts;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::connection::Connection;

pub(crate) use active_hold::{ActiveHold, NewHold, with_message};
pub use breakpoint::{Breakpoint, Breakpoints, NewBreakpoint};
pub use deadline::{HoldOptions, HoldPolicy};
pub use hold::{
    EditedBody, HeldMessage, HoldId, HoldReason, InterceptAction, JsonCheck, MessageEdit,
    ResolveError, ResolvedHold,
};
use hold_table::{HoldTable, NotHeld};
use hold_timer::HoldTimer;
pub use hold_timer::{HoldTimeout, ViewerId};
pub use mcp_proxy_control::InterceptMode;
pub use modes::HoldScope;
use modes::Modes;
pub(crate) use release_queue::{HoldOutcome, ReleaseQueue, ReleaseQueueReader};

/// Messages of one server that may be held at once: a server that fills its share leaves room for the others.
pub const HELD_MAX: usize = 1_000;
/// Bytes of messages that may be held at once, of all servers together.
pub const HELD_BYTES_MAX: usize = 64 << 20;
/// Decisions that are remembered, for the viewer that comes second.
const REMEMBERED: usize = 256;
/// Decisions that are part of the present, for the viewer that had the message open.
const LATEST_DECISIONS: usize = 16;

/// What the engine is doing, as the seed shows it.
#[derive(Clone, Debug)]
pub struct InterceptState {
    /// The mode of the run.
    pub mode: InterceptMode,
    /// The messages that wait for a decision, oldest first.
    pub held: Vec<HeldMessage>,
    /// The modes of connections and servers that have one of their own.
    pub overrides: Vec<ModeOverride>,
    /// How many breakpoints are set.
    pub breakpoints: usize,
    /// The last decisions, newest last.
    pub decided: Vec<ResolvedHold>,
}

/// The engine of one run.
pub struct Interceptor {
    options: HoldOptions,
    /// Something may want to hold a message. Read for every message, so it is not a lock. Who reads that nothing does
    /// also finds in the release queues what was released before.
    active: AtomicBool,
    inner: Mutex<HoldTable>,
    changes: watch::Sender<u64>,
    /// Tells the task that keeps the time that something is due earlier than it knows.
    rewind: Notify,
}

/// A viewer is attached as long as it lives.
pub struct ViewerGuard(Arc<Interceptor>);

impl Interceptor {
    /// Holds nothing yet.
    pub fn new(options: HoldOptions) -> Arc<Interceptor> {
        Arc::new(Interceptor {
            options,
            active: AtomicBool::new(options.mode == InterceptMode::Intercept),
            inner: Mutex::new(HoldTable::new(options.mode)),
            changes: watch::Sender::new(0),
            rewind: Notify::new(),
        })
    }

    /// Whether a message could be held: if not, nobody looks at it.
    pub fn is_active(&self) -> bool {
        self.active.load(Ordering::Acquire)
    }

    /// Whether clients are told that their requests are held.
    pub fn sends_progress(&self) -> bool {
        self.options.progress.is_some() && self.is_active()
    }

    /// How long a message may be held now, if nobody has it open in an editor. Where there is no limit, that of clients counts.
    pub fn hold_timeout(&self) -> Duration {
        match (self.is_active(), self.options.timeout) {
            (false, _) => Duration::ZERO,
            (true, HoldTimeout::After(timeout)) => timeout,
            (true, HoldTimeout::Never) => HoldOptions::DEFAULT_TIMEOUT,
        }
    }

    /// What happens when that time is up.
    pub fn policy(&self) -> HoldPolicy {
        self.options.policy
    }

    /// Mode and held messages.
    pub fn state(&self) -> InterceptState {
        self.state_of(&HoldScope::Run)
    }

    /// Mode and held messages of a part of the run.
    pub fn state_of(&self, scope: &HoldScope) -> InterceptState {
        let now = Instant::now();
        let inner = self.inner();
        let held = inner.holds.iter();
        let held = held.filter(|(_, entry)| scope.has(&entry.connection));
        let decided = inner.resolved.iter().rev().take(LATEST_DECISIONS).rev();
        InterceptState {
            mode: inner.modes.of(scope),
            held: held
                .filter_map(|(hold, entry)| entry.held_message(*hold, now))
                .collect(),
            overrides: match scope {
                HoldScope::Run => inner.modes.overrides(),
                _ => Vec::new(),
            },
            breakpoints: inner.breakpoints.len(),
            decided: decided.cloned().collect(),
        }
    }

    /// Sets the mode of the run. What intercept holds is forwarded when it is switched off.
    pub fn set_mode(self: &Arc<Self>, mode: InterceptMode, by: &str) {
        self.set_mode_of(&HoldScope::Run, Some(mode), by);
    }

    /// Sets the mode of a part of the run; `None` leaves it without one of its own. What intercept holds and would not
    /// hold now is forwarded.
    pub fn set_mode_of(self: &Arc<Self>, scope: &HoldScope, mode: Option<InterceptMode>, by: &str) {
        let mut inner = self.inner();
        inner.modes.set(scope, mode);
        let passes = |entry: &ActiveHold| {
            inner.modes.of_connection(&entry.connection) == InterceptMode::Passthrough
        };
        let held = inner.undecided(|entry| entry.by == HoldReason::Intercept && passes(entry));
        // Under the same lock: a message that is not held any more must not pass one that is still to be forwarded.
        inner.decide_all(&held, &InterceptAction::Forward, by, "");
        drop(inner);
        self.changed();
    }

    /// Forwards the oldest held message; the next stays held.
    pub fn step(self: &Arc<Self>, by: &str) {
        let mut inner = self.inner();
        let Some(oldest) = inner.undecided(|_| true).first().copied() else {
            return;
        };
        inner.decide_all(&[oldest], &InterceptAction::Forward, by, "");
        drop(inner);
        self.changed();
    }

    /// Forwards everything that is held. The mode of the run and of all its parts is passthrough; breakpoints stay.
    pub fn resume(self: &Arc<Self>, by: &str) {
        let mut inner = self.inner();
        inner.modes = Modes::default();
        let held = inner.undecided(|_| true);
        inner.decide_all(&held, &InterceptAction::Forward, by, "");
        drop(inner);
        self.changed();
    }

    /// Adds a breakpoint and gives its number.
    pub fn add_breakpoint(&self, new: NewBreakpoint) -> u32 {
        let number = self.inner().breakpoints.add(new);
        self.changed();
        number
    }

    /// Removes a breakpoint; what it holds stays held.
    pub fn remove_breakpoint(&self, number: u32) -> bool {
        let removed = self.inner().breakpoints.remove(number);
        self.changed();
        removed
    }

    /// The breakpoints.
    pub fn breakpoints(&self) -> Vec<Breakpoint> {
        self.inner().breakpoints.list()
    }

    /// A counter that changes with every hold, decision, mode and breakpoint.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// A viewer has come; it goes when the guard is dropped.
    pub fn attach_viewer(self: &Arc<Self>) -> ViewerGuard {
        let now = Instant::now();
        let mut inner = self.inner();
        inner.viewers += 1;
        inner.had_viewer = true;
        let mut due = None;
        for entry in inner.holds.values_mut() {
            entry.timer.start(now);
            due = due.into_iter().chain(entry.timer.until()).min();
        }
        self.wake_at(&mut inner, due);
        drop(inner);
        ViewerGuard(Arc::clone(self))
    }

    /// How many viewers are attached.
    pub fn viewers(&self) -> usize {
        self.inner().viewers
    }

    /// What holds this message of a connection, if anything does. A breakpoint counts its hit. `note_slow` is given the
    /// breakpoints that were too slow for the message, where a note is due. If something holds it, [`Interceptor::hold`]
    /// follows and tells watchers: it may have been the breakpoint's last hit, but while the message is not yet held,
    /// messages still have to be looked at.
    pub(crate) fn hold_reason(
        &self,
        facts: &MessageFacts<'_>,
        connection: &Connection,
        note_slow: impl FnMut(u32),
    ) -> Option<HoldReason> {
        let mut inner = self.inner();
        let (by, too_slow) = match inner.modes.of_connection(connection) {
            InterceptMode::Intercept => (Some(HoldReason::Intercept), Vec::new()),
            InterceptMode::Passthrough => {
                let hit = inner.breakpoints.hit(facts, connection);
                (hit.number.map(HoldReason::Breakpoint), hit.too_slow)
            }
        };
        let forgot = inner.modes.forget_ended();
        drop(inner);
        too_slow.into_iter().for_each(note_slow);
        // The last connection that holds messages may have ended.
        if forgot && by.is_none() {
            self.changed();
        }
        by
    }

    /// Holds a message. `Some`: there is no room, and the policy has decided.
    pub(crate) fn hold(self: &Arc<Self>, new: NewHold) -> Option<HoldOutcome> {
        let mut inner = self.inner();
        let entry = ActiveHold::new(new, self.options.timeout);
        let held = inner.hold(entry, &self.policy_action());
        let released = match held {
            Ok(hold) => {
                self.start_timer(&mut inner, hold);
                None
            }
            Err(NotHeld::InReleaseQueue) => None,
            Err(NotHeld::Released(released)) => Some(*released),
        };
        drop(inner);
        self.changed();
        released
    }

    /// Decides about a held message. The first decision counts.
    pub fn resolve(
        self: &Arc<Self>,
        hold: HoldId,
        action: InterceptAction,
        by: &str,
    ) -> Result<(), ResolveError> {
        action.check()?;
        self.inner().decide(hold, action, by, "")?;
        self.changed();
        Ok(())
    }

    /// A message that waits for its decision.
    pub fn held(&self, hold: HoldId) -> Result<HeldMessage, ResolveError> {
        self.change_timer(hold, Instant::now(), |_| {})
    }

    /// A viewer has opened a held message in an editor: until it closes that, the time of the hold does not run.
    pub fn open_editor(
        &self,
        hold: HoldId,
        viewer: ViewerId,
        name: &str,
    ) -> Result<HeldMessage, ResolveError> {
        let now = Instant::now();
        let held = self.change_timer(hold, now, |timer| timer.open_editor(viewer, name, now));
        self.changed();
        held
    }

    /// A viewer has closed its editor.
    pub fn close_editor(
        self: &Arc<Self>,
        hold: HoldId,
        viewer: ViewerId,
    ) -> Result<HeldMessage, ResolveError> {
        let now = Instant::now();
        let held = self.change_timer(hold, now, |timer| {
            timer.close_editor(viewer, now);
        });
        self.rearm();
        self.changed();
        held
    }

    /// A viewer is gone, and its editors are closed.
    pub fn close_editors_of(self: &Arc<Self>, viewer: ViewerId) {
        let now = Instant::now();
        let mut inner = self.inner();
        let entries = inner.holds.values_mut();
        let closed =
            entries.filter_map(|entry| entry.timer.close_editor(viewer, now).then_some(()));
        if closed.count() == 0 {
            return;
        }
        drop(inner);
        self.rearm();
        self.changed();
    }

    /// Gives a held message more time.
    pub fn extend(&self, hold: HoldId, more: Duration) -> Result<HeldMessage, ResolveError> {
        let held = self.change_timer(hold, Instant::now(), |timer| timer.extend(more));
        self.changed();
        held
    }

    /// Whether a message of this connection is open in an editor.
    pub(crate) fn is_editing(&self, connection: &Connection) -> bool {
        let inner = self.inner();
        let mut holds = inner.holds.values();
        holds.any(|entry| entry.connection.id == connection.id && entry.timer.is_open())
    }

    fn change_timer(
        &self,
        hold: HoldId,
        now: Instant,
        change: impl FnOnce(&mut HoldTimer),
    ) -> Result<HeldMessage, ResolveError> {
        let mut inner = self.inner();
        let entry = inner.undecided_entry(hold)?;
        change(&mut entry.timer);
        let held = entry.held_message(hold, now);
        held.ok_or(ResolveError::Unknown(hold))
    }

    /// A clock runs again: the task that keeps the time may have to wake earlier.
    fn rearm(self: &Arc<Self>) {
        let mut inner = self.inner();
        let due = inner.holds.values().filter_map(ActiveHold::next_due).min();
        self.wake_at(&mut inner, due);
    }

    /// Who sent these gave them up, and waits for nothing any more: what is still held is dropped.
    pub(crate) fn drop_matching(self: &Arc<Self>, why: &str, which: impl Fn(&ActiveHold) -> bool) {
        let mut inner = self.inner();
        let held = inner.undecided(which);
        if held.is_empty() {
            return;
        }
        inner.decide_all(&held, &InterceptAction::Drop, "proxy", why);
        drop(inner);
        self.changed();
    }

    /// A pipeline ends: what it still has here can go nowhere.
    pub(crate) fn abandon(&self, release_queue: &Arc<ReleaseQueue>) {
        self.inner().abandon(release_queue);
        self.changed();
    }

    /// Something is different: tells watchers, and notes whether messages have to be looked at.
    fn changed(&self) {
        let inner = self.inner();
        // While something is held, a cancel has to be seen.
        let active =
            inner.modes.hold_anything() || !inner.breakpoints.is_empty() || !inner.holds.is_empty();
        self.active.store(active, Ordering::Release);
        drop(inner);
        self.changes.send_modify(|count| *count += 1);
    }

    fn inner(&self) -> MutexGuard<'_, HoldTable> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ViewerGuard {
    fn drop(&mut self) {
        self.0.inner().viewers -= 1;
    }
}
