//! `io` and `note` lines: what happened besides messages and verdicts.

use super::line::LineWriter;
use crate::entry::Io;
use mcp_proxy_wire::Carriage;
use std::time::SystemTime;

impl LineWriter {
    /// One thing that happened.
    pub(super) fn io(&mut self, time: SystemTime, io: &Io<'_>) {
        match io {
            Io::Note { text } => {
                self.open("note", time);
                self.text("text", text);
                self.close();
                return;
            }
            Io::Mark {
                sequence,
                mark,
                text,
            } => {
                self.open("note", time);
                self.number("sequence", *sequence);
                self.word("mark", mark.as_str());
                self.text("text", text);
                self.close();
                return;
            }
            _ => self.open("io", time),
        }
        match *io {
            Io::Stderr { connection, line } => {
                self.word("kind", "stderr");
                self.connection(connection);
                self.noise(line);
            }
            Io::Stray {
                connection,
                direction,
                bytes,
            } => {
                self.word("kind", "stray");
                self.connection(connection);
                self.word("direction", direction.as_str());
                self.noise(bytes);
            }
            Io::Http {
                connection,
                exchange,
                direction,
                transport,
                carriage,
            } => {
                let event = matches!(carriage, Carriage::Event(_));
                self.word("kind", if event { "sse" } else { "http" });
                self.connection(connection);
                self.number("exchange", exchange);
                self.word("direction", direction.as_str());
                self.word("transport", transport.as_str());
                self.carriage(carriage);
                if let Carriage::Event(event) = carriage {
                    self.noise(&event.wire);
                }
            }
            Io::Open { connection, facts } => {
                self.word("kind", "open");
                self.connection(connection);
                for (name, value) in facts {
                    self.fact(name, value);
                }
            }
            Io::Close { connection, why } => {
                self.word("kind", "close");
                self.connection(connection);
                self.text("why", why);
            }
            Io::Exit {
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
            Io::Undelivered { sequence, why } => {
                self.word("kind", "undelivered");
                self.number("sequence", sequence);
                self.text("why", why);
            }
            Io::Note { .. } | Io::Mark { .. } => {}
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
