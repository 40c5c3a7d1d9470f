//! The terminal, borrowed: raw mode, the other screen, mouse and paste. It is given back at the end, also of a panic.

use std::io::{self, Write as _};
use std::sync::{Mutex, Once, PoisonError};
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
/// The thread that draws: when another one panics, the screen stays.
static DRAWS: Mutex<Option<ThreadId>> = Mutex::new(None);

/// Whose the mouse is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mouse {
    /// The UI's.
    Ours,
    /// The terminal's: text is selected as everywhere.
    Theirs,
}

/// The terminal while the UI has it.
pub struct Screen {
    mouse: Mouse,
    is_ours: bool,
}

impl Screen {
    /// Takes the terminal.
    pub fn enter(mouse: Mouse) -> io::Result<Screen> {
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                let draws = *DRAWS.lock().unwrap_or_else(PoisonError::into_inner);
                if draws.is_none_or(|thread| thread == std::thread::current().id()) {
                    give_back();
                    before(panic);
                }
            }));
        });
        *DRAWS.lock().unwrap_or_else(PoisonError::into_inner) = Some(std::thread::current().id());
        let mut screen = Screen {
            mouse,
            is_ours: false,
        };
        screen.enter_again()?;
        Ok(screen)
    }

    /// Takes it again.
    pub fn enter_again(&mut self) -> io::Result<()> {
        enable_raw_mode()?;
        self.is_ours = true;
        execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste)?;
        if self.mouse == Mouse::Ours {
            execute!(io::stdout(), EnableMouseCapture)?;
        }
        Ok(())
    }

    /// Gives it back for a while.
    pub fn leave(&mut self) -> io::Result<()> {
        self.is_ours = false;
        give_back();
        io::stdout().flush()
    }

    /// Puts text into the clipboard, by the terminal's own means: this works over ssh too.
    pub fn copy(text: &str) -> io::Result<()> {
        execute!(io::stdout(), CopyToClipboard::to_clipboard_from(text))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if self.is_ours {
            give_back();
        }
        *DRAWS.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// As it was. What fails here fails for good: there is nobody left to tell.
pub fn give_back() {
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
