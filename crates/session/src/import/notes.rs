//! What an export of ours says about single messages in its metadata, read back.

use crate::{MessageId, NewVerdict, timestamp};
use serde::Deserialize;
use std::time::{Duration, SystemTime};

/// The kinds of verdicts that a record of ours has.
const KINDS: [&str; 9] = [
    "hold", "forward", "modify", "drop", "refuse", "error", "answer", "delay", "redirect",
];

/// What is said about one message.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
pub(super) struct MessageNotes {
    pub(super) origin: Option<String>,
    pub(super) parent: Option<u64>,
    pub(super) server: Option<String>,
    pub(super) late: bool,
    pub(super) duplicate: bool,
    pub(super) undelivered: bool,
    request_held_ms: f64,
    verdicts: Vec<VerdictNote>,
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
struct VerdictNote {
    timestamp: String,
    kind: String,
    by: String,
    why: String,
    delay_ms: Option<f64>,
}

impl MessageNotes {
    /// The member of the metadata that holds them, by the numbers of the messages.
    pub(super) const MEMBER: &str = "proxy";

    pub(super) fn request_held(&self) -> Duration {
        millis(self.request_held_ms)
    }

    /// The verdicts on message `sequence`, without bytes.
    pub(super) fn verdicts(
        &self,
        sequence: u64,
        id: MessageId,
        received: SystemTime,
    ) -> Vec<NewVerdict> {
        let read = |note: &VerdictNote| {
            let kind = KINDS.into_iter().find(|kind| *kind == note.kind)?;
            Some(NewVerdict {
                time: timestamp::parse(&note.timestamp).unwrap_or(received),
                sequence: Some(sequence),
                message: Some(id),
                kind,
                by: note.by.clone(),
                why: note.why.clone(),
                delay: note.delay_ms.map(millis),
                original_raw: None,
                raw: None,
            })
        };
        self.verdicts.iter().filter_map(read).collect()
    }
}

fn millis(number: f64) -> Duration {
    Duration::try_from_secs_f64(number / 1000.0).unwrap_or_default()
}
