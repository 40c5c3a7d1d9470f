//! Signals that end the UI or stop it for a while, and those that do not: Ctrl-C in an editor is the editor's, although the
//! terminal sends it to all.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGTSTP};

/// Those that end the UI, with their names.
const SIGNALS: [(i32, &str); 3] = [(SIGTERM, "SIGTERM"), (SIGHUP, "SIGHUP"), (SIGINT, "SIGINT")];
/// The place of Ctrl-C among them.
const INTERRUPT: usize = 2;

/// Whether an editor has the terminal; known to all who would end at Ctrl-C.
#[derive(Clone, Debug, Default)]
pub struct EditorFlag(Arc<AtomicBool>);

impl EditorFlag {
    /// Whether it has.
    pub fn is_running(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// The signals that came.
#[derive(Clone)]
pub struct UiSignals {
    came: [Arc<AtomicBool>; SIGNALS.len()],
    editor: EditorFlag,
}

impl UiSignals {
    /// Watches from now on.
    pub fn watch(editor: EditorFlag) -> UiSignals {
        let came = SIGNALS.map(|(signal, _)| {
            let came: Arc<AtomicBool> = Arc::default();
            // Where that is not possible the signal ends the program, as it would without a UI.
            drop(signal_hook::flag::register(signal, Arc::clone(&came)));
            came
        });
        UiSignals { came, editor }
    }

    /// The one that ends the UI, by its number and name.
    pub fn end(&self) -> Option<(i32, &'static str)> {
        if self.editor.is_running() {
            self.forget_interrupt();
        }
        let mut signals = SIGNALS.into_iter().zip(&self.came);
        let came = signals.find(|(_, came)| came.load(Ordering::SeqCst));
        came.map(|(signal, _)| signal)
    }

    /// Runs an editor.
    pub fn while_editing<T>(&self, edit: impl FnOnce() -> T) -> T {
        self.editor.0.store(true, Ordering::SeqCst);
        let edited = edit();
        self.forget_interrupt();
        self.editor.0.store(false, Ordering::SeqCst);
        edited
    }

    fn forget_interrupt(&self) {
        self.came[INTERRUPT].store(false, Ordering::SeqCst);
    }
}

/// SIGTSTP, which stops the program. While the UI has the terminal it is given back first; at all other times the program
/// stops at once, as it would without us: while an editor runs, and after the UI.
#[derive(Clone)]
pub struct Suspension {
    asked: Arc<AtomicBool>,
    at_once: Arc<AtomicBool>,
}

impl Suspension {
    /// Watches from now on.
    pub fn watch() -> Suspension {
        let suspension = Suspension {
            asked: Arc::default(),
            at_once: Arc::default(),
        };
        let at_once = Arc::clone(&suspension.at_once);
        // Where that is not possible the signal stops the program, as it would without a UI.
        if signal_hook::flag::register_conditional_default(SIGTSTP, at_once).is_ok() {
            let asked = Arc::clone(&suspension.asked);
            drop(signal_hook::flag::register(SIGTSTP, asked));
        }
        suspension
    }

    /// Set when the signal has come.
    pub fn asked(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.asked)
    }

    /// Stops the program until it is continued.
    pub fn stop_until_continued() {
        // It cannot fail: the signal is one that has a default.
        drop(signal_hook::low_level::emulate_default_handler(SIGTSTP));
    }

    /// Runs something that has the terminal instead of the UI.
    pub fn while_away<T>(&self, away: impl FnOnce() -> T) -> T {
        self.at_once.store(true, Ordering::SeqCst);
        let result = away();
        self.at_once.store(false, Ordering::SeqCst);
        // The program was stopped then.
        self.asked.store(false, Ordering::SeqCst);
        result
    }

    /// The UI is over.
    pub fn end(&self) {
        self.at_once.store(true, Ordering::SeqCst);
    }
}
