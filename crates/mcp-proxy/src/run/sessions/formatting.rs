//! Arrows for directions, and short forms of times, durations and sizes, as tables show them.

use std::time::SystemTime;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;
pub use mcp_proxy_session::duration_text as span;
use mcp_proxy_wire::Direction;
pub use mcp_proxy_wire::terminal_text::size_text as size;

/// The seed's glyph for a direction.
pub fn arrow(direction: Direction) -> &'static str {
    match direction {
        Direction::ClientToServer => "►",
        Direction::ServerToClient => "◄",
    }
}

/// `2026-11-15T18:00:00.001000Z`, as in records.
pub fn stamp(time: SystemTime) -> String {
    let civil = civil(time);
    let micros = civil.subsec_nanosecond() / 1_000;
    format!("{}T{}.{micros:06}Z", date(civil), clock(civil))
}

/// `2026-11-15 18:00:00`
pub fn day_and_time(time: SystemTime) -> String {
    let civil = civil(time);
    format!("{} {}", date(civil), clock(civil))
}

/// `18:00:00.001`
pub fn time_of_day(time: SystemTime) -> String {
    let civil = civil(time);
    format!(
        "{}.{:03}",
        clock(civil),
        civil.subsec_nanosecond() / 1_000_000
    )
}

/// `1,234,567`
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `text` on at most `width` characters.
pub fn cut(text: &str, width: usize) -> String {
    match text.char_indices().nth(width) {
        None => text.to_owned(),
        Some(_) => text
            .chars()
            .take(width.saturating_sub(1))
            .chain(['…'])
            .collect(),
    }
}

fn civil(time: SystemTime) -> DateTime {
    // Records carry UTC, and so do tables: two people who compare theirs see the same.
    Offset::UTC.to_datetime(Timestamp::try_from(time).unwrap_or_default())
}

fn date(civil: DateTime) -> String {
    format!(
        "{:04}-{:02}-{:02}",
        civil.year(),
        civil.month(),
        civil.day()
    )
}

fn clock(civil: DateTime) -> String {
    format!(
        "{:02}:{:02}:{:02}",
        civil.hour(),
        civil.minute(),
        civil.second()
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn long_numbers_have_groups() {
        let shown = [0, 999, 1_000, 12_345, 1_234_567].map(grouped);
        assert_eq!(shown, ["0", "999", "1,000", "12,345", "1,234,567"]);
    }

    #[test]
    fn times_are_utc() {
        let time = SystemTime::UNIX_EPOCH + Duration::from_micros(1_794_765_600_001_002);
        assert_eq!(stamp(time), "2026-11-15T18:00:00.001002Z");
        assert_eq!(day_and_time(time), "2026-11-15 18:00:00");
        assert_eq!(time_of_day(time), "18:00:00.001");
    }

    #[test]
    fn long_text_is_cut() {
        assert_eq!(cut("►abc", 4), "►abc");
        assert_eq!(cut("►abcd", 4), "►ab…");
        assert_eq!(cut("", 0), "");
    }
}
