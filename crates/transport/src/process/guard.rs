//! The guard process: stands between the proxy and one server, and outlives both by a moment to clean up.
//!
//! It is started with the server's three pipes as its own standard streams and hands them on by inheritance. Then
//! it waits for one of three things: the server ends, the proxy is gone, or somebody asks it to terminate. It has
//! no runtime, no threads and no log, because a proxy with 64 sessions has 64 guards.
//!
//! How it learns of the proxy's end: fd 2 is the write end of a pipe whose only read end the proxy holds. `poll`
//! reports an error on it when that read end is closed, also by SIGKILL.
//!
//! Its own signals come through self-pipes (`signal-hook`), because a handler is reset to the default when the
//! server is executed, while an ignored or blocked signal would be inherited by the server.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{self, Pid, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::low_level;

use super::exit::{GUARD_PREFIX, NOT_EXECUTABLE, NOT_FOUND};
use super::mark::GuardMark;
use super::tree;

/// How long the guard tries to kill what is left; only a process that hangs in the kernel takes this long.
const KILL_TIME: Duration = Duration::from_secs(3);

/// How often it looks again for processes that were being born while it killed.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Runs as guard. `args` are what follows [`GUARD_WORD`](super::GUARD_WORD): `-- COMMAND ARGS…`.
///
/// Call it from `main` before anything else is set up. It ends with the server's own status: the same exit code, or
/// the same signal. When the command cannot be run it ends with 127 (not found) or 126.
pub fn guard_main(args: impl Iterator<Item = OsString>) -> ExitCode {
    let mut args = args.skip_while(|arg| arg == "--");
    let Some(program) = args.next() else {
        return fail(NOT_EXECUTABLE, "no command given");
    };
    match Guard::start(&program, args) {
        Ok(guard) => guard.watch(),
        Err(error) => {
            let code = match error.kind() {
                io::ErrorKind::NotFound => NOT_FOUND,
                _ => NOT_EXECUTABLE,
            };
            let text = error.to_string();
            let reason = text.split(" (os error").next().unwrap_or(&text);
            fail(code, &format!("cannot run {program:?}: {reason}"))
        }
    }
}

fn fail(code: u8, text: &str) -> ExitCode {
    // In one write, so that the supervisor gets the line whole. Nobody is there to be told when this fails.
    let _ = io::stderr().write_all(format!("{GUARD_PREFIX}{text}\n").as_bytes());
    ExitCode::from(code)
}

struct Guard {
    /// The server; also the id of its process group, which is its own so that a server which signals its group
    /// (`kill 0`) does not hit the guard.
    server: Pid,
    /// Readable after SIGCHLD.
    child_ended: UnixStream,
    /// Readable after a signal that asks the guard to terminate.
    asked_to_stop: UnixStream,
}

impl Guard {
    fn start(program: &OsString, args: impl Iterator<Item = OsString>) -> io::Result<Self> {
        // Only for the eye: `ps` and `top` would show `exe`.
        #[cfg(target_os = "linux")]
        let _ = rustix::thread::set_name(super::GUARD_NAME);
        // All of this before the server starts, so that no signal and no orphan can be missed.
        let child_ended = signal_pipe(&[SIGCHLD])?;
        let asked_to_stop = signal_pipe(&[SIGTERM, SIGINT, SIGHUP, SIGQUIT])?;
        tree::adopt_orphans()?;
        GuardMark::put_on();
        let server = Command::new(program).args(args).process_group(0).spawn()?;
        let_go_of_message_pipes();
        Ok(Self {
            server: Pid::from_child(&server),
            child_ended,
            asked_to_stop,
        })
    }

    fn watch(mut self) -> ExitCode {
        loop {
            let stderr = rustix::stdio::stderr();
            let mut fds = [
                PollFd::new(&stderr, PollFlags::empty()),
                PollFd::new(&self.child_ended, PollFlags::IN),
                PollFd::new(&self.asked_to_stop, PollFlags::IN),
            ];
            if poll(&mut fds, None).is_err() {
                continue; // Interrupted by one of our signals; its pipe is readable now.
            }
            let [proxy_gone, child_ended, asked_to_stop] = fds.map(|fd| !fd.revents().is_empty());
            if child_ended {
                drain(&mut self.child_ended);
                self.reap_orphans();
            }
            if proxy_gone || (child_ended && self.server_ended()) {
                return exit_like(self.kill_tree());
            }
            if asked_to_stop {
                drain(&mut self.asked_to_stop);
                self.terminate_tree();
            }
        }
    }

    /// Collects the orphans that fell to us and have ended, so that a server which starts helpers for days leaves no
    /// zombies. The server itself is left alone: see [`Self::server_ended`].
    fn reap_orphans(&self) {
        for pid in tree::children(process::getpid()) {
            if pid != self.server {
                let _ = process::waitpid(Some(pid), WaitOptions::NOHANG);
            }
        }
    }

    /// Whether the server has ended. It stays unreaped here, which keeps its process group's id from being reused
    /// until [`Self::kill_tree`] has used it.
    fn server_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        matches!(
            process::waitid(WaitId::Pid(self.server), options),
            Ok(Some(_))
        )
    }

    /// Passes a request to terminate on to every process below, wherever it moved by `setsid`.
    fn terminate_tree(&self) {
        let _ = process::kill_process_group(self.server, Signal::TERM);
        for pid in tree::descendants(process::getpid()) {
            if process::getpgid(Some(pid)) != Ok(self.server) {
                let _ = process::kill_process(pid, Signal::TERM);
            }
        }
    }

    /// Kills and reaps until no child is left. Returns the server's status.
    ///
    /// The server's group dies at one blow. Beyond it only direct children are killed: they are not reaped yet, so
    /// their ids cannot have passed to strangers, and what they leave behind becomes our child and is next.
    fn kill_tree(&mut self) -> Option<WaitStatus> {
        let deadline = Instant::now() + KILL_TIME;
        let mut server = None;
        let _ = process::kill_process_group(self.server, Signal::KILL);
        loop {
            for pid in tree::children(process::getpid()) {
                let _ = process::kill_process(pid, Signal::KILL);
            }
            let reaped = self.reap();
            server = server.or(reaped.server);
            if reaped.none_left || Instant::now() >= deadline {
                return server;
            }
            wait_readable(&self.child_ended, LOOK_AGAIN);
        }
    }

    /// Collects every child that has ended.
    fn reap(&mut self) -> ReapResult {
        drain(&mut self.child_ended);
        let mut server = None;
        loop {
            match process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.server => server = Some(status),
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => {
                    return ReapResult {
                        server,
                        none_left: false,
                    };
                }
                Err(_) => {
                    return ReapResult {
                        server,
                        none_left: true,
                    };
                }
            }
        }
    }
}

struct ReapResult {
    server: Option<WaitStatus>,
    none_left: bool,
}

/// A stream that becomes readable when one of `signals` arrives.
fn signal_pipe(signals: &[i32]) -> io::Result<UnixStream> {
    let (read, write) = UnixStream::pair()?;
    read.set_nonblocking(true)?;
    for signal in signals {
        low_level::pipe::register(*signal, write.try_clone()?)?;
    }
    Ok(read)
}

fn drain(pipe: &mut UnixStream) {
    let mut buffer = [0; 64];
    while matches!(pipe.read(&mut buffer), Ok(count) if count > 0) {}
}

fn wait_readable(pipe: &UnixStream, most: Duration) {
    let timeout = Timespec {
        tv_sec: 0,
        tv_nsec: most.subsec_nanos().into(),
    };
    let _ = poll(&mut [PollFd::new(pipe, PollFlags::IN)], Some(&timeout));
}

/// Drops the guard's copies of the server's stdin and stdout. Otherwise the proxy would not see that the server
/// closed its stdout, nor get an error when it writes to a server that closed its stdin.
fn let_go_of_message_pipes() {
    if let Ok(null) = File::options().read(true).write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdin(&null);
        let _ = rustix::stdio::dup2_stdout(&null);
    }
}

/// Ends the guard as the server ended, so that the proxy sees the true status.
fn exit_like(status: Option<WaitStatus>) -> ExitCode {
    let code = status.and_then(WaitStatus::exit_status);
    if let Some(signal) = status.and_then(WaitStatus::terminating_signal) {
        // The server's own core file is enough.
        let none = process::Rlimit {
            current: Some(0),
            maximum: Some(0),
        };
        let _ = process::setrlimit(process::Resource::Core, none);
        #[cfg(target_os = "linux")]
        let _ = process::set_dumpable_behavior(process::DumpableBehavior::NotDumpable);
        if low_level::emulate_default_handler(signal).is_err() {
            // One it does not know, such as a real-time signal; its disposition is still the default.
            let _ = low_level::raise(signal);
        }
        return ExitCode::from(u8::try_from(signal).map_or(u8::MAX, |n| n.saturating_add(128)));
    }
    ExitCode::from(
        code.and_then(|code| u8::try_from(code).ok())
            .unwrap_or(u8::MAX),
    )
}
