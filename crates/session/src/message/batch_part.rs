//! What is known about each part of a batch.

use crate::MessageId;
use mcp_proxy_wire::Message;
use std::time::Duration;

/// One part of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchPart {
    /// The part's kind, as a word.
    pub kind: String,
    /// The raw token of its id.
    pub jsonrpc_id: Option<String>,
    /// Its method.
    pub method: Option<String>,
    /// The request that it answers.
    pub correlated_id: Option<MessageId>,
    /// How long the answer took.
    pub latency: Option<Duration>,
}

impl BatchPart {
    fn of(message: &Message) -> BatchPart {
        let token = message.id_token();
        BatchPart {
            kind: message.kind().as_str().to_owned(),
            jsonrpc_id: token.map(|token| String::from_utf8_lossy(token).into_owned()),
            method: message.method().map(|method| method.into_owned()),
            correlated_id: None,
            latency: None,
        }
    }
}

/// The parts as the bytes of a message tell them; none if it is not a batch.
pub(crate) fn batch_parts(message: &Message) -> Vec<BatchPart> {
    let parts = message.parts().unwrap_or_default();
    parts.iter().map(BatchPart::of).collect()
}

/// The parts of a changed message. One that was there before answers what it answered.
pub(super) fn updated_batch_parts(message: &Message, before: &[BatchPart]) -> Vec<BatchPart> {
    let mut parts = batch_parts(message);
    for part in parts.iter_mut().filter(|part| part.method.is_none()) {
        let same =
            |known: &&BatchPart| known.method.is_none() && known.jsonrpc_id == part.jsonrpc_id;
        if let Some(known) = before.iter().find(same) {
            (part.correlated_id, part.latency) = (known.correlated_id, known.latency);
        }
    }
    parts
}
