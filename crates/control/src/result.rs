//! The results of the methods.
//!
//! A viewer may be older or newer than the proxy that it looks at: members that are missing take their defaults, members
//! that are not known are ignored, and names that may grow (transports, formats) are texts.

use std::fmt;
use std::path::PathBuf;

use mcp_proxy_wire::Direction;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::direction;
use crate::{ConnectionNumber, DecidedHold, InterceptMode, ModeOverride, RelayStats};

/// Done; there is nothing to tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoResult {}

/// `hello`: who the proxy is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HelloResult {
    /// The version of the protocol.
    pub protocol: u32,
    /// The version of the program.
    pub version: String,
    /// The session's id.
    pub session: String,
    /// The server, as it may be shown.
    pub target: String,
    /// The transport of the clients.
    pub client: String,
    /// The URL where clients connect.
    pub listens: Option<String>,
    /// The file with the token that clients must send there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_file: Option<PathBuf>,
    /// The config files of a hub.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub config_files: Vec<PathBuf>,
    /// The transport of the server.
    pub server: String,
    /// The record's file.
    pub record: Option<PathBuf>,
    /// When the run started.
    pub started: String,
    /// The proxy's process.
    pub pid: u32,
    /// The servers of the run.
    pub servers: Vec<ServerRow>,
    /// The newest connections.
    pub connections: Vec<ConnectionRow>,
    /// How many connections there were since the run began.
    pub connection_count: u64,
    /// How many breakpoints are set.
    pub breakpoints: usize,
    /// How many rules messages go through.
    pub rules: usize,
}

/// `servers.list`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServersListResult {
    /// The servers of the run.
    pub servers: Vec<ServerRow>,
    /// How a hub copes with its clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hub: Option<HubLoad>,
}

/// How a hub copes with its clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HubLoad {
    /// Notifications that were not delivered since the start, because their clients read too slowly.
    pub lost_notifications: u64,
    /// Clients that have lost some and have not caught up yet.
    pub clients_behind: usize,
    /// Bytes of the messages that wait in memory.
    pub memory_used: usize,
    /// How many there may be: `--memory-budget`.
    pub memory_budget: usize,
    /// Messages that were refused because there was no room for them.
    pub memory_refused: u64,
}

/// One server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerRow {
    /// The name that requests use.
    pub name: String,
    /// How it is reached.
    pub transport: String,
    /// Its command or URL, as it may be shown.
    pub target: String,
    /// How many connections to it are open.
    pub connections: u64,
    /// How it is doing, if it is one of a hub.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<ServerHealth>,
}

/// How a server of a hub is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerHealth {
    /// `disabled`, `stopped`, `starting`, `needs sign-in`, `ready` or `failed`.
    pub state: String,
    /// What went wrong last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How many tools it offers.
    pub tools: u64,
    /// How many resources and templates.
    pub resources: u64,
    /// How many prompts.
    pub prompts: u64,
    /// What it offers is known from an earlier time.
    pub stale: bool,
    /// How often it was started again.
    pub restarts: u64,
    /// Who shares it: `auto`, `shared` or `session`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub scope: String,
    /// How many client sessions have one of their own.
    pub own_sessions: u64,
    /// What is wrong with its lists, such as names that it could not have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The user's sign-in to it, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sign_in: Option<SignInHealth>,
}

/// A sign-in without its secrets. As text: `signed in as ada until 2026-11-18T14:05:00Z, then renewed automatically`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SignInHealth {
    /// As whom, if the authorization server says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// When the token expires, if the authorization server says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// The token is renewed when it expires.
    pub renews: bool,
    /// The scopes that were granted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// The scopes that calls have lacked since.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing_scopes: Vec<String>,
}

impl fmt::Display for SignInHealth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("signed in")?;
        if let Some(account) = &self.account {
            write!(f, " as {account}")?;
        }
        match &self.until {
            Some(until) => write!(f, " until {until}")?,
            None => f.write_str(" until it is revoked")?,
        }
        if self.until.is_some() && self.renews {
            f.write_str(", then renewed automatically")?;
        }
        if !self.missing_scopes.is_empty() {
            write!(f, "; lacks {}", self.missing_scopes.join(" "))?;
        }
        Ok(())
    }
}

/// `connections.list`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConnectionsListResult {
    /// The connections that were asked for, the newest first.
    pub connections: Vec<ConnectionRow>,
    /// How many connections of the run are open.
    pub open: u64,
    /// How many connections there were since the run began.
    pub count: u64,
}

/// One connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConnectionRow {
    /// Its number.
    pub connection: ConnectionNumber,
    /// The client.
    pub client: PeerRow,
    /// The server.
    pub server: PeerRow,
    /// It has not ended.
    pub open: bool,
    /// The number of the request in the record that this connection was opened for.
    pub parent: Option<u64>,
}

/// One end of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PeerRow {
    /// What people call it.
    pub name: Option<String>,
    /// How it is reached.
    pub transport: String,
    /// Where a client of a listener connected from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

/// `subscribe`: the present.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SubscribeResult {
    /// The mode of the run.
    pub mode: InterceptMode,
    /// The numbers of the holds.
    pub held: Vec<u64>,
    /// Modes that differ from the run's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<ModeOverride>,
    /// How many breakpoints are set.
    pub breakpoints: usize,
    /// How many rules messages go through.
    pub rules: usize,
    /// The last decisions, newest last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub decided: Vec<DecidedHold>,
    /// The newest message that can be fetched.
    pub upto: u64,
}

/// `intercept.get`, `intercept.set`, `step`, `continue`: the mode, and what is held.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InterceptResult {
    /// The mode of what was asked about: the run, or a connection or server in it.
    pub mode: InterceptMode,
    /// The numbers of the holds.
    pub held: Vec<u64>,
    /// Modes that differ from the run's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<ModeOverride>,
    /// How many breakpoints are set.
    pub breakpoints: usize,
    /// How many rules messages go through.
    pub rules: usize,
    /// The last decisions, newest last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub decided: Vec<DecidedHold>,
}

/// `stats`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StatsResult {
    /// Messages since the run began.
    pub messages: u64,
    /// Connections since the run began.
    pub connections: u32,
    /// Viewers that are attached.
    pub viewers: usize,
    /// How long the run has lasted.
    pub uptime_ms: u64,
    /// The mode of the run.
    pub mode: InterceptMode,
    /// How many messages are held.
    pub held: usize,
    /// How many breakpoints are set.
    pub breakpoints: usize,
    /// How many rules messages go through.
    pub rules: usize,
    /// What a relay has counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relay: Option<RelayStats>,
}

/// `breakpoints.list`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreakpointsListResult {
    /// The breakpoints, in the order in which they were set.
    pub breakpoints: Vec<BreakpointRow>,
}

/// One breakpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreakpointRow {
    /// Its number.
    pub id: u32,
    /// Which messages it holds, in the filter language.
    pub filter: String,
    /// Only messages in this direction.
    #[serde(default, with = "direction::optional")]
    pub direction: Option<Direction>,
    /// Only messages of this connection.
    #[serde(default)]
    pub connection: Option<ConnectionNumber>,
    /// Only messages of connections to this server.
    #[serde(default)]
    pub server: Option<String>,
    /// How many more it holds, if there is a limit.
    #[serde(default)]
    pub left: Option<u64>,
    /// How many it has held.
    #[serde(default)]
    pub hits: u64,
    /// How many messages its filter took too long for: they were not held.
    #[serde(default)]
    pub too_slow: u64,
}

/// `breakpoints.add`, `breakpoints.remove`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreakpointNumber {
    /// The breakpoint's number.
    pub id: u32,
}

/// `rules.list`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RulesListResult {
    /// The rules file.
    pub file: Option<String>,
    /// Why the file as it is now is not used.
    pub fault: Option<String>,
    /// The rules that are used.
    pub rules: Vec<RuleRow>,
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleRow {
    /// Its place in the file.
    pub rule: usize,
    /// Its name.
    #[serde(default)]
    pub name: Option<String>,
    /// The line where it begins.
    pub line: usize,
    /// What it does.
    pub does: String,
    /// How many messages it took too long for: they passed as if it did not match.
    #[serde(default)]
    pub too_slow: u64,
}

/// `rules.reload`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RulesReloadResult {
    /// How many rules there are now.
    pub rules: usize,
}

/// `replay`
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ReplayResult {
    /// The number of the message that was sent.
    pub request: u64,
    /// The number of its response.
    #[serde(default)]
    pub answer: Option<u64>,
    /// The connection.
    #[serde(default, serialize_with = "ConnectionNumber::write_text")]
    pub conn: ConnectionNumber,
    /// How long the response took.
    #[serde(default)]
    pub latency_ms: Option<f64>,
    /// The response as recorded, if it is JSON and not in a file of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Box<RawValue>>,
}

/// `export`, `save`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileResult {
    /// The file that was written.
    pub output: String,
    /// How large it is, if that is known.
    #[serde(default)]
    pub bytes: Option<u64>,
}
