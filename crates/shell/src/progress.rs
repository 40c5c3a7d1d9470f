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
/// A line that wraps could not be taken away.
const WIDTH: usize = 78;

/// The line of the call that runs.
#[derive(Default)]
pub(crate) struct ProgressLine(Mutex<LineState>);

#[derive(Default)]
struct LineState {
    drawn: Option<Instant>,
}

impl ProgressLine {
    /// Draws what was reported.
    pub(crate) fn show(&self, progress: &Progress) {
        if !std::io::stderr().is_terminal() {
            return;
        }
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.drawn.is_some_and(|drawn| drawn.elapsed() < REDRAW) {
            return;
        }
        state.drawn = Some(Instant::now());
        let mut stderr = std::io::stderr().lock();
        let _ = write!(stderr, "\r\x1b[K{}", line(progress)).and_then(|()| stderr.flush());
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

fn line(progress: &Progress) -> String {
    let message = sanitize(progress.message.as_deref().unwrap_or_default());
    let line = match progress.total.filter(|total| *total > 0.0) {
        Some(total) => {
            let share = (progress.progress / total).clamp(0.0, 1.0);
            let filled = (share * BAR as f64) as usize;
            let bar = format!("{}{}", "█".repeat(filled), "░".repeat(BAR - filled));
            format!("{bar} {:>3.0}% {message}", share * 100.0)
        }
        None => format!("{} … {message}", progress.progress),
    };
    cut(line.trim_end(), WIDTH)
}
