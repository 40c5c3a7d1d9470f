//! A [`Link`] is one side's conversation: frames in, frames out.
//!
//! For stdio there is one link in all; where HTTP ends here (the other side uses another transport) there is one per
//! client session. HTTP that is passed through has no links: see `http/pass_through.rs` in the transport crate.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use mcp_proxy_wire::{Frame, Message, Side};

use crate::connection::Connection;

/// A boxed future, so that links can be trait objects at the crate border.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Opens a new link to the server. The binary passes it in, so that this crate never dials by itself.
pub type Dial =
    Arc<dyn Fn(Arc<Connection>) -> BoxFuture<'static, Result<Link, LinkEnd>> + Send + Sync>;

/// Frames from one side.
pub trait FrameReader: Send {
    /// Waits for at least one frame and appends all that are ready. Safe to cancel: nothing read is lost.
    fn read<'a>(&'a mut self, into: &'a mut Vec<Frame>) -> BoxFuture<'a, Result<(), LinkEnd>>;

    /// After an end: tells the peer, if it has not been told yet, and waits until that is done.
    fn wind_up(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Answers to messages of this peer that could not be taken at all (larger than allowed).
    fn refusals(&mut self) -> Vec<Message> {
        Vec::new()
    }
}

/// What was decided about a frame, for the writer that it goes to.
#[derive(Clone, Debug)]
pub enum OutgoingFrame {
    /// Write it.
    Frame(Frame),
    /// Write it, but find its stream by the message that it replaces: an edit may have changed the id that streams are
    /// found by.
    Replacement {
        /// The message as it was received. Boxed: it is rare, and every frame would carry its size.
        original: Box<Message>,
        /// What is written.
        frame: Frame,
    },
    /// Write nothing: the message was dropped. A client that waits for it over HTTP is told that nothing will come.
    Dropped(Frame),
    /// Write nothing: this request was held until its sender gave it up, and waits for no answer.
    Cancelled(Frame),
    /// Write nothing: before a client's request reached the server it was replaced by this one. The client's stream now
    /// waits for the answer to the replacement.
    RequestReplaced(Frame),
}

impl OutgoingFrame {
    /// The frame, written or not.
    pub fn frame(&self) -> &Frame {
        match self {
            OutgoingFrame::Frame(frame)
            | OutgoingFrame::Replacement { frame, .. }
            | OutgoingFrame::Dropped(frame)
            | OutgoingFrame::Cancelled(frame)
            | OutgoingFrame::RequestReplaced(frame) => frame,
        }
    }

    /// The frame to write, if one is.
    pub fn into_written(self) -> Option<Frame> {
        match self {
            OutgoingFrame::Frame(frame) | OutgoingFrame::Replacement { frame, .. } => Some(frame),
            OutgoingFrame::Dropped(_)
            | OutgoingFrame::Cancelled(_)
            | OutgoingFrame::RequestReplaced(_) => None,
        }
    }
}

impl From<Frame> for OutgoingFrame {
    fn from(frame: Frame) -> OutgoingFrame {
        OutgoingFrame::Frame(frame)
    }
}

/// Frames to one side.
pub trait FrameWriter: Send {
    /// Writes all frames and empties the vector. Returns when the peer (or its buffer) has them.
    ///
    /// After an error the vector holds only messages that the peer certainly did not get whole, which may be none. If the
    /// future is dropped before it ends, what the vector holds means nothing.
    fn write<'a>(
        &'a mut self,
        frames: &'a mut Vec<OutgoingFrame>,
    ) -> BoxFuture<'a, Result<(), LinkEnd>>;

    /// Says that nothing more will come. The other half of the link may stay open.
    fn close(&mut self) -> BoxFuture<'_, ()>;

    /// How many of the bytes written last the peer has not read, if that can be known.
    fn unread(&self) -> Option<u64> {
        None
    }

    /// Whether it is certain that nobody will read what is written.
    fn is_peer_gone(&self) -> bool {
        false
    }
}

/// Both halves of one side's conversation.
pub struct Link {
    /// Frames from the peer.
    pub reader: Box<dyn FrameReader>,
    /// Frames to the peer.
    pub writer: Box<dyn FrameWriter>,
    /// Awaited when both halves are dropped: stops a process, ends a session.
    pub finish: Option<BoxFuture<'static, ()>>,
}

impl Link {
    /// A link of these halves.
    pub fn new(reader: impl FrameReader + 'static, writer: impl FrameWriter + 'static) -> Link {
        Link {
            reader: Box::new(reader),
            writer: Box::new(writer),
            finish: None,
        }
    }

    /// With something to do at its end.
    #[must_use]
    pub fn with_finish(mut self, finish: BoxFuture<'static, ()>) -> Link {
        self.finish = Some(finish);
        self
    }

    /// A link that could not be opened: it ends at once, with the reason.
    pub fn dead(end: LinkEnd) -> Link {
        Link::new(DeadLink(end.clone()), DeadLink(end))
    }
}

struct DeadLink(LinkEnd);

impl FrameReader for DeadLink {
    fn read<'a>(&'a mut self, _: &'a mut Vec<Frame>) -> BoxFuture<'a, Result<(), LinkEnd>> {
        Box::pin(std::future::ready(Err(self.0.clone())))
    }
}

impl FrameWriter for DeadLink {
    fn write<'a>(
        &'a mut self,
        _: &'a mut Vec<OutgoingFrame>,
    ) -> BoxFuture<'a, Result<(), LinkEnd>> {
        Box::pin(std::future::ready(Err(self.0.clone())))
    }

    fn close(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// Why a link gives no more frames, or takes none.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LinkEnd {
    /// The peer ended the conversation in the ordinary way.
    #[error("closed")]
    Closed,
    /// Something broke. The text is fit for a peer: which side, what happened, no inner paths.
    #[error("{0}")]
    Failed(LinkFailure),
}

/// What broke, on which side, in words for a peer.
#[derive(Clone, Debug)]
pub struct LinkFailure {
    /// The side at fault.
    pub side: Side,
    /// The JSON-RPC code with which open requests are answered.
    pub code: mcp_proxy_wire::ErrorCode,
    /// What happened, in one line.
    pub text: String,
    /// It shut down cleanly: a process that exits with status 0. After the client's own end that is not a failure.
    pub orderly: bool,
    /// `error.data` of these answers, as JSON.
    pub data: Option<String>,
}

impl LinkEnd {
    /// A failure of `side`, with the code its open requests are answered with.
    pub fn failed(side: Side, code: mcp_proxy_wire::ErrorCode, text: impl Into<String>) -> LinkEnd {
        LinkEnd::Failed(LinkFailure {
            side,
            code,
            text: text.into(),
            orderly: false,
            data: None,
        })
    }
}

impl fmt::Display for LinkFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
