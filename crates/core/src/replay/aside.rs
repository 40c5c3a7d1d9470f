//! What a server says on an HTTP stream that a replay has for itself.
//!
//! It goes through a lane like everything on its session, so rules and viewers see it; nothing of it goes to the client.

use std::sync::Arc;

use mcp_proxy_wire::{Body, Direction, ExchangeId, Frame, Kind, Message, Origin};

use super::awaited::Sieve;
use super::once::reply;
use crate::connection::Connection;
use crate::lane::{Lane, Passed};
use crate::link::{LinkEnd, Outgoing};

/// The reading end of such a stream.
pub struct Aside {
    connection: Arc<Connection>,
    lane: Lane,
    exchange: ExchangeId,
    sieve: Sieve,
    passed: Passed,
}

impl Aside {
    /// The stream of one exchange.
    pub fn new(connection: &Arc<Connection>, exchange: ExchangeId) -> Aside {
        Aside {
            connection: Arc::clone(connection),
            lane: connection.lane(Direction::ServerToClient),
            exchange,
            sieve: Sieve::default(),
            passed: Passed::default(),
        }
    }

    /// Records what came and takes the replay's own out of it. What is returned is for the server: it asked something, and
    /// no client is there to be asked.
    pub async fn take(
        &mut self,
        carriage: mcp_proxy_wire::Carriage,
        body: Body,
    ) -> Result<Vec<Message>, LinkEnd> {
        let frame = Frame::new(self.exchange, Origin::Server, carriage, body);
        let now = self.connection.pipeline.now();
        self.lane.pass(&mut vec![frame], now, &mut self.passed)?;
        while self.lane.holds() {
            self.lane.release(&mut self.passed).await?;
        }
        self.sieve.sift(&self.connection, &mut self.passed);
        let mut replies = Vec::new();
        let written = |outgoing: Outgoing| match outgoing.into_written()?.body {
            Body::Whole(message) => Some(message),
            _ => None,
        };
        replies.extend(self.passed.back.drain(..).filter_map(written));
        for message in self.passed.on.drain(..).filter_map(written) {
            for message in message.parts().unwrap_or_else(|| vec![message]) {
                if message.kind() == Kind::Request {
                    let answer = reply(&message);
                    let now = self.connection.pipeline.now();
                    self.connection.author(
                        Direction::ClientToServer,
                        self.exchange,
                        answer.clone(),
                        now,
                    )?;
                    replies.push(answer);
                }
            }
        }
        Ok(replies)
    }
}
