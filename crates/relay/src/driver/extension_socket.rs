//! An extension that has joined: what it says goes to the relay, and what the relay has for it is written.

use std::sync::Arc;

use mcp_proxy_core::{FrameReader, FrameWriter, LinkEnd};
use mcp_proxy_wire::{Body, Frame, Message};
use tokio::sync::Notify;

use super::opening_socket::{self, AuthenticatedSocket};
use super::shared_user::SharedUser;
use super::{RelayDriver, RelaySocketHandle};
use crate::ids::SocketId;

/// Serves an extension until its socket ends or the relay closes it.
pub(super) async fn serve(driver: &Arc<RelayDriver>, id: SocketId, socket: AuthenticatedSocket) {
    let AuthenticatedSocket {
        user,
        link,
        handle,
        early,
        output_ready,
        ..
    } = socket;
    let (mut reader, mut writer) = (link.reader, link.writer);
    let begun_before = handle.messages_begun();
    let end = {
        let reading = read(driver, &user, id, &mut *reader, early);
        let writing = write(driver, &user, id, &mut *writer, &*handle, &output_ready);
        tokio::select! {
            end = reading => end,
            end = writing => end,
        }
    };
    let begun = handle.messages_begun() - begun_before;
    opening_socket::note_stall(driver, &user, id, &end);
    // Its clients need not wait until it has agreed to the end.
    user.change(driver.now(), |relay, now| {
        relay.messages_begun(id, begun);
        relay.socket_closed(id, now);
    });
    opening_socket::close(&mut *writer, &mut *reader).await;
}

async fn read(
    driver: &RelayDriver,
    user: &SharedUser,
    id: SocketId,
    reader: &mut dyn FrameReader,
    mut frames: Vec<Frame>,
) -> LinkEnd {
    loop {
        let messages = frames.drain(..).filter_map(|frame| match frame.body {
            Body::Message(message) => Some(message),
            _ => None,
        });
        take_messages(driver, user, id, messages).await;
        let read = reader.read(&mut frames).await;
        for refusal in reader.refusals() {
            user.change(driver.now(), |relay, now| {
                relay.answer_refused(id, &refusal, now)
            });
        }
        if let Err(end) = read {
            return end;
        }
    }
}

/// Hands messages to the relay. Credentials among them are checked before the next one is handed on.
async fn take_messages(
    driver: &RelayDriver,
    user: &SharedUser,
    id: SocketId,
    mut messages: impl Iterator<Item = Message>,
) {
    let mut is_done = false;
    while !is_done {
        let shown = user.change(driver.now(), |relay, now| {
            for message in messages.by_ref() {
                let shown = relay.renewal(id, &message);
                relay.message(id, message, now);
                if shown.is_some() {
                    return shown;
                }
            }
            None
        });
        is_done = shown.is_none();
        if let Some(Ok(credentials)) = shown {
            opening_socket::renew(driver, user, id, &credentials).await;
        }
    }
}

/// Writes until the relay closes the socket, or it takes nothing any more.
async fn write(
    driver: &RelayDriver,
    user: &SharedUser,
    id: SocketId,
    writer: &mut dyn FrameWriter,
    handle: &dyn RelaySocketHandle,
    output_ready: &Notify,
) -> LinkEnd {
    loop {
        let output = user.take(id, driver.now());
        if output.is_empty() {
            output_ready.notified().await;
            continue;
        }
        if let Some(close) = output.close {
            handle.set_close(close.code(), close.reason());
        }
        if let Err(end) = opening_socket::write(writer, output.messages).await {
            return end;
        }
        if output.close.is_some() {
            return LinkEnd::Closed;
        }
    }
}
