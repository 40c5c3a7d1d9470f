//! What only a relay is asked, and what only a relay says.

use serde::{Deserialize, Serialize};

use crate::{ControlRequest, Method};

/// `relay.pair`
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RelayPairRequest {
    /// Whose token the browser gets.
    pub user: String,
    /// How long the token is valid; 30 days if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifetime_s: Option<u64>,
    /// Where the browser is to connect to; by default where it sends the code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_url: Option<String>,
}

impl ControlRequest for RelayPairRequest {
    const METHOD: Method = Method::RelayPair;
    type Result = RelayPairResult;
}

/// What a browser is to be told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RelayPairResult {
    /// To be typed into the extension.
    pub code: String,
    /// How long it can be used.
    pub expires_in_ms: u64,
}

/// What a relay has counted, in `stats`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RelayStats {
    /// Users that have sockets.
    pub users: usize,
    /// Their sockets.
    pub sockets: usize,
    /// Those of browser extensions.
    pub extensions: usize,
    /// Those of clients.
    pub clients: usize,
    /// Commands that were forwarded.
    pub commands: u64,
    /// Answers that reached a client.
    pub answers: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Commands that were refused because too many came.
    pub rate_limited: u64,
    /// Commands whose time ran out.
    pub timeouts: u64,
    /// Commands that failed because a socket was lost or replaced.
    pub lost: u64,
    /// Answers that came when nobody waited for them.
    pub late_answers: u64,
    /// Messages that mean nothing to a relay.
    pub ignored: u64,
    /// Sockets that were cut because they did not read.
    pub slow_readers: u64,
}
