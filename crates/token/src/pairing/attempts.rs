//! How often codes may be tried.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// For everybody together. At this rate it takes 3,000 years to try half of all codes.
const ALL: Allowance = Allowance {
    burst: 20,
    interval: Duration::from_millis(200),
};
/// For one address. A person types a code wrong a few times.
const EACH: Allowance = Allowance {
    burst: 5,
    interval: Duration::from_secs(2),
};
/// Addresses that are remembered. Beyond that only the limit for all counts.
const MAX_ADDRESSES: usize = 4096;

/// This many at once, and one more after each interval.
#[derive(Clone, Copy)]
struct Allowance {
    burst: u32,
    interval: Duration,
}

/// The attempts of late.
#[derive(Default)]
pub(super) struct Attempts {
    all: Account,
    each: HashMap<IpAddr, Account>,
}

/// When everything that was used will have been given back. `None` if nothing was used.
#[derive(Clone, Copy, Default)]
struct Account {
    settled_at: Option<Instant>,
}

impl Account {
    /// How long it takes until one more is allowed.
    fn wait(self, allowed: Allowance, now: Instant) -> Option<Duration> {
        let used = self.settled_at?.saturating_duration_since(now);
        let most = allowed.interval * (allowed.burst - 1);
        used.checked_sub(most).filter(|wait| !wait.is_zero())
    }

    fn use_one(&mut self, allowed: Allowance, now: Instant) {
        let from = self.settled_at.map_or(now, |settled| settled.max(now));
        self.settled_at = Some(from + allowed.interval);
    }

    fn is_settled(self, now: Instant) -> bool {
        self.settled_at.is_none_or(|settled| settled <= now)
    }
}

impl Attempts {
    /// Counts an attempt. The error is the time to wait.
    pub(super) fn count(&mut self, from: IpAddr, now: Instant) -> Result<(), Duration> {
        let from = network(from);
        let own = self.each.get(&from).copied().unwrap_or_default();
        let wait = own.wait(EACH, now).or_else(|| self.all.wait(ALL, now));
        if let Some(wait) = wait {
            return Err(wait);
        }
        self.all.use_one(ALL, now);
        if self.each.len() >= MAX_ADDRESSES {
            self.each.retain(|_, account| !account.is_settled(now));
        }
        if self.each.len() < MAX_ADDRESSES || self.each.contains_key(&from) {
            self.each.entry(from).or_default().use_one(EACH, now);
        }
        Ok(())
    }
}

/// The address, or the network of an IPv6 address: its last half is the holder's to choose.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = address.to_bits() & (u128::MAX << 64);
            IpAddr::V6(network.into())
        }
        address @ IpAddr::V4(_) => address,
    }
}
