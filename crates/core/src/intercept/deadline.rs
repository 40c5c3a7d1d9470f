//! What happens to a held message when nobody decides: how long it waits, who is told meanwhile, and what comes then.

use std::sync::Arc;
use std::time::Duration;

use super::{HoldId, InterceptAction, InterceptMode, Interceptor};

/// What happens to a message that nobody decides about in time, or for which there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum HoldPolicy {
    /// It is forwarded.
    #[default]
    Forward,
    /// It is dropped.
    Drop,
    /// It is dropped, and a request is answered with an error.
    Error,
}

/// How holding is done in a run.
#[derive(Clone, Copy, Debug)]
pub struct HoldOptions {
    /// The mode at the start.
    pub mode: InterceptMode,
    /// `--hold-timeout`
    pub timeout: Duration,
    /// `--on-hold-timeout`
    pub policy: HoldPolicy,
    /// `--require-viewer`: the deadline runs only once a viewer has come.
    pub waits_for_viewer: bool,
    /// `--hold-progress`: a client that asked for progress is told so often that its request is held.
    pub progress: Option<Duration>,
}

impl Default for HoldOptions {
    fn default() -> Self {
        HoldOptions {
            mode: InterceptMode::Passthrough,
            // Clients give up after 60 s.
            timeout: Duration::from_secs(55),
            policy: HoldPolicy::Forward,
            waits_for_viewer: false,
            progress: None,
        }
    }
}

impl Interceptor {
    /// From now on the time of a hold runs; at its end the policy decides.
    pub(super) fn start_deadline(self: &Arc<Self>, hold: HoldId) {
        let mut inner = self.inner();
        let Some(entry) = inner.holds.get_mut(&hold) else {
            return;
        };
        let timeout = self.options.timeout;
        entry.deadline = Some(entry.connection.run.now() + timeout);
        drop(inner);
        let intercept = Arc::clone(self);
        tokio::spawn(async move {
            tokio::time::sleep(timeout).await;
            let why = format!("nobody decided within {} s", timeout.as_secs());
            // Somebody mostly did.
            drop(intercept.decide(hold, intercept.policy_action(), "timeout", &why));
        });
    }

    /// From now on a client that asked for progress is told that the message is held, even before the first viewer has attached.
    pub(super) fn start_progress(self: &Arc<Self>, hold: HoldId) {
        let Some(pause) = self.options.progress else {
            return;
        };
        let intercept = Arc::clone(self);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(pause).await;
                if !intercept.tell_progress(hold) {
                    break;
                }
            }
        });
    }

    /// Tells the client that its request is held; `false`: there is nothing more to tell.
    fn tell_progress(&self, hold: HoldId) -> bool {
        let inner = self.inner();
        let Some(entry) = inner.holds.get(&hold) else {
            return false;
        };
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
