//! Puts messages into the queues of clients and servers, if there is room for them.

use std::convert::Infallible;

use mcp_proxy_core::MemoryBudget;
use mcp_proxy_wire::{Frame, Kind, Message, Origin, StreamId};

use super::DriverState;
use super::client_queue::{LosableKind, Queued, losable_kind};
use crate::server_link::{ClientId, LinkId};

/// The most bytes of a notification that waits even if memory is full, because its receiver cannot do without it.
const ALWAYS_HELD: usize = 64 << 10;

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
#[derive(Debug)]
enum Held {
    /// It counts as long as it exists.
    Message(Message),
    /// Its receiver gets this instead of an answer.
    Instead(Message),
    /// Its sender gets this as the answer.
    Answer(Message),
    /// Nobody waits for it, and its receiver can do without it.
    Losable(LosableKind, Message),
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
        let message = match hold(&self.memory, message) {
            Held::Message(message) | Held::Instead(message) => message,
            Held::Answer(answer) => return Some(answer),
            Held::Losable(..) => return None,
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
        let queued = match hold(&self.memory, message) {
            Held::Message(message) | Held::Instead(message) => queue.push(message),
            Held::Losable(kind, message) => queue.miss(kind, message),
            Held::Answer(answer) => {
                sent.refusal = Some(answer);
                return sent;
            }
        };
        match queued {
            Queued::Waits => {}
            Queued::Lost { is_first } => {
                sent.report = is_first.then(|| {
                    let name = self.hub.client_name(client).unwrap_or_default();
                    format!("client {name:?} does not read fast enough, so it loses notifications")
                });
            }
            Queued::Refused => {
                self.clients.remove(&client);
                let name = self.hub.client_name(client).unwrap_or_default();
                let text = format!("client {name:?} was disconnected: it stopped reading");
                sent.report = Some(text);
            }
        }
        sent
    }
}

/// Counts a message as long as it waits.
fn hold(memory: &MemoryBudget, message: Message) -> Held {
    let (kind, id) = (message.kind(), message.id());
    let notification = (kind == Kind::Notification).then(|| message.clone());
    let over = match message.try_rehouse(|bytes| memory.hold(bytes)) {
        Ok(message) => return Held::Message(message),
        Err(over) => over,
    };
    if let Some(notification) = notification {
        return hold_notification(memory, notification);
    }
    let error = over.answer(id.as_ref());
    match kind {
        Kind::Request => Held::Answer(error),
        _ => Held::Instead(error),
    }
}

/// A notification that there is no room for.
fn hold_notification(memory: &MemoryBudget, notification: Message) -> Held {
    let kind = match losable_kind(&notification) {
        Some(LosableKind::Event) => return Held::Losable(LosableKind::Event, notification),
        kind => kind,
    };
    if notification.len() > ALWAYS_HELD {
        return Held::Losable(LosableKind::Event, notification);
    }
    let Ok(held) = notification.try_rehouse(|bytes| Ok::<_, Infallible>(memory.hold_anyway(bytes)));
    match kind {
        Some(kind) => Held::Losable(kind, held),
        None => Held::Message(held),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(text: &'static str) -> Held {
        hold(&MemoryBudget::new(10), Message::parse(text))
    }

    #[test]
    fn a5_a_full_budget_loses_only_events() {
        for event in ["message", "progress", "tasks/status"] {
            let text = format!(r#"{{"jsonrpc":"2.0","method":"notifications/{event}"}}"#);
            let held = held(text.leak());
            assert!(
                matches!(held, Held::Losable(LosableKind::Event, _)),
                "{held:?}"
            );
        }
        for change in ["tools/list_changed", "resources/updated"] {
            let text = format!(r#"{{"jsonrpc":"2.0","method":"notifications/{change}"}}"#);
            let held = held(text.leak());
            assert!(
                matches!(held, Held::Losable(LosableKind::Change, _)),
                "{held:?}"
            );
        }
        for needed in ["initialized", "cancelled", "subscriptions/acknowledged"] {
            let text = format!(r#"{{"jsonrpc":"2.0","method":"notifications/{needed}"}}"#);
            let held = held(text.leak());
            assert!(matches!(held, Held::Message(_)), "{held:?}");
        }
        let request = held(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
        assert!(matches!(request, Held::Answer(_)), "{request:?}");
        let answer = held(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        assert!(matches!(answer, Held::Instead(_)), "{answer:?}");
    }
}
