//! SIGINT, SIGTERM and SIGHUP end the proxy in order: servers are stopped, the record is closed.

use std::process::ExitCode;

use tokio::signal::unix::{self, SignalKind};

use super::RunEnd;

/// The signals that end a run.
pub struct Signals {
    interrupt: unix::Signal,
    terminate: unix::Signal,
    hangup: unix::Signal,
}

/// The one that came.
#[derive(Clone, Copy, Debug)]
pub struct Signal {
    name: &'static str,
    number: u8,
}

impl Signals {
    /// Watches from now on.
    pub fn new() -> std::io::Result<Signals> {
        Ok(Signals {
            interrupt: unix::signal(SignalKind::interrupt())?,
            terminate: unix::signal(SignalKind::terminate())?,
            hangup: unix::signal(SignalKind::hangup())?,
        })
    }

    /// Waits for one.
    pub async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal { name: "SIGINT", number: 2 },
            _ = self.terminate.recv() => Signal { name: "SIGTERM", number: 15 },
            _ = self.hangup.recv() => Signal { name: "SIGHUP", number: 1 },
        }
    }
}

impl Signal {
    /// The end it makes: the shell's own convention for a process that a signal ended.
    pub fn end(self) -> RunEnd {
        RunEnd {
            why: format!("stopped by {}", self.name),
            code: ExitCode::from(128 + self.number),
        }
    }
}

impl RunEnd {
    /// Nothing special happened.
    pub fn done() -> RunEnd {
        RunEnd {
            why: "ended".to_owned(),
            code: ExitCode::SUCCESS,
        }
    }
}
