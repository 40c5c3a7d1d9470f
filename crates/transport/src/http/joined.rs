//! A socket that writes a small answer in one piece.
//!
//! hyper hands over an answer's head and body side by side. For a few hundred bytes, copying them together and one
//! `send(2)` is cheaper than `writev(2)`; large bodies are still written from where they lie.

use std::io::{IoSlice, Result};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Up to this many bytes are copied together.
const JOINED_MAX: usize = 4 * 1024;

/// A client's socket.
pub struct Joined {
    stream: TcpStream,
    together: Vec<u8>,
}

impl Joined {
    /// Around `stream`.
    pub fn new(stream: TcpStream) -> Joined {
        Joined {
            stream,
            together: Vec::new(),
        }
    }
}

impl AsyncRead for Joined {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl AsyncWrite for Joined {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let this = &mut *self;
        if pieces.iter().map(|piece| piece.len()).sum::<usize>() > JOINED_MAX {
            return Pin::new(&mut this.stream).poll_write_vectored(cx, pieces);
        }
        this.together.clear();
        for piece in pieces {
            this.together.extend_from_slice(piece);
        }
        Pin::new(&mut this.stream).poll_write(cx, &this.together)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
