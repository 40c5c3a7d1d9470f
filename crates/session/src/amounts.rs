//! Durations and sizes in a few characters, the same in tables, reports and exports.

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

/// `58 B`, `1.2 KiB`, `34 MiB`
pub fn size_text(bytes: u64) -> String {
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
        let sizes = [0, 58, 1000, 1229, 35_651_584, 1 << 40].map(size_text);
        assert_eq!(
            sizes,
            ["0 B", "58 B", "1.0 KiB", "1.2 KiB", "34 MiB", "1.0 TiB"]
        );
    }
}
