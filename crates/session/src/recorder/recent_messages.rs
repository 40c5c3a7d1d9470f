//! The last lines of a run that keeps no record, in memory and bounded by bytes, so that a viewer has something to show.
//!
//! They are the record's own lines, made by the same writer: what is masked or redacted in a record is here too. Lines other
//! than messages and verdicts are not kept.

use super::line::RecordLineWriter;
use super::line_redaction::{self, LineRedaction};
use crate::credential_redaction::CredentialRedaction;
use crate::line_members::{self, LineMembers};
use crate::message::{MessageWithContext, RequestSummary};
use crate::record_input::{NewBody, NewMessage, NewVerdict, RecordEvent};
use crate::session_record::{read_line, read_verdict};
use crate::{PeerInfo, Redaction, RedactionFacts, UNNAMED_SERVER};
use bytes::Bytes;
use mcp_proxy_wire::{Message, TransportEnvelope};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::SystemTime;

/// What a line costs in addition to its bytes: its place in the queue and its allocation.
const OVERHEAD: usize = 64;

/// The newest messages.
#[derive(Debug)]
pub struct RecentMessages {
    lines: RecordLineWriter,
    /// By sequence number: they are given out under the lock that this stands behind.
    kept: VecDeque<RecentMessage>,
    bytes: usize,
    limit: usize,
    /// Lines and facts that were ever added.
    added: u64,
    /// The calls that caused the connections that are open.
    parents: FxHashMap<u32, u64>,
    /// What the servers of the connections that are open are called.
    servers: FxHashMap<u32, Arc<str>>,
}

/// A message's line, and what became of it.
#[derive(Debug)]
struct RecentMessage {
    sequence: u64,
    line: Bytes,
    verdicts: Vec<Bytes>,
    undelivered: bool,
    /// The call that caused it.
    parent: Option<u64>,
    /// What the server of its connection is called.
    server: Option<Arc<str>>,
}

impl RecentMessages {
    /// A ring of at most `limit` bytes.
    pub fn new(
        limit: usize,
        masks: CredentialRedaction,
        redaction: Option<Redaction>,
    ) -> RecentMessages {
        RecentMessages {
            lines: RecordLineWriter::new(masks, redaction),
            kept: VecDeque::new(),
            bytes: 0,
            limit,
            added: 0,
            parents: FxHashMap::default(),
            servers: FxHashMap::default(),
        }
    }

    /// What is hidden in it, and the word that marks it. `None` if nothing is.
    pub fn redaction(&self) -> Option<&RedactionFacts> {
        self.lines.redaction.as_ref().map(Redaction::facts)
    }

    /// Keeps a message. Returns how many values were hidden in it.
    pub fn record_message(&mut self, message: &NewMessage<'_>) -> u32 {
        match self.lines.redaction.clone() {
            None => {
                self.keep(message, LineRedaction::Nothing);
                0
            }
            Some(redaction) => {
                let mut count = 0;
                line_redaction::redact_message(message, &redaction, |message, hidden| {
                    count = hidden.count();
                    self.keep(message, hidden);
                });
                count
            }
        }
    }

    fn keep(&mut self, message: &NewMessage<'_>, hidden: LineRedaction) {
        let is_bare = matches!(
            message.envelope,
            TransportEnvelope::Line(_) | TransportEnvelope::Bare
        );
        if matches!(message.body, NewBody::Empty) && !is_bare {
            return;
        }
        // The line tells it itself: no `open` line is kept, and its request may not be either.
        let request = message
            .answered_request
            .and_then(|asked| self.find(asked.sequence));
        let parent = message
            .parent
            .or_else(|| self.kept[request?].parent)
            .or_else(|| self.parents.get(&message.connection).copied());
        let message = &NewMessage { parent, ..*message };
        self.lines.message(message, hidden);
        let line = self.take_line();
        self.bytes += line.len() + OVERHEAD;
        self.kept.push_back(RecentMessage {
            sequence: message.sequence,
            line,
            verdicts: Vec::new(),
            undelivered: false,
            parent,
            server: self.servers.get(&message.connection).cloned(),
        });
        self.make_room();
    }

    /// Keeps a verdict, as long as its message is kept.
    pub fn record_verdict(&mut self, act: &NewVerdict) {
        match self.lines.redaction.clone() {
            None => self.keep_act(act, 0),
            Some(redaction) => {
                let (act, count) = line_redaction::redact_verdict(act, &redaction);
                self.keep_act(&act, count);
            }
        }
    }

    fn keep_act(&mut self, act: &NewVerdict, redacted: u32) {
        let Some(place) = act.sequence.and_then(|sequence| self.find(sequence)) else {
            return;
        };
        let lines = &mut self.lines;
        lines.open_verdict(act, redacted);
        for (key, raw) in [("original_raw", &act.original_raw), ("raw", &act.raw)] {
            if let Some(raw) = raw {
                lines.body_or_text(key, &Message::parse(raw.clone()), true);
            }
        }
        lines.close();
        let line = self.take_line();
        self.bytes += line.len() + OVERHEAD;
        self.kept[place].verdicts.push(line);
        self.make_room();
    }

    /// Keeps whether a message arrived, what caused a connection, and what its server is called.
    pub fn record_event(&mut self, _: SystemTime, io: &RecordEvent<'_>) {
        match io {
            RecordEvent::Undelivered { sequence, .. } => {
                if let Some(place) = self.find(*sequence) {
                    self.kept[place].undelivered = true;
                    self.added += 1;
                }
            }
            RecordEvent::Open {
                connection,
                server,
                parent,
                ..
            } => {
                if let Some(parent) = parent {
                    self.parents.insert(*connection, *parent);
                }
                let name = self.shown_name(server);
                self.servers.insert(*connection, name);
            }
            RecordEvent::Close { connection, .. } => {
                self.parents.remove(connection);
                self.servers.remove(connection);
            }
            _ => {}
        }
    }

    /// What a server is called, without what an `open` line would not have either.
    fn shown_name(&self, server: &PeerInfo) -> Arc<str> {
        let name = server.name.as_deref().unwrap_or(UNNAMED_SERVER);
        let name = self.lines.masks.string(name);
        let redaction = self.lines.redaction.as_ref();
        match redaction.and_then(|redaction| redaction.masked(name.as_bytes())) {
            Some(masked) => String::from_utf8_lossy(&masked).into(),
            None => name.into(),
        }
    }

    /// It changes whenever there is something new.
    pub fn change_count(&self) -> u64 {
        self.added
    }

    /// Bytes that are kept.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The sequence numbers of the messages that are kept: the first and the last.
    pub fn range(&self) -> Option<(u64, u64)> {
        Some((self.kept.front()?.sequence, self.kept.back()?.sequence))
    }

    /// How many messages are kept.
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// One message with the verdicts on it folded in.
    pub fn message_with_context(
        &self,
        sequence: u64,
    ) -> Option<Result<MessageWithContext, String>> {
        Some(self.build_message(&self.kept[self.find(sequence)?]))
    }

    fn build_message(&self, kept: &RecentMessage) -> Result<MessageWithContext, String> {
        let mut message = read_line(&kept.line)?;
        for verdict in &kept.verdicts {
            message.apply_verdict(read_verdict(verdict)?);
        }
        let request = message.answers.and_then(|asked| self.find(asked));
        Ok(MessageWithContext {
            message,
            server: kept.server.as_deref().map(str::to_owned),
            undelivered: kept.undelivered,
            request: request.map(|place| self.request_summary_from_line(&self.kept[place])),
        })
    }

    /// What a request asks: the forwarded version, if a verdict changed it.
    fn request_summary_from_line(&self, request: &RecentMessage) -> RequestSummary {
        if request.verdicts.is_empty() {
            return asked(&request.line);
        }
        match self.build_message(request) {
            Ok(told) if told.message.modified => RequestSummary {
                method: told.message.method.unwrap_or_else(|| "?".to_owned()),
                name: told.message.name,
            },
            _ => asked(&request.line),
        }
    }

    fn find(&self, sequence: u64) -> Option<usize> {
        self.kept
            .binary_search_by_key(&sequence, |kept| kept.sequence)
            .ok()
    }

    /// The line that was just written.
    fn take_line(&mut self) -> Bytes {
        let line = Bytes::copy_from_slice(self.lines.out.trim_ascii_end());
        self.lines.out.clear();
        self.added += 1;
        line
    }

    fn make_room(&mut self) {
        while self.bytes > self.limit
            && let Some(oldest) = self.kept.pop_front()
        {
            let lines = std::iter::once(&oldest.line).chain(&oldest.verdicts);
            self.bytes -= lines.map(|line| line.len() + OVERHEAD).sum::<usize>();
        }
    }
}

/// What a request's line says that it asks.
fn asked(line: &[u8]) -> RequestSummary {
    let mut asked = RequestSummary {
        method: "?".to_owned(),
        name: None,
    };
    let mut members = LineMembers::new(line);
    while let Some(key) = members.next_key() {
        if key.starts_with(b"raw") {
            break;
        }
        match (key, members.value()) {
            (b"method", Some(value)) => {
                asked.method = line_members::text(value).unwrap_or_default()
            }
            (b"name", Some(value)) => asked.name = line_members::text(value),
            (_, Some(_)) => {}
            (_, None) => break,
        }
    }
    asked
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::BodyInclusion;
    use crate::testing::{answers, new_message};

    fn put(ring: &mut RecentMessages, sequence: u64, raw: &str, request: Option<u64>) {
        let message = Message::parse(raw.to_owned());
        ring.record_message(&NewMessage {
            answered_request: request.map(|request| answers(request, sequence)),
            ..new_message(sequence, &TransportEnvelope::Bare, NewBody::Whole(&message))
        });
    }

    #[test]
    fn the_oldest_make_room() {
        let mut ring = RecentMessages::new(2_000, CredentialRedaction::none(), None);
        for sequence in 1..=50 {
            put(&mut ring, sequence, r#"{"method":"x"}"#, None);
        }
        assert!(ring.bytes() <= 2_000);
        let (first, last) = ring.range().unwrap();
        assert!(first > 1 && first < 49 && last == 50, "{first} {last}");
        assert_eq!(ring.change_count(), 50);
        assert!(ring.message_with_context(1).is_none());
        // One that is larger than all the room is not kept, and the ring still works.
        put(&mut ring, 51, &format!("\"{}\"", "x".repeat(3_000)), None);
        assert_eq!((ring.range(), ring.bytes()), (None, 0));
    }

    #[test]
    fn verdicts_and_requests_are_found_and_the_line_reads_back() {
        let mut ring = RecentMessages::new(1 << 20, CredentialRedaction::none(), None);
        let call = r#"{"id":1,"method":"tools/call","params":{"name":"echo"}}"#;
        put(&mut ring, 1, call, None);
        put(&mut ring, 2, r#"{"id":1,  "result":{}}"#, Some(1));
        ring.record_verdict(&NewVerdict {
            time: SystemTime::UNIX_EPOCH,
            sequence: Some(2),
            message: None,
            kind: "modify",
            by: "user".to_owned(),
            why: String::new(),
            delay: None,
            replay_of: None,
            original_raw: None,
            raw: Some(Bytes::from_static(br#"{"id":1,"result":{"a":1}}"#)),
        });
        let why = "gone";
        ring.record_event(
            SystemTime::UNIX_EPOCH,
            &RecordEvent::Undelivered { sequence: 2, why },
        );
        let told = ring.message_with_context(2).unwrap().unwrap();
        let read =
            MessageWithContext::from_json(&told.to_json(BodyInclusion::Include).into()).unwrap();
        for told in [&told, &read] {
            assert!(told.undelivered && told.message.modified);
            let asked = told.request.as_ref().unwrap();
            assert_eq!(
                (asked.method.as_str(), asked.name.as_deref()),
                ("tools/call", Some("echo"))
            );
            assert_eq!(
                told.message.raw.bytes(),
                Some(&br#"{"id":1,"result":{"a":1}}"#[..])
            );
        }
        let bare = told.to_json(BodyInclusion::Omit);
        assert!(!String::from_utf8(bare).unwrap().contains("raw"));
    }

    #[test]
    fn what_is_redacted_is_not_kept() {
        let rules = crate::RedactionRules {
            keys: vec!["password".to_owned()],
            ..Default::default()
        };
        let redaction = Redaction::new(&rules).unwrap();
        let mut ring = RecentMessages::new(1 << 20, CredentialRedaction::none(), redaction);
        put(&mut ring, 1, r#"{"password":"S3CRET"}"#, None);
        ring.record_verdict(&NewVerdict {
            time: SystemTime::UNIX_EPOCH,
            sequence: Some(1),
            message: None,
            kind: "modify",
            by: "user".to_owned(),
            why: String::new(),
            delay: None,
            replay_of: None,
            original_raw: Some(Bytes::from_static(br#"{"password":"S3CRET"}"#)),
            raw: None,
        });
        let told = ring.message_with_context(1).unwrap().unwrap();
        assert_eq!(told.message.redacted, 2);
        assert!(!format!("{told:?}").contains("S3CRET"));
        let shown = told.to_json(BodyInclusion::Include);
        let read = MessageWithContext::from_json(&shown.into()).unwrap();
        assert_eq!(read.message.redacted, 2);
    }
}
