//! What the side of the extensions tells the side of the clients.

use bytes::Bytes;
use mcp_proxy_wire::{Id, Message, Span};

use crate::fault::RelayFault;
use crate::ids::{ExtensionId, RelayConnectionId};

/// Something that happened to an extension's connections.
#[derive(Debug)]
pub(crate) enum ExtensionEvent {
    /// The extension's socket is gone.
    Offline {
        extension: ExtensionId,
        reason: &'static str,
    },
    /// A command is over.
    Answered {
        connection: RelayConnectionId,
        number: u64,
        outcome: Result<AnswerBody, RelayFault>,
    },
    /// The extension has sent a notification for a client.
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
