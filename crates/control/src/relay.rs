//! What only a relay is asked, and what only a relay says.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{ControlRequest, Method};

/// `relay.pair`
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RelayPairRequest {
    /// Whose token the browser gets.
    pub user: String,
    /// How long the token is valid; 21 days if nothing is said.
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Everything that it counts, by name.
    #[serde(flatten)]
    pub counted: Map<String, Value>,
}
