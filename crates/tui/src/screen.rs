//! The terminal, borrowed: raw mode, the other screen, mouse and paste. It is given back at the end, also of a panic. When
//! another thread panics the screen stays, and what there is to say about it is printed at the end.

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::thread::ThreadId;

use crossterm::clipboard::CopyToClipboard;
use crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
};
use crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use crossterm::{cursor, execute};

static HOOK: Once = Once::new();
/// The terminal is ours, and is to be given back: once, since the second time the cursor would go back over what was printed.
static IS_OURS: AtomicBool = AtomicBool::new(false);
/// The thread that draws: when another one panics, the screen stays.
static DRAWS: Mutex<Option<ThreadId>> = Mutex::new(None);
/// What other threads said when they panicked.
static UNSAID: Mutex<Vec<String>> = Mutex::new(Vec::new());
/// So much of that is kept: more says nothing new.
const KEPT_PANICS: usize = 10;

/// Whose the mouse is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MouseOwner {
    /// The UI's.
    Ours,
    /// The terminal's: text is selected as everywhere.
    Theirs,
}

/// The terminal while the UI has it.
pub struct Screen {
    mouse: MouseOwner,
}

impl Screen {
    /// Takes the terminal.
    pub fn enter(mouse: MouseOwner) -> io::Result<Screen> {
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                let thread = std::thread::current();
                if locked(&DRAWS).is_none_or(|draws| draws == thread.id()) {
                    restore_terminal();
                    before(panic);
                } else {
                    let name = thread.name().unwrap_or("without a name");
                    let mut unsaid = locked(&UNSAID);
                    unsaid.push(format!("thread {name} {panic}"));
                    unsaid.truncate(KEPT_PANICS);
                }
            }));
        });
        *locked(&DRAWS) = Some(std::thread::current().id());
        let screen = Screen { mouse };
        screen.enter_again()?;
        Ok(screen)
    }

    /// Takes it again.
    pub fn enter_again(&self) -> io::Result<()> {
        enable_raw_mode()?;
        IS_OURS.store(true, Ordering::SeqCst);
        execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste)?;
        if self.mouse == MouseOwner::Ours {
            execute!(io::stdout(), EnableMouseCapture)?;
        }
        Ok(())
    }

    /// Gives it back for a while.
    pub fn leave(&self) -> io::Result<()> {
        restore_terminal();
        io::stdout().flush()
    }

    /// Puts text into the clipboard, by the terminal's own means: this works over ssh too.
    pub fn copy(text: &str) -> io::Result<()> {
        execute!(io::stdout(), CopyToClipboard::to_clipboard_from(text))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore_terminal();
        *locked(&DRAWS) = None;
        let mut err = io::stderr();
        for text in locked(&UNSAID).drain(..) {
            let _ = writeln!(err, "{text}");
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// As it was, unless it has been given back already. What fails here fails for good: there is nobody left to tell.
pub fn restore_terminal() {
    if !IS_OURS.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut out = io::stdout();
    let _ = execute!(
        out,
        DisableMouseCapture,
        DisableBracketedPaste,
        LeaveAlternateScreen,
        cursor::Show
    );
    let _ = disable_raw_mode();
}
