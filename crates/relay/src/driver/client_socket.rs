//! A client that has joined: a conversation of the run, whose server is the relay.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mcp_proxy_core::{
    BoxFuture, CarryEnd, FrameReader, FrameWriter, Link, LinkEnd, LinkFailure, NewConnection,
    OutgoingFrame, Peer, carry,
};
use mcp_proxy_wire::{Body, ErrorCode, Frame, Kind, Message, Side, Transport};
use tokio::sync::{Mutex, Notify};

use super::known_tokens::KnownTokens;
use super::opening_socket::{self, AuthenticatedSocket, server_frame};
use super::shared_user::SharedUser;
use super::{RelayDriver, RelaySocketHandle};
use crate::fault::{Delivered, RelayFault};
use crate::ids::SocketId;
use crate::opening;
use crate::outbox::RelayClose;
use crate::settings::RelayAccess;

/// What the record calls the server of a client's conversation.
const RELAY: &str = "relay";

/// Serves a client until its socket ends or the relay closes it.
pub(super) async fn serve(driver: &Arc<RelayDriver>, id: SocketId, socket: AuthenticatedSocket) {
    let AuthenticatedSocket {
        user,
        link,
        handle,
        caller,
        early,
        output_ready,
        name,
        token,
        ..
    } = socket;
    let mut client = Peer::new(Transport::WebSocket).named(&name);
    client.caller = caller;
    let run = &driver.options.run;
    let connection = run.open(NewConnection::between(client, Peer::in_process(RELAY)));
    // Without a check any word can be a "token", also one that every command contains.
    let token = match driver.options.settings.access {
        RelayAccess::Tokens => token,
        RelayAccess::Direct => String::new(),
    };
    let reader = Arc::new(Mutex::new(link.reader));
    let client = Link {
        reader: Box::new(CredentialFilter {
            inner: Arc::clone(&reader),
            driver: Arc::clone(driver),
            user: Arc::clone(&user),
            id,
            early,
            tokens: KnownTokens::new(&token),
        }),
        writer: Box::new(ToClient {
            inner: link.writer,
            driver: Arc::clone(driver),
            user: Arc::clone(&user),
            id,
        }),
        finish: link.finish,
    };
    let has_left = Arc::new(AtomicBool::new(false));
    let server = Link::new(
        FromRelay {
            driver: Arc::clone(driver),
            user: Arc::clone(&user),
            id,
            output_ready: Arc::clone(&output_ready),
            has_left: Arc::clone(&has_left),
            handle,
            closed: None,
        },
        ToRelay {
            driver: Arc::clone(driver),
            user,
            id,
            output_ready,
            has_left,
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

/// Keeps tokens out of the conversation, and so out of the record: what shows one ends here.
struct CredentialFilter {
    /// Shared, because the socket is read on when the conversation has ended.
    inner: Arc<Mutex<Box<dyn FrameReader>>>,
    driver: Arc<RelayDriver>,
    user: Arc<SharedUser>,
    id: SocketId,
    early: Vec<Frame>,
    tokens: KnownTokens,
}

impl FrameReader for CredentialFilter {
    fn read<'a>(&'a mut self, into: &'a mut Vec<Frame>) -> BoxFuture<'a, Result<(), LinkEnd>> {
        Box::pin(async move {
            let known = into.len();
            loop {
                if self.early.is_empty() {
                    let mut inner = self.inner.lock().await;
                    let read = inner.read(&mut self.early).await;
                    let refused = inner.refusals();
                    drop(inner);
                    for refusal in refused {
                        self.answer(&refusal, &RelayFault::NoRoom(Delivered::No));
                    }
                    read.inspect_err(|end| {
                        opening_socket::note_stall(&self.driver, &self.user, self.id, end)
                    })?;
                }
                // A handshake may take time, and this can be cancelled meanwhile. It is checked when nothing else is ready, and
                // stays first in line until it has been.
                let handshake = self.early.iter().position(is_handshake);
                let before = handshake.unwrap_or(self.early.len());
                let frames: Vec<Frame> = self.early.drain(..before).collect();
                into.extend(frames.into_iter().filter(|frame| !self.takes(frame)));
                if into.len() > known {
                    return Ok(());
                }
                if handshake.is_some() {
                    self.check_first().await;
                    self.early.remove(0);
                }
            }
        })
    }
}

impl CredentialFilter {
    /// Takes a frame out of the conversation if it shows a token and is not a handshake.
    fn takes(&self, frame: &Frame) -> bool {
        let Body::Message(message) = &frame.body else {
            return false;
        };
        let is_taken = self.tokens.are_shown_by(message);
        if is_taken {
            self.refuse(message);
        }
        is_taken
    }

    /// Checks the handshake that is first in line.
    async fn check_first(&mut self) {
        let Some(Body::Message(handshake)) = self.early.first().map(|frame| &frame.body) else {
            return;
        };
        let (driver, user) = (&self.driver, &self.user);
        let access = driver.options.settings.access;
        match opening::client_credentials(handshake, access) {
            Ok(credentials) => {
                let is_good = opening_socket::renew(driver, user, self.id, &credentials).await;
                if is_good && access == RelayAccess::Tokens {
                    self.tokens.renew(&credentials.token);
                }
            }
            Err(fault) => self.answer(handshake, &fault),
        }
    }

    fn refuse(&self, message: &Message) {
        let fault = RelayFault::InvalidParams("tokens belong in mcp_handshake");
        match message.kind() {
            Kind::Request => self.answer(message, &fault),
            // The relay does nothing with these, and knows which of them have an answer.
            _ => self.user.change(self.driver.now(), |relay, now| {
                relay.message(self.id, message.clone(), now)
            }),
        }
    }

    /// Answers a request, or what stands for it. The answer is recorded, and its id must not show a token either.
    fn answer(&self, request: &Message, fault: &RelayFault) {
        let id = request.id().filter(|id| !self.tokens.are_in(id.token()));
        self.user.change(self.driver.now(), |relay, now| {
            relay.refuse_request(self.id, id.as_ref(), fault, now)
        });
    }
}

fn is_handshake(frame: &Frame) -> bool {
    matches!(&frame.body, Body::Message(message) if opening::is_handshake(message))
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
    output_ready: Arc<Notify>,
    has_left: Arc<AtomicBool>,
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
                if let Body::Message(message) = frame.body {
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
        self.has_left.store(true, Ordering::Relaxed);
        self.output_ready.notify_one();
        Box::pin(std::future::ready(()))
    }
}

/// What the relay has for a client.
struct FromRelay {
    driver: Arc<RelayDriver>,
    user: Arc<SharedUser>,
    id: SocketId,
    output_ready: Arc<Notify>,
    /// The client has left, and nothing more comes for it.
    has_left: Arc<AtomicBool>,
    handle: Arc<dyn RelaySocketHandle>,
    closed: Option<RelayClose>,
}

impl FrameReader for FromRelay {
    fn read<'a>(&'a mut self, into: &'a mut Vec<Frame>) -> BoxFuture<'a, Result<(), LinkEnd>> {
        Box::pin(async move {
            loop {
                if let Some(close) = self.closed {
                    return Err(closed(close));
                }
                let output = self.user.take(self.id, self.driver.now());
                if let Some(close) = output.close {
                    self.handle.set_close(close.code(), close.reason());
                    self.closed = Some(close);
                }
                into.extend(output.messages.into_iter().map(server_frame));
                if !into.is_empty() {
                    return Ok(());
                }
                if self.has_left.load(Ordering::Relaxed) {
                    return Err(LinkEnd::Closed);
                }
                if self.closed.is_none() {
                    self.output_ready.notified().await;
                }
            }
        })
    }
}

/// The end of a conversation that the relay closes. Requests that are still open are answered with this.
fn closed(close: RelayClose) -> LinkEnd {
    let fault = close.fault_of_unanswered();
    LinkEnd::Failed(LinkFailure {
        side: Side::Server,
        code: ErrorCode(fault.code()),
        text: fault.to_string(),
        orderly: true,
        data: Some(fault.data()),
    })
}
