//! The terminal UI: on a running proxy, on the one in this process, or on a record.

mod link;
mod local;
mod signals;

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, Result};
use mcp_proxy_control::InterceptMode;
use mcp_proxy_session::SessionRecord;
use mcp_proxy_tui::ProxyPort;
use mcp_proxy_tui::{App, Colours, ExternalEditor, ProxyOwner, ProxyStatus, Tab, Theme, UiOptions};
use mcp_proxy_tui::{MouseOwner, restore_terminal};
use rustix::event::{PollFd, PollFlags, Timespec};

use crate::cli::control::AttachArgs;
use crate::cli::tui::{OpenArgs, ThemeName, TuiArgs};
use crate::printer;
use crate::run::control::choose_or_ask;
use crate::run::editor::{self, EditOutcome};
use crate::run::sessions::{count_of, record_lookup};

use signals::Suspension;
pub use signals::{EditorFlag, UiSignals};

/// How often the terminal is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long the UI may take to end.
const GRACE: Duration = Duration::from_secs(1);

/// Whether there is a terminal to draw on. One that cannot be drawn on is said, with the flag for what happens instead.
pub fn has_terminal(instead: &str) -> bool {
    match terminal() {
        Ok(()) => true,
        Err(why) => {
            if std::io::stdin().is_terminal() && printer::stdout_is_terminal() {
                printer::say(&format!(
                    "mcp-proxy: cannot open the terminal UI: {why}; continuing as with {instead}"
                ));
            }
            false
        }
    }
}

/// The same; if not, why.
fn terminal() -> Result<(), &'static str> {
    let term = std::env::var_os("TERM").filter(|term| !term.is_empty());
    match term {
        _ if !std::io::stdin().is_terminal() => Err("stdin is not a terminal"),
        _ if !printer::stdout_is_terminal() => Err("stdout is not a terminal"),
        None => Err("TERM is not set, so nothing is known of this terminal"),
        Some(term) if term == "dumb" => Err("TERM=dumb says that this terminal cannot draw"),
        Some(_) => Ok(()),
    }
}

/// `open`: looks at a record.
pub fn open(args: &OpenArgs) -> Result<ExitCode> {
    let path = record_lookup::find(&args.record)?;
    // A file that is not a record is reported before there is a screen.
    SessionRecord::open(&path)?;
    if let Err(why) = terminal() {
        let hint = "`mcp-proxy inspect RECORD` prints it";
        anyhow::bail!("the terminal UI cannot open: {why} ({hint})");
    }
    let (port, far) = ProxyPort::pair();
    local::serve(far, path.clone());
    let mut app = App::recorded(Tab::open(path), port, theme(args.tui));
    if let Some(filter) = &args.filter {
        app.run(mcp_proxy_tui::UiCommand::Filter, filter);
    }
    run_in_foreground(app, args.tui)
}

/// `attach`: looks at a running proxy.
pub fn attach(args: &AttachArgs) -> Result<ExitCode> {
    if let Err(why) = terminal() {
        let hint = "`mcp-proxy inspect ID --follow` prints messages, `mcp-proxy ctl` decides about held ones";
        anyhow::bail!("the terminal UI cannot open: {why} ({hint})");
    }
    let running = choose_or_ask(args.id.as_deref())?;
    let (port, far) = ProxyPort::pair();
    let entry = link::serve(far, running.socket).context("cannot start")?;
    // A proxy that lets nobody in says why before there is a screen.
    if let Ok(Err(why)) = entry.recv() {
        anyhow::bail!(why);
    }
    let app = App::live(port, ProxyOwner::Other, theme(args.tui));
    run_in_foreground(app, args.tui)
}

/// Nobody else is in this process who would say that a signal came; the exit code is the shell's own for that.
fn run_in_foreground(app: App, args: TuiArgs) -> Result<ExitCode> {
    let left = show(app, args, Arc::default(), EditorFlag::default(), None)?;
    if left.mode == InterceptMode::Intercept {
        printer::say(
            "mcp-proxy: the proxy is still holding every message; `mcp-proxy ctl continue` releases them",
        );
    }
    left.tell_draft();
    match left.signal {
        Some(_) => left.tell_signal(),
        None => left.tell_seen(),
    }
    let by_signal = left.signal.map(|(number, _)| code_of_signal(number));
    Ok(by_signal.unwrap_or(ExitCode::SUCCESS))
}

/// The UI of a proxy in this process, on a thread of its own. It ends when this is dropped, also by a panic: the terminal is
/// given back before the program is gone.
pub struct BackgroundUi {
    thread: Option<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
}

/// Looks at the proxy of this process. What it says to people is shown there until the UI ends.
pub fn start_in_background(
    socket: PathBuf,
    args: TuiArgs,
    owner: ProxyOwner,
    editor: EditorFlag,
) -> Result<BackgroundUi> {
    let (port, far) = ProxyPort::pair();
    // It lets its own UI in, and there is a screen to say it on if not.
    let _entry = link::serve(far, socket).context("cannot start")?;
    let stop: Arc<AtomicBool> = Arc::default();
    let stopped = Arc::clone(&stop);
    let said = printer::defer_output();
    let thread = std::thread::Builder::new()
        .name("tui".to_owned())
        .spawn(move || {
            let app = App::live(port, owner, theme(args));
            let shown = show(app, args, stopped, editor, Some(said));
            printer::print_deferred();
            match shown {
                Ok(left) => {
                    left.tell_draft();
                    left.tell_signal();
                }
                Err(error) => {
                    printer::fail(&error);
                    printer::say(
                        "mcp-proxy: the proxy keeps running without its screen (Ctrl-C ends it)",
                    );
                }
            }
        })
        .context("cannot start the terminal UI")?;
    let thread = Some(thread);
    Ok(BackgroundUi { thread, stop })
}

impl BackgroundUi {
    /// Whether the user has left.
    pub fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for BackgroundUi {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It has said itself what went wrong.
            let _ = thread.join();
        }
    }
}

/// How the UI was left.
struct UiExit {
    /// Whether the proxy keeps holding every message.
    mode: InterceptMode,
    /// The signal that ended it, by its number and name.
    signal: Option<(i32, &'static str)>,
    /// What was being edited when it ended.
    draft: Option<PathBuf>,
    /// What was looked at, if that is known.
    seen: Option<SeenSession>,
}

/// The session that was on the screen.
struct SeenSession {
    messages: usize,
    record: Option<PathBuf>,
    /// A proxy still runs it.
    is_live: bool,
}

impl SeenSession {
    fn of(app: &App) -> Option<SeenSession> {
        let view = &app.tabs.first()?.view;
        // The temporary record of a run without one is gone with its proxy.
        let is_kept = |path: &&Path| !path.starts_with("/proc") && !path.starts_with("/dev/fd");
        Some(SeenSession {
            messages: view.total(),
            record: view.path().filter(is_kept).map(Path::to_owned),
            is_live: app.proxy.link == ProxyStatus::Live,
        })
    }
}

impl UiExit {
    /// Why the screen is gone, if nobody here asked for it.
    fn tell_signal(&self) {
        if let Some((_, name)) = self.signal {
            let record = self.seen.as_ref().and_then(|seen| seen.record.as_ref());
            let record = record.map(|path| format!("; record: {}", path.display()));
            let record = record.unwrap_or_default();
            printer::say(&format!("mcp-proxy: stopped by {name}{record}"));
        }
    }

    /// What the user has left, and where it can be found again.
    fn tell_seen(&self) {
        let Some(seen) = &self.seen else { return };
        let messages = count_of(seen.messages as u64, "message", "messages");
        let place = match &seen.record {
            Some(record) => format!("in {}", record.display()),
            None => "not recorded (--no-record)".to_owned(),
        };
        let text = match seen.is_live {
            true => format!("mcp-proxy: the proxy keeps running; {messages} so far, {place}"),
            false => format!("mcp-proxy: {messages}, {place}"),
        };
        printer::say(&text);
    }

    fn tell_draft(&self) {
        if let Some(draft) = &self.draft {
            printer::say(&format!(
                "mcp-proxy: what you edited was not sent; it is in {}",
                draft.display()
            ));
        }
    }
}

/// The shell's own code for a program that a signal has ended.
fn code_of_signal(number: i32) -> ExitCode {
    ExitCode::from(128 + u8::try_from(number).unwrap_or(0))
}

/// Shows the UI on a thread of its own until the user leaves, a signal comes or the terminal is gone. A terminal that is gone
/// keeps its reader busy for ever, so its thread is not waited for long.
fn show(
    mut app: App,
    args: TuiArgs,
    stop: Arc<AtomicBool>,
    editor: EditorFlag,
    said: Option<Receiver<String>>,
) -> Result<UiExit> {
    let signals = UiSignals::watch(editor.clone());
    let suspension = Suspension::watch();
    if are_colours_unwanted() {
        app.colours = Colours::None;
    }
    let draft: Arc<Mutex<Option<PathBuf>>> = Arc::default();
    let options = UiOptions {
        mouse: match args.no_mouse {
            true => MouseOwner::Theirs,
            false => MouseOwner::Ours,
        },
        stop: Arc::clone(&stop),
        pause: suspension.asked(),
        suspend: Box::new(Suspension::stop_until_continued),
        program_output: said,
        external_editor: away(
            outside(Arc::clone(&stop), signals.clone(), Arc::clone(&draft)),
            suspension.clone(),
        ),
    };
    let (ends, ended) = std::sync::mpsc::channel();
    let ui = std::thread::Builder::new()
        .name("screen".to_owned())
        .spawn(move || {
            let shown = mcp_proxy_tui::run(&mut app, &options);
            suspension.end();
            // The caller may have given up.
            let _ = ends.send(());
            shown.map(|mode| (mode, SeenSession::of(&app)))
        })
        .context("cannot start the terminal UI")?;
    let left = |mode, seen| UiExit {
        mode,
        seen,
        signal: signals.end(),
        draft: draft.lock().unwrap_or_else(PoisonError::into_inner).take(),
    };
    while ended.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
        if !(stop.load(Ordering::Relaxed) || signals.end().is_some() || has_hung_up()) {
            continue;
        }
        stop.store(true, Ordering::Relaxed);
        let grace = match editor.is_running() {
            true => editor::GRACE + GRACE,
            false => GRACE,
        };
        if ended.recv_timeout(grace) == Err(RecvTimeoutError::Timeout) {
            restore_terminal();
            return Ok(left(InterceptMode::Passthrough, None));
        }
        break;
    }
    match ui.join() {
        Ok(shown) => {
            let (mode, seen) = shown?;
            Ok(left(mode, seen))
        }
        Err(_) => anyhow::bail!("the terminal UI has failed"),
    }
}

/// Has texts edited in the user's editor, in a folder that is the user's alone.
fn outside(
    stop: Arc<AtomicBool>,
    signals: UiSignals,
    draft: Arc<Mutex<Option<PathBuf>>>,
) -> ExternalEditor {
    Box::new(move |text| {
        let editor = editor::configured_editor().ok_or("neither $VISUAL nor $EDITOR is set")?;
        let folder = mcp_proxy_transport::control::private_folder()
            .map_err(|error| format!("cannot make a file for the text: {error}"))?;
        let stops = || stop.load(Ordering::Relaxed) || signals.end().is_some();
        let edited =
            signals.while_editing(|| editor::edit(&editor, &folder, text.as_bytes(), stops));
        match edited.map_err(|error| format!("{error:#}"))? {
            EditOutcome::Text(text) => {
                String::from_utf8(text).map_err(|_| "the edited message is not UTF-8".to_owned())
            }
            EditOutcome::Stopped(kept) => {
                stop.store(true, Ordering::Relaxed);
                *draft.lock().unwrap_or_else(PoisonError::into_inner) = kept;
                Err("the program ends".to_owned())
            }
        }
    })
}

/// The same, where a stop is the editor's and ours at once.
fn away(edit: ExternalEditor, suspension: Suspension) -> ExternalEditor {
    Box::new(move |text| suspension.while_away(|| edit(text)))
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

fn are_colours_unwanted() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

fn theme(args: TuiArgs) -> Theme {
    // Terminals that have none.
    let has_none =
        std::env::var("TERM").is_ok_and(|term| term.starts_with("vt") || term.ends_with("-m"));
    match args.theme {
        Some(ThemeName::Dark) => Theme::Dark,
        Some(ThemeName::Light) => Theme::Light,
        Some(ThemeName::Mono) => Theme::Mono,
        None if has_none || are_colours_unwanted() => Theme::Mono,
        None => Theme::Dark,
    }
}
