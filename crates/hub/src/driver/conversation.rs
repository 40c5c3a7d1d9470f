//! One conversation with a server: dialled, carried, and reported to the hub.

use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use mcp_proxy_core::{
    CarryEnd, Dial, Link, LinkEnd, LinkFailure, NewConnection, Peer, QueueReader, carry,
};
use mcp_proxy_wire::Frame;
use tokio::sync::mpsc;

use super::HubDriver;
use super::tracking_writer::{TrackingWriter, WriteTracker};
use super::writers::LinkWriter;
use crate::hub::{LinkClosed, WrittenUpTo};
use crate::server_link::LinkId;
use crate::sign_in_need::SignInNeed;

impl HubDriver {
    /// One conversation with a server, from its start to its end.
    pub(super) async fn converse(
        self: Arc<Self>,
        link: LinkId,
        peer: Peer,
        dial: Dial,
        queue: mpsc::Receiver<Box<Frame>>,
    ) {
        let connection = self.run.open(NewConnection::between(
            Peer::in_process("hub"),
            peer.clone(),
        ));
        let mut ending = self.ending.subscribe();
        let mut ended = pin!(async move {
            let _ = ending.wait_for(|is_ending| *is_ending).await;
        });
        let dialled = tokio::select! {
            dialled = dial(Arc::clone(&connection)) => dialled,
            () = &mut ended => Err(LinkEnd::Closed),
        };
        let (reason, is_orderly, sign_in) = match dialled {
            Ok(to_server) => {
                self.with_hub(|hub| hub.link_opened(link));
                let tracker = WriteTracker::new(to_server.writer);
                let to_server = Link {
                    writer: Box::new(TrackingWriter::new(Arc::clone(&tracker))),
                    ..to_server
                };
                let writer = LinkWriter {
                    driver: self.own.clone(),
                    link,
                    tracker: Arc::clone(&tracker),
                };
                let to_hub = Link::new(QueueReader(queue), writer);
                let end = carry(&connection, to_hub, to_server, self.carry, ended).await;
                let written = WrittenUpTo(tracker.highest_read());
                self.lock().hub.link_written(link, written);
                let (is_orderly, sign_in) = match &end {
                    CarryEnd::Server => (true, None),
                    CarryEnd::Failed(failure) => (failure.orderly, sign_in_need(failure)),
                    CarryEnd::Client | CarryEnd::Stopped => (false, None),
                };
                (end.text().to_owned(), is_orderly, sign_in)
            }
            Err(LinkEnd::Failed(failure)) => {
                let sign_in = sign_in_need(&failure);
                (failure.text, false, sign_in)
            }
            Err(LinkEnd::Closed) => (LinkEnd::Closed.to_string(), false, None),
        };
        connection.close(&reason);
        self.with_state(|state| {
            state.links.remove(&link);
            if !state.is_closing {
                let closed = LinkClosed {
                    reason,
                    is_orderly,
                    sign_in,
                };
                state.hub.link_closed(link, &closed, Instant::now());
            }
        });
    }
}

fn sign_in_need(failure: &LinkFailure) -> Option<SignInNeed> {
    SignInNeed::of_failure(failure.code, &failure.text, failure.data.as_deref())
}
