//! Durations as people write them: `30s`, `5m`, `1h30m`, `500ms`.

use std::time::Duration;

/// The longest that is accepted: longer is a mistake, and arithmetic with it could overflow.
pub(super) const LONGEST: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// A sequence of numbers with units. A number alone is seconds.
pub(super) fn parse(text: &str) -> Option<Duration> {
    let text = text.trim();
    if text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.')
    {
        return parse_seconds(text);
    }
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let number_ends = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
        let (number, after) = rest.split_at(number_ends);
        let unit_ends = after
            .find(|letter: char| !letter.is_ascii_alphabetic())
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_ends);
        let seconds = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            _ => return None,
        };
        let part = Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds).ok()?;
        total = total.checked_add(part)?;
        rest = after.trim_start();
    }
    Some(total)
}

/// A number of seconds.
pub(super) fn parse_seconds(number: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(number.parse().ok()?).ok()
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
            assert_eq!(parse(text), Some(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "s", "5x", "-5s", "5 parsecs", "1e9999", "..s", "9e99s"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
