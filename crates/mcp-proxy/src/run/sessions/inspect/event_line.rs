//! Lines of a record that are not messages, as one line of text: stderr, connections, exits, verdicts, notes, and
//! kinds that a newer proxy wrote.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mcp_proxy_session::{HttpHead, PeerInfo, RecordedLine};
use serde::Deserialize as _;
use serde_json::{Map, Value};

use crate::run::sessions::formatting;
use mcp_proxy_wire::terminal_text::{sanitize, sanitize_bytes};

/// A line of text beyond this says nothing more to a person.
const LONGEST: usize = 500;

/// Something that happened.
pub struct EventLine {
    /// Time of day.
    pub time: String,
    /// The connection's number.
    pub connection: Option<u32>,
    /// What happened, harmless to a terminal.
    pub text: String,
    /// Whether it is bad news.
    pub trouble: bool,
}

impl EventLine {
    /// Reads any line but a `msg`.
    pub fn read(record: &RecordedLine) -> EventLine {
        let timestamp = record.member::<String>("timestamp").unwrap_or_default();
        let connection = record.member::<String>("conn");
        let kind = record.member::<String>("kind").unwrap_or_default();
        let failed = kind == "exit" && record.member::<i64>("code") != Some(0);
        let text = if record.kind() == "act" {
            verdict(record, &kind)
        } else {
            describe(record, &kind)
        };
        EventLine {
            time: formatting::cut(&sanitize(timestamp.get(11..23).unwrap_or("")), 12),
            connection: connection.and_then(|text| text.strip_prefix('c')?.parse().ok()),
            text: formatting::cut(&text, LONGEST),
            trouble: failed || matches!(kind.as_str(), "undelivered" | "gap" | "stray"),
        }
    }
}

fn verdict(record: &RecordedLine, kind: &str) -> String {
    let text = |name: &str| {
        record
            .member::<String>(name)
            .map(|text| sanitize(&text))
            .unwrap_or_default()
    };
    let about = record
        .member::<u64>("sequence")
        .map(|sequence| format!(" #{sequence}"))
        .unwrap_or_default();
    let why = Some(text("why")).filter(|why| !why.is_empty());
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    format!("{}{about} by {}{why}", sanitize(kind), text("by"))
}

/// What kind of thing, and everything that its line says: members that this build does not know are shown too.
fn describe(record: &RecordedLine, kind: &str) -> String {
    let members: Map<String, Value> = serde_json::from_slice(&record.line).unwrap_or_default();
    let mut text = if kind.is_empty() {
        sanitize(record.kind())
    } else {
        sanitize(kind)
    };
    if let Some(http) = record.member::<HttpHead>("http") {
        text.push_str(&format!(" {}", sanitize(&head_line(&http))));
    }
    let mut told = Vec::new();
    for (name, value) in &members {
        match (name.as_str(), value) {
            (
                "t" | "timestamp" | "kind" | "conn" | "exchange" | "transport" | "http"
                | "direction",
                _,
            ) => {}
            ("text" | "why", Value::String(value)) => told.push(sanitize(value)),
            // Bytes that are not UTF-8.
            ("b64", Value::String(value)) => told.push(from_base64(value)),
            ("sequence", value) => text.push_str(&format!(" #{value}")),
            ("parent", value) => told.push(format!("caused by #{value}")),
            ("client" | "server", value @ Value::Object(_)) => {
                let peer = PeerInfo::deserialize(value).map(|peer| peer.to_string());
                let peer = peer.unwrap_or_else(|_| value.to_string());
                told.push(format!("{name} {}", sanitize(&peer)));
            }
            (name, Value::String(value)) => {
                told.push(format!("{} {}", sanitize(name), sanitize(value)))
            }
            (name, value) => told.push(format!(
                "{} {}",
                sanitize(name),
                sanitize(&value.to_string())
            )),
        }
    }
    if told.is_empty() {
        text
    } else {
        format!("{text}: {}", told.join(", "))
    }
}

fn from_base64(text: &str) -> String {
    let bytes = STANDARD.decode(text);
    bytes.map_or_else(|_| sanitize(text), |bytes| sanitize_bytes(&bytes))
}

/// `POST /mcp HTTP/1.1`, `200 HTTP/1.1`
pub fn head_line(http: &HttpHead) -> String {
    let status = http.status.map(|status| status.to_string());
    let words = [
        http.method.as_deref(),
        http.target.as_deref(),
        status.as_deref(),
        Some(http.version.as_str()),
    ];
    words.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> EventLine {
        EventLine::read(&RecordedLine {
            offset: 0,
            line: line.to_owned().into(),
        })
    }

    #[test]
    fn every_kind_has_a_text_and_none_is_hostile() {
        let shown = |line: &str| read(line).text;
        assert_eq!(
            shown(r#"{"t":"io","kind":"stderr","conn":"c1","text":"\u001b[2Jhi"}"#),
            r"stderr: \u{1b}[2Jhi"
        );
        assert_eq!(
            shown(r#"{"t":"io","kind":"stderr","conn":"c1","b64":"Y2Fm6SBvayAb"}"#),
            r"stderr: caf\xe9 ok \u{1b}"
        );
        assert_eq!(
            shown(r#"{"t":"io","kind":"exit","conn":"c1","code":3,"why":"exited"}"#),
            "exit: code 3, exited"
        );
        assert_eq!(
            shown(r#"{"t":"io","kind":"undelivered","sequence":4,"why":"gone"}"#),
            "undelivered #4: gone"
        );
        assert_eq!(
            shown(r#"{"t":"act","kind":"drop","sequence":4,"by":"user","why":"no"}"#),
            "drop #4 by user: no"
        );
        assert_eq!(
            shown(
                r#"{"t":"io","kind":"open","conn":"c2","client":{"transport":"stdio"},"server":{"name":"\u001bx","transport":"in_process"},"parent":4}"#
            ),
            r"open: client stdio, server \u{1b}x (in process), caused by #4"
        );
        assert_eq!(
            shown(r#"{"t":"find","rule":7,"severity":"high"}"#),
            "find: rule 7, severity high"
        );
        assert_eq!(
            shown(
                r#"{"t":"io","kind":"http","http":{"status":202,"version":"HTTP/1.1","headers":[]}}"#
            ),
            "http 202 HTTP/1.1"
        );
        assert_eq!(shown("{"), "");
    }

    #[test]
    fn bad_news_is_marked() {
        assert!(read(r#"{"t":"io","kind":"exit","code":1}"#).trouble);
        assert!(read(r#"{"t":"io","kind":"exit","signal":9}"#).trouble);
        assert!(!read(r#"{"t":"io","kind":"exit","code":0}"#).trouble);
        assert!(read(r#"{"t":"io","kind":"undelivered"}"#).trouble);
    }
}
