//! A server that is started for one client and ends with it.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::lines::LineTransport;
use crate::target::{ClientTarget, ServerStderr};

/// How long a server may take to end by itself after its input has ended.
const TIME_TO_END: Duration = Duration::from_secs(3);

/// The standard streams of a process of ours.
pub(crate) struct ChildTransport {
    child: Child,
    /// The process group of the server. `None` once it has been killed.
    #[cfg(unix)]
    group: Option<rustix::process::Pid>,
    lines: LineTransport<ChildStdout, ChildStdin>,
}

impl ChildTransport {
    /// Starts the command. A URL is not a command.
    pub(crate) fn start(target: &ClientTarget) -> io::Result<ChildTransport> {
        let ClientTarget::Command {
            program,
            args,
            env,
            current_dir,
            stderr,
        } = target
        else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let mut command = Command::new(program);
        command
            .args(args)
            .envs(env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(match stderr {
                ServerStderr::Inherit => Stdio::inherit(),
                ServerStderr::Discard => Stdio::null(),
            })
            .kill_on_drop(true);
        // A group of its own, so that what the server starts can be ended with it.
        #[cfg(unix)]
        command.process_group(0);
        if let Some(folder) = current_dir {
            command.current_dir(folder);
        }
        let mut child = command.spawn()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        Ok(ChildTransport {
            #[cfg(unix)]
            group: group_of(&child),
            child,
            lines: LineTransport::new(stdout, stdin),
        })
    }

    /// Ends the process, if it still runs, and everything that it started. The second time nothing happens: by then the
    /// group's id may belong to another.
    fn kill(&mut self) {
        #[cfg(unix)]
        if let Some(group) = self.group.take() {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.child.start_kill();
    }
}

impl Transport<RoleClient> for ChildTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        self.lines.send(message)
    }

    fn receive(&mut self) -> impl Future<Output = Option<RxJsonRpcMessage<RoleClient>>> + Send {
        self.lines.receive()
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.lines.close().await?;
        let ended = tokio::time::timeout(TIME_TO_END, self.child.wait()).await;
        // What the server started may outlive it.
        self.kill();
        if ended.is_err() {
            self.child.wait().await?;
        }
        Ok(())
    }
}

/// The group that `child` leads.
#[cfg(unix)]
fn group_of(child: &Child) -> Option<rustix::process::Pid> {
    let id = i32::try_from(child.id()?).ok()?;
    rustix::process::Pid::from_raw(id)
}

impl Drop for ChildTransport {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_a_server_started_ends_even_if_the_server_ended_by_itself() {
        let folder = tempfile::tempdir().unwrap();
        let script = "sleep 1000 >/dev/null & echo $! >sleep.pid; exec true";
        let target = ClientTarget::command("sh", ["-c", script])
            .current_dir(folder.path())
            .stderr(ServerStderr::Discard);
        let mut transport = ChildTransport::start(&target).unwrap();
        assert!(transport.receive().await.is_none());
        transport.close().await.unwrap();
        let id = std::fs::read_to_string(folder.path().join("sleep.pid")).unwrap();
        let process = std::path::Path::new("/proc").join(id.trim());
        let gone = async {
            while process.exists() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let gone = tokio::time::timeout(Duration::from_secs(10), gone).await;
        assert!(gone.is_ok());
    }
}
