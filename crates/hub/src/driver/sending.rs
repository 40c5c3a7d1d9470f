//! Puts messages into the queues of clients and servers, if there is room for them.

use mcp_proxy_wire::{ErrorCode, Frame, Kind, Message, Origin, StreamId, error_response};

use super::DriverState;
use super::client_queue::Queued;
use crate::server_link::{ClientId, LinkId};

/// Who would have had to answer a message that there is no room for. The refusal is taken for its answer.
#[derive(Clone, Copy, Debug)]
pub(super) enum RefusedBy {
    Client(ClientId),
    Server(LinkId),
}

/// What became of a message to a client.
#[derive(Debug, Default)]
pub(super) struct SentToClient {
    /// What the operator is told.
    pub(super) report: Option<String>,
    /// What a server's question is answered with, because there is no room for it.
    pub(super) refusal: Option<Message>,
}

/// A message that is to wait, or what takes its place if there is no room for it.
enum Held {
    /// It counts as long as it exists.
    Message(Message),
    /// Its receiver gets this instead of an answer.
    Instead(Message),
    /// Its sender gets this as the answer.
    Answer(Message),
    /// Nobody waits for it.
    Nothing,
}

impl DriverState {
    /// The answer to a request that there is no room for.
    pub(super) fn send_to_server(
        &mut self,
        link: LinkId,
        message: Message,
        parent: Option<u64>,
    ) -> Option<Message> {
        let queue = self.links.get(&link)?;
        let message = match self.hold(message) {
            Held::Message(message) | Held::Instead(message) => message,
            Held::Answer(answer) => return Some(answer),
            Held::Nothing => return None,
        };
        let mut frame = Frame::message(StreamId::Only, Origin::Client, message);
        frame.parent = parent;
        if queue.try_send(Box::new(frame)).is_err() {
            // It has not read for thousands of messages. Ending the conversation tells everybody who waits.
            self.links.remove(&link);
        }
        None
    }

    /// A client that has fallen behind loses notifications. The operator is told once for each client.
    pub(super) fn send_to_client(&mut self, client: ClientId, message: Message) -> SentToClient {
        let mut sent = SentToClient::default();
        let Some(queue) = self.clients.get(&client) else {
            return sent;
        };
        let queued = match self.hold(message) {
            Held::Message(message) | Held::Instead(message) => queue.push(message),
            Held::Nothing => queue.note_lost(),
            Held::Answer(answer) => {
                sent.refusal = Some(answer);
                return sent;
            }
        };
        match queued {
            Queued::Waits => {}
            Queued::Lost { is_first } => {
                self.lost_notifications += 1;
                sent.report = is_first.then(|| {
                    let name = self.hub.client_name(client).unwrap_or_default();
                    format!("client {name:?} does not read fast enough, so it loses notifications")
                });
            }
            Queued::Refused => {
                self.clients.remove(&client);
                let text = "a client was disconnected: it reads none of its answers";
                sent.report = Some(text.to_owned());
            }
        }
        sent
    }

    /// Counts a message as long as it waits.
    fn hold(&self, message: Message) -> Held {
        let (kind, id) = (message.kind(), message.id());
        let over = match message.try_rehouse(|bytes| self.memory.hold(bytes)) {
            Ok(message) => return Held::Message(message),
            Err(over) => over,
        };
        let code = ErrorCode::MEMORY_BUDGET;
        let error = || error_response(id.as_ref(), code, &over.to_string(), None);
        match kind {
            Kind::Request => Held::Answer(error()),
            Kind::Response | Kind::Error | Kind::Batch => Held::Instead(error()),
            Kind::Notification | Kind::Other | Kind::Malformed => Held::Nothing,
        }
    }
}
