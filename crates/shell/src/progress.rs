//! How far a call is, on one line of stderr, for a person.

use std::io::{IsTerminal as _, Write as _};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use mcp_proxy_client::Progress;
use mcp_proxy_wire::terminal_text::sanitize;

use crate::text::cut;

/// How often the line is drawn again.
const REDRAW: Duration = Duration::from_millis(50);
const BAR: usize = 24;
/// What the line takes at most. One that wraps could not be taken away.
const WIDTH: usize = 78;

/// The line of the call that runs.
#[derive(Default)]
pub(crate) struct ProgressLine(Mutex<LineState>);

#[derive(Default)]
struct LineState {
    drawn: Option<Instant>,
}

impl ProgressLine {
    /// Draws what was reported, on a terminal of this width if it is known.
    pub(crate) fn show(&self, progress: &Progress, width: Option<usize>) {
        if !std::io::stderr().is_terminal() {
            return;
        }
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.drawn.is_some_and(|drawn| drawn.elapsed() < REDRAW) {
            return;
        }
        state.drawn = Some(Instant::now());
        let message = progress.message.as_deref().unwrap_or_default();
        let line = line(progress.progress, progress.total, message, width);
        let mut stderr = std::io::stderr().lock();
        let _ = write!(stderr, "\r\x1b[K{line}").and_then(|()| stderr.flush());
    }

    /// Takes the line away, if there is one.
    pub(crate) fn clear(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.drawn.take().is_some() {
            let mut stderr = std::io::stderr().lock();
            let _ = write!(stderr, "\r\x1b[K").and_then(|()| stderr.flush());
        }
    }
}

fn line(done: f64, total: Option<f64>, message: &str, width: Option<usize>) -> String {
    let message = sanitize(message);
    let line = match total.filter(|total| *total > 0.0) {
        Some(total) => {
            let share = (done / total).clamp(0.0, 1.0);
            let filled = (share * BAR as f64) as usize;
            let bar = format!("{}{}", "█".repeat(filled), "░".repeat(BAR - filled));
            format!("{bar} {:>3.0}% {message}", share * 100.0)
        }
        None => format!("{done} … {message}"),
    };
    let width = width.map_or(WIDTH, |width| width.saturating_sub(1).min(WIDTH));
    cut(line.trim_end(), width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_fits_a_narrow_terminal() {
        let shown = |width| line(5.0, Some(10.0), "a message that is long", width);
        let narrow = shown(Some(40));
        assert_eq!(narrow.chars().count(), 39, "{narrow}");
        assert!(shown(None).ends_with("50% a message that is long"));
    }
}
