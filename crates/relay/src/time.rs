//! The time, which is always passed in.

use std::time::Duration;

use jiff::Timestamp;

/// A moment: how long the relay has been running, which never jumps, and what the clock on the wall says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RelayTime {
    /// Since the relay started.
    pub elapsed: Duration,
    /// Milliseconds since 1970.
    pub wall_ms: i64,
}

impl RelayTime {
    /// Seconds since 1970, which is how tokens tell the time.
    pub(crate) fn wall_seconds(self) -> i64 {
        self.wall_ms.div_euclid(1000)
    }

    /// When the clock on the wall shows these seconds.
    pub(crate) fn until_wall(self, seconds: i64) -> Duration {
        let milliseconds = seconds.saturating_mul(1000).saturating_sub(self.wall_ms);
        let wait = Duration::from_millis(u64::try_from(milliseconds).unwrap_or(0));
        self.elapsed.saturating_add(wait)
    }

    /// As `status` writes it: with milliseconds and an offset without a colon.
    pub(crate) fn timestamp(self) -> String {
        let time = Timestamp::from_millisecond(self.wall_ms).unwrap_or(Timestamp::UNIX_EPOCH);
        time.strftime("%Y-%m-%dT%H:%M:%S%.3f+0000").to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_has_milliseconds_and_an_offset_without_a_colon() {
        let time = RelayTime {
            elapsed: Duration::ZERO,
            wall_ms: 1_760_989_433_163,
        };
        assert_eq!(time.timestamp(), "2025-10-20T19:43:53.163+0000");
    }
}
