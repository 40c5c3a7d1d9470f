//! The process supervisor: starts an MCP server as a child process and never leaves any of it behind.
//!
//! Between the proxy and the server stands a *guard*: our own binary, started again as
//! `mcp-proxy __guard -- COMMAND ARGS…`. The guard is the subreaper of everything the server starts, and it
//! watches the proxy through the standard error pipe: the proxy holds the only read end, so the kernel tells the
//! guard when the proxy is gone, however it died. Then the whole tree is killed. A process group or a
//! parent-death signal in the proxy alone does not survive the proxy's own SIGKILL.
//!
//! The server's three pipes go straight from the proxy to the server; no byte passes through the guard.
//!
//! This module knows nothing of MCP. Lines, messages and deadlines of the protocol belong to the link above it.

mod environment;
mod exit;
mod guard;
mod lookup;
mod mark;
mod orphans;
mod server;
mod stderr;
mod tree;

use std::ffi::{CStr, OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::unix::pipe;
use tokio::process::Command;
use tokio::sync::Semaphore;

pub use environment::{Environment, MINIMAL_VARIABLES};
pub use exit::{EndCause, ExitReport};
pub use guard::guard_main;
pub use lookup::ProgramProblem;
pub use orphans::become_subreaper;
pub use server::ServerProcess;
pub use stderr::{StderrLine, StderrLines};
pub use tree::terminate_innermost;

use server::GuardProcess;

/// The first argument that makes our binary a guard; `main` looks for it before anything else.
pub const GUARD_WORD: &str = "__guard";

/// The name a guard shows in `ps`. It does not contain `mcp-proxy`, so that `pkill -9 mcp-proxy` ends the proxy and
/// spares the guard, which then cleans up.
const GUARD_NAME: &CStr = c"mcp-guard";

/// Size asked for the pipes that carry messages: a 1 MB message then crosses with few wake-ups.
#[cfg(target_os = "linux")]
const MESSAGE_PIPE: usize = 1 << 20;

/// How many servers of one supervisor have such pipes at a time. A user may have 64 MiB of pipes by default, and beyond that every new
/// pipe of that user is tiny, in other programs too.
const SERVERS_WITH_LARGE_PIPES: usize = 8;

/// What to run as the server.
#[derive(Clone, Debug, Default)]
pub struct ServerCommand {
    /// The program, a path or a name that is looked up in the server's own `PATH` and folder.
    pub program: OsString,
    /// Its arguments, without the program itself.
    pub args: Vec<OsString>,
    /// What it gets of the proxy's own environment.
    pub environment: Environment,
    /// Variables set in addition to that.
    pub env: Vec<(OsString, OsString)>,
    /// The folder it runs in; the proxy's own when absent.
    pub cwd: Option<PathBuf>,
}

/// How long each step of stopping a server may take before the next, harder one.
#[derive(Clone, Copy, Debug)]
pub struct StopDeadlines {
    /// From closing the server's stdin to SIGTERM.
    pub stdin_closed: Duration,
    /// From SIGTERM to SIGKILL.
    pub term: Duration,
    /// From SIGKILL until the supervisor gives up waiting; only a process that hangs in the kernel takes this long.
    pub kill: Duration,
}

impl Default for StopDeadlines {
    fn default() -> Self {
        Self {
            stdin_closed: Duration::from_secs(1),
            term: Duration::from_millis(1500),
            kill: Duration::from_secs(5),
        }
    }
}

/// The binary that plays the guard.
#[derive(Clone, Debug)]
pub struct GuardProgram(PathBuf);

impl GuardProgram {
    /// The running binary itself.
    ///
    /// On Linux this is `/proc/self/exe`, which stays the same program when the file is replaced by an upgrade.
    ///
    /// # Errors
    /// When the system cannot name the running binary (never on Linux).
    pub fn current() -> io::Result<Self> {
        if cfg!(target_os = "linux") {
            Ok(Self(PathBuf::from("/proc/self/exe")))
        } else {
            std::env::current_exe().map(Self)
        }
    }

    /// Another binary that calls [`guard_main`]; for tests and for programs that embed the proxy.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

/// Starts servers. It knows no restart policy: after the [`ExitReport`] of a server, the same [`ServerCommand`] can be
/// spawned again, as often as the caller likes. A program may have several; clones are the same supervisor.
#[derive(Clone, Debug)]
pub struct Supervisor {
    guard: GuardProgram,
    deadlines: StopDeadlines,
    large_pipes: Arc<Semaphore>,
}

/// Why a server could not even be handed to a guard. A command that does not exist is not such an error: the guard
/// finds that out, and it arrives in [`ExitReport::spawn_failure`].
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// No pipe could be made, mostly because the proxy has too many files open.
    #[error("could not make the server's pipes")]
    Pipe(#[source] io::Error),
    /// The folder the server should run in cannot be used.
    #[error("the server's folder {path:?} cannot be used")]
    Folder {
        /// The folder as it was given.
        path: PathBuf,
        /// What the system said about it.
        #[source]
        source: io::Error,
    },
    /// Our own binary could not be started as guard.
    #[error("could not start the server's guard process")]
    Guard(#[source] io::Error),
}

impl Supervisor {
    /// A supervisor with the default deadlines.
    pub fn new(guard: GuardProgram) -> Self {
        Self {
            guard,
            deadlines: StopDeadlines::default(),
            large_pipes: Arc::new(Semaphore::new(SERVERS_WITH_LARGE_PIPES)),
        }
    }

    /// The same supervisor with other deadlines.
    #[must_use]
    pub fn with_deadlines(self, deadlines: StopDeadlines) -> Self {
        Self { deadlines, ..self }
    }

    /// Starts a server under a guard of its own. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// When the guard cannot be started; see [`SpawnError`] for what is *not* an error here.
    pub fn spawn(&self, server: &ServerCommand) -> Result<ServerProcess, SpawnError> {
        if let Some(path) = &server.cwd {
            // Asked before the spawn, whose own error could not be told from a missing guard binary.
            check_folder(path).map_err(|source| SpawnError::Folder {
                path: path.clone(),
                source,
            })?;
        }
        let pipes = ServerPipes::new().map_err(SpawnError::Pipe)?;
        let large_pipes = Arc::clone(&self.large_pipes).try_acquire_owned().ok();
        if large_pipes.is_some() {
            pipes.enlarge();
        }
        let mut command = Command::new(&self.guard.0);
        command
            .arg0(OsStr::from_bytes(GUARD_NAME.to_bytes()))
            .args([GUARD_WORD, "--"])
            .arg(&server.program)
            .args(&server.args)
            .process_group(0)
            .stdin(Stdio::from(pipes.server_stdin))
            .stdout(Stdio::from(pipes.server_stdout))
            .stderr(Stdio::from(pipes.server_stderr));
        if let Some(path) = &server.cwd {
            command.current_dir(path);
        }
        server.environment.apply(&server.env, &mut command);
        let child = command.spawn().map_err(SpawnError::Guard)?;
        // The command holds the server's ends of the pipes. As long as they are open here, the end of the server is
        // not seen on its stdout.
        drop(command);
        Ok(ServerProcess::new(
            GuardProcess::new(child, large_pipes),
            pipes.stdin,
            pipes.stdout,
            pipes.stderr,
            self.deadlines,
        ))
    }
}

/// Both ends of the three pipes. Ours do not block; the server's do, as programs expect of their standard streams.
struct ServerPipes {
    stdin: pipe::Sender,
    stdout: pipe::Receiver,
    stderr: pipe::Receiver,
    server_stdin: OwnedFd,
    server_stdout: OwnedFd,
    server_stderr: OwnedFd,
}

impl ServerPipes {
    fn new() -> io::Result<Self> {
        // All six are close-on-exec, so that no server sees the pipes of another one.
        let (server_stdin, stdin) = io::pipe()?;
        let (stdout, server_stdout) = io::pipe()?;
        let (stderr, server_stderr) = io::pipe()?;
        Ok(Self {
            stdin: pipe::Sender::from_owned_fd(stdin.into())?,
            stdout: pipe::Receiver::from_owned_fd(stdout.into())?,
            stderr: pipe::Receiver::from_owned_fd(stderr.into())?,
            server_stdin: server_stdin.into(),
            server_stdout: server_stdout.into(),
            server_stderr: server_stderr.into(),
        })
    }

    /// Best effort: where it is refused, the pipes keep their usual size and still work.
    fn enlarge(&self) {
        #[cfg(target_os = "linux")]
        {
            let _ = rustix::pipe::fcntl_setpipe_size(&self.server_stdin, MESSAGE_PIPE);
            let _ = rustix::pipe::fcntl_setpipe_size(&self.server_stdout, MESSAGE_PIPE);
        }
    }
}

fn check_folder(path: &PathBuf) -> io::Result<()> {
    if std::fs::metadata(path)?.is_dir() {
        Ok(())
    } else {
        Err(io::ErrorKind::NotADirectory.into())
    }
}
