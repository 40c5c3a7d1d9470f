//! A held message, as the proxy lists it.

use std::time::Duration;

use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::run::sessions::words;
use mcp_proxy_wire::visible::{visible, visible_bytes};

/// A held message is shown up to here; the rest is in the record.
const SHOWN: usize = 4096;

/// A message that waits for a decision.
pub struct Held {
    /// Its hold.
    pub hold: u64,
    /// Its bytes.
    pub raw: Vec<u8>,
    title: String,
}

/// An answer to `hold.list`.
#[derive(Deserialize)]
struct List<'a> {
    #[serde(borrow)]
    holds: Vec<Row<'a>>,
}

#[derive(Deserialize)]
struct Row<'a> {
    hold: u64,
    sequence: u64,
    conn: String,
    direction: String,
    by: String,
    left_ms: Option<u64>,
    len: u64,
    #[serde(borrow)]
    raw: Option<&'a RawValue>,
    raw_text: Option<String>,
}

impl Held {
    /// The first of a list.
    pub fn first(list: &[u8]) -> Result<Option<Held>> {
        let list: List<'_> = serde_json::from_slice(list).context("the proxy lists no holds")?;
        Ok(list.holds.into_iter().next().map(Held::new))
    }

    fn new(row: Row<'_>) -> Held {
        let arrow = match row.direction.as_str() {
            "server_to_client" => "◄",
            _ => "►",
        };
        let left = row.left_ms.map_or("no time limit yet".to_owned(), |left| {
            format!("{} left", words::span(Duration::from_millis(left)))
        });
        let raw = match (row.raw, row.raw_text) {
            (Some(raw), _) => raw.get().as_bytes().to_vec(),
            (None, Some(text)) => text.into_bytes(),
            (None, None) => format!("({} bytes that are no text)", row.len).into_bytes(),
        };
        Held {
            hold: row.hold,
            title: format!(
                "hold {}: #{} {arrow} {}, held by {}, {left}",
                row.hold,
                row.sequence,
                visible(&row.conn),
                visible(&row.by)
            ),
            raw,
        }
    }

    /// For a person.
    pub fn shown(&self) -> String {
        let start = visible_bytes(&self.raw[..self.raw.len().min(SHOWN)]);
        let cut = if self.raw.len() > SHOWN { " …" } else { "" };
        format!("\n{}\n{start}{cut}", self.title)
    }
}
