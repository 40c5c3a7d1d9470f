//! Messages as lines: the standard streams of a server.

use std::io;
use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;

use super::kept_facts::keep_facts;
use super::{MAX_MESSAGE, WRITE_DEADLINE};

/// A conversation in lines.
pub(crate) struct LineTransport<R, W> {
    reader: BufReader<R>,
    /// What has arrived of the current line.
    line: Vec<u8>,
    /// The current line is longer than a message may be, and is thrown away.
    is_overlong: bool,
    /// `None` after `close`.
    writer: Arc<Mutex<Option<W>>>,
}

impl<R: AsyncRead + Unpin, W> LineTransport<R, W> {
    pub(crate) fn new(reader: R, writer: W) -> LineTransport<R, W> {
        LineTransport {
            reader: BufReader::new(reader),
            line: Vec::new(),
            is_overlong: false,
            writer: Arc::new(Mutex::new(Some(writer))),
        }
    }

    /// Adds what has arrived to the current line. Whether that is all of it, or `None` at the end of the stream.
    async fn read_more(&mut self) -> Option<bool> {
        let available = self.reader.fill_buf().await.ok()?;
        if available.is_empty() {
            return None;
        }
        let end = memchr::memchr(b'\n', available);
        let taken = end.map_or(available.len(), |end| end + 1);
        if self.line.len() + taken > MAX_MESSAGE {
            self.is_overlong = true;
            self.line = Vec::new();
        }
        if !self.is_overlong {
            self.line.extend_from_slice(&available[..taken]);
        }
        self.reader.consume(taken);
        Some(end.is_some())
    }

    /// The message in the current line. What is not a message, such as a line that a library printed, is skipped.
    fn take_message(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.is_overlong) {
            return None;
        }
        serde_json::from_slice(&keep_facts(&line)).ok()
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
            let mut writer = writer.lock().await;
            let writer = writer.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
            tokio::time::timeout(WRITE_DEADLINE, async {
                writer.write_all(&line).await?;
                writer.flush().await
            })
            .await
            .map_err(|_| io::ErrorKind::TimedOut)?
        }
    }

    // The service drops this future and calls again, so nothing that was read may be kept in it.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            if self.read_more().await?
                && let Some(message) = self.take_message()
            {
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
}
