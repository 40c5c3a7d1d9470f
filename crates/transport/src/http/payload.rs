//! The bodies we send, on both sides of HTTP: whole, events of our own, or passed through a lane as they
//! arrive.
//!
//! None of them is a queue: hyper asks for the next piece when the peer takes bytes.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame as BodyFrame, SizeHint};
use mcp_proxy_core::LinkEnd;
use mcp_proxy_wire::Body;

use super::inflow::InflowError;
use super::meanwhile::Meanwhile;
use super::stream::EventStream;
use super::through::Through;

/// A body that cannot be finished.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// The peer's body broke off.
    #[error("body broke off: {0}")]
    Peer(#[from] InflowError),
    /// The lane stopped it (the record cannot be written, a message over the limit).
    #[error("{0}")]
    Stopped(LinkEnd),
}

/// A body of ours.
pub enum Payload {
    /// All of it is here.
    Whole(Option<Bytes>),
    /// Events of our own making.
    Events(Box<EventStream>),
    /// Another peer's body, passed through a lane.
    Through(Box<Through>),
    /// Progress, and then an answer that is not there yet.
    Meanwhile(Box<Meanwhile>),
}

impl Payload {
    /// No bytes.
    pub fn empty() -> Payload {
        Payload::Whole(None)
    }

    /// What a frame carries whole.
    pub fn of(body: Body) -> Payload {
        match body {
            Body::Whole(message) => Payload::whole(message.into_raw()),
            _ => Payload::empty(),
        }
    }

    /// These bytes.
    pub fn whole(bytes: impl Into<Bytes>) -> Payload {
        let bytes = bytes.into();
        Payload::Whole((!bytes.is_empty()).then_some(bytes))
    }
}

impl HttpBody for Payload {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<BodyFrame<Bytes>, BodyError>>> {
        match self.get_mut() {
            Payload::Whole(bytes) => Poll::Ready(bytes.take().map(|b| Ok(BodyFrame::data(b)))),
            Payload::Events(events) => events
                .poll(cx)
                .map(|piece| piece.map(|bytes| Ok(BodyFrame::data(bytes)))),
            Payload::Through(through) => through.poll(cx),
            Payload::Meanwhile(meanwhile) => meanwhile.poll(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Payload::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Payload::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Payload::Events(_) | Payload::Meanwhile(_) => SizeHint::default(),
            Payload::Through(through) => through.size(),
        }
    }
}
