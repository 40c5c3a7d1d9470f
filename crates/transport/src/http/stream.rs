//! An SSE answer of ours: messages come by a channel and leave as events, with a comment now and then so that
//! nobody in between takes silence for death.

use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use mcp_proxy_wire::encode_event;
use tokio::time::{Instant, Sleep, sleep};

use super::outlet::{Messages, outlet};

const KEEP_ALIVE: Duration = Duration::from_secs(25);

/// A message for a stream.
#[derive(Debug)]
pub struct Out {
    /// The message's bytes.
    pub data: Bytes,
    /// Its event id, if clients may resume.
    pub event_id: Option<String>,
    /// The stream ends with it.
    pub last: bool,
}

impl Out {
    /// No message, and none will come: the stream ends without its answer.
    pub fn nothing() -> Out {
        Out {
            data: Bytes::new(),
            event_id: None,
            last: true,
        }
    }

    /// No message, and none was to come: what was sent asks for nothing any more. So it is the last of nothing.
    pub fn accepted() -> Out {
        Out {
            last: false,
            ..Out::nothing()
        }
    }

    /// Whether it is [`Out::nothing`] or [`Out::accepted`]. A message has bytes.
    pub fn is_nothing(&self) -> bool {
        self.data.is_empty()
    }

    /// The status of an answer that is this and nothing more.
    pub fn bare_status(&self) -> u16 {
        match self.last {
            true => 502,
            false => 202,
        }
    }
}

/// Events to one client.
pub struct EventStream {
    /// Bytes that come before any message (the endpoint event of HTTP+SSE, replayed events).
    first: Vec<Bytes>,
    messages: Messages,
    quiet: Pin<Box<Sleep>>,
    ended: bool,
    /// Dropped with the stream: whoever holds the other end learns that the client is gone.
    _guard: Option<Box<dyn Send + Sync>>,
}

impl EventStream {
    /// Events from `messages`, after `first`. `guard` is dropped when the client goes or the stream ends.
    pub fn new(
        first: Vec<Bytes>,
        messages: Messages,
        guard: Option<Box<dyn Send + Sync>>,
    ) -> EventStream {
        EventStream {
            first: first.into_iter().rev().collect(),
            messages,
            quiet: Box::pin(sleep(KEEP_ALIVE)),
            ended: false,
            _guard: guard,
        }
    }

    /// The stream ends with what is in `first`.
    pub fn finished(first: Vec<Bytes>) -> EventStream {
        let (_, messages) = outlet([]);
        EventStream::new(first, messages, None)
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
            Poll::Ready(Some(out)) if out.is_nothing() => {
                self.ended = true;
                Poll::Ready(None)
            }
            Poll::Ready(Some(out)) => {
                self.ended = out.last;
                self.quiet.as_mut().reset(Instant::now() + KEEP_ALIVE);
                Poll::Ready(Some(encode(&out)))
            }
            Poll::Ready(None) => {
                self.ended = true;
                Poll::Ready(None)
            }
            Poll::Pending => match self.quiet.as_mut().poll(cx) {
                Poll::Ready(()) => {
                    self.quiet.as_mut().reset(Instant::now() + KEEP_ALIVE);
                    Poll::Ready(Some(Bytes::from_static(b": keep-alive\n\n")))
                }
                Poll::Pending => Poll::Pending,
            },
        }
    }
}

/// A message as an event.
pub fn encode(out: &Out) -> Bytes {
    encode_event(out.event_id.as_deref(), Some("message"), &out.data)
}
