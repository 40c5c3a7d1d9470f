//! Values that people write in ways of their own: durations, sizes, names, numbers within a range.

use std::num::NonZeroUsize;
use std::time::Duration;

use serde::{Deserialize, Deserializer, de::Error as _};

use crate::proxy_tool::MAX_LIMIT;

/// The longest that is accepted: longer is a mistake, and arithmetic with it could overflow.
pub(super) const LONGEST: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// More threads than any machine has use for.
pub const MAX_THREADS: u32 = 1024;

const EXPECTED_DURATION: &str = "expected a duration such as \"30s\" or \"5m\"";

/// `"30s"`, `"1m30s"`, or a number of seconds.
pub(super) fn duration<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(value)?;
    let duration = parse_duration(&text).ok_or_else(|| D::Error::custom(EXPECTED_DURATION))?;
    match duration <= LONGEST {
        true => Ok(Some(duration)),
        false => Err(D::Error::custom("longer than a year")),
    }
}

/// A duration that is not zero.
pub(super) fn positive_duration<'de, D: Deserializer<'de>>(
    value: D,
) -> Result<Option<Duration>, D::Error> {
    match duration(value)? {
        Some(Duration::ZERO) => Err(D::Error::custom("must be longer than zero")),
        duration => Ok(duration),
    }
}

/// A number of bytes: `1048576` or `"500M"`, in powers of 1024.
pub(super) fn size<'de, D: Deserializer<'de>>(value: D) -> Result<Option<u64>, D::Error> {
    let size = parse_size(&String::deserialize(value)?);
    let expected = || D::Error::custom("expected a size such as 65536 or \"64K\"");
    size.ok_or_else(expected).map(Some)
}

/// A size that lets something through.
pub(super) fn size_above_zero<'de, D: Deserializer<'de>>(
    value: D,
) -> Result<Option<u64>, D::Error> {
    match size(value)? {
        Some(0) => Err(D::Error::custom("must be more than nothing")),
        size => Ok(size),
    }
}

/// A string that is not empty.
pub(super) fn nonempty<'de, D: Deserializer<'de>>(value: D) -> Result<Option<String>, D::Error> {
    match String::deserialize(value)? {
        text if text.is_empty() => Err(D::Error::custom("must not be empty")),
        text => Ok(Some(text)),
    }
}

/// A name for one of the hub's own tools.
pub(super) fn tool_name<'de, D: Deserializer<'de>>(value: D) -> Result<Option<String>, D::Error> {
    let name = String::deserialize(value)?;
    check_tool_name(&name).map_err(D::Error::custom)?;
    Ok(Some(name))
}

/// Whether it can be the name of a tool. `mcp:proxy` can, though prefixes have no colon.
pub(super) fn check_tool_name(name: &str) -> Result<(), &'static str> {
    let is_allowed = |byte: u8| is_name_byte(byte) || byte == b':';
    match name.len() {
        0 => Err("must not be empty"),
        129.. => Err("a tool's name has at most 128 characters"),
        _ if name.bytes().all(is_allowed) => Ok(()),
        _ => Err("only letters, digits and _ - . / : can be in this tool's name"),
    }
}

/// A piece of a tool's name.
pub(super) fn name_part<'de, D: Deserializer<'de>>(value: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(value)?;
    match text.bytes().all(is_name_byte) {
        true => Ok(Some(text)),
        false => Err(D::Error::custom(
            "only letters, digits and _ - . / can be in a tool's name",
        )),
    }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_./".contains(&byte)
}

/// What the proxy tool itself takes as a limit.
pub(super) fn list_limit<'de, D: Deserializer<'de>>(
    value: D,
) -> Result<Option<NonZeroUsize>, D::Error> {
    up_to(MAX_LIMIT, "expected a whole number from 1 to 1000", value)
}

pub(super) fn threads<'de, D: Deserializer<'de>>(
    value: D,
) -> Result<Option<NonZeroUsize>, D::Error> {
    up_to(MAX_THREADS, "expected a whole number from 1 to 1024", value)
}

fn up_to<'de, D: Deserializer<'de>>(
    largest: u32,
    expected: &'static str,
    value: D,
) -> Result<Option<NonZeroUsize>, D::Error> {
    let number = u64::deserialize(value)?;
    let number = usize::try_from(number).ok().and_then(NonZeroUsize::new);
    let number = number.filter(|number| u32::try_from(number.get()).is_ok_and(|it| it <= largest));
    number.ok_or_else(|| D::Error::custom(expected)).map(Some)
}

/// The `timeout` of most clients.
pub(super) fn milliseconds<'de, D: Deserializer<'de>>(
    value: D,
) -> Result<Option<Duration>, D::Error> {
    let time = Duration::from_millis(u64::deserialize(value)?);
    match time <= LONGEST {
        true => Ok(Some(time)),
        false => Err(D::Error::custom("longer than a year")),
    }
}

/// A sequence of numbers with units: `30s`, `5m`, `1h30m`, `500ms`. A number alone is seconds.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    if let Ok(seconds) = rest.parse() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let mut total = Duration::ZERO;
    loop {
        let number_ends = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
        let (number, after) = rest.split_at(number_ends);
        let unit_ends = after.find(|letter: char| !letter.is_ascii_alphabetic());
        let (unit, after) = after.split_at(unit_ends.unwrap_or(after.len()));
        let seconds = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            "w" => 604_800.0,
            _ => return None,
        };
        let part = Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds).ok()?;
        total = total.checked_add(part)?;
        rest = after.trim_start();
        if rest.is_empty() {
            return Some(total);
        }
    }
}

/// A number of bytes in powers of 1024, with or without `B` or `iB`: `65536`, `500M`, `1 GiB`.
pub fn parse_size(text: &str) -> Option<u64> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit());
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let unit = unit.trim().to_ascii_uppercase();
    let shift = match unit.trim_end_matches("IB").trim_end_matches('B') {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_numbers_with_units() {
        for (text, millis) in [
            ("30s", 30_000),
            ("5m", 300_000),
            ("1h30m", 5_400_000),
            ("1h 30m", 5_400_000),
            ("500ms", 500),
            ("1.5s", 1_500),
            ("2d", 172_800_000),
            ("45", 45_000),
            ("0", 0),
        ] {
            let read = parse_duration(text);
            assert_eq!(read, Some(Duration::from_millis(millis)), "{text}");
        }
        for text in [
            "",
            "s",
            "5x",
            "-5s",
            "-5",
            "5 parsecs",
            "1e9999",
            "..s",
            "9e99s",
            "inf",
            "nan",
        ] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(parse_size("64"), Some(64));
        assert_eq!(parse_size("64K"), Some(65_536));
        assert_eq!(parse_size("500m"), Some(500 << 20));
        assert_eq!(parse_size("256MiB"), Some(256 << 20));
        assert_eq!(parse_size("5 MiB"), Some(5 << 20));
        assert_eq!(parse_size("1GB"), Some(1 << 30));
        for wrong in ["", "G", "1X", "10i", "-1", "lots", "99999999999T"] {
            assert_eq!(parse_size(wrong), None, "{wrong}");
        }
    }
}
