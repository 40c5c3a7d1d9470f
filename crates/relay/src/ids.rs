//! Names of sockets, extensions and connections.

use std::fmt;
use std::sync::Arc;

use mcp_proxy_wire::terminal_text::sanitize;
use serde::{Serialize, Serializer};
use uuid::Uuid;

/// The longest `client_id` that is taken into an id, in bytes.
const MAX_CLIENT_ID: usize = 128;

/// A WebSocket, by a number that is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SocketId(pub u64);

/// An extension of one user: `ext-` and the `client_id` that it keeps in its browser, so that it has the same id after a
/// reconnect.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExtensionId(Arc<str>);

/// A client of one user: `mcp-` and its `client_id`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct McpClientId(Arc<str>);

/// What ties a client to an extension: `conn-` and a random number. No two connections ever have the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RelayConnectionId(Arc<str>);

/// Where random parts of ids come from.
#[derive(Debug)]
pub enum IdSource {
    /// UUIDs.
    Random,
    /// 1, 2, 3: for tests that compare whole messages.
    Counting(u64),
}

impl IdSource {
    fn next(&mut self) -> String {
        match self {
            IdSource::Random => Uuid::new_v4().to_string(),
            IdSource::Counting(last) => {
                *last += 1;
                last.to_string()
            }
        }
    }

    pub(crate) fn connection(&mut self) -> RelayConnectionId {
        RelayConnectionId(format!("conn-{}", self.next()).into())
    }

    pub(crate) fn extension(&mut self, client_id: Option<&str>) -> ExtensionId {
        ExtensionId(self.derived("ext", client_id))
    }

    pub(crate) fn client(&mut self, client_id: Option<&str>) -> McpClientId {
        McpClientId(self.derived("mcp", client_id))
    }

    fn derived(&mut self, prefix: &str, client_id: Option<&str>) -> Arc<str> {
        match client_id {
            Some(id) => format!("{prefix}-{id}").into(),
            None => format!("{prefix}-{}", self.next()).into(),
        }
    }
}

/// Whether a `client_id` can be part of an id: short, and without what would make ids unreadable in logs. People choose
/// them, so spaces and all scripts are fine. Ids are in the audit log, so a token is not one.
pub(crate) fn is_usable_client_id(id: &str) -> bool {
    let token = id.find("eyJ").map(|start| &id[start..]);
    let is_token = token.is_some_and(|token| token.matches('.').count() >= 2);
    !id.trim().is_empty() && id.len() <= MAX_CLIENT_ID && sanitize(id) == id && !is_token
}

impl ExtensionId {
    /// The extension that somebody names.
    pub(crate) fn named(text: &str) -> ExtensionId {
        ExtensionId(text.into())
    }

    /// The id as it stands in messages.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Serialize for ExtensionId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl Serialize for RelayConnectionId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl McpClientId {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl RelayConnectionId {
    /// The id as it stands in messages.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RelayConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
