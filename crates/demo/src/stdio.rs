//! The server over a pair of byte streams, one message a line: standard input and output, or any other.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use rmcp::{
    ServerHandler, ServiceExt,
    service::{QuitReason, RoleServer, ServerInitializeError},
    transport::{async_rw::AsyncRwTransport, stdio_pipes},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::CancellationToken;

use crate::{
    BoxedFuture, BoxedReader, BoxedWriter, DemoError, MAX_MESSAGE_BYTES, server::DemoServer,
};

/// Serves one client over this process's standard input and output, until input ends.
pub fn serve_stdio() -> impl Future<Output = Result<(), DemoError>> + Send {
    let (input, output) = stdio_pipes();
    serve_boxed(Box::new(input), Box::new(output))
}

/// Serves one client over any two byte streams, until the reader ends.
pub fn serve(
    reader: impl AsyncRead + Send + Unpin + 'static,
    writer: impl AsyncWrite + Send + Unpin + 'static,
) -> impl Future<Output = Result<(), DemoError>> + Send {
    serve_boxed(Box::new(reader), Box::new(writer))
}

fn serve_boxed(reader: BoxedReader, writer: BoxedWriter) -> BoxedFuture<'static> {
    Box::pin(serve_client(reader, writer))
}

async fn serve_client(reader: BoxedReader, writer: BoxedWriter) -> Result<(), DemoError> {
    serve_session(DemoServer::new, reader, writer).await
}

/// Serves one client with any server, until the reader ends. `server` gets the token that is cancelled then.
pub async fn serve_session<S: ServerHandler>(
    server: impl FnOnce(CancellationToken) -> S,
    reader: impl AsyncRead + Send + Unpin + 'static,
    writer: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<(), DemoError> {
    let ended = CancellationToken::new();
    let reader = EndOfInputReader {
        reader,
        ended: ended.clone(),
    };
    let transport = AsyncRwTransport::<RoleServer, _, _>::new(reader, writer)
        .with_max_line_length(MAX_MESSAGE_BYTES);
    let server = server(ended);
    let running = match Box::pin(server.serve(transport)).await {
        Ok(running) => running,
        // A client that only probes the era asks `server/discover` and hangs up: nothing is wrong.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(DemoError::Start(Box::new(error))),
    };
    match running.waiting().await {
        Ok(QuitReason::JoinError(error)) | Err(error) => Err(DemoError::Session(error)),
        Ok(_) => Ok(()),
    }
}

/// A reader that tells when it has come to its end.
///
/// After the end of input rmcp waits up to five seconds for the requests that are still open. A subscription
/// is open for as long as it can be, so it has to hear of the end by itself.
struct EndOfInputReader<R> {
    reader: R,
    ended: CancellationToken,
}

impl<R: AsyncRead + Unpin> AsyncRead for EndOfInputReader<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut self.reader).poll_read(context, buffer));
        if read.is_err() || buffer.filled().len() == before {
            self.ended.cancel();
        }
        Poll::Ready(read)
    }
}
