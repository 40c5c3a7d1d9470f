//! An extension that has joined: what it says goes to the relay, and what the relay has for it is written.

use std::sync::Arc;

use mcp_proxy_core::{FrameReader, FrameWriter};
use mcp_proxy_wire::{Body, Frame};
use tokio::sync::Notify;

use super::opening_socket::{self, Joined};
use super::shared_user::SharedUser;
use super::{RelayDriver, RelaySocketHandle};
use crate::ids::SocketId;

/// Serves an extension until its socket ends or the relay closes it.
pub(super) async fn serve(driver: &Arc<RelayDriver>, id: SocketId, joined: Joined) {
    let Joined {
        user,
        link,
        handle,
        early,
        woken,
        ..
    } = joined;
    let (mut reader, mut writer) = (link.reader, link.writer);
    let is_closed_here = {
        let reading = read(driver, &user, id, &mut *reader, early);
        let writing = write(driver, &user, id, &mut *writer, &*handle, &woken);
        tokio::select! {
            () = reading => false,
            () = writing => true,
        }
    };
    writer.close().await;
    if is_closed_here {
        opening_socket::drain(&mut *reader).await;
    }
}

async fn read(
    driver: &RelayDriver,
    user: &SharedUser,
    id: SocketId,
    reader: &mut dyn FrameReader,
    mut frames: Vec<Frame>,
) {
    loop {
        for frame in frames.drain(..) {
            let Body::Whole(message) = frame.body else {
                continue;
            };
            let shown = user.change(driver.now(), |relay, now| {
                let shown = relay.renewal(id, &message);
                relay.message(id, message, now);
                shown
            });
            if let Some(Ok(credentials)) = shown {
                opening_socket::renew(driver, user, id, &credentials);
            }
        }
        if reader.read(&mut frames).await.is_err() {
            return;
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
    woken: &Notify,
) {
    loop {
        let output = user.take(id, driver.now());
        if output.is_empty() {
            woken.notified().await;
            continue;
        }
        if let Some(close) = output.close {
            handle.set_close(close.code(), close.reason());
        }
        let written = opening_socket::write(writer, output.messages).await;
        if written.is_err() || output.close.is_some() {
            return;
        }
    }
}
