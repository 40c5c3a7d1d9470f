//! The two ends of a connection, as a record names them.
//!
//! A process, a URL, a mock, a replay: each is a peer with a transport, and has a name if somebody gave it one. Tokens and
//! headers of callers are never part of it.

use mcp_proxy_wire::Transport;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a server is called that nobody gave a name.
pub const UNNAMED_SERVER: &str = "server";

/// One end of a connection or of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerInfo {
    /// What people call it: the name of a configured server, `mock`, `replay`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How it is reached.
    #[serde(with = "transport")]
    pub transport: Transport,
    /// The HTTP request that opened the connection. Only clients of a listener have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<CallerInfo>,
}

/// What a record keeps of the HTTP request that opened a connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallerInfo {
    /// The path of the request, without the query.
    pub path: String,
    /// Where the client connected from: `127.0.0.1:5000`. Text, because redaction may hide it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

/// A connection of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionInfo {
    /// Its number: 1 for `c1`.
    pub number: u32,
    /// The client, if the record names it.
    pub client: Option<PeerInfo>,
    /// The server, if the record names it.
    pub server: Option<PeerInfo>,
    /// The sequence number of the call that caused it.
    pub parent: Option<u64>,
    /// It has ended.
    pub closed: bool,
}

impl PeerInfo {
    /// A peer without a name that is reached by `transport`.
    pub fn new(transport: Transport) -> PeerInfo {
        PeerInfo {
            name: None,
            transport,
            caller: None,
        }
    }

    /// A program of this name in the proxy's own process: a mock, a replay.
    pub fn in_process(name: &str) -> PeerInfo {
        PeerInfo {
            name: Some(name.to_owned()),
            ..PeerInfo::new(Transport::InProcess)
        }
    }

    /// The same peer with its texts changed: masked, or redacted.
    pub(crate) fn map_texts(self, change: impl Fn(String) -> String) -> PeerInfo {
        PeerInfo {
            name: self.name.map(&change),
            caller: self.caller.map(|caller| CallerInfo {
                path: change(caller.path),
                address: caller.address.map(&change),
            }),
            ..self
        }
    }
}

/// `stdio`, `mock (in process)`, `files (stdio)`, `streamable_http (/mcp, 127.0.0.1:5000)`.
impl fmt::Display for PeerInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let transport = match self.transport {
            Transport::InProcess => "in process",
            other => other.as_str(),
        };
        let mut facts = Vec::new();
        let shown = match &self.name {
            Some(name) => {
                facts.push(transport);
                name
            }
            None => transport,
        };
        if let Some(caller) = &self.caller {
            facts.push(&caller.path);
            facts.extend(caller.address.as_deref());
        }
        match facts.is_empty() {
            true => f.pad(shown),
            false => f.pad(&format!("{shown} ({})", facts.join(", "))),
        }
    }
}

/// A transport under its name in records.
mod transport {
    use super::*;
    use serde::{Deserializer, Serializer, de};

    pub(super) fn serialize<S: Serializer>(
        transport: &Transport,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(transport.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Transport, D::Error> {
        let name = String::deserialize(deserializer)?;
        name.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_are_told_by_name_and_transport_and_read_back() {
        let caller = CallerInfo {
            path: "/mcp".to_owned(),
            address: Some("127.0.0.1:5000".to_owned()),
        };
        let plain = PeerInfo::new(Transport::Stdio);
        let named = PeerInfo {
            name: Some("files".to_owned()),
            ..plain.clone()
        };
        let called = PeerInfo {
            caller: Some(caller),
            ..PeerInfo::new(Transport::StreamableHttp)
        };
        for (peer, shown, json) in [
            (plain, "stdio", r#"{"transport":"stdio"}"#),
            (
                named,
                "files (stdio)",
                r#"{"name":"files","transport":"stdio"}"#,
            ),
            (
                PeerInfo::in_process("mock"),
                "mock (in process)",
                r#"{"name":"mock","transport":"in_process"}"#,
            ),
            (
                called,
                "streamable_http (/mcp, 127.0.0.1:5000)",
                r#"{"transport":"streamable_http","caller":{"path":"/mcp","address":"127.0.0.1:5000"}}"#,
            ),
        ] {
            assert_eq!(peer.to_string(), shown);
            assert_eq!(serde_json::to_string(&peer).unwrap(), json);
            assert_eq!(serde_json::from_str::<PeerInfo>(json).unwrap(), peer);
        }
        assert!(serde_json::from_str::<PeerInfo>(r#"{"transport":"pigeon"}"#).is_err());
    }
}
