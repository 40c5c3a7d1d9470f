//! Times in few columns.

use std::time::Duration;

/// `1.2 ms`, `42 s`.
pub(crate) fn short_time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match time.as_millis() {
        0 => format!("{} µs", time.as_micros()),
        1..10 => format!("{:.1} ms", seconds * 1e3),
        10..1000 => format!("{:.0} ms", seconds * 1e3),
        1000..60_000 => format!("{seconds:.1} s"),
        _ => format!("{:.0} min", seconds / 60.0),
    }
}
