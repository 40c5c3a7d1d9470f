//! One connection to a plain-HTTP server: writes a request while it listens for the answer.

use std::collections::VecDeque;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes, BytesMut};
use http::Method;
use http_body::Body as _;
use tokio::io::{AsyncReadExt, AsyncWrite, Interest};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::h1::{BodyLength, BodyPiece, Framing, H1ResponseHead, take_head};
use super::outgoing_body::OutgoingBody;
use super::pool::PoolError;
use super::read_buffers::{READ_MAX, ReadBuffers};

/// A body up to this travels in one write with its head.
const JOINED_MAX: usize = 16 * 1024;
const READ_START: usize = 8 * 1024;
/// After a server has closed a connection, a reset is awaited for this long.
const RESET_WAIT: Duration = Duration::from_millis(500);
/// A kernel resets an idle connection as soon as a request arrives on it, so within a round trip. A later reset may come from
/// a server or a middlebox while the request is being carried out.
const UNREAD_RESET: Duration = Duration::from_secs(1);

/// A connection, and what was read of it and not yet used.
pub struct ServerSocket {
    stream: TcpStream,
    buffer: BytesMut,
    buffers: Arc<ReadBuffers>,
    /// `buffer` is one of `buffers`.
    is_shared_buffer: bool,
    /// How much is read at once.
    size: usize,
    /// Something was read since the last request began.
    has_answered: bool,
}

impl ServerSocket {
    /// On a new connection.
    pub fn new(stream: TcpStream, buffers: Arc<ReadBuffers>) -> ServerSocket {
        ServerSocket {
            stream,
            buffer: BytesMut::new(),
            buffers,
            is_shared_buffer: false,
            size: READ_START,
            has_answered: false,
        }
    }

    /// Sends a request and reads the head of its answer, which may come before the request's end.
    pub async fn exchange(
        &mut self,
        outflow: &mut RequestWriter,
        asked: &Method,
    ) -> Result<H1ResponseHead, PoolError> {
        std::future::poll_fn(|cx| self.poll_exchange(cx, outflow, asked)).await
    }

    fn poll_exchange(
        &mut self,
        cx: &mut Context<'_>,
        outflow: &mut RequestWriter,
        asked: &Method,
    ) -> Poll<Result<H1ResponseHead, PoolError>> {
        let mut refused = None;
        if !outflow.is_done() {
            match outflow.poll(cx, &mut self.stream) {
                Poll::Ready(Err(PoolError::Broken(error))) => refused = Some(error),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Ready(Ok(())) | Poll::Pending => {}
            }
        }
        loop {
            if !self.buffer.is_empty()
                && let Some(head) = take_head(&mut self.buffer, asked)?
            {
                // A large body is read in large pieces from the start.
                if let Framing::Length(length) = head.framing {
                    let length = usize::try_from(length).unwrap_or(READ_MAX);
                    self.size = length.clamp(READ_START, READ_MAX);
                }
                return Poll::Ready(Ok(head));
            }
            // A server that takes no more has often said why.
            match (self.poll_fill(cx), refused.take()) {
                (Poll::Ready(Ok(read)), error) if read > 0 => refused = error,
                (_, Some(error)) => return Poll::Ready(Err(error.into())),
                (Poll::Pending, None) => return Poll::Pending,
                (Poll::Ready(Err(error)), None) => return Poll::Ready(Err(error.into())),
                (Poll::Ready(Ok(_)), None) => {
                    return Poll::Ready(Err(PoolError::Closed("before it answered")));
                }
            }
        }
    }

    /// The next piece of an answer's body.
    pub fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
        framing: &mut Framing,
    ) -> Poll<Option<Result<Bytes, PoolError>>> {
        loop {
            match framing.take(&mut self.buffer) {
                Ok(BodyPiece::Data(bytes)) => return Poll::Ready(Some(Ok(bytes))),
                Ok(BodyPiece::End) => return Poll::Ready(None),
                Err(error) => return Poll::Ready(Some(Err(error.into()))),
                Ok(BodyPiece::More) => {}
            }
            match ready!(self.poll_fill(cx)) {
                Ok(0) if *framing == Framing::UntilClose => return Poll::Ready(None),
                Ok(0) => {
                    let error = PoolError::Closed("before the body's end");
                    return Poll::Ready(Some(Err(error)));
                }
                Ok(_) => {}
                Err(error) => return Poll::Ready(Some(Err(error.into()))),
            }
        }
    }

    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<std::io::Result<usize>> {
        if self.buffer.capacity() - self.buffer.len() < self.size / 2 {
            self.make_room();
        }
        let room = self.buffer.capacity() - self.buffer.len();
        let read = ready!(pin!(self.stream.read_buf(&mut self.buffer)).poll(cx))?;
        self.has_answered |= read > 0;
        // A read that filled the buffer tells of a large body: fewer, larger reads.
        if read == room {
            self.size = (self.size * 2).min(READ_MAX);
        }
        Poll::Ready(Ok(read))
    }

    fn make_room(&mut self) {
        if self.size < READ_MAX || !self.buffer.is_empty() {
            self.buffer.reserve(self.size);
        } else if !self.is_shared_buffer || !self.buffer.try_reclaim(READ_MAX) {
            self.return_buffer();
            self.buffer = self.buffers.take();
            self.is_shared_buffer = true;
        }
    }

    fn return_buffer(&mut self) {
        let buffer = std::mem::take(&mut self.buffer);
        if std::mem::take(&mut self.is_shared_buffer) {
            self.buffers.give_back(buffer);
        }
    }

    /// Whether an idle connection is still open and silent, as far as is known here.
    pub fn is_quiet(&self) -> bool {
        let read = self.stream.try_read(&mut [0]);
        read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    }

    /// Makes ready for the next request, or says that there can be none: the server said something unasked.
    pub fn reset(&mut self) -> bool {
        if !self.buffer.is_empty() {
            return false;
        }
        if self.size > READ_START {
            self.return_buffer();
            self.size = READ_START;
        }
        self.has_answered = false;
        true
    }

    /// Whether a request that failed with this error on a connection that was idle before may be sent again. Nothing of an
    /// answer has come. If the method is not idempotent, the server must also have reset the connection right after the
    /// request was written: a kernel does that when what we sent was not read. A connection that is only closed may be that
    /// of a server that died at work.
    pub async fn may_resend(
        &self,
        error: &PoolError,
        method: &Method,
        is_just_written: bool,
    ) -> bool {
        if self.has_answered {
            return false;
        }
        let is_repeatable = method.is_idempotent();
        match error {
            PoolError::Broken(error) => is_repeatable || (is_just_written && is_reset(error)),
            PoolError::Closed(_) => {
                is_repeatable || (is_just_written && self.is_reset_soon().await)
            }
            _ => false,
        }
    }

    /// If the server closed before our request arrived, the reset follows the close by one round trip.
    async fn is_reset_soon(&self) -> bool {
        let reset = timeout(RESET_WAIT, self.stream.ready(Interest::ERROR)).await;
        let error = self.stream.take_error();
        reset.is_ok() && matches!(error, Ok(Some(error)) if is_reset(&error))
    }
}

/// What a kernel reports after a reset, from a read or a write.
fn is_reset(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
    matches!(
        error.kind(),
        ConnectionReset | BrokenPipe | ConnectionAborted
    )
}

/// A request on its way out.
pub struct RequestWriter {
    ready: VecDeque<Bytes>,
    payload: Option<OutgoingBody>,
    chunked: bool,
    /// When the last byte was written.
    written: Option<Instant>,
}

impl RequestWriter {
    /// A head and its body.
    pub fn new(mut head: Vec<u8>, payload: OutgoingBody, length: BodyLength) -> RequestWriter {
        let mut ready = VecDeque::with_capacity(2);
        let payload = match payload {
            OutgoingBody::Whole(None) => None,
            OutgoingBody::Whole(Some(body)) if body.len() <= JOINED_MAX => {
                head.extend_from_slice(&body);
                None
            }
            payload => Some(payload),
        };
        ready.push_back(head.into());
        RequestWriter {
            ready,
            payload,
            chunked: length == BodyLength::Chunked,
            written: None,
        }
    }

    /// Whether all of it was written.
    pub fn is_done(&self) -> bool {
        self.ready.is_empty() && self.payload.is_none()
    }

    /// Whether nothing was written, or the last byte so recently that a reset means that it was not read.
    pub fn is_just_written(&self) -> bool {
        self.written.is_none_or(|at| at.elapsed() < UNREAD_RESET)
    }

    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut TcpStream,
    ) -> Poll<Result<(), PoolError>> {
        loop {
            while let Some(front) = self.ready.front_mut() {
                let written = ready!(Pin::new(&mut *stream).poll_write(cx, front))?;
                front.advance(written);
                self.written = Some(Instant::now());
                if front.is_empty() {
                    self.ready.pop_front();
                }
            }
            let Some(payload) = &mut self.payload else {
                return Poll::Ready(Ok(()));
            };
            match ready!(Pin::new(payload).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.push(data);
                    }
                }
                Some(Err(error)) => {
                    return Poll::Ready(Err(PoolError::Request(Box::new(error))));
                }
                None => {
                    self.payload = None;
                    if self.chunked {
                        self.ready.push_back(Bytes::from_static(b"0\r\n\r\n"));
                    }
                }
            }
        }
    }

    fn push(&mut self, data: Bytes) {
        if data.is_empty() {
            return;
        }
        if !self.chunked {
            self.ready.push_back(data);
            return;
        }
        let size = format!("{:x}\r\n", data.len());
        self.ready.push_back(size.into());
        self.ready.push_back(data);
        self.ready.push_back(Bytes::from_static(b"\r\n"));
    }
}
