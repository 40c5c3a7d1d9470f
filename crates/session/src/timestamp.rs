//! Times in records: RFC 3339 in UTC with microseconds. Writing formats the date once per second, and then only six digits.

use jiff::civil;
use jiff::tz::Offset;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const MICROS: i64 = 1_000_000;
const FORM: &[u8; 27] = b"0000-00-00T00:00:00.000000Z";
/// The length of its part up to the seconds.
const DATE_AND_TIME: usize = 19;

/// Writes times; remembers the last second's text.
#[derive(Debug)]
pub(crate) struct TimestampWriter {
    second: i64,
    text: [u8; 27],
}

impl TimestampWriter {
    pub(crate) fn new() -> TimestampWriter {
        TimestampWriter {
            second: i64::MIN,
            text: *FORM,
        }
    }

    /// Appends `time`, without quotes.
    pub(crate) fn push(&mut self, out: &mut Vec<u8>, time: SystemTime) {
        let micros = micros_since_epoch(time);
        let second = micros.div_euclid(MICROS);
        if second != self.second {
            self.text = date_and_time(second);
            self.second = second;
        }
        let mut rest = micros.rem_euclid(MICROS);
        for digit in self.text[20..26].iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        out.extend_from_slice(&self.text);
    }
}

/// `time` as records write it: `2026-11-15T18:00:00.001000Z`.
pub fn to_text(time: SystemTime) -> String {
    let mut out = Vec::with_capacity(FORM.len());
    TimestampWriter::new().push(&mut out, time);
    String::from_utf8_lossy(&out).into_owned()
}

/// Microseconds since 1970, negative before.
pub(crate) fn micros_since_epoch(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
        Err(before) => {
            i64::try_from(before.duration().as_micros()).map_or(i64::MIN, |micros| -micros)
        }
    }
}

/// The opposite of [`micros_since_epoch`].
pub(crate) fn from_micros(micros: i64) -> SystemTime {
    let distance = Duration::from_micros(micros.unsigned_abs());
    let time = if micros < 0 {
        UNIX_EPOCH.checked_sub(distance)
    } else {
        UNIX_EPOCH.checked_add(distance)
    };
    time.unwrap_or(UNIX_EPOCH)
}

/// Reads any RFC 3339 text; one without an offset is taken as UTC.
pub fn parse(text: &str) -> Option<SystemTime> {
    micros(text.as_bytes()).map(from_micros)
}

/// Microseconds since 1970 of such a text.
pub(crate) fn micros(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    if let Ok(timestamp) = text.parse::<jiff::Timestamp>() {
        return Some(timestamp.as_microsecond());
    }
    let naive = text.parse::<civil::DateTime>().ok()?;
    Some(Offset::UTC.to_timestamp(naive).ok()?.as_microsecond())
}

fn date_and_time(second: i64) -> [u8; 27] {
    let mut text = *FORM;
    // Out of jiff's range only for clocks beyond the year 9999; those read as 1970.
    let timestamp = jiff::Timestamp::from_second(second).unwrap_or_default();
    let written = timestamp.strftime("%Y-%m-%dT%H:%M:%S").to_string();
    // Only a year before 0 is longer.
    if written.len() == DATE_AND_TIME {
        text[..DATE_AND_TIME].copy_from_slice(written.as_bytes());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_known_time() {
        let time = UNIX_EPOCH + Duration::from_micros(1_794_765_600_123_456);
        assert_eq!(to_text(time), "2026-11-15T18:00:00.123456Z");
        assert_eq!(parse("2026-11-15T18:00:00.123456Z"), Some(time));
        assert_eq!(parse("2026-11-15T19:00:00.123456+01:00"), Some(time));
        assert_eq!(parse("2026-11-15T18:00:00.123456"), Some(time));
        assert_eq!(parse("yesterday"), None);
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(micros in 0i64..253_370_764_800_000_000) {
            let text = to_text(from_micros(micros));
            prop_assert_eq!(super::micros(text.as_bytes()), Some(micros));
        }
    }
}
