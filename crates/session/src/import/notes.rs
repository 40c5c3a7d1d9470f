//! What an export of ours says about single messages in its metadata, read back.

use crate::{MarkOperation, MessageId, NewVerdict, RecordEvent, Recorder, ReplayOrigin, timestamp};
use serde::Deserialize;
use std::time::{Duration, SystemTime};

/// The kinds of verdicts that a record of ours has.
const KINDS: [&str; 9] = [
    "hold", "forward", "modify", "drop", "refuse", "error", "answer", "delay", "redirect",
];

/// The kind of the line that names the message of a replay.
pub(crate) const REPLAY: &str = "replay";

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
    replay_of: Option<u64>,
    edited: bool,
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
                replay_of: None,
                original_raw: None,
                raw: None,
            })
        };
        let replay = self.replay_of.map(|original| NewVerdict {
            time: received,
            sequence: Some(sequence),
            message: Some(id),
            kind: REPLAY,
            by: "import".to_owned(),
            why: String::new(),
            delay: None,
            replay_of: Some(ReplayOrigin {
                sequence: original,
                is_edited: self.edited,
            }),
            original_raw: None,
            raw: None,
        });
        let verdicts = self.verdicts.iter().filter_map(read);
        replay.into_iter().chain(verdicts).collect()
    }
}

fn millis(number: f64) -> Duration {
    Duration::try_from_secs_f64(number / 1000.0).unwrap_or_default()
}

/// A note of a person, as an export has it.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
pub(super) struct ImportedNote {
    timestamp: String,
    sequence: Option<u64>,
    mark: Option<String>,
    by: String,
    text: String,
}

impl ImportedNote {
    /// The member of the metadata that holds them.
    pub(super) const MEMBER: &str = "notes";

    /// Writes it into a record, as written at `otherwise` if it has no time.
    pub(super) fn write(&self, recorder: &mut Recorder, otherwise: SystemTime) {
        let time = timestamp::parse(&self.timestamp).unwrap_or(otherwise);
        let mark = self.mark.as_deref().and_then(MarkOperation::named);
        let event = match (self.sequence, mark) {
            (Some(sequence), Some(mark)) => RecordEvent::Mark {
                sequence,
                mark,
                by: &self.by,
            },
            (sequence, _) => RecordEvent::UserNote {
                sequence,
                by: &self.by,
                text: &self.text,
            },
        };
        recorder.record_event(time, &event);
    }
}
