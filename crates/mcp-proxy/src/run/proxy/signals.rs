//! What ends a run from outside: SIGINT, SIGTERM, SIGHUP, or a viewer. Servers are then stopped and the record is closed.

use std::process::ExitCode;
use std::sync::Arc;

use mcp_proxy_core::control::ProxyControl;
use tokio::signal::unix::{self, SignalKind};
use tokio::sync::watch;

use super::RunEnd;
use crate::config::Target;
use crate::run::tui::EditorFlag;

/// The signals that end a run.
pub struct RunSignals {
    interrupt: unix::Signal,
    terminate: unix::Signal,
    hangup: unix::Signal,
    hangup_meaning: HangupMeaning,
}

/// What SIGHUP means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HangupMeaning {
    /// The end.
    Stop,
    /// Files are read or opened again, by somebody else. The end only if the terminal has gone.
    Reload,
}

impl HangupMeaning {
    /// For a run with this target.
    pub fn of(target: &Target) -> HangupMeaning {
        match target {
            Target::Hub(_) | Target::Relay(_) => HangupMeaning::Reload,
            _ => HangupMeaning::Stop,
        }
    }
}

/// Does something at each SIGHUP, for as long as the program runs.
pub fn on_hangup(mut act: impl FnMut() + Send + 'static) -> std::io::Result<()> {
    let mut hangup = unix::signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            act();
        }
    });
    Ok(())
}

/// What came. Waited for in a task of its own, so that messages do not look for signals on their way.
#[derive(Clone)]
pub struct StopRequest {
    first: watch::Receiver<Option<RunEnd>>,
    /// Whether there was a second signal.
    again: watch::Receiver<bool>,
}

impl RunSignals {
    /// Watches from now on.
    pub fn new(hangup_meaning: HangupMeaning) -> std::io::Result<RunSignals> {
        Ok(RunSignals {
            interrupt: unix::signal(SignalKind::interrupt())?,
            terminate: unix::signal(SignalKind::terminate())?,
            hangup: unix::signal(SignalKind::hangup())?,
            hangup_meaning,
        })
    }

    /// Resolves at the first signal, or when a viewer asks for the end. Ctrl-C is not for us while an editor has the terminal.
    pub fn into_stop_request(
        mut self,
        control: Option<Arc<ProxyControl>>,
        editor: EditorFlag,
    ) -> StopRequest {
        let (tell, first) = watch::channel(None);
        let (tell_again, again) = watch::channel(false);
        tokio::spawn(async move {
            let end = self.next(control, &editor).await;
            let _ = tell.send(Some(end));
            let _ = self.next(None, &editor).await;
            let _ = tell_again.send(true);
        });
        StopRequest { first, again }
    }

    async fn next(&mut self, control: Option<Arc<ProxyControl>>, editor: &EditorFlag) -> RunEnd {
        let asked = async {
            match control {
                Some(control) => control.wait_for_shutdown_request().await,
                None => std::future::pending().await,
            }
        };
        let interrupted = async {
            loop {
                self.interrupt.recv().await;
                if !editor.is_running() {
                    return;
                }
            }
        };
        let had_terminal = has_terminal();
        let hung_up = async {
            loop {
                self.hangup.recv().await;
                let is_end = match self.hangup_meaning {
                    HangupMeaning::Stop => true,
                    HangupMeaning::Reload => had_terminal && !has_terminal(),
                };
                if is_end {
                    return;
                }
            }
        };
        tokio::select! {
            () = interrupted => by_signal("SIGINT", 2),
            _ = self.terminate.recv() => by_signal("SIGTERM", 15),
            () = hung_up => by_signal("SIGHUP", 1),
            by = asked => RunEnd {
                why: format!("stopped by {by}"),
                code: ExitCode::SUCCESS,
            },
        }
    }
}

impl StopRequest {
    /// Waits for it.
    pub async fn wait(&mut self) -> RunEnd {
        let end = self.first.wait_for(Option::is_some).await;
        match end.ok().and_then(|end| end.clone()) {
            Some(end) => end,
            // The task that tells ends only with the runtime.
            None => std::future::pending().await,
        }
    }

    /// Waits for a second signal: the user wants the end at once.
    pub async fn hurry(&mut self) {
        if self.again.wait_for(|again| *again).await.is_err() {
            std::future::pending().await
        }
    }
}

/// Whether the process belongs to a terminal that is still there.
fn has_terminal() -> bool {
    std::fs::File::open("/dev/tty").is_ok()
}

/// The shell's own convention for a process that a signal ended.
fn by_signal(name: &str, number: u8) -> RunEnd {
    RunEnd {
        why: format!("stopped by {name}"),
        code: ExitCode::from(128 + number),
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
