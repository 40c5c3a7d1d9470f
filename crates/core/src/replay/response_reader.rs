//! What a server says on an HTTP stream that a replay has for itself.
//!
//! It goes through a pipeline like everything on its session, so rules and viewers see it; nothing of it goes to the client.

use std::sync::Arc;

use mcp_proxy_wire::{Body, Direction, ExchangeId, Frame, Kind, Message, Origin};

use super::single_replay::decline_request;
use super::waiters::remove_replay_answers;
use crate::connection::Connection;
use crate::link::{LinkEnd, OutgoingFrame};
use crate::message_pipeline::{MessagePipeline, PipelineOutput};

/// The reading end of such a stream.
pub struct ReplayResponseReader {
    connection: Arc<Connection>,
    pipeline: MessagePipeline,
    exchange: ExchangeId,
    output: PipelineOutput,
}

impl ReplayResponseReader {
    /// The stream of one exchange.
    pub fn new(connection: &Arc<Connection>, exchange: ExchangeId) -> ReplayResponseReader {
        ReplayResponseReader {
            connection: Arc::clone(connection),
            pipeline: connection.message_pipeline(Direction::ServerToClient),
            exchange,
            output: PipelineOutput::default(),
        }
    }

    /// Records what came and takes the replay's own out of it. What is returned is for the server: it asked something, and
    /// no client is there to be asked.
    pub async fn take(
        &mut self,
        envelope: mcp_proxy_wire::TransportEnvelope,
        body: Body,
    ) -> Result<Vec<Message>, LinkEnd> {
        let frame = Frame::new(self.exchange, Origin::Server, envelope, body);
        let now = self.connection.run.now();
        self.pipeline
            .pass(&mut vec![frame], now, &mut self.output)?;
        while self.pipeline.has_held_messages() {
            self.pipeline.release(&mut self.output).await?;
        }
        remove_replay_answers(&self.connection, &mut self.output);
        let mut replies = Vec::new();
        let written = |outgoing: OutgoingFrame| match outgoing.into_written()?.body {
            Body::Message(message) => Some(message),
            _ => None,
        };
        replies.extend(self.output.reply.drain(..).filter_map(written));
        for message in self.output.forward.drain(..).filter_map(written) {
            for message in message.parts().unwrap_or_else(|| vec![message]) {
                if message.kind() == Kind::Request {
                    let answer = decline_request(&message);
                    let now = self.connection.run.now();
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
