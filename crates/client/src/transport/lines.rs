//! Messages as lines: the standard streams of a server.

use std::io;
use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;

use super::answers::read_answer;
use super::{MAX_MESSAGE, WRITE_DEADLINE};

/// A conversation in lines.
pub(crate) struct LineTransport<R, W> {
    reader: BufReader<R>,
    /// What has arrived of the current line.
    line: Vec<u8>,
    /// The most bytes of a line.
    max_line: usize,
    /// Nothing more is read.
    has_ended: bool,
    /// `None` after `close`, and after a message that could not be written whole.
    writer: Arc<Mutex<Option<W>>>,
}

impl<R: AsyncRead + Unpin, W> LineTransport<R, W> {
    pub(crate) fn new(reader: R, writer: W) -> LineTransport<R, W> {
        LineTransport {
            reader: BufReader::new(reader),
            line: Vec::new(),
            max_line: MAX_MESSAGE,
            has_ended: false,
            writer: Arc::new(Mutex::new(Some(writer))),
        }
    }

    /// The next line, or `None` at the end of the stream, which is also an error or a line that is too long. A last line
    /// need not end with a line break.
    async fn next_line(&mut self) -> Option<Vec<u8>> {
        while !self.has_ended {
            // Until there is a whole line, everything that was read is in `self`.
            let available = self.reader.fill_buf().await.ok();
            let Some(available) = available else {
                self.has_ended = true;
                break;
            };
            if available.is_empty() {
                self.has_ended = true;
                return Some(std::mem::take(&mut self.line));
            }
            let end = memchr::memchr(b'\n', available);
            let taken = end.map_or(available.len(), |end| end + 1);
            if self.line.len() + taken > self.max_line {
                self.has_ended = true;
                self.line = Vec::new();
                break;
            }
            self.line.extend_from_slice(&available[..taken]);
            self.reader.consume(taken);
            if end.is_some() {
                return Some(std::mem::take(&mut self.line));
            }
        }
        None
    }
}

impl<R, W> Transport<RoleClient> for LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let writer = Arc::clone(&self.writer);
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut slot = writer.lock().await;
            // Half a line must not be followed by another message, so the writer returns only after a whole one.
            let mut writer = slot.take().ok_or(io::ErrorKind::BrokenPipe)?;
            tokio::time::timeout(WRITE_DEADLINE, async {
                writer.write_all(&line).await?;
                writer.flush().await
            })
            .await
            .map_err(|_| io::ErrorKind::TimedOut)??;
            *slot = Some(writer);
            Ok(())
        }
    }

    // The service drops this future and calls again, so nothing that was read may be kept in it.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let line = self.next_line().await?;
            if let Some(answer) = read_answer(&line) {
                return Some(answer.message);
            }
            // What is not a message, such as a line that a library printed, is skipped.
            if let Ok(message) = serde_json::from_slice(&line) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        // A write that hangs must not keep the end from coming.
        if let Ok(mut writer) = self.writer.try_lock() {
            writer.take();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_that_are_not_messages_are_skipped() {
        let lines: &[u8] =
            b"Starting server...\n\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n{\"half";
        let mut transport = LineTransport::new(lines, tokio::io::sink());
        assert!(matches!(
            transport.receive().await,
            Some(RxJsonRpcMessage::<RoleClient>::Response(_))
        ));
        assert!(transport.receive().await.is_none());
    }

    const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

    #[tokio::test]
    async fn the_last_line_needs_no_line_break() {
        let mut transport = LineTransport::new(ANSWER.as_bytes(), tokio::io::sink());
        assert!(transport.receive().await.is_some());
        assert!(transport.receive().await.is_none());
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_ends_the_conversation() {
        let lines = format!("{}\n{ANSWER}\n", "x".repeat(100));
        let mut transport = LineTransport::new(lines.as_bytes(), tokio::io::sink());
        transport.max_line = 50;
        assert!(transport.receive().await.is_none());
        assert!(transport.receive().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_written_after_half_a_line() {
        let (ours, _theirs) = tokio::io::duplex(8);
        let mut transport = LineTransport::new(tokio::io::empty(), ours);
        let message = || {
            let text = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
            serde_json::from_str(text).unwrap()
        };
        let error = transport.send(message()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let error = transport.send(message()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
