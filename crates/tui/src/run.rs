//! The loop: waits for keys, takes news, draws when something has changed.
//!
//! A frame is drawn at most 30 times a second, and only when it would differ; the terminal is given back as it was found
//! whatever happens.

use std::io::{self, IsTerminal as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use crossterm::event::{self, Event as TerminalEvent};
use mcp_proxy_control::InterceptMode;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;

use crate::app::{App, Effect, InputEvent};
use crate::editor::EditPurpose;
use crate::panes;
use crate::proxy::ProxyStatus;
use crate::screen::{MouseOwner, Screen};

/// The longest wait for a key, so that news are seen.
const TURN: Duration = Duration::from_millis(33);
/// Countdowns are redrawn this often, even without news.
const CLOCK: Duration = Duration::from_millis(500);

/// Has a text edited outside: the text it was, and what became of it.
pub type ExternalEditor = Box<dyn Fn(&str) -> Result<String, String> + Send>;

/// Stops the whole program, and returns when it is continued.
pub(crate) type SuspendProgram = Box<dyn Fn() + Send>;

/// How the UI behaves on this terminal.
pub struct UiOptions {
    /// Whose the mouse is.
    pub mouse: MouseOwner,
    /// Set by a signal: the UI ends.
    pub stop: Arc<AtomicBool>,
    /// Set by a signal: the program is to be stopped until it is continued.
    pub pause: Arc<AtomicBool>,
    /// Does that, once the terminal has been given back.
    pub suspend: SuspendProgram,
    /// What the program says meanwhile, which cannot be printed.
    pub program_output: Option<Receiver<String>>,
    /// The editor outside.
    pub external_editor: ExternalEditor,
}

/// Why the UI had to stop.
#[derive(Debug, thiserror::Error)]
pub enum UiError {
    /// No terminal.
    #[error("the terminal UI needs a terminal on stdin and stdout")]
    NoTerminal,
    /// The terminal failed.
    #[error("the terminal cannot be used")]
    Terminal(#[from] io::Error),
}

/// Runs the UI until the user leaves. Returns whether the proxy keeps holding every message.
pub fn run(app: &mut App, options: &UiOptions) -> Result<InterceptMode, UiError> {
    if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        return Err(UiError::NoTerminal);
    }
    let screen = Screen::enter(options.mouse)?;
    let mut terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
    let mut changed = true;
    let mut drawn = Instant::now();
    while !options.stop.load(Ordering::Relaxed) {
        if options.pause.swap(false, Ordering::SeqCst) {
            screen.leave()?;
            (options.suspend)();
            screen.enter_again()?;
            // The program that had the terminal meanwhile may have left text there.
            draw_anew(&mut terminal)?;
            changed = true;
        }
        let now = Instant::now();
        changed |= app.tick(now);
        while let Some(Ok(text)) = options.program_output.as_ref().map(Receiver::try_recv) {
            app.show_program_output(&text);
            changed = true;
        }
        let ticks = !app.proxy.held.is_empty() && now.duration_since(drawn) >= CLOCK;
        if changed || ticks {
            terminal.draw(|frame| panes::draw(app, frame))?;
            drawn = Instant::now();
            changed = false;
        }
        let mut wait = TURN;
        // Everything that was typed is taken before the next frame.
        while event::poll(wait)? {
            wait = Duration::ZERO;
            changed = true;
            match event::read()? {
                TerminalEvent::Key(key) => app.handle_input(InputEvent::Key(key)),
                TerminalEvent::Mouse(mouse) => app.handle_input(InputEvent::Mouse(mouse)),
                TerminalEvent::Paste(text) => app.handle_input(InputEvent::Paste(text)),
                TerminalEvent::Resize(..) => terminal.autoresize()?,
                TerminalEvent::FocusGained | TerminalEvent::FocusLost => {}
            }
            if drawn.elapsed() > TURN {
                break;
            }
        }
        for effect in app.effects() {
            match effect {
                Effect::Quit => return Ok(left(app)),
                Effect::Copy(text) => Screen::copy(&text)?,
                Effect::Suspend => options.pause.store(true, Ordering::SeqCst),
                Effect::Edit(purpose, text) => {
                    outside(app, &screen, options, purpose, &text)?;
                    if options.stop.load(Ordering::Relaxed) {
                        return Ok(left(app));
                    }
                    draw_anew(&mut terminal)?;
                }
            }
            changed = true;
        }
    }
    Ok(left(app))
}

/// Empties the screen, so that the next frame is drawn whole. Not by `clear`: that asks the terminal where the cursor is, and
/// keys that are pressed before the terminal has answered get lost.
fn draw_anew(terminal: &mut Terminal<CrosstermBackend<io::Stdout>>) -> io::Result<()> {
    let size = terminal.size()?;
    terminal.resize(size.into())
}

fn left(app: &App) -> InterceptMode {
    match app.proxy.link {
        ProxyStatus::Live => app.proxy.mode,
        ProxyStatus::None | ProxyStatus::Gone(_) => InterceptMode::Passthrough,
    }
}

fn outside(
    app: &mut App,
    screen: &Screen,
    options: &UiOptions,
    purpose: EditPurpose,
    text: &str,
) -> io::Result<()> {
    screen.leave()?;
    let edited = (options.external_editor)(text);
    // Ended by a signal meanwhile: the terminal stays given back.
    if !options.stop.load(Ordering::Relaxed) {
        screen.enter_again()?;
        app.finish_external_edit(purpose, text, edited);
    }
    Ok(())
}
