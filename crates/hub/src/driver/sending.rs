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

/// What takes the place of a message that there is no room for.
enum Refusal {
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
            Ok(message) | Err(Refusal::Instead(message)) => message,
            Err(Refusal::Answer(answer)) => return Some(answer),
            Err(Refusal::Nothing) => return None,
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
            Ok(message) | Err(Refusal::Instead(message)) => queue.push(message),
            Err(Refusal::Nothing) => queue.note_lost(),
            Err(Refusal::Answer(answer)) => {
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
    fn hold(&self, message: Message) -> Result<Message, Refusal> {
        let (kind, id) = (message.kind(), message.id());
        let held = message.try_rehouse(|bytes| self.memory.hold(bytes));
        held.map_err(|over| {
            let code = ErrorCode::MEMORY_BUDGET;
            let error = || error_response(id.as_ref(), code, &over.to_string(), None);
            match kind {
                Kind::Request => Refusal::Answer(error()),
                Kind::Response | Kind::Error | Kind::Batch => Refusal::Instead(error()),
                Kind::Notification | Kind::Other | Kind::Malformed => Refusal::Nothing,
            }
        })
    }
}
