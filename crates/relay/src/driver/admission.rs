//! How many tokens are checked in a second. After a restart thousands of extensions come back at once.

use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;

use super::lock;

/// Nobody waits longer for a turn.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Gives each socket its own turn, in the order of their coming.
pub(super) struct AuthenticationRate {
    interval: Duration,
    next: Mutex<Option<Instant>>,
}

impl AuthenticationRate {
    pub(super) fn new(per_second: u32) -> AuthenticationRate {
        AuthenticationRate {
            interval: Duration::from_secs(1) / per_second.max(1),
            next: Mutex::default(),
        }
    }

    /// Waits until one more may be checked. `Err` if that would take too long.
    pub(super) async fn turn(&self) -> Result<(), ()> {
        let now = Instant::now();
        let turn = {
            let mut next = lock(&self.next);
            let turn = next.map_or(now, |next| next.max(now));
            if turn > now + LONGEST_WAIT {
                return Err(());
            }
            *next = Some(turn + self.interval);
            turn
        };
        tokio::time::sleep_until(turn).await;
        Ok(())
    }
}
