//! What the client side and the extension side of a user say to each other.
//!
//! Today both sit in one process, behind one lock, and [`LocalExchange`] is two queues. Nothing in the two sides relies on that:
//! a message may take time, and the other side may be gone when it arrives. An exchange between several machines carries the
//! same messages. So they name everything by ids that hold on both sides, and no moment by the clock of one of them.

use std::collections::VecDeque;

use bytes::Bytes;
use mcp_proxy_wire::{Id, Message, Span};

use crate::command::Command;
use crate::fault::RelayFault;
use crate::ids::{ExtensionId, McpClientId, RelayConnectionId};

/// Carries messages between the sides.
pub(crate) trait Exchange {
    /// For the side that has this extension's socket.
    fn to_extension(&mut self, extension: &ExtensionId, message: ToExtension);
    /// For every side that has clients of this user.
    fn to_clients(&mut self, message: ToClients);
}

/// From a client's side.
#[derive(Debug)]
pub(crate) enum ToExtension {
    /// A client has connected.
    Attach {
        connection: RelayConnectionId,
        client: McpClientId,
    },
    /// It has left for good: what is open fails, and its tabs are free.
    Detach {
        connection: RelayConnectionId,
        reason: &'static str,
    },
    /// Its socket was lost, and it may come back: what was not sent yet is not sent.
    Suspend { connection: RelayConnectionId },
    /// A newer socket of the same client takes over: what is open fails.
    Supersede { connection: RelayConnectionId },
    /// To be carried out.
    Command(Box<Command>),
    /// How many clients of the user the sender has.
    ClientCount(usize),
}

/// From an extension's side.
#[derive(Debug)]
pub(crate) enum ToClients {
    /// An extension is there. It is told how many clients there are.
    Online {
        extension: ExtensionId,
        name: String,
    },
    /// It is not there any more.
    Offline {
        extension: ExtensionId,
        reason: &'static str,
    },
    /// What became of a command.
    Answer {
        connection: RelayConnectionId,
        number: u64,
        outcome: Result<AnswerBody, RelayFault>,
    },
    /// All open commands of a superseded socket have failed.
    Superseded { connection: RelayConnectionId },
    /// All open commands of a connection that is over have failed.
    Detached { connection: RelayConnectionId },
    /// A notification of the extension.
    Notification {
        connection: RelayConnectionId,
        message: Message,
    },
}

/// The answer of an extension, under the id that the extension knows.
#[derive(Debug)]
pub(crate) struct AnswerBody {
    pub(crate) message: Message,
    /// What the client gets instead of some of its values.
    pub(crate) edits: Vec<(Span, Bytes)>,
}

impl AnswerBody {
    /// The answer for the client that gave its command this id.
    pub(crate) fn under(&self, id: &Id) -> Message {
        let edits = self.edits.iter().map(|(span, new)| (*span, &**new));
        let edits: Vec<(Span, &[u8])> = edits.collect();
        let restated = self.message.restated(id, &edits);
        restated.unwrap_or_else(|| RelayFault::UnusableAnswer.answer(Some(id)))
    }
}

/// Both sides in one process.
#[derive(Debug)]
pub(crate) struct LocalExchange {
    pub(crate) for_extensions: VecDeque<(ExtensionId, ToExtension)>,
    pub(crate) for_clients: VecDeque<ToClients>,
}

impl Default for LocalExchange {
    fn default() -> LocalExchange {
        LocalExchange {
            // There is seldom more than one message at once, and a queue begins with room for four.
            for_extensions: VecDeque::with_capacity(1),
            for_clients: VecDeque::with_capacity(1),
        }
    }
}

impl Exchange for LocalExchange {
    fn to_extension(&mut self, extension: &ExtensionId, message: ToExtension) {
        self.for_extensions.push_back((extension.clone(), message));
    }

    fn to_clients(&mut self, message: ToClients) {
        self.for_clients.push_back(message);
    }
}
