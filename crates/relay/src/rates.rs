//! How often commands may come, with the time that the relay was told.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use governor::clock::{Clock, Reference};
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};

use crate::fault::RelayFault;

/// The clock of rate limits: the time that was last passed in.
#[derive(Clone, Debug, Default)]
pub(crate) struct RateClock(Arc<AtomicU64>);

/// A limit on commands in a second.
pub(crate) struct CommandRate {
    limiter: RateLimiter<NotKeyed, InMemoryState, RateClock, NoOpMiddleware<Nanos>>,
    clock: RateClock,
}

impl RateClock {
    pub(crate) fn set(&self, now: Duration) {
        let nanoseconds = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        self.0.store(nanoseconds, Ordering::Relaxed);
    }
}

impl Clock for RateClock {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        self.0.load(Ordering::Relaxed).into()
    }
}

impl CommandRate {
    /// `per_second` of them, and as many at once after a pause. Zero counts as one.
    pub(crate) fn new(per_second: u32, clock: &RateClock) -> CommandRate {
        let quota = Quota::per_second(NonZeroU32::new(per_second).unwrap_or(NonZeroU32::MIN));
        CommandRate {
            limiter: RateLimiter::direct_with_clock(quota, clock.clone()),
            clock: clock.clone(),
        }
    }

    /// Counts a command, or says when the next is accepted.
    pub(crate) fn count(&self) -> Result<(), RelayFault> {
        self.limiter.check().map_err(|until| {
            let wait = until.earliest_possible().duration_since(self.clock.now());
            let wait = Duration::from(wait).as_millis().max(1);
            RelayFault::RateLimited {
                retry_after_ms: u64::try_from(wait).unwrap_or(u64::MAX),
            }
        })
    }
}

impl std::fmt::Debug for CommandRate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CommandRate").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_burst_the_next_command_waits_its_share_of_a_second() {
        let clock = RateClock::default();
        let rate = CommandRate::new(10, &clock);
        assert!((0..10).all(|_| rate.count().is_ok()));
        assert_eq!(
            rate.count(),
            Err(RelayFault::RateLimited {
                retry_after_ms: 100
            })
        );
        clock.set(Duration::from_millis(101));
        assert_eq!(rate.count(), Ok(()));
        assert!(rate.count().is_err());
    }
}
