//! Lines of a record that are no messages, as one line of text: stderr, connections, exits, verdicts, notes, and
//! kinds that a newer proxy wrote.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mcp_proxy_session::{Http, Record};
use serde_json::{Map, Value};

use crate::run::sessions::words;
use mcp_proxy_wire::visible::{visible, visible_bytes};

/// A line of text beyond this says nothing more to a person.
const LONGEST: usize = 500;

/// Something that happened.
pub struct Happening {
    /// Time of day.
    pub time: String,
    /// The connection's number.
    pub connection: Option<u32>,
    /// What happened, harmless to a terminal.
    pub text: String,
    /// Whether it is bad news.
    pub trouble: bool,
}

impl Happening {
    /// Reads any line but a `msg`.
    pub fn read(record: &Record) -> Happening {
        let timestamp = record.member::<String>("timestamp").unwrap_or_default();
        let connection = record.member::<String>("conn");
        let kind = record.member::<String>("kind").unwrap_or_default();
        let failed = kind == "exit" && record.member::<i64>("code") != Some(0);
        let text = if record.kind() == "act" {
            verdict(record, &kind)
        } else {
            describe(record, &kind)
        };
        Happening {
            time: words::cut(&visible(timestamp.get(11..23).unwrap_or("")), 12),
            connection: connection.and_then(|text| text.strip_prefix('c')?.parse().ok()),
            text: words::cut(&text, LONGEST),
            trouble: failed || matches!(kind.as_str(), "undelivered" | "gap" | "stray"),
        }
    }
}

fn verdict(record: &Record, kind: &str) -> String {
    let text = |name: &str| {
        record
            .member::<String>(name)
            .map(|text| visible(&text))
            .unwrap_or_default()
    };
    let about = record
        .member::<u64>("sequence")
        .map(|sequence| format!(" #{sequence}"))
        .unwrap_or_default();
    let why = Some(text("why")).filter(|why| !why.is_empty());
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    format!("{}{about} by {}{why}", visible(kind), text("by"))
}

/// What kind of thing, and everything that its line says: members that this build does not know are shown too.
fn describe(record: &Record, kind: &str) -> String {
    let members: Map<String, Value> = serde_json::from_slice(&record.line).unwrap_or_default();
    let mut text = if kind.is_empty() {
        visible(record.kind())
    } else {
        visible(kind)
    };
    if let Some(http) = record.member::<Http>("http") {
        text.push_str(&format!(" {}", visible(&head_line(&http))));
    }
    let mut told = Vec::new();
    for (name, value) in &members {
        match (name.as_str(), value) {
            (
                "t" | "timestamp" | "kind" | "conn" | "exchange" | "transport" | "http"
                | "direction",
                _,
            ) => {}
            ("text" | "why", Value::String(value)) => told.push(visible(value)),
            // Bytes that are no UTF-8.
            ("b64", Value::String(value)) => told.push(from_base64(value)),
            ("sequence", value) => text.push_str(&format!(" #{value}")),
            (name, Value::String(value)) => {
                told.push(format!("{} {}", visible(name), visible(value)))
            }
            (name, value) => {
                told.push(format!("{} {}", visible(name), visible(&value.to_string())))
            }
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
    bytes.map_or_else(|_| visible(text), |bytes| visible_bytes(&bytes))
}

/// `POST /mcp HTTP/1.1`, `200 HTTP/1.1`
pub fn head_line(http: &Http) -> String {
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

    fn read(line: &str) -> Happening {
        Happening::read(&Record {
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
