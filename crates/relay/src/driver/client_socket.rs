//! A client that has joined: a conversation of the run, whose server is the relay.

use std::sync::Arc;

use mcp_proxy_core::{
    BoxFuture, CarryEnd, FrameReader, FrameWriter, Link, LinkEnd, NewConnection, OutgoingFrame,
    Peer, carry,
};
use mcp_proxy_wire::{
    Body, Chunk, Frame, Kind, Message, Origin, StreamId, Transport, TransportEnvelope,
};
use memchr::memmem;
use tokio::sync::{Mutex, Notify};

use super::opening_socket::{self, Joined, server_frame};
use super::shared_user::SharedUser;
use super::{RelayDriver, RelaySocketHandle};
use crate::ids::SocketId;
use crate::opening;
use crate::outbox::{AnswerPart, AnswerPiece};

/// What the record calls the server of a client's conversation.
const RELAY: &str = "relay";

/// Serves a client until its socket ends or the relay closes it.
pub(super) async fn serve(driver: &Arc<RelayDriver>, id: SocketId, joined: Joined) {
    let Joined {
        user,
        link,
        handle,
        caller,
        early,
        woken,
        name,
        token,
        ..
    } = joined;
    let mut client = Peer::new(Transport::WebSocket).named(&name);
    client.caller = caller;
    let run = &driver.options.run;
    let connection = run.open(NewConnection::between(client, Peer::in_process(RELAY)));
    let reader = Arc::new(Mutex::new(link.reader));
    let client = Link {
        reader: Box::new(CredentialFilter {
            inner: Arc::clone(&reader),
            driver: Arc::clone(driver),
            user: Arc::clone(&user),
            id,
            early,
            token,
        }),
        writer: Box::new(ToClient {
            inner: link.writer,
            driver: Arc::clone(driver),
            user: Arc::clone(&user),
            id,
        }),
        finish: link.finish,
    };
    let server = Link::new(
        FromRelay {
            driver: Arc::clone(driver),
            user: Arc::clone(&user),
            id,
            woken,
            handle,
            is_closed: false,
        },
        ToRelay {
            driver: Arc::clone(driver),
            user,
            id,
        },
    );
    let end: CarryEnd = carry(
        &connection,
        client,
        server,
        driver.options.carry,
        std::future::pending(),
    )
    .await;
    connection.close(end.text());
    opening_socket::drain(&mut **reader.lock().await).await;
}

/// Keeps tokens out of the conversation, and so out of the record: a further handshake ends here.
struct CredentialFilter {
    /// Shared, because the socket is read on when the conversation has ended.
    inner: Arc<Mutex<Box<dyn FrameReader>>>,
    driver: Arc<RelayDriver>,
    user: Arc<SharedUser>,
    id: SocketId,
    early: Vec<Frame>,
    token: String,
}

impl FrameReader for CredentialFilter {
    fn read<'a>(&'a mut self, into: &'a mut Vec<Frame>) -> BoxFuture<'a, Result<(), LinkEnd>> {
        Box::pin(async move {
            loop {
                if self.early.is_empty() {
                    let read = self.inner.lock().await.read(&mut self.early).await;
                    read.inspect_err(|end| {
                        opening_socket::note_stall(&self.driver, &self.user, self.id, end)
                    })?;
                }
                let frames = std::mem::take(&mut self.early);
                into.extend(frames.into_iter().filter(|frame| !self.takes(frame)));
                if !into.is_empty() {
                    return Ok(());
                }
            }
        })
    }
}

impl CredentialFilter {
    /// Whether a message that is not a handshake holds a token all the same: the one that this socket has shown, or something
    /// that is called one. It reaches the relay without being recorded.
    fn shows_token(&self, message: &Message) -> bool {
        let contains = |word: &str| memmem::find(message.raw(), word.as_bytes()).is_some();
        if !self.token.is_empty() && contains(&self.token) {
            return true;
        }
        let names = ["accessToken", "access_token"];
        match message.kind() {
            Kind::Request | Kind::Notification => message
                .params()
                .is_some_and(|params| message.members(params, names).iter().any(Option::is_some)),
            _ => names.into_iter().any(contains),
        }
    }

    /// Whether a frame shows credentials, which are then checked.
    fn takes(&self, frame: &Frame) -> bool {
        let Body::Whole(message) = &frame.body else {
            return false;
        };
        let (user, id) = (&self.user, self.id);
        if !opening::is_handshake(message) {
            let is_taken = self.shows_token(message);
            if is_taken {
                let message = message.clone();
                user.change(self.driver.now(), |relay, now| {
                    relay.message(id, message, now)
                });
            }
            return is_taken;
        }
        match opening::client_credentials(message, self.driver.options.settings.access) {
            Ok(credentials) => opening_socket::renew(&self.driver, user, id, &credentials),
            Err(fault) => {
                let answer = fault.answer(message.id().as_ref());
                user.change(self.driver.now(), |relay, now| {
                    relay.send_to_client(id, answer, now)
                });
            }
        }
        true
    }
}

/// Tells the relay when its client does not read, before the conversation ends for that.
struct ToClient {
    inner: Box<dyn FrameWriter>,
    driver: Arc<RelayDriver>,
    user: Arc<SharedUser>,
    id: SocketId,
}

impl FrameWriter for ToClient {
    fn write<'a>(
        &'a mut self,
        frames: &'a mut Vec<OutgoingFrame>,
    ) -> BoxFuture<'a, Result<(), LinkEnd>> {
        Box::pin(async move {
            let written = self.inner.write(frames).await;
            written.inspect_err(|end| {
                opening_socket::note_stall(&self.driver, &self.user, self.id, end)
            })
        })
    }

    fn close(&mut self) -> BoxFuture<'_, ()> {
        self.inner.close()
    }

    fn unread(&self) -> Option<u64> {
        self.inner.unread()
    }

    fn is_peer_gone(&self) -> bool {
        self.inner.is_peer_gone()
    }
}

/// Hands a client's messages to the relay, which takes them at once, without a queue.
struct ToRelay {
    driver: Arc<RelayDriver>,
    user: Arc<SharedUser>,
    id: SocketId,
}

impl FrameWriter for ToRelay {
    fn write<'a>(
        &'a mut self,
        frames: &'a mut Vec<OutgoingFrame>,
    ) -> BoxFuture<'a, Result<(), LinkEnd>> {
        let now = self.driver.now();
        self.user.change(now, |relay, now| {
            let written = frames.drain(..).filter_map(OutgoingFrame::into_written);
            for frame in written {
                if let Body::Whole(message) = frame.body {
                    relay.message(self.id, message, now);
                }
            }
        });
        Box::pin(std::future::ready(Ok(())))
    }

    fn close(&mut self) -> BoxFuture<'_, ()> {
        // Its tabs are free at once, whatever the conversation still waits for.
        let id = self.id;
        self.user
            .change(self.driver.now(), |relay, now| relay.socket_closed(id, now));
        Box::pin(std::future::ready(()))
    }
}

/// What the relay has for a client.
struct FromRelay {
    driver: Arc<RelayDriver>,
    user: Arc<SharedUser>,
    id: SocketId,
    woken: Arc<Notify>,
    handle: Arc<dyn RelaySocketHandle>,
    is_closed: bool,
}

impl FrameReader for FromRelay {
    fn read<'a>(&'a mut self, into: &'a mut Vec<Frame>) -> BoxFuture<'a, Result<(), LinkEnd>> {
        Box::pin(async move {
            loop {
                if self.is_closed {
                    return Err(LinkEnd::Closed);
                }
                let output = self.user.take(self.id, self.driver.now());
                if let Some(close) = output.close {
                    self.handle.set_close(close.code(), close.reason());
                    self.is_closed = true;
                }
                into.extend(output.messages.into_iter().map(server_frame));
                into.extend(output.pieces.into_iter().map(piece_frame));
                if !into.is_empty() {
                    return Ok(());
                }
                if !self.is_closed {
                    self.woken.notified().await;
                }
            }
        })
    }
}

/// A piece of an answer.
fn piece_frame(piece: AnswerPiece) -> Frame {
    let chunk = Chunk {
        wire: piece.bytes.clone(),
        message: piece.bytes,
    };
    let body = match piece.part {
        AnswerPart::First => Body::Open(chunk),
        AnswerPart::Middle => Body::More(chunk),
        AnswerPart::Last => Body::Close(chunk),
    };
    Frame::new(
        StreamId::Only,
        Origin::Server,
        TransportEnvelope::Bare,
        body,
    )
}
