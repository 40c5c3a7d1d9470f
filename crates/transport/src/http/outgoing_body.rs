//! The bodies we send, on both sides of HTTP: whole messages, events of our own, or a server's events as they arrive.
//!
//! None of them is a queue: hyper asks for the next piece when the peer takes bytes.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame as BodyFrame, SizeHint};
use mcp_proxy_core::{Connection, LinkEnd};
use mcp_proxy_wire::Body;

use super::client_socket::SocketHandle;
use super::event_stream::EventStream;
use super::incoming_body::IncomingBodyError;
use super::progress_stream::ProgressThenAnswer;
use super::relayed_events::RelayedEvents;

/// A body that cannot be finished.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// The peer's body broke off.
    #[error("body broke off: {0}")]
    Peer(#[from] IncomingBodyError),
    /// The pipeline stopped it (the record cannot be written, a message over the limit).
    #[error("{0}")]
    Stopped(LinkEnd),
}

/// A body of ours.
pub enum OutgoingBody {
    /// All of it is here.
    Whole(Option<Bytes>),
    /// The same for a message of the other peer's, which is in the record.
    Recorded(Option<Bytes>, UnsentMessage),
    /// Events of our own making.
    Events(Box<EventStream>),
    /// A server's event stream, passed through a pipeline.
    Relayed(Box<RelayedEvents>),
    /// Progress, and then an answer that is not there yet.
    ProgressThenAnswer(Box<ProgressThenAnswer>),
}

/// A message that is recorded and not sent yet. If it is dropped before that, it is undelivered.
pub struct UnsentMessage {
    connection: Arc<Connection>,
    sequence: Option<u64>,
    socket: Option<SocketHandle>,
}

impl UnsentMessage {
    /// The message of this number in the record.
    pub(crate) fn new(connection: &Arc<Connection>, sequence: Option<u64>) -> UnsentMessage {
        UnsentMessage {
            connection: Arc::clone(connection),
            sequence,
            socket: None,
        }
    }

    /// It is on its way: the socket has to take it now.
    fn hand_over(&mut self) {
        if let (Some(socket), Some(sequence)) = (&self.socket, self.sequence) {
            socket.hand_over(&self.connection, sequence);
        }
        self.sent();
    }

    /// It is sent.
    pub(crate) fn sent(&mut self) {
        self.sequence = None;
    }

    /// It is not going to be sent.
    pub(crate) fn give_up(&mut self, why: &str) {
        if let Some(sequence) = self.sequence.take() {
            self.connection.undelivered(&[sequence], why);
        }
    }
}

impl Drop for UnsentMessage {
    fn drop(&mut self) {
        self.give_up("the receiving side went away before it took the message");
    }
}

impl OutgoingBody {
    /// No bytes.
    pub fn empty() -> OutgoingBody {
        OutgoingBody::Whole(None)
    }

    /// What a frame carries whole.
    pub fn of(body: Body) -> OutgoingBody {
        match body {
            Body::Message(message) => OutgoingBody::whole(message.into_raw()),
            _ => OutgoingBody::empty(),
        }
    }

    /// What a recorded frame carries whole.
    pub(crate) fn recorded(body: Body, unsent: UnsentMessage) -> OutgoingBody {
        match OutgoingBody::of(body) {
            OutgoingBody::Whole(bytes) => OutgoingBody::Recorded(bytes, unsent),
            other => other,
        }
    }

    /// The bytes, if all of them are here.
    pub(crate) fn all_bytes(&self) -> Option<&[u8]> {
        match self {
            OutgoingBody::Whole(bytes) | OutgoingBody::Recorded(bytes, _) => {
                Some(bytes.as_deref().unwrap_or_default())
            }
            OutgoingBody::Events(_)
            | OutgoingBody::Relayed(_)
            | OutgoingBody::ProgressThenAnswer(_) => None,
        }
    }

    /// The same once more, if all of it is here. The bytes are shared.
    pub(crate) fn copy(&self) -> Option<OutgoingBody> {
        match self {
            OutgoingBody::Whole(bytes) => Some(OutgoingBody::Whole(bytes.clone())),
            _ => None,
        }
    }

    /// It is sent over this socket, which knows what the client has taken.
    pub(super) fn track(&mut self, socket: &SocketHandle) {
        match self {
            OutgoingBody::Recorded(_, unsent) => unsent.socket = Some(socket.clone()),
            OutgoingBody::Events(events) => events.track(socket.clone()),
            OutgoingBody::Whole(_)
            | OutgoingBody::Relayed(_)
            | OutgoingBody::ProgressThenAnswer(_) => {}
        }
    }

    /// These bytes.
    pub fn whole(bytes: impl Into<Bytes>) -> OutgoingBody {
        let bytes = bytes.into();
        OutgoingBody::Whole((!bytes.is_empty()).then_some(bytes))
    }
}

impl HttpBody for OutgoingBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<BodyFrame<Bytes>, BodyError>>> {
        match self.get_mut() {
            OutgoingBody::Whole(bytes) => Poll::Ready(bytes.take().map(|b| Ok(BodyFrame::data(b)))),
            OutgoingBody::Recorded(bytes, unsent) => {
                unsent.hand_over();
                Poll::Ready(bytes.take().map(|b| Ok(BodyFrame::data(b))))
            }
            OutgoingBody::Events(events) => events
                .poll(cx)
                .map(|piece| piece.map(|bytes| Ok(BodyFrame::data(bytes)))),
            OutgoingBody::Relayed(through) => through.poll(cx),
            OutgoingBody::ProgressThenAnswer(meanwhile) => meanwhile.poll(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(
            self,
            OutgoingBody::Whole(None) | OutgoingBody::Recorded(None, _)
        )
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            OutgoingBody::Whole(bytes) | OutgoingBody::Recorded(bytes, _) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            OutgoingBody::Events(_)
            | OutgoingBody::Relayed(_)
            | OutgoingBody::ProgressThenAnswer(_) => SizeHint::default(),
        }
    }
}
