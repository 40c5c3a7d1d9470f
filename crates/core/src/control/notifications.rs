//! What a subscriber is told: that there is something new, never the thing itself.
//!
//! A notice states the present, so one that was merged with the next is no loss.

use std::sync::Arc;
use std::time::Duration;

use mcp_proxy_control::Notice;
use tokio::sync::watch;
use tokio::time::Instant;

use super::{ProxyControl, holds};
use crate::intercept::ViewerGuard;
use crate::proxy_run::RecordProgress;

/// Where more are held, notices of holds have a pause between them: each names all that are held, and a flood changes them with
/// every message.
const MANY_HELD: usize = 50;
/// That pause, and the one between two looks at how far the run has come: at most 30 notices of each a second.
const LOOK_EVERY: Duration = Duration::from_millis(34);

/// One viewer's notices.
pub struct ViewerNotifications {
    control: Arc<ProxyControl>,
    subscribed: watch::Receiver<bool>,
    subscription: Option<ViewerSubscription>,
    lagged: bool,
}

/// Since it has subscribed.
struct ViewerSubscription {
    holds: watch::Receiver<u64>,
    seen: Option<RecordProgress>,
    /// The version of the rules that it knows.
    rules: u64,
    next_look: Instant,
    /// Changes of holds are told not before this.
    next_holds: Instant,
    /// Tells the engine that somebody is there to decide.
    _viewer: ViewerGuard,
}

impl ViewerNotifications {
    pub(super) fn new(
        control: Arc<ProxyControl>,
        subscribed: watch::Receiver<bool>,
    ) -> ViewerNotifications {
        ViewerNotifications {
            control,
            subscribed,
            subscription: None,
            lagged: false,
        }
    }

    /// The next notice; waits for ever before `subscribe`. Safe to cancel: what was not returned is told the next time.
    pub async fn next(&mut self) -> Notice {
        let intercept = self.control.run.intercept();
        if self.subscription.is_none() {
            if self
                .subscribed
                .wait_for(|subscribed| *subscribed)
                .await
                .is_err()
            {
                // The handler is gone, so nobody can subscribe any more.
                return std::future::pending().await;
            }
            let mut holds = intercept.watch();
            // What was before is told in the answer to `subscribe`; what came since is told now.
            holds.mark_changed();
            self.subscription = Some(ViewerSubscription {
                holds,
                seen: None,
                rules: self.control.run.rules().version(),
                next_look: Instant::now(),
                next_holds: Instant::now(),
                _viewer: intercept.attach_viewer(),
            });
        }
        let Some(looking) = &mut self.subscription else {
            return std::future::pending().await;
        };
        if std::mem::take(&mut self.lagged) {
            return Notice::Lagged;
        }
        loop {
            tokio::select! {
                biased;
                changed = changed_after(&mut looking.holds, looking.next_holds) => {
                    if changed.is_err() {
                        return std::future::pending().await;
                    }
                    let state = holds::intercept_state(&self.control.run);
                    if state.held.len() > MANY_HELD {
                        looking.next_holds = Instant::now() + LOOK_EVERY;
                    }
                    return Notice::Holds(state);
                }
                () = tokio::time::sleep_until(looking.next_look) => {
                    looking.next_look = Instant::now() + LOOK_EVERY;
                    let rules = self.control.run.rules().version();
                    if std::mem::replace(&mut looking.rules, rules) != rules {
                        return Notice::Holds(holds::intercept_state(&self.control.run));
                    }
                    let progress = self.control.run.progress();
                    if looking.seen != Some(progress) {
                        looking.seen = Some(progress);
                        return Notice::Rows { upto: progress.upto };
                    }
                }
            }
        }
    }

    /// There was no room for notices: the viewer is told so once there is.
    pub fn fell_behind(&mut self) {
        self.lagged = self.subscription.is_some();
    }
}

/// Waits for a change, and until then.
async fn changed_after(
    holds: &mut watch::Receiver<u64>,
    time: Instant,
) -> Result<(), watch::error::RecvError> {
    tokio::time::sleep_until(time).await;
    holds.changed().await
}
