//! An SSE answer of ours: messages come by a channel and leave as events, with a comment now and then so that
//! nobody in between takes silence for death.

use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use mcp_proxy_core::COUNTED_FROM;
use mcp_proxy_wire::{ErrorCode, Id, encode_event, error_response};
use tokio::time::{Instant, Sleep, sleep};

use super::client_socket::SocketHandle;
use super::listener::{HttpResponse, events};
use super::outgoing_body::OutgoingBody;
use super::stream_queue::{StreamReceiver, stream_channel};

const KEEP_ALIVE: Duration = Duration::from_secs(25);
pub(super) const KEEP_ALIVE_COMMENT: Bytes = Bytes::from_static(b": keep-alive\n\n");

/// What a stream gets.
#[derive(Debug)]
pub enum StreamItem {
    /// A message.
    Message(StreamMessage),
    /// No message: the answer was dropped, and the stream ends without it.
    Dropped,
    /// No message: the request was edited into something that expects no answer. The POST ends with 202.
    Accepted,
    /// No message: the client cancelled its request, or ended the session. The POST ends as an empty event stream, as SDK
    /// servers end it: a client that closes takes an error status for the loss of a session that it still wants.
    Ended,
}

/// A message for a stream.
#[derive(Debug)]
pub struct StreamMessage {
    /// The message's bytes.
    pub data: Bytes,
    /// Its event id, if clients may resume.
    pub event_id: Option<String>,
    /// The stream ends with it.
    pub last: bool,
    /// Its number in the record, if it is there.
    pub sequence: Option<u64>,
}

impl StreamItem {
    /// How many bytes of message it has.
    pub fn size(&self) -> usize {
        match self {
            StreamItem::Message(message) => message.data.len(),
            StreamItem::Dropped | StreamItem::Accepted | StreamItem::Ended => 0,
        }
    }

    /// Whether the stream ends with it.
    pub fn is_last(&self) -> bool {
        match self {
            StreamItem::Message(message) => message.last,
            StreamItem::Dropped | StreamItem::Accepted | StreamItem::Ended => true,
        }
    }

    /// The record's number of its message.
    pub fn sequence(&self) -> Option<u64> {
        match self {
            StreamItem::Message(message) => message.sequence,
            StreamItem::Dropped | StreamItem::Accepted | StreamItem::Ended => None,
        }
    }
}

/// Events to one client.
pub struct EventStream {
    /// Bytes that come before any message (the endpoint event of HTTP+SSE, replayed events).
    first: Vec<Bytes>,
    messages: StreamReceiver,
    quiet: Pin<Box<Sleep>>,
    ended: bool,
    /// The request that is answered here, even if only with an error, because the status of the response could not say it.
    request: Option<Id>,
    socket: Option<SocketHandle>,
    /// Dropped with the stream, which tells the holder of the other end that the client is gone.
    _guard: Option<Box<dyn Send + Sync>>,
}

impl EventStream {
    /// Events from `messages`, after `first`. `guard` is dropped when the client goes or the stream ends.
    pub fn new(
        first: Vec<Bytes>,
        messages: StreamReceiver,
        guard: Option<Box<dyn Send + Sync>>,
    ) -> EventStream {
        EventStream {
            first: first.into_iter().rev().collect(),
            messages,
            quiet: Box::pin(sleep(KEEP_ALIVE)),
            ended: false,
            request: None,
            socket: None,
            _guard: guard,
        }
    }

    /// If its messages end without an answer to this request, the stream ends with an error.
    #[must_use]
    pub(super) fn answering(mut self, request: Option<Id>) -> EventStream {
        self.request = request;
        self
    }

    /// The stream ends with what is in `first`.
    pub fn finished(first: Vec<Bytes>) -> EventStream {
        let (_, messages) = stream_channel(None, []);
        EventStream::new(first, messages, None)
    }

    /// Something else that is dropped with the stream.
    pub(crate) fn hold(&mut self, guard: Box<dyn Send + Sync>) {
        self._guard = Some(Box::new((self._guard.take(), guard)));
    }

    /// The answer whose body it is.
    pub(crate) fn into_response(self) -> HttpResponse {
        events(OutgoingBody::Events(Box::new(self)))
    }

    /// Events are sent over this socket.
    pub(super) fn track(&mut self, socket: SocketHandle) {
        self.socket = Some(socket);
    }

    /// The next bytes.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(bytes) = self.first.pop() {
            return Poll::Ready(Some(bytes));
        }
        if self.ended {
            return Poll::Ready(None);
        }
        match self.messages.poll_next(cx) {
            Poll::Ready(Some(StreamItem::Message(message))) => {
                self.ended = message.last;
                if let (Some(socket), Some(connection), Some(sequence)) =
                    (&self.socket, self.messages.connection(), message.sequence)
                {
                    socket.hand_over(connection, sequence);
                }
                self.quiet.as_mut().reset(Instant::now() + KEEP_ALIVE);
                let event = encode(&message);
                // The client may leave the copy unread.
                let event = match self.messages.connection() {
                    Some(connection) if event.len() >= COUNTED_FROM => {
                        connection.run.memory().hold_anyway(event)
                    }
                    _ => event,
                };
                Poll::Ready(Some(event))
            }
            Poll::Ready(Some(StreamItem::Dropped)) => {
                let text = "the message was dropped by the proxy";
                self.end_with(ErrorCode::WITHHELD, text)
            }
            Poll::Ready(None) => {
                let text = "the server ended before it answered";
                self.end_with(ErrorCode::SERVER_EXITED, text)
            }
            Poll::Ready(Some(StreamItem::Accepted | StreamItem::Ended)) => {
                self.ended = true;
                Poll::Ready(None)
            }
            Poll::Pending => match self.quiet.as_mut().poll(cx) {
                Poll::Ready(()) => {
                    self.quiet.as_mut().reset(Instant::now() + KEEP_ALIVE);
                    Poll::Ready(Some(KEEP_ALIVE_COMMENT))
                }
                Poll::Pending => Poll::Pending,
            },
        }
    }

    /// No answer will come.
    fn end_with(&mut self, code: ErrorCode, text: &str) -> Poll<Option<Bytes>> {
        self.ended = true;
        let error = self.request.take().map(|id| {
            let error = error_response(Some(&id), code, text, None);
            encode_event(None, Some("message"), error.raw())
        });
        Poll::Ready(error)
    }
}

/// A message as an event.
pub(crate) fn encode(message: &StreamMessage) -> Bytes {
    encode_event(message.event_id.as_deref(), Some("message"), &message.data)
}
