//! `io` and `note` lines: what happened besides messages and verdicts.

use super::line::RecordLineWriter;
use crate::record_input::RecordEvent;
use mcp_proxy_wire::TransportEnvelope;
use std::time::SystemTime;

impl RecordLineWriter {
    /// One thing that happened.
    pub(super) fn record_event(&mut self, time: SystemTime, io: &RecordEvent<'_>) {
        match io {
            RecordEvent::Note { text } => {
                self.open("note", time);
                self.text("text", text);
                self.close();
                return;
            }
            RecordEvent::UserNote { sequence, by, text } => {
                self.open("note", time);
                if let Some(sequence) = sequence {
                    self.number("sequence", *sequence);
                }
                self.text("by", by);
                self.text("text", text);
                self.close();
                return;
            }
            RecordEvent::Mark { sequence, mark, by } => {
                self.open("note", time);
                self.number("sequence", *sequence);
                self.word("mark", mark.as_str());
                self.text("by", by);
                self.text("text", &format!("mark {}", mark.as_str()));
                self.close();
                return;
            }
            _ => self.open("io", time),
        }
        match *io {
            RecordEvent::Stderr { connection, line } => {
                self.word("kind", "stderr");
                self.connection(connection);
                self.noise(line);
            }
            RecordEvent::Stray {
                connection,
                direction,
                bytes,
            } => {
                self.word("kind", "stray");
                self.connection(connection);
                self.word("direction", direction.as_str());
                self.noise(bytes);
            }
            RecordEvent::Http {
                connection,
                exchange,
                direction,
                transport,
                envelope,
            } => {
                let event = matches!(envelope, TransportEnvelope::Event(_));
                self.word("kind", if event { "sse" } else { "http" });
                self.connection(connection);
                self.number("exchange", exchange);
                self.word("direction", direction.as_str());
                self.word("transport", transport.as_str());
                self.envelope(envelope);
                if let TransportEnvelope::Event(event) = envelope {
                    self.noise(&event.wire);
                }
            }
            RecordEvent::Open {
                connection,
                client,
                server,
                parent,
            } => {
                self.word("kind", "open");
                self.connection(connection);
                self.peer("client", client);
                self.peer("server", server);
                if let Some(parent) = parent {
                    self.number("parent", parent);
                }
            }
            RecordEvent::Close { connection, why } => {
                self.word("kind", "close");
                self.connection(connection);
                self.text("why", why);
            }
            RecordEvent::Exit {
                connection,
                code,
                signal,
                why,
            } => {
                self.word("kind", "exit");
                self.connection(connection);
                if let Some(code) = code {
                    self.signed("code", i64::from(code));
                }
                if let Some(signal) = signal {
                    self.signed("signal", i64::from(signal));
                }
                self.text("why", why);
            }
            RecordEvent::Undelivered { sequence, why } => {
                self.word("kind", "undelivered");
                self.number("sequence", sequence);
                self.text("why", why);
            }
            RecordEvent::Note { .. } | RecordEvent::UserNote { .. } | RecordEvent::Mark { .. } => {}
        }
        self.close();
    }

    /// Lines are missing here: the disk failed for a while.
    pub(super) fn gap(&mut self, time: SystemTime, lost: u64) {
        self.open("io", time);
        self.word("kind", "gap");
        self.number("lost", lost);
        self.close();
    }
}
