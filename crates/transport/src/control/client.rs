//! The viewer's end of the control socket: asks, and takes notices.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use mcp_proxy_control::{ControlRequest, Fault, Method, Notice};
use mcp_proxy_wire::{Kind, Message};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

use super::line::{BufferedLine, LineBuffer};

/// The longest answer: everything that is held, with bodies.
const MAX_LINE: usize = 256 << 20;
/// A proxy answers at once, unless it was stopped.
const ANSWER: Duration = Duration::from_secs(30);
/// Writing an export of a large record takes its time, and a replay the server's.
const LONG_ANSWER: Duration = Duration::from_secs(3600);
/// Notices that came while an answer was awaited. They state the present, so only the newest count.
const KEPT_NOTICES: usize = 16;

/// A connection to a running proxy.
pub struct ControlClient {
    reader: OwnedReadHalf,
    writer: OwnedWriteHalf,
    lines: LineBuffer,
    asked: u64,
    notices: VecDeque<Message>,
}

/// A notice, and the line that it came in.
#[derive(Clone, Debug)]
pub struct ControlNotification {
    /// The notice. `None`: it is one that this program does not know, of a newer proxy.
    pub notice: Option<Notice>,
    /// The line.
    pub line: Bytes,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ControlClientError {
    /// The proxy's answer is an error.
    #[error("{text}")]
    Refused {
        /// Its code.
        code: i64,
        /// Its text.
        text: String,
        /// More for programs.
        data: Option<Value>,
    },
    /// The proxy has ended, or let this viewer go.
    #[error("the proxy has closed the connection")]
    Gone,
    /// The connection failed.
    #[error("the connection to the proxy failed")]
    Failed(#[from] io::Error),
    /// It does not answer.
    #[error("the proxy does not answer")]
    Silent,
    /// It answers something else.
    #[error("the proxy sent an invalid response: {0}")]
    Nonsense(String),
}

impl ControlClient {
    /// Dials the socket.
    pub async fn connect(socket: &Path) -> Result<ControlClient, ControlClientError> {
        let stream = timeout(ANSWER, UnixStream::connect(socket))
            .await
            .map_err(|_| ControlClientError::Silent)??;
        let (reader, writer) = stream.into_split();
        Ok(ControlClient {
            reader,
            writer,
            lines: LineBuffer::new(MAX_LINE),
            asked: 0,
            notices: VecDeque::new(),
        })
    }

    /// Sends a request and waits for its result.
    pub async fn call<R: ControlRequest>(
        &mut self,
        request: &R,
    ) -> Result<R::Result, ControlClientError> {
        let result = self.ask(R::METHOD, &request.params()).await?;
        R::result(&result).map_err(|error| {
            let method = R::METHOD.info().name;
            ControlClientError::Nonsense(format!("{method}: {error}"))
        })
    }

    /// Sends parameters that are JSON already, an object, and waits for the result as it was written.
    pub async fn ask(&mut self, method: Method, params: &str) -> Result<Bytes, ControlClientError> {
        let deadline = match method.is_slow() {
            true => LONG_ANSWER,
            false => ANSWER,
        };
        timeout(deadline, self.ask_with_timeout(method, params))
            .await
            .map_err(|_| ControlClientError::Silent)?
    }

    async fn ask_with_timeout(
        &mut self,
        method: Method,
        params: &str,
    ) -> Result<Bytes, ControlClientError> {
        self.asked += 1;
        let id = self.asked.to_string();
        let method = mcp_proxy_wire::json_string(method.info().name);
        // A request is a line: in JSON a line break outside a string means nothing, and inside there is none.
        let params = params.replace(['\n', '\r'], " ");
        let line = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":{method},\"params\":{params}}}\n"
        );
        let written = self.writer.write_all(line.as_bytes()).await;
        loop {
            // A proxy that refuses a viewer says why before it closes.
            let message = match (self.message().await, &written) {
                (Err(ControlClientError::Gone), Err(_)) => return Err(ControlClientError::Gone),
                (message, _) => message?,
            };
            let is_ours = matches!(message.id_token(), Some(token) if token == id.as_bytes());
            match message.kind() {
                Kind::Notification => self.keep(message),
                Kind::Response if is_ours => {
                    let result = message.result().map(|span| message.slice(span));
                    let result = result.unwrap_or_default();
                    return Ok(message.raw().slice_ref(result));
                }
                // Without an id it is about a line that could not be read, or the connection as a whole.
                Kind::Error => return Err(refused(&message)),
                _ => return Err(nonsense(&message)),
            }
        }
    }

    /// Waits for the next notice. Safe to cancel.
    pub async fn notice(&mut self) -> Result<ControlNotification, ControlClientError> {
        loop {
            let message = match self.notices.pop_front() {
                Some(message) => message,
                None => self.message().await?,
            };
            match message.kind() {
                Kind::Notification => return Ok(parse_notification(&message)),
                Kind::Error => return Err(refused(&message)),
                // An answer that nobody waits for any more.
                Kind::Response => {}
                _ => return Err(nonsense(&message)),
            }
        }
    }

    fn keep(&mut self, message: Message) {
        if self.notices.len() == KEPT_NOTICES {
            self.notices.pop_front();
        }
        self.notices.push_back(message);
    }

    async fn message(&mut self) -> Result<Message, ControlClientError> {
        loop {
            match self.lines.take() {
                Some(BufferedLine::Whole(line)) => return Ok(Message::parse(line)),
                Some(BufferedLine::TooLong) => {
                    let text = format!("a line of more than {MAX_LINE} bytes");
                    return Err(ControlClientError::Nonsense(text));
                }
                None => {}
            }
            if self.reader.read_buf(self.lines.space()).await? == 0 {
                return Err(ControlClientError::Gone);
            }
        }
    }
}

fn parse_notification(message: &Message) -> ControlNotification {
    let params = message.params().map(|span| message.slice(span));
    let params = params.and_then(|params| serde_json::from_slice(params).ok());
    let method = message.method().unwrap_or_default();
    ControlNotification {
        notice: Notice::new(&method, params.unwrap_or_default()),
        line: message.raw().clone(),
    }
}

fn refused(message: &Message) -> ControlClientError {
    let error = message.error().map(|span| message.slice(span));
    let fault = error.and_then(|error| serde_json::from_slice(error).ok());
    let Fault { code, text, data } = fault.unwrap_or_else(|| Fault::new(0, "no reason"));
    ControlClientError::Refused { code, text, data }
}

fn nonsense(message: &Message) -> ControlClientError {
    let text = String::from_utf8_lossy(message.raw());
    ControlClientError::Nonsense(text.chars().take(80).collect())
}
