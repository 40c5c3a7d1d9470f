//! A held message, as the proxy lists it.

use std::time::Duration;

use mcp_proxy_control::{HeldRow, HoldClock, HoldListResult};
use mcp_proxy_wire::Direction;

use crate::run::sessions::formatting;
use mcp_proxy_wire::terminal_text::{sanitize, sanitize_bytes};

/// A held message is shown up to here; the rest is in the record.
const SHOWN: usize = 4096;

/// A message that waits for a decision.
pub struct HoldPrompt {
    /// Its hold.
    pub hold: u64,
    /// Its bytes.
    pub raw: Vec<u8>,
    title: String,
}

impl HoldPrompt {
    /// The first of a list.
    pub fn first(list: HoldListResult) -> Option<HoldPrompt> {
        list.holds.into_iter().next().map(HoldPrompt::new)
    }

    fn new(row: HeldRow) -> HoldPrompt {
        let arrow = match row.direction {
            Direction::ServerToClient => "◄",
            Direction::ClientToServer => "►",
        };
        let left = row.left_ms.map(Duration::from_millis).map(formatting::span);
        let left = match (row.clock, left) {
            (HoldClock::Running, Some(left)) => format!("{left} left"),
            (HoldClock::Stopped, Some(left)) => format!("open in an editor, {left} left then"),
            (HoldClock::AwaitingViewer, _) => "no time limit yet".to_owned(),
            _ => "no time limit".to_owned(),
        };
        let raw = match (row.raw, row.raw_text) {
            (Some(raw), _) => raw.get().as_bytes().to_vec(),
            (None, Some(text)) => text.into_bytes(),
            (None, None) => format!("({} bytes that are not text)", row.len).into_bytes(),
        };
        HoldPrompt {
            hold: row.hold,
            title: format!(
                "hold {}: #{} {arrow} {}, held by {}, {left}",
                row.hold,
                row.sequence,
                row.conn,
                sanitize(&row.by)
            ),
            raw,
        }
    }

    /// For a person.
    pub fn shown(&self) -> String {
        let start = sanitize_bytes(&self.raw[..self.raw.len().min(SHOWN)]);
        let cut = if self.raw.len() > SHOWN { " …" } else { "" };
        format!("\n{}\n{start}{cut}", self.title)
    }
}
