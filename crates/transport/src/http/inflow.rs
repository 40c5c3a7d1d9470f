//! A body as it arrives, from a client or from a server.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::Body as _;
use hyper::body::Incoming;

use super::h1::Framing;
use super::pool::{Pool, PoolError};
use super::socket::Socket;

/// Why a body broke off.
#[derive(Debug, thiserror::Error)]
pub enum InflowError {
    /// A client's body, or that of a server over TLS.
    #[error(transparent)]
    Hyper(#[from] hyper::Error),
    /// A server's.
    #[error(transparent)]
    Socket(#[from] PoolError),
}

/// A body as it arrives.
pub enum Inflow {
    /// hyper reads it: a client's, or a server's over TLS.
    Hyper(Incoming),
    /// A server's over plain HTTP.
    Socket(Box<Answer>),
    /// Read to its end.
    Done,
}

/// The body of an answer; its connection goes back to the pool at the end.
pub struct Answer {
    socket: Socket,
    framing: Framing,
    back: Option<Arc<Pool>>,
}

impl From<Incoming> for Inflow {
    fn from(body: Incoming) -> Inflow {
        Inflow::Hyper(body)
    }
}

impl Inflow {
    /// The body of an answer that `socket` brings; `back` takes the connection at its end.
    pub fn answer(socket: Socket, framing: Framing, back: Option<Arc<Pool>>) -> Inflow {
        let answer = Answer {
            socket,
            framing,
            back,
        };
        if framing.is_done() {
            answer.give_back();
            return Inflow::Done;
        }
        Inflow::Socket(Box::new(answer))
    }

    /// The next data; trailers are passed over.
    pub fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, InflowError>>> {
        match self {
            Inflow::Done => Poll::Ready(None),
            Inflow::Hyper(body) => loop {
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
            Inflow::Socket(answer) => {
                let piece = ready!(answer.socket.poll_piece(cx, &mut answer.framing));
                if !matches!(piece, Some(Ok(_))) || answer.framing.is_done() {
                    let whole = !matches!(piece, Some(Err(_)));
                    if let Inflow::Socket(answer) = std::mem::replace(self, Inflow::Done)
                        && whole
                    {
                        answer.give_back();
                    }
                }
                Poll::Ready(piece.map(|piece| piece.map_err(InflowError::from)))
            }
        }
    }

    /// The next data, awaited.
    pub async fn next(&mut self) -> Option<Result<Bytes, InflowError>> {
        std::future::poll_fn(|cx| self.poll_data(cx)).await
    }

    /// Whether nothing more will come.
    pub fn is_done(&self) -> bool {
        match self {
            Inflow::Done => true,
            Inflow::Hyper(body) => body.is_end_stream(),
            Inflow::Socket(_) => false,
        }
    }
}

impl Answer {
    fn give_back(self) {
        if let Some(pool) = self.back {
            pool.keep(self.socket);
        }
    }
}
