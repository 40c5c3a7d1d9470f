//! A WebSocket as a link: each message is a frame.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::{Bytes, BytesMut};
use mcp_proxy_core::{
    BoxFuture, FrameReader, FrameWriter, Link, LinkEnd, MemoryBudget, MemoryPermit, OutgoingFrame,
};
use mcp_proxy_wire::{
    Body, ErrorCode, Frame, Message, MessageEnds, Origin, Side, StreamId, TransportEnvelope,
};
use tokio::io::{AsyncRead, AsyncWrite};

use super::reader::close_frame;
use super::{
    OutgoingPiece, PIECE_MAX, PiecePart, SocketEnd, SocketEvent, SocketReader, SocketWriteError,
    SocketWriter, WebSocket,
};
use crate::refused_message::RefusedMessage;

/// The close code of a socket that has done its work.
const NORMAL: u16 = 1000;

/// What a link cannot say about its socket.
#[derive(Debug)]
pub struct WebSocketHandle {
    /// A limit that the reader has not heard of yet.
    new_max_message: Mutex<Option<usize>>,
    messages_begun: Arc<AtomicU64>,
    close: Mutex<(u16, String)>,
    /// Why nothing more can be read.
    end: OnceLock<Box<SocketEnd>>,
}

/// The link of a client's socket, and its handle. A message that is read whole counts in `memory` until its end has come.
pub fn websocket_link<S>(
    socket: WebSocket<S>,
    memory: &MemoryBudget,
) -> (Link, Arc<WebSocketHandle>)
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let (reader, writer) = socket.split();
    let handle = Arc::new(WebSocketHandle {
        new_max_message: Mutex::new(None),
        messages_begun: writer.messages_begun(),
        close: Mutex::new((NORMAL, String::new())),
        end: OnceLock::new(),
    });
    let reader = MessageReader {
        reader,
        handle: Arc::clone(&handle),
        collected: BytesMut::new(),
        memory: memory.permit(),
        refused: None,
        refusals: Vec::new(),
        takes_several: false,
    };
    let writer = MessageWriter {
        writer: Some(writer),
        handle: Arc::clone(&handle),
    };
    (Link::new(reader, writer), handle)
}

impl WebSocketHandle {
    /// With what the socket is closed when its writer is.
    pub fn set_close(&self, code: u16, reason: &str) {
        *lock(&self.close) = (code, reason.to_owned());
    }

    /// How long messages may be, from the next one on.
    pub fn set_max_message(&self, bytes: usize) {
        *lock(&self.new_max_message) = Some(bytes);
    }

    /// Of how many messages at least one byte was written, so far. It is exact also when writing has failed or was given up.
    pub fn messages_begun(&self) -> u64 {
        self.messages_begun.load(Ordering::Relaxed)
    }

    /// Why nothing more can be read from the socket, once that is so.
    pub fn end(&self) -> Option<&SocketEnd> {
        self.end.get().map(|end| &**end)
    }

    fn note_end(&self, end: SocketEnd) -> LinkEnd {
        link_end(self.end.get_or_init(|| Box::new(end)))
    }
}

struct MessageReader<S> {
    reader: SocketReader<S>,
    handle: Arc<WebSocketHandle>,
    /// The message that is arriving in pieces.
    collected: BytesMut,
    /// For that message.
    memory: MemoryPermit,
    /// A message that there was no room for, until its end.
    refused: Option<RefusedMessage>,
    refusals: Vec<Message>,
    /// All messages that have come are passed on at once. Not before somebody has set their limit: it holds from the next one on.
    takes_several: bool,
}

impl<S: AsyncRead + AsyncWrite + Send> FrameReader for MessageReader<S> {
    fn read<'a>(&'a mut self, into: &'a mut Vec<Frame>) -> BoxFuture<'a, Result<(), LinkEnd>> {
        Box::pin(async move {
            let max_message = lock(&self.handle.new_max_message).take();
            if let Some(max_message) = max_message {
                self.reader.set_max_message(max_message);
                self.takes_several = true;
            }
            let mut is_done = false;
            while !is_done {
                is_done = match self.reader.next().await {
                    Ok(event) => self.add(event, into)?,
                    Err(end) => return Err(self.end(end)),
                };
            }
            while self.takes_several
                && let Some(Frame {
                    body: Body::Whole(_),
                    ..
                }) = into.last()
                && let Some(event) = self.reader.next_buffered()
            {
                self.add(event, into)?;
            }
            Ok(())
        })
    }

    fn refusals(&mut self) -> Vec<Message> {
        std::mem::take(&mut self.refusals)
    }

    fn wind_up(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(self.reader.wind_up())
    }
}

impl<S: AsyncRead + AsyncWrite + Send> MessageReader<S> {
    fn end(&mut self, end: SocketEnd) -> LinkEnd {
        if let Some((Some(code), reason)) = close_frame(&end) {
            // The writer may be closed before the peer could be told.
            self.handle.set_close(code, reason);
        }
        self.handle.note_end(end)
    }

    /// Adds what an event comes to, and says whether it comes to anything.
    fn add(&mut self, event: SocketEvent, into: &mut Vec<Frame>) -> Result<bool, LinkEnd> {
        let body = match event {
            SocketEvent::Message(message) => Some(Body::Whole(Message::parse(message))),
            SocketEvent::Piece { bytes, is_last } => self.piece(bytes, is_last),
            SocketEvent::Pong => None,
        };
        let frame = body.map(|body| {
            let envelope = TransportEnvelope::Bare;
            Frame::new(StreamId::Only, Origin::Client, envelope, body)
        });
        let is_some = frame.is_some() || !self.refusals.is_empty();
        into.extend(frame);
        Ok(is_some)
    }

    /// Whether there is room for this much more of a message. If there is not, the rest of it is skipped.
    fn finds_room(&mut self, more: usize) -> bool {
        if self.refused.is_some() {
            return false;
        }
        let over = self.memory.resize(self.collected.len() + more).err();
        self.refused = over.map(|over| RefusedMessage {
            over,
            ends: MessageEnds::of(&std::mem::take(&mut self.collected)),
        });
        self.refused.is_none()
    }

    /// What a piece comes to. `None` while it is collected.
    fn piece(&mut self, bytes: Bytes, is_last: bool) -> Option<Body> {
        if !self.finds_room(bytes.len()) {
            if let Some(mut refused) = self.refused.take() {
                refused.ends.add(&bytes);
                match is_last {
                    true => self.refusals.extend(refused.answer(Side::Client)),
                    false => self.refused = Some(refused),
                }
            }
            return None;
        }
        self.collected.extend_from_slice(&bytes);
        if !is_last {
            return None;
        }
        let message = std::mem::take(&mut self.collected).freeze();
        self.memory.release();
        Some(Body::Whole(Message::parse(message)))
    }
}

fn link_end(end: &SocketEnd) -> LinkEnd {
    match end {
        SocketEnd::ClosedByPeer { .. } | SocketEnd::Closed | SocketEnd::CloseUnanswered => {
            LinkEnd::Closed
        }
        SocketEnd::Broken(_) | SocketEnd::Silent(_) | SocketEnd::Violation(_) => {
            LinkEnd::failed(Side::Client, ErrorCode::BAD_REQUEST, end.to_string())
        }
        SocketEnd::Stalled(_) => {
            LinkEnd::failed(Side::Client, ErrorCode::PEER_STALLED, end.to_string())
        }
    }
}

struct MessageWriter<S> {
    /// None once it is closed.
    writer: Option<SocketWriter<S>>,
    handle: Arc<WebSocketHandle>,
}

impl<S: AsyncWrite + Send> FrameWriter for MessageWriter<S> {
    fn write<'a>(
        &'a mut self,
        frames: &'a mut Vec<OutgoingFrame>,
    ) -> BoxFuture<'a, Result<(), LinkEnd>> {
        Box::pin(async move {
            let mut pieces = Vec::with_capacity(frames.len());
            let written = frames.drain(..).filter_map(OutgoingFrame::into_written);
            for frame in written {
                if let Body::Whole(message) = frame.body {
                    split(message.into_raw(), &mut pieces);
                }
            }
            let Some(writer) = &mut self.writer else {
                return Err(LinkEnd::Closed);
            };
            let sent = writer.send(&pieces).await;
            sent.map_err(|error| write_end(&error))
        })
    }

    fn close(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if let Some(writer) = self.writer.take() {
                let (code, reason) = lock(&self.handle.close).clone();
                let _ = writer.close(code, &reason).await;
            }
        })
    }
}

/// A long message is sent in several frames, so that a close frame never has to wait for the end of it.
fn split(mut bytes: Bytes, pieces: &mut Vec<OutgoingPiece>) {
    let mut part = PiecePart::First;
    while bytes.len() > PIECE_MAX {
        let bytes = bytes.split_to(PIECE_MAX);
        pieces.push(OutgoingPiece { bytes, part });
        part = PiecePart::Middle;
    }
    let part = match part {
        PiecePart::First => PiecePart::Whole,
        _ => PiecePart::Last,
    };
    pieces.push(OutgoingPiece { bytes, part });
}

fn write_end(error: &SocketWriteError) -> LinkEnd {
    let code = match error {
        SocketWriteError::Closed => return LinkEnd::Closed,
        SocketWriteError::Stalled(_) => ErrorCode::PEER_STALLED,
        SocketWriteError::Broken(_)
        | SocketWriteError::Interrupted
        | SocketWriteError::OutOfOrder => ErrorCode::BAD_REQUEST,
    };
    LinkEnd::failed(Side::Client, code, error.to_string())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
