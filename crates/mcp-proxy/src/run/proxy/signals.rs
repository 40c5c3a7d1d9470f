//! What ends a run from outside: SIGINT, SIGTERM, SIGHUP, or a viewer. It ends in order: servers are stopped, the record is
//! closed.

use std::process::ExitCode;
use std::sync::Arc;

use mcp_proxy_core::control::ProxyControl;
use tokio::signal::unix::{self, SignalKind};
use tokio::sync::oneshot;

use super::RunEnd;
use crate::run::tui::EditorFlag;

/// The signals that end a run.
pub struct RunSignals {
    interrupt: unix::Signal,
    terminate: unix::Signal,
    hangup: unix::Signal,
}

/// What came. Waited for in a task of its own, so that messages do not look for signals on their way.
pub struct StopRequest(oneshot::Receiver<RunEnd>);

impl RunSignals {
    /// Watches from now on.
    pub fn new() -> std::io::Result<RunSignals> {
        Ok(RunSignals {
            interrupt: unix::signal(SignalKind::interrupt())?,
            terminate: unix::signal(SignalKind::terminate())?,
            hangup: unix::signal(SignalKind::hangup())?,
        })
    }

    /// Resolves at the first signal, or when a viewer asks for the end. Ctrl-C is not for us while an editor has the terminal.
    pub fn into_stop_request(
        self,
        control: Option<Arc<ProxyControl>>,
        editor: EditorFlag,
    ) -> StopRequest {
        let (tell, stop) = oneshot::channel();
        tokio::spawn(async move {
            let end = self.first(control, editor).await;
            let _ = tell.send(end);
        });
        StopRequest(stop)
    }

    async fn first(mut self, control: Option<Arc<ProxyControl>>, editor: EditorFlag) -> RunEnd {
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
        tokio::select! {
            () = interrupted => by_signal("SIGINT", 2),
            _ = self.terminate.recv() => by_signal("SIGTERM", 15),
            _ = self.hangup.recv() => by_signal("SIGHUP", 1),
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
        match (&mut self.0).await {
            Ok(end) => end,
            // The task that tells ends only with the runtime.
            Err(_) => std::future::pending().await,
        }
    }
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
