//! What happened besides messages and verdicts: stderr, connections, exits, notes.
//!
//! Texts are as they were written. The panes escape control characters before they draw them.

use std::collections::VecDeque;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mcp_proxy_session::{MarkOperation, PeerInfo, RecordedLine, time_from_text};
use mcp_proxy_wire::terminal_text::sanitize_bytes;
use serde::Deserialize as _;
use serde_json::{Map, Value};

/// Events that are kept.
pub(super) const KEPT: usize = 5_000;
/// Characters of one text; what is beyond says nothing more to a person.
const LONGEST: usize = 2_000;

/// The newest events of a session, oldest first.
#[derive(Debug, Default)]
pub struct SessionEvents {
    kept: VecDeque<SessionEvent>,
    dropped: u64,
    stderr_lines: u64,
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionEvent {
    /// When.
    pub time: SystemTime,
    /// The connection's number, if it is about one.
    pub connection: Option<u32>,
    /// What sort of thing it is.
    pub kind: SessionEventKind,
    /// What is to be said about it; a line of stderr as it was written.
    pub text: String,
    /// The message that it marks, or takes the mark from.
    pub mark: Option<(u64, MarkOperation)>,
    /// The name of the server that the connection begins with, if it has one.
    pub server: Option<String>,
    /// How many messages come before it in the record.
    pub row: usize,
}

/// Sorts of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionEventKind {
    /// The server wrote a line to stderr.
    Stderr,
    /// Bytes came where a message was expected.
    Stray,
    /// A connection began.
    Open,
    /// A connection ended.
    Close,
    /// The server's process ended as it should.
    Exit,
    /// The server's process failed or was killed.
    Failed,
    /// A message could not be delivered.
    Undelivered,
    /// Lines are missing in the record.
    Gap,
    /// Somebody noted something.
    Note,
    /// The session ended.
    End,
    /// Something that a newer proxy wrote.
    Other,
}

impl SessionEvents {
    /// How many are kept.
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Whether nothing happened.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Older ones that were forgotten to save memory.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// One of them, from 0 for the oldest that is kept.
    pub fn get(&self, place: usize) -> Option<&SessionEvent> {
        self.kept.get(place)
    }

    /// All of them, oldest first; both ends can be asked.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &SessionEvent> + ExactSizeIterator {
        self.kept.iter()
    }

    /// How many lines the server wrote on stderr, as far as they were read.
    pub fn stderr_lines(&self) -> u64 {
        self.stderr_lines
    }

    pub(super) fn push(&mut self, event: SessionEvent) {
        self.stderr_lines += u64::from(event.kind == SessionEventKind::Stderr);
        if self.kept.len() >= KEPT {
            self.kept.pop_front();
            self.dropped += 1;
        }
        self.kept.push_back(event);
    }
}

impl SessionEventKind {
    /// Whether it is bad news.
    pub fn is_trouble(self) -> bool {
        use SessionEventKind::{Failed, Gap, Stray, Undelivered};
        matches!(self, Stray | Failed | Undelivered | Gap)
    }
}

impl SessionEvent {
    /// Reads a line of a record. Messages, verdicts and HTTP heads are shown elsewhere.
    pub(super) fn read(record: &RecordedLine, row: usize) -> Option<SessionEvent> {
        let word = record.member::<String>("kind").unwrap_or_default();
        let kind = match (record.kind(), word.as_str()) {
            ("" | "msg" | "act" | "session", _) | ("io", "http" | "sse") => return None,
            ("note", _) => SessionEventKind::Note,
            ("end", _) => SessionEventKind::End,
            ("io", "stderr") => SessionEventKind::Stderr,
            ("io", "stray") => SessionEventKind::Stray,
            ("io", "open") => SessionEventKind::Open,
            ("io", "close") => SessionEventKind::Close,
            ("io", "exit") if record.member::<i64>("code") == Some(0) => SessionEventKind::Exit,
            ("io", "exit") => SessionEventKind::Failed,
            ("io", "undelivered") => SessionEventKind::Undelivered,
            ("io", "gap") => SessionEventKind::Gap,
            _ => SessionEventKind::Other,
        };
        let time = record.member::<String>("timestamp");
        let connection = record.member::<String>("conn");
        let mut text = describe(record, kind);
        if let Some((end, _)) = text.char_indices().nth(LONGEST) {
            text.truncate(end);
            text.push('…');
        }
        Some(SessionEvent {
            time: time
                .and_then(|text| time_from_text(&text))
                .unwrap_or(UNIX_EPOCH),
            connection: connection.and_then(|text| text.strip_prefix('c')?.parse().ok()),
            kind,
            text,
            mark: mark_of(record),
            server: match kind {
                SessionEventKind::Open => record
                    .member::<PeerInfo>("server")
                    .and_then(|peer| peer.name),
                _ => None,
            },
            row,
        })
    }
}

fn mark_of(record: &RecordedLine) -> Option<(u64, MarkOperation)> {
    let mark = MarkOperation::named(&record.member::<String>("mark")?)?;
    Some((record.member("sequence")?, mark))
}

/// Everything that the line says: members that this build does not know are shown too.
fn describe(record: &RecordedLine, kind: SessionEventKind) -> String {
    let members: Map<String, Value> = serde_json::from_slice(&record.line).unwrap_or_default();
    let mut told = Vec::new();
    if kind == SessionEventKind::Other {
        told.push(record.kind().to_owned());
    }
    for (name, value) in &members {
        match (name.as_str(), value) {
            ("t" | "timestamp" | "conn" | "exchange" | "transport" | "direction", _) => {}
            ("kind", _) if kind != SessionEventKind::Other => {}
            // The text says it.
            ("mark", _) if kind == SessionEventKind::Note => {}
            ("text" | "why", Value::String(value)) => told.push(value.clone()),
            // Bytes that are not UTF-8.
            ("b64", Value::String(value)) => told.push(from_base64(value)),
            ("sequence", value) => told.push(format!("#{value}")),
            ("parent", value) => told.push(format!("caused by #{value}")),
            ("client" | "server", value @ Value::Object(_)) => {
                told.push(match PeerInfo::deserialize(value) {
                    Ok(peer) => format!("{name} {peer}"),
                    Err(_) => format!("{name} {value}"),
                });
            }
            (name, Value::String(value)) => told.push(format!("{name} {value}")),
            (name, value) => told.push(format!("{name} {value}")),
        }
    }
    told.join(", ")
}

fn from_base64(text: &str) -> String {
    let bytes = STANDARD.decode(text);
    bytes.map_or_else(|_| text.to_owned(), |bytes| sanitize_bytes(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<(SessionEventKind, String)> {
        let line = line.to_owned().into();
        let event = SessionEvent::read(&RecordedLine { offset: 0, line }, 0)?;
        Some((event.kind, event.text))
    }

    #[test]
    fn every_line_that_is_no_message_is_told() {
        use SessionEventKind::*;
        let mut told = Vec::new();
        for (line, expected) in [
            (
                r#"{"t":"io","kind":"stderr","conn":"c1","text":"a, b"}"#,
                Some(Stderr),
            ),
            (
                r#"{"t":"io","kind":"exit","conn":"c1","code":3,"why":"exited"}"#,
                Some(Failed),
            ),
            (r#"{"t":"io","kind":"exit","code":0,"why":""}"#, Some(Exit)),
            (
                r#"{"t":"io","kind":"undelivered","sequence":4,"why":"gone"}"#,
                Some(Undelivered),
            ),
            (r#"{"t":"find","rule":7,"kind":"x"}"#, Some(Other)),
            (
                r#"{"t":"io","kind":"stderr","conn":"c1","b64":"Y2Fm6SBvayAb"}"#,
                Some(Stderr),
            ),
            (
                r#"{"t":"io","kind":"open","conn":"c2","client":{"transport":"stdio"},"server":{"name":"mock","transport":"in_process"},"parent":4}"#,
                Some(Open),
            ),
            (r#"{"t":"note","text":"here"}"#, Some(Note)),
            (
                r#"{"t":"note","sequence":4,"mark":"set","text":"x: mark set"}"#,
                Some(Note),
            ),
            (r#"{"t":"act","kind":"drop","sequence":4}"#, None),
            (r#"{"t":"io","kind":"http","http":{}}"#, None),
            ("{", None),
        ] {
            let (kind, text) = read(line).unzip();
            assert_eq!(kind, expected, "{line}");
            told.extend(text);
        }
        insta::assert_snapshot!("event_texts", told.join("\n"));
        assert!(Failed.is_trouble() && !Stderr.is_trouble());
    }

    #[test]
    fn only_the_newest_are_kept() {
        let mut events = SessionEvents::default();
        let line = r#"{"t":"io","kind":"open","conn":"c7"}"#.into();
        let one = SessionEvent::read(&RecordedLine { offset: 0, line }, 0).unwrap();
        assert_eq!(one.connection, Some(7));
        for _ in 0..KEPT + 2 {
            events.push(one.clone());
        }
        assert_eq!((events.len(), events.dropped()), (KEPT, 2));
    }
}
