//! A stdio server: a child process under the supervisor, as a link.

use std::sync::Arc;
use std::time::Duration;

use mcp_proxy_core::LinkFailure;
use mcp_proxy_core::{BoxFuture, Connection, FrameReader, Link, LinkEnd};
use mcp_proxy_session::{CredentialRedaction, RecordEvent};
use mcp_proxy_wire::{ErrorCode, Frame, Side};
use tokio::net::unix::pipe;
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::lines::{LineReader, LineWriter};
use crate::process::{ExitReport, ServerCommand, ServerProcess, StderrLines, Supervisor};

/// After its stdout has closed, a server has this long to exit before it is said to live on.
const EXIT_WAIT: Duration = Duration::from_millis(800);
/// Bytes of stderr in an error text.
const STDERR_MAX: usize = 600;

/// Told each line of a server's stderr.
pub type StderrCallback = Arc<dyn Fn(&[u8]) + Send + Sync>;

/// What a server process is made from.
#[derive(Clone)]
pub struct ChildServer {
    /// Starts and stops it.
    pub supervisor: Supervisor,
    /// What to run.
    pub command: ServerCommand,
    /// The command as error texts name it: without secrets.
    pub shown: String,
    /// What error texts that quote its stderr must not tell.
    pub masks: CredentialRedaction,
    /// Bytes of its largest message.
    pub max_message: usize,
    /// What its stderr lines are handed to besides the record.
    pub on_stderr: StderrCallback,
}

impl ChildServer {
    /// Starts the process.
    pub fn link(&self, connection: &Arc<Connection>) -> Result<Link, LinkEnd> {
        let name = self.shown.clone();
        let mut process = self.supervisor.spawn(&self.command).map_err(|error| {
            let cause = std::error::Error::source(&error).map(|cause| format!(" ({cause})"));
            let text = format!("server `{name}`: {error}{}", cause.unwrap_or_default());
            LinkEnd::failed(Side::Server, ErrorCode::SERVER_UNAVAILABLE, text)
        })?;
        let missing =
            || LinkEnd::failed(Side::Server, ErrorCode::INTERNAL, "the server has no pipes");
        let stdin = process.stdin.take().ok_or_else(missing)?;
        let stdout = process.stdout.take().ok_or_else(missing)?;
        if let Some(lines) = process.stderr.take() {
            tokio::spawn(note_stderr(
                lines,
                Arc::clone(connection),
                Arc::clone(&self.on_stderr),
            ));
        }
        let process = Arc::new(Mutex::new(process));
        let reader = ChildReader {
            lines: LineReader::new(
                stdout,
                Side::Server,
                self.max_message,
                connection.run.memory(),
            ),
            process: Arc::clone(&process),
            name,
            masks: self.masks.clone(),
        };
        let finish = finish(process, Arc::clone(connection));
        let writer = LineWriter::new(stdin, Side::Server)
            .with_unread(|stdin| rustix::io::ioctl_fionread(stdin).ok());
        Ok(Link::new(reader, writer).with_finish(Box::pin(finish)))
    }
}

async fn note_stderr(
    mut lines: StderrLines,
    connection: Arc<Connection>,
    on_stderr: StderrCallback,
) {
    while let Some(line) = lines.next().await {
        if line.lost_before > 0 {
            connection.note(&format!(
                "{} stderr lines were lost: they came too fast",
                line.lost_before
            ));
        }
        connection.run.record_event(&RecordEvent::Stderr {
            connection: connection.id,
            line: &line.bytes,
        });
        on_stderr(&line.bytes);
    }
}

/// Close stdin, then TERM, then KILL, each with its deadline; and the exit goes into the record.
async fn finish(process: Arc<Mutex<ServerProcess>>, connection: Arc<Connection>) {
    let report = process.lock().await.stop().await;
    let why = report.to_string();
    connection.run.record_event(&RecordEvent::Exit {
        connection: connection.id,
        code: report.code,
        signal: report.signal,
        why: &why,
    });
}

struct ChildReader {
    lines: LineReader<pipe::Receiver>,
    process: Arc<Mutex<ServerProcess>>,
    name: String,
    masks: CredentialRedaction,
}

impl ChildReader {
    async fn next(&mut self, into: &mut Vec<Frame>) -> Result<(), LinkEnd> {
        match self.lines.read(into).await {
            Err(LinkEnd::Closed) => Err(self.ended().await),
            other => other,
        }
    }

    async fn ended(&self) -> LinkEnd {
        let mut process = self.process.lock().await;
        let Ok(report) = timeout(EXIT_WAIT, process.wait()).await else {
            let text = format!(
                "server `{}` closed its stdout but is still running",
                self.name
            );
            return LinkEnd::failed(Side::Server, ErrorCode::SERVER_EXITED, text);
        };
        let code = match report.spawn_failure {
            Some(_) => ErrorCode::SERVER_UNAVAILABLE,
            None => ErrorCode::SERVER_EXITED,
        };
        LinkEnd::Failed(LinkFailure {
            side: Side::Server,
            code,
            text: self.masks.mask(&describe(&self.name, &report)).into_owned(),
            orderly: report.success(),
            data: None,
        })
    }
}

fn describe(name: &str, report: &ExitReport) -> String {
    if let Some(failure) = &report.spawn_failure {
        return format!("the server could not be started: {failure}");
    }
    let mut text = format!("server `{name}` {report}");
    let mut room = STDERR_MAX;
    let tail: Vec<&str> = report
        .last_stderr
        .iter()
        .rev()
        .take_while(|line| {
            let fits = line.len() <= room;
            room = room.saturating_sub(line.len());
            fits
        })
        .map(String::as_str)
        .collect();
    if !tail.is_empty() {
        let tail: Vec<&str> = tail.into_iter().rev().collect();
        text.push_str("; its last stderr lines: ");
        text.push_str(&tail.join(" | "));
    }
    text
}

impl FrameReader for ChildReader {
    fn read<'a>(&'a mut self, into: &'a mut Vec<Frame>) -> BoxFuture<'a, Result<(), LinkEnd>> {
        Box::pin(self.next(into))
    }
}
