//! Arrows for directions, and short forms of times, durations and sizes, as tables show them.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;
use mcp_proxy_wire::Direction;

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

/// `870 µs`, `1.2 ms`, `3.45 s`, `2m 03s`, `5h 07m`, `3d 04h`
pub fn span(span: Duration) -> String {
    let seconds = span.as_secs();
    match span.as_micros() {
        micros @ ..1_000 => format!("{micros} µs"),
        micros @ ..1_000_000 => format!("{:.1} ms", micros as f64 / 1e3),
        _ if seconds < 60 => format!("{:.2} s", span.as_secs_f64()),
        _ if seconds < 3600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        _ if seconds < 86_400 => format!("{}h {:02}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d {:02}h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

/// `58 B`, `1.2 KiB`, `34 MiB`
pub fn size(bytes: u64) -> String {
    let mut amount = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if amount < 1000.0 {
            let decimals = usize::from(unit != "B" && amount < 10.0);
            return format!("{amount:.decimals$} {unit}");
        }
        amount /= 1024.0;
    }
    format!("{amount:.1} TiB")
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
    use super::*;

    #[test]
    fn amounts_are_short() {
        let spans = [
            7,
            1_200,
            999_999,
            3_450_000,
            123_000_000,
            18_420_000_000,
            273_600_000_000,
        ];
        let shown: Vec<_> = spans
            .iter()
            .map(|micros| span(Duration::from_micros(*micros)))
            .collect();
        assert_eq!(
            shown,
            [
                "7 µs",
                "1.2 ms",
                "1000.0 ms",
                "3.45 s",
                "2m 03s",
                "5h 07m",
                "3d 04h"
            ]
        );
        let sizes: Vec<_> = [0, 58, 1000, 1229, 35_651_584, 1 << 40]
            .iter()
            .map(|bytes| size(*bytes))
            .collect();
        assert_eq!(
            sizes,
            ["0 B", "58 B", "1.0 KiB", "1.2 KiB", "34 MiB", "1.0 TiB"]
        );
    }

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
