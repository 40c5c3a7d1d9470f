//! The terminal UI: on a running proxy, on the one in this process, or on a record.

mod link;
mod local;

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, Result};
use mcp_proxy_tui::port::Port;
use mcp_proxy_tui::proxy::Mode;
use mcp_proxy_tui::screen::{Mouse, give_back};
use mcp_proxy_tui::{App, Options, Owner, RunError, Tab, Theme};
use rustix::event::{PollFd, PollFlags, Timespec};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::cli::tui::{OpenArgs, ThemeName, TuiArgs};
use crate::printer;
use crate::run::control::attach::keyboard;
use crate::run::sessions::named;

/// The signals that end the UI, with their names.
const SIGNALS: [(i32, &str); 3] = [(SIGTERM, "SIGTERM"), (SIGHUP, "SIGHUP"), (SIGINT, "SIGINT")];
/// How often the terminal is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How long the UI may take to end.
const GRACE: Duration = Duration::from_secs(1);

/// Whether there is a terminal to draw on.
pub fn has_terminal() -> bool {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    !dumb && std::io::stdin().is_terminal() && printer::stdout_is_terminal()
}

/// `open`: looks at a record.
pub fn open(args: &OpenArgs) -> Result<ExitCode> {
    let path = named::find(&args.record)?;
    if !has_terminal() {
        return Err(RunError::NoTerminal.into());
    }
    let (port, far) = Port::pair();
    local::serve(far, path.clone());
    let mut app = App::recorded(Tab::open(path), port, theme(args.tui));
    if let Some(filter) = &args.filter {
        app.run(mcp_proxy_tui::command::Command::Filter, filter);
    }
    alone(app, args.tui)
}

/// `attach`: looks at a running proxy.
pub fn attach(socket: &Path, args: TuiArgs) -> Result<ExitCode> {
    let (port, far) = Port::pair();
    link::serve(far, socket.to_owned()).context("cannot start")?;
    let app = App::live(port, Owner::Other, theme(args));
    alone(app, args)
}

/// Nobody else is in this process who would say that a signal came; the exit code is the shell's own for that.
fn alone(app: App, args: TuiArgs) -> Result<ExitCode> {
    let came: Arc<AtomicUsize> = Arc::default();
    for (place, (signal, _)) in SIGNALS.into_iter().enumerate() {
        let number = place + 1;
        let came = Arc::clone(&came);
        drop(signal_hook::flag::register_usize(signal, came, number));
    }
    if show(app, args, Arc::default(), None)? == Mode::Intercept {
        printer::say(
            "mcp-proxy: the proxy goes on holding every message; `mcp-proxy ctl continue` lets them go",
        );
    }
    let place = came.load(Ordering::Relaxed).checked_sub(1);
    let Some((number, name)) = place.and_then(|place| SIGNALS.get(place)) else {
        return Ok(ExitCode::SUCCESS);
    };
    printer::say(&format!("mcp-proxy: stopped by {name}"));
    Ok(ExitCode::from(128 + u8::try_from(*number).unwrap_or(0)))
}

/// The UI of a proxy in this process, on a thread of its own. It ends when this is dropped, also by a panic: the terminal is
/// given back before the program is gone.
pub struct Beside {
    thread: Option<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
}

/// Looks at the proxy of this process. What it says to people is shown there until the UI ends.
pub fn beside(socket: PathBuf, args: TuiArgs, owner: Owner) -> Result<Beside> {
    let (port, far) = Port::pair();
    link::serve(far, socket).context("cannot start")?;
    let stop: Arc<AtomicBool> = Arc::default();
    let stopped = Arc::clone(&stop);
    let said = printer::hold_back();
    let thread = std::thread::Builder::new()
        .name("tui".to_owned())
        .spawn(move || {
            let app = App::live(port, owner, theme(args));
            let shown = show(app, args, stopped, Some(said));
            printer::let_go();
            if let Err(error) = shown {
                printer::fail(&error);
                printer::say("mcp-proxy: the proxy goes on without its screen (Ctrl-C ends it)");
            }
        })
        .context("cannot start the terminal UI")?;
    let thread = Some(thread);
    Ok(Beside { thread, stop })
}

impl Beside {
    /// Whether the user has left.
    pub fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It has said itself what went wrong.
            let _ = thread.join();
        }
    }
}

/// Shows the UI on a thread of its own until the user leaves, a signal comes or the terminal is gone. A terminal that is gone
/// keeps its reader busy for ever, so that one is not waited for long.
fn show(
    mut app: App,
    args: TuiArgs,
    stop: Arc<AtomicBool>,
    said: Option<Receiver<String>>,
) -> Result<Mode> {
    for (signal, _) in SIGNALS {
        // Where that is not possible the signal ends the program, as it would without a UI.
        drop(signal_hook::flag::register(signal, Arc::clone(&stop)));
    }
    let options = Options {
        mouse: match args.no_mouse {
            true => Mouse::Theirs,
            false => Mouse::Ours,
        },
        stop: Arc::clone(&stop),
        said,
        edit: Box::new(edit),
    };
    let (ends, ended) = std::sync::mpsc::channel();
    let ui = std::thread::Builder::new()
        .name("screen".to_owned())
        .spawn(move || {
            let shown = mcp_proxy_tui::run(&mut app, &options);
            // Whoever waits may have given up.
            let _ = ends.send(());
            shown
        })
        .context("cannot start the terminal UI")?;
    while ended.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
        if !(stop.load(Ordering::Relaxed) || has_hung_up()) {
            continue;
        }
        stop.store(true, Ordering::Relaxed);
        if ended.recv_timeout(GRACE) == Err(RecvTimeoutError::Timeout) {
            give_back();
            return Ok(Mode::Passthrough);
        }
        break;
    }
    match ui.join() {
        Ok(shown) => Ok(shown?),
        Err(_) => anyhow::bail!("the terminal UI has failed"),
    }
}

/// Whether the terminal was closed.
fn has_hung_up() -> bool {
    let stdin = std::io::stdin();
    let mut polled = [PollFd::new(&stdin, PollFlags::empty())];
    let at_once = Timespec::default();
    let found = rustix::event::poll(&mut polled, Some(&at_once)).is_ok();
    found
        && polled[0]
            .revents()
            .intersects(PollFlags::HUP | PollFlags::ERR)
}

/// Has a text edited in the user's editor, in a folder that is the user's alone.
fn edit(text: &str) -> Result<String, String> {
    let editor = keyboard::editor().ok_or("neither $VISUAL nor $EDITOR is set")?;
    let folder = mcp_proxy_transport::control::private_folder()
        .map_err(|error| format!("there is no place for the text: {error}"))?;
    let edited = keyboard::edit(&editor, &folder, text.as_bytes());
    let edited = edited.map_err(|error| format!("{error:#}"))?;
    String::from_utf8(edited).map_err(|_| "what was edited is no UTF-8".to_owned())
}

fn theme(args: TuiArgs) -> Theme {
    let asked = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    // Terminals that have none.
    let has_none =
        std::env::var("TERM").is_ok_and(|term| term.starts_with("vt") || term.ends_with("-m"));
    let no_colour = asked || has_none;
    match args.theme {
        Some(ThemeName::Dark) => Theme::Dark,
        Some(ThemeName::Light) => Theme::Light,
        Some(ThemeName::Mono) => Theme::Mono,
        None if no_colour => Theme::Mono,
        None => Theme::Dark,
    }
}
