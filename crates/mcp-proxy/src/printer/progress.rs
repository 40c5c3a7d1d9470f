//! How far a long work is, on stderr, only for a person and only if it takes long.
//!
//! Own code for what is one line: the crate for bars would bring libm into the binary, 0.3 MB in every guard.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

/// Work that takes longer than this shows how far it is.
const LONG: Duration = Duration::from_millis(500);
/// And how often.
pub const REDRAW: Duration = Duration::from_millis(100);

/// Where the result of the work goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ResultPlace {
    /// To the same screen while the work is under way: a bar would be in the way.
    SameScreen,
    /// Into a file or a pipe, or to the screen once the work is done.
    Elsewhere,
}

/// A bar that is drawn when there is something to see.
pub struct ProgressBar {
    what: &'static str,
    allowed: bool,
    drawn: Instant,
    shown: bool,
}

impl ProgressBar {
    /// Nothing is drawn yet.
    pub fn new(what: &'static str, results: ResultPlace) -> ProgressBar {
        ProgressBar {
            what,
            allowed: results == ResultPlace::Elsewhere && std::io::stderr().is_terminal(),
            drawn: Instant::now() + LONG - REDRAW,
            shown: false,
        }
    }

    /// So much is done.
    pub fn tell(&mut self, done: u64, total: u64) {
        let due = self.drawn.checked_add(REDRAW);
        if !self.allowed || due.is_none_or(|due| Instant::now() < due) {
            return;
        }
        self.drawn = Instant::now();
        self.shown = true;
        super::bar(self.what, done, total);
    }
}

impl Drop for ProgressBar {
    fn drop(&mut self) {
        if self.shown {
            super::clear_bar();
        }
    }
}
