//! A body as it arrives, from a client or from a server.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::Body as _;
use hyper::body::Incoming;

use super::h1::Framing;
use super::pool::{ConnectionPool, PoolError};
use super::server_socket::ServerSocket;

/// Why a body broke off.
#[derive(Debug, thiserror::Error)]
pub enum IncomingBodyError {
    /// A client's body, or that of a server over TLS.
    #[error(transparent)]
    Hyper(#[from] hyper::Error),
    /// A server's.
    #[error(transparent)]
    Socket(#[from] PoolError),
}

/// A body as it arrives.
pub enum IncomingBody {
    /// hyper reads it: a client's, or a server's over TLS.
    Hyper(Incoming),
    /// A server's over plain HTTP.
    Socket(Box<PooledBody>),
    /// Read to its end.
    Done,
}

/// The body of an answer; its connection goes back to the pool at the end.
pub struct PooledBody {
    socket: ServerSocket,
    framing: Framing,
    back: Option<Arc<ConnectionPool>>,
}

impl From<Incoming> for IncomingBody {
    fn from(body: Incoming) -> IncomingBody {
        IncomingBody::Hyper(body)
    }
}

impl IncomingBody {
    /// The body of an answer that `socket` brings; `back` takes the connection at its end.
    pub fn from_socket(
        socket: ServerSocket,
        framing: Framing,
        back: Option<Arc<ConnectionPool>>,
    ) -> IncomingBody {
        let answer = PooledBody {
            socket,
            framing,
            back,
        };
        if framing.is_done() {
            answer.give_back();
            return IncomingBody::Done;
        }
        IncomingBody::Socket(Box::new(answer))
    }

    /// The next data; trailers are passed over.
    pub fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, IncomingBodyError>>> {
        match self {
            IncomingBody::Done => Poll::Ready(None),
            IncomingBody::Hyper(body) => loop {
                match ready!(Pin::new(&mut *body).poll_frame(cx)) {
                    Some(Ok(frame)) => {
                        if let Ok(data) = frame.into_data() {
                            return Poll::Ready(Some(Ok(data)));
                        }
                    }
                    Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
                    None => return Poll::Ready(None),
                }
            },
            IncomingBody::Socket(answer) => {
                let piece = ready!(answer.socket.poll_piece(cx, &mut answer.framing));
                if !matches!(piece, Some(Ok(_))) || answer.framing.is_done() {
                    let whole = !matches!(piece, Some(Err(_)));
                    if let IncomingBody::Socket(answer) =
                        std::mem::replace(self, IncomingBody::Done)
                        && whole
                    {
                        answer.give_back();
                    }
                }
                Poll::Ready(piece.map(|piece| piece.map_err(IncomingBodyError::from)))
            }
        }
    }

    /// The next data, awaited.
    pub async fn next(&mut self) -> Option<Result<Bytes, IncomingBodyError>> {
        std::future::poll_fn(|cx| self.poll_data(cx)).await
    }

    /// How many bytes are still to come, if that is certain. It is not for chunks and for bodies that end with their
    /// connection.
    pub fn length(&self) -> Option<u64> {
        match self {
            IncomingBody::Done => Some(0),
            IncomingBody::Hyper(body) => body.size_hint().exact(),
            IncomingBody::Socket(answer) => match answer.framing {
                Framing::Length(left) => Some(left),
                Framing::Chunked(_) | Framing::UntilClose => None,
            },
        }
    }

    /// Whether nothing more will come.
    pub fn is_done(&self) -> bool {
        match self {
            IncomingBody::Done => true,
            IncomingBody::Hyper(body) => body.is_end_stream(),
            IncomingBody::Socket(_) => false,
        }
    }
}

impl PooledBody {
    fn give_back(self) {
        if let Some(pool) = self.back {
            pool.keep(self.socket);
        }
    }
}
