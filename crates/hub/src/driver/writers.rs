//! What the pumps write to: the hub, which handles each message at once.

use std::sync::{Arc, Weak};
use std::time::Instant;

use mcp_proxy_core::{BoxFuture, FrameWriter, LinkEnd, OutgoingFrame};
use mcp_proxy_wire::{Body, Message, Origin};

use super::HubDriver;
use super::tracking_writer::WriteTracker;
use crate::hub::{Hub, WrittenUpTo};
use crate::server_link::{ClientId, LinkId};

/// Hands a client's messages to the hub.
pub(super) struct ClientWriter {
    pub(super) driver: Weak<HubDriver>,
    pub(super) client: ClientId,
}

/// Hands a server's messages to the hub.
pub(super) struct LinkWriter {
    pub(super) driver: Weak<HubDriver>,
    pub(super) link: LinkId,
    pub(super) tracker: Arc<WriteTracker>,
}

/// Where a message comes from.
struct MessageSource {
    /// Its number in the record.
    sequence: Option<u64>,
    origin: Origin,
}

/// Lets the hub handle each message, with its number in the record. There is nothing to wait for.
///
/// A message is dropped when it was handled: what is made of a large one frees it before its client asks for the next.
fn hand_over(
    driver: &Weak<HubDriver>,
    frames: &mut Vec<OutgoingFrame>,
    handle: impl Fn(&mut Hub, Message, MessageSource),
) -> BoxFuture<'static, Result<(), LinkEnd>> {
    let Some(driver) = driver.upgrade() else {
        return Box::pin(std::future::ready(Err(LinkEnd::Closed)));
    };
    for frame in frames.drain(..).filter_map(OutgoingFrame::into_written) {
        let source = MessageSource {
            sequence: frame.sequence,
            origin: frame.origin,
        };
        if let Body::Message(message) = frame.body {
            driver.with_hub(|hub| handle(hub, message, source));
        }
    }
    Box::pin(std::future::ready(Ok(())))
}

impl FrameWriter for ClientWriter {
    fn write<'a>(
        &'a mut self,
        frames: &'a mut Vec<OutgoingFrame>,
    ) -> BoxFuture<'a, Result<(), LinkEnd>> {
        hand_over(&self.driver, frames, |hub, message, source| {
            hub.client_message(self.client, &message, source.sequence, Instant::now());
        })
    }

    fn close(&mut self) -> BoxFuture<'_, ()> {
        if let Some(driver) = self.driver.upgrade() {
            driver.with_hub(|hub| hub.client_finished(self.client));
        }
        Box::pin(std::future::ready(()))
    }
}

impl Drop for ClientWriter {
    fn drop(&mut self) {
        if let Some(driver) = self.driver.upgrade() {
            driver.lock().clients.remove(&self.client);
            driver.with_hub(|hub| hub.client_closed(self.client, Instant::now()));
        }
    }
}

impl FrameWriter for LinkWriter {
    fn write<'a>(
        &'a mut self,
        frames: &'a mut Vec<OutgoingFrame>,
    ) -> BoxFuture<'a, Result<(), LinkEnd>> {
        hand_over(&self.driver, frames, |hub, message, source| {
            // An error may be the proxy's own, about a server that has gone.
            if message.error_code().is_some() {
                let written = WrittenUpTo(self.tracker.highest_read());
                hub.link_written(self.link, written);
            }
            hub.link_message(self.link, &message, source.origin, Instant::now());
        })
    }

    fn close(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}
