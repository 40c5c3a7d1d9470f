//! A WebSocket as a link: each message is a frame.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Bytes, BytesMut};
use mcp_proxy_core::{BoxFuture, FrameReader, FrameWriter, Link, LinkEnd, OutgoingFrame};
use mcp_proxy_wire::{Body, ErrorCode, Frame, Message, Origin, Side, StreamId};

use super::{
    OutgoingPiece, PiecePart, SocketEnd, SocketEvent, SocketReader, SocketWriter, WebSocket,
};

/// The close code of a socket that has done its work.
const NORMAL: u16 = 1000;

/// What a link cannot say about its socket.
#[derive(Debug)]
pub struct WebSocketHandle {
    /// Zero until somebody sets it.
    max_message: AtomicUsize,
    close: Mutex<(u16, String)>,
}

/// The link of a client's socket, and its handle.
pub fn websocket_link(socket: WebSocket) -> (Link, Arc<WebSocketHandle>) {
    let handle = Arc::new(WebSocketHandle {
        max_message: AtomicUsize::new(0),
        close: Mutex::new((NORMAL, String::new())),
    });
    let (reader, writer) = socket.split();
    let reader = MessageReader {
        reader,
        handle: Arc::clone(&handle),
        pieces: BytesMut::new(),
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
        *self.close.lock().unwrap_or_else(PoisonError::into_inner) = (code, reason.to_owned());
    }

    /// How long messages may be, from the next one on.
    pub fn set_max_message(&self, bytes: usize) {
        self.max_message.store(bytes.max(1), Ordering::Relaxed);
    }
}

struct MessageReader {
    reader: SocketReader,
    handle: Arc<WebSocketHandle>,
    /// The message that is arriving in pieces.
    pieces: BytesMut,
}

impl FrameReader for MessageReader {
    fn read<'a>(&'a mut self, into: &'a mut Vec<Frame>) -> BoxFuture<'a, Result<(), LinkEnd>> {
        Box::pin(async move {
            let max_message = self.handle.max_message.swap(0, Ordering::Relaxed);
            if max_message > 0 {
                self.reader.set_max_message(max_message);
            }
            loop {
                let message = match self.reader.next().await {
                    Ok(SocketEvent::Message(message)) => message,
                    Ok(SocketEvent::Piece { bytes, is_last }) => {
                        self.pieces.extend_from_slice(&bytes);
                        if !is_last {
                            continue;
                        }
                        std::mem::take(&mut self.pieces).freeze()
                    }
                    Ok(SocketEvent::Pong) => continue,
                    Err(end) => return Err(link_end(&end)),
                };
                into.push(frame(message));
                return Ok(());
            }
        })
    }
}

fn frame(message: Bytes) -> Frame {
    Frame::message(StreamId::Only, Origin::Client, Message::parse(message))
}

fn link_end(end: &SocketEnd) -> LinkEnd {
    match end {
        SocketEnd::ClosedByPeer { .. } | SocketEnd::Closed | SocketEnd::CloseUnanswered => {
            LinkEnd::Closed
        }
        SocketEnd::Broken(_) | SocketEnd::Violation(_) => {
            LinkEnd::failed(Side::Client, ErrorCode::BAD_REQUEST, end.to_string())
        }
        SocketEnd::Stalled(_) => {
            LinkEnd::failed(Side::Client, ErrorCode::PEER_STALLED, end.to_string())
        }
    }
}

struct MessageWriter {
    /// None once it is closed.
    writer: Option<SocketWriter>,
    handle: Arc<WebSocketHandle>,
}

impl FrameWriter for MessageWriter {
    fn write<'a>(
        &'a mut self,
        frames: &'a mut Vec<OutgoingFrame>,
    ) -> BoxFuture<'a, Result<(), LinkEnd>> {
        Box::pin(async move {
            let Some(writer) = &mut self.writer else {
                return Err(LinkEnd::Closed);
            };
            let written = frames.drain(..).filter_map(OutgoingFrame::into_written);
            let pieces: Vec<OutgoingPiece> = written
                .filter_map(|frame| match frame.body {
                    Body::Whole(message) => Some(OutgoingPiece {
                        bytes: message.into_raw(),
                        part: PiecePart::Whole,
                    }),
                    _ => None,
                })
                .collect();
            let sent = writer.send(&pieces).await;
            sent.map_err(|error| {
                LinkEnd::failed(Side::Client, ErrorCode::PEER_STALLED, error.to_string())
            })
        })
    }

    fn close(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if let Some(writer) = self.writer.take() {
                let close = self.handle.close.lock();
                let (code, reason) = close.unwrap_or_else(PoisonError::into_inner).clone();
                let _ = writer.close(code, &reason).await;
            }
        })
    }
}
