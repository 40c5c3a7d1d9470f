//! The time that one hold has left, and what stops it.

use std::collections::BTreeMap;
use std::time::Duration;

use mcp_proxy_control::HoldClock;
use tokio::time::Instant;

/// What is left at least when the last editor is closed: enough to decide.
const LEFT_AFTER_EDITING: Duration = Duration::from_secs(10);

/// How long a message may be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldTimeout {
    /// This long; then the policy decides.
    After(Duration),
    /// Until somebody decides.
    Never,
}

/// A viewer, for as long as it is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ViewerId(pub u64);

/// The time of one hold.
#[derive(Debug)]
pub(super) struct HoldTimer {
    state: TimerState,
    /// All that it was given: what it had at first, and what was added.
    given: Duration,
    /// Who has the message open in an editor, by their names.
    editors: BTreeMap<ViewerId, String>,
}

#[derive(Debug, PartialEq, Eq)]
enum TimerState {
    /// There is no time limit.
    Off,
    /// The first viewer has not attached yet.
    AwaitingViewer(Duration),
    /// It counts down.
    Running { until: Instant },
    /// It is open in an editor.
    Stopped { left: Duration },
}

impl HoldTimer {
    /// A timer that does not run yet.
    pub(super) fn new(timeout: HoldTimeout) -> HoldTimer {
        let (state, given) = match timeout {
            HoldTimeout::After(time) => (TimerState::AwaitingViewer(time), time),
            HoldTimeout::Never => (TimerState::Off, Duration::ZERO),
        };
        HoldTimer {
            state,
            given,
            editors: BTreeMap::new(),
        }
    }

    /// From now on the time runs.
    pub(super) fn start(&mut self, now: Instant) {
        if let TimerState::AwaitingViewer(left) = self.state {
            self.state = match self.editors.is_empty() {
                true => running(now, left),
                false => TimerState::Stopped { left },
            };
        }
    }

    /// A viewer has opened the message in an editor: the clock stops.
    pub(super) fn open_editor(&mut self, viewer: ViewerId, name: &str, now: Instant) {
        self.editors.insert(viewer, name.to_owned());
        if let TimerState::Running { until } = self.state {
            let left = until.saturating_duration_since(now);
            self.state = TimerState::Stopped { left };
        }
    }

    /// A viewer has closed its editor; after the last one the time continues. Returns whether it had one.
    pub(super) fn close_editor(&mut self, viewer: ViewerId, now: Instant) -> bool {
        let had = self.editors.remove(&viewer).is_some();
        if let (TimerState::Stopped { left }, true) = (&self.state, self.editors.is_empty()) {
            self.state = running(now, (*left).max(LEFT_AFTER_EDITING));
        }
        had
    }

    /// Adds time.
    pub(super) fn extend(&mut self, more: Duration) {
        self.given = self.given.saturating_add(more);
        match &mut self.state {
            TimerState::Off => {}
            TimerState::AwaitingViewer(left) | TimerState::Stopped { left } => {
                *left = left.saturating_add(more);
            }
            TimerState::Running { until } => *until = until.checked_add(more).unwrap_or(*until),
        }
    }

    /// When the policy decides, if nothing changes.
    pub(super) fn until(&self) -> Option<Instant> {
        match self.state {
            TimerState::Running { until } => Some(until),
            _ => None,
        }
    }

    /// How long until then, once the time runs.
    pub(super) fn left(&self, now: Instant) -> Option<Duration> {
        match self.state {
            TimerState::Running { until } => Some(until.saturating_duration_since(now)),
            TimerState::Stopped { left } => Some(left),
            TimerState::AwaitingViewer(_) | TimerState::Off => None,
        }
    }

    /// Whether the time runs.
    pub(super) fn clock(&self) -> HoldClock {
        match (&self.state, self.editors.is_empty()) {
            (TimerState::Off, _) => HoldClock::Off,
            (TimerState::AwaitingViewer(_), _) => HoldClock::AwaitingViewer,
            (TimerState::Running { .. }, _) => HoldClock::Running,
            (TimerState::Stopped { .. }, _) => HoldClock::Stopped,
        }
    }

    /// All the time that it was given.
    pub(super) fn given(&self) -> Duration {
        self.given
    }

    /// Who has the message open in an editor.
    pub(super) fn editors(&self) -> Vec<String> {
        self.editors.values().cloned().collect()
    }

    /// Whether anybody has.
    pub(super) fn is_open(&self) -> bool {
        !self.editors.is_empty()
    }
}

/// A time that is too far away to be written down is as good as none.
fn running(now: Instant, left: Duration) -> TimerState {
    match now.checked_add(left) {
        Some(until) => TimerState::Running { until },
        None => TimerState::Off,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn it_stands_still_while_any_viewer_edits_and_then_continues() {
        let start = Instant::now();
        let mut timer = HoldTimer::new(HoldTimeout::After(55 * SECOND));
        assert_eq!(
            (timer.clock(), timer.until()),
            (HoldClock::AwaitingViewer, None)
        );
        timer.start(start);
        assert_eq!(timer.left(start + SECOND), Some(54 * SECOND));
        timer.open_editor(ViewerId(1), "one", start + 5 * SECOND);
        timer.open_editor(ViewerId(2), "two", start + 60 * SECOND);
        assert_eq!((timer.clock(), timer.until()), (HoldClock::Stopped, None));
        assert_eq!(timer.editors(), ["one", "two"]);
        assert!(timer.close_editor(ViewerId(1), start + 500 * SECOND));
        assert_eq!(timer.left(start + 900 * SECOND), Some(50 * SECOND));
        assert!(timer.close_editor(ViewerId(2), start + 900 * SECOND));
        assert_eq!(timer.until(), Some(start + 950 * SECOND));
        assert!(!timer.close_editor(ViewerId(2), start + 910 * SECOND));
        assert_eq!(timer.until(), Some(start + 950 * SECOND));
    }

    #[tokio::test(start_paused = true)]
    async fn after_an_edit_there_is_time_to_decide_and_more_can_be_had() {
        let start = Instant::now();
        let mut timer = HoldTimer::new(HoldTimeout::After(3 * SECOND));
        timer.start(start);
        timer.open_editor(ViewerId(1), "one", start + 2 * SECOND);
        timer.extend(SECOND);
        timer.close_editor(ViewerId(1), start + 9 * SECOND);
        assert_eq!(timer.left(start + 9 * SECOND), Some(LEFT_AFTER_EDITING));
        timer.extend(60 * SECOND);
        assert_eq!(timer.left(start + 9 * SECOND), Some(70 * SECOND));
        assert_eq!(timer.given(), 64 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn never_means_never() {
        let start = Instant::now();
        let mut timer = HoldTimer::new(HoldTimeout::Never);
        timer.start(start);
        timer.extend(SECOND);
        timer.open_editor(ViewerId(1), "one", start);
        timer.close_editor(ViewerId(1), start);
        assert_eq!((timer.clock(), timer.left(start)), (HoldClock::Off, None));
        let mut endless = HoldTimer::new(HoldTimeout::After(Duration::MAX));
        endless.start(start);
        assert_eq!(endless.clock(), HoldClock::Off);
    }
}
