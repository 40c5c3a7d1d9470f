//! How many tokens are checked in a second. After a restart thousands of extensions come back at once.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::{Clock, MonotonicClock};
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};

/// Sockets wait here for their turn.
pub(super) struct AuthenticationRate {
    limiter:
        RateLimiter<NotKeyed, InMemoryState, MonotonicClock, NoOpMiddleware<std::time::Instant>>,
}

impl AuthenticationRate {
    pub(super) fn new(per_second: u32) -> AuthenticationRate {
        let quota = Quota::per_second(NonZeroU32::new(per_second).unwrap_or(NonZeroU32::MIN));
        AuthenticationRate {
            limiter: RateLimiter::direct_with_clock(quota, MonotonicClock),
        }
    }

    /// Waits until one more may be checked.
    pub(super) async fn turn(&self) {
        while let Err(until) = self.limiter.check() {
            let wait = until.wait_time_from(MonotonicClock.now());
            tokio::time::sleep(wait.max(Duration::from_millis(1))).await;
        }
    }
}
