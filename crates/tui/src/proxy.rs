//! What the UI knows of the proxy: who it is, what it holds, its breakpoints and rules.

use std::time::{Duration, Instant};

use mcp_proxy_wire::Direction;
use serde::Deserialize;

/// How it stands with the proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Link {
    /// There is none: a record is looked at.
    None,
    /// It answers.
    Live,
    /// It has ended, or the connection to it.
    Gone(String),
}

/// Whether messages are held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// All pass, but for breakpoints.
    #[default]
    Passthrough,
    /// All are held.
    Intercept,
}

/// The proxy as it was last heard of.
#[derive(Clone, Debug)]
pub struct Proxy {
    /// Whether it is there.
    pub link: Link,
    /// What it says about itself.
    pub hello: Hello,
    /// Whether all messages are held.
    pub mode: Mode,
    /// What is held, the oldest first.
    pub held: Vec<Held>,
    /// Its breakpoints.
    pub breakpoints: Vec<Breakpoint>,
    /// Its rules.
    pub rules: RulesList,
}

/// An answer to `hello`.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Hello {
    /// The server.
    #[serde(default)]
    pub target: String,
    /// How the server speaks.
    #[serde(default)]
    pub server: String,
    /// How clients speak.
    #[serde(default)]
    pub client: String,
    /// Where they connect.
    #[serde(default)]
    pub listens: Option<String>,
    /// The record's file.
    pub record: Option<std::path::PathBuf>,
    /// The proxy's process.
    #[serde(default)]
    pub pid: u32,
}

/// A message that waits for a decision.
#[derive(Clone, Debug)]
pub struct Held {
    /// Its hold.
    pub hold: u64,
    /// Its number.
    pub sequence: u64,
    /// Which way it goes.
    pub direction: Direction,
    /// What holds it.
    pub by: String,
    /// When the proxy decides by itself.
    pub until: Option<Instant>,
    /// Its method.
    pub method: Option<String>,
}

/// A breakpoint.
#[derive(Clone, Debug, Deserialize)]
pub struct Breakpoint {
    /// Its number.
    pub id: u32,
    /// What it holds.
    pub filter: String,
    /// Only messages this way.
    pub direction: Option<String>,
    /// How many more.
    pub left: Option<u64>,
    /// How many so far.
    pub hits: u64,
}

/// An answer to `rules.list`.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct RulesList {
    /// The rules file.
    pub file: Option<String>,
    /// Why the file as it is now is not used.
    pub fault: Option<String>,
    /// The rules.
    #[serde(default)]
    pub rules: Vec<RuleLine>,
}

/// One rule.
#[derive(Clone, Debug, Deserialize)]
pub struct RuleLine {
    /// Its place.
    pub rule: u64,
    /// Its name.
    pub name: Option<String>,
    /// Its line in the file.
    pub line: u64,
    /// What it does.
    pub does: String,
}

#[derive(Deserialize)]
struct HoldList {
    mode: String,
    holds: Vec<HoldRow>,
}

#[derive(Deserialize)]
struct HoldRow {
    hold: u64,
    sequence: u64,
    direction: String,
    by: String,
    left_ms: Option<u64>,
    method: Option<String>,
}

#[derive(Deserialize)]
struct BreakpointList {
    breakpoints: Vec<Breakpoint>,
}

impl Proxy {
    /// Before anything is known.
    pub fn unknown(link: Link) -> Proxy {
        Proxy {
            link,
            hello: Hello::default(),
            mode: Mode::default(),
            held: Vec::new(),
            breakpoints: Vec::new(),
            rules: RulesList::default(),
        }
    }

    /// Takes an answer to `hold.list`.
    pub fn take_holds(&mut self, answer: &[u8], now: Instant) -> Result<(), serde_json::Error> {
        let list: HoldList = serde_json::from_slice(answer)?;
        self.set_mode(&list.mode);
        self.held = list.holds.into_iter().map(|row| held(row, now)).collect();
        Ok(())
    }

    /// Takes an answer to `breakpoints.list`.
    pub fn take_breakpoints(&mut self, answer: &[u8]) -> Result<(), serde_json::Error> {
        let list: BreakpointList = serde_json::from_slice(answer)?;
        self.breakpoints = list.breakpoints;
        Ok(())
    }

    /// The mode by its name.
    pub fn set_mode(&mut self, name: &str) {
        self.mode = match name {
            "intercept" => Mode::Intercept,
            _ => Mode::Passthrough,
        };
    }

    /// Whether it holds messages, or would hold the next.
    pub fn holds(&self) -> bool {
        let holds = self.mode == Mode::Intercept || !self.held.is_empty();
        self.link == Link::Live && holds
    }

    /// The hold of a message.
    pub fn hold_of(&self, sequence: u64) -> Option<&Held> {
        self.held.iter().find(|held| held.sequence == sequence)
    }
}

fn held(row: HoldRow, now: Instant) -> Held {
    Held {
        hold: row.hold,
        sequence: row.sequence,
        direction: match row.direction.as_str() {
            "server_to_client" => Direction::ServerToClient,
            _ => Direction::ClientToServer,
        },
        by: row.by,
        until: row.left_ms.map(|left| now + Duration::from_millis(left)),
        method: row.method,
    }
}
