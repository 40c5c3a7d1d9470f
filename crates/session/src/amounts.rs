//! Durations in a few characters, the same in tables, reports and exports.

use std::time::Duration;

/// `870 µs`, `1.2 ms`, `3.45 s`, `2m 03s`, `5h 07m`, `3d 04h`
pub fn duration_text(span: Duration) -> String {
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
        let shown = spans.map(|micros| duration_text(Duration::from_micros(micros)));
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
    }
}
