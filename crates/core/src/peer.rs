//! Who is at the two ends of a connection: a name, a transport and, for a client that came through a listener, its caller.
//!
//! A program in this process (a mock, a replay, the hub) is a peer like any other. It has a name and
//! [`Transport::InProcess`]; it never pretends to be a process on stdio.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use http::HeaderMap;
use mcp_proxy_session::PeerInfo;
use mcp_proxy_wire::Transport;

/// One end of a connection.
#[derive(Clone, Debug)]
pub struct Peer {
    /// What people call it: the name of a configured server, `mock`, `replay`. `None` if nobody gave it a name.
    pub name: Option<Arc<str>>,
    /// How it is reached.
    pub transport: Transport,
    /// The request that opened the connection. Only clients of a listener have one.
    pub caller: Option<Arc<Caller>>,
}

/// The HTTP request that a client introduced itself with.
///
/// It is made after admission when a request opens a connection, and travels with the connection to the code that
/// opens the server link.
/// Its `Debug` output shows neither the token nor the headers.
#[derive(Clone, Default)]
pub struct Caller {
    /// The bearer token that admission accepted, or that the client sent where none is required.
    pub token: Option<Arc<str>>,
    /// The path of the request, without the query.
    pub path: String,
    /// The request's headers. The listener's own token has been removed.
    pub headers: HeaderMap,
    /// Where the client connected from.
    pub address: Option<SocketAddr>,
}

impl Peer {
    /// A peer without a name that is reached by `transport`.
    pub fn new(transport: Transport) -> Peer {
        Peer {
            name: None,
            transport,
            caller: None,
        }
    }

    /// A peer that runs in this process, under this name.
    pub fn in_process(name: &str) -> Peer {
        Peer {
            name: Some(Arc::from(name)),
            ..Peer::new(Transport::InProcess)
        }
    }

    /// The same peer with a name.
    #[must_use]
    pub fn named(mut self, name: &str) -> Peer {
        self.name = Some(Arc::from(name));
        self
    }

    /// The same peer, opened by this caller.
    #[must_use]
    pub fn called_by(mut self, caller: Arc<Caller>) -> Peer {
        self.caller = Some(caller);
        self
    }
}

impl From<Transport> for Peer {
    fn from(transport: Transport) -> Peer {
        Peer::new(transport)
    }
}

/// A peer that a configuration describes. It has no caller yet.
impl From<PeerInfo> for Peer {
    fn from(info: PeerInfo) -> Peer {
        Peer {
            name: info.name.map(Arc::from),
            ..Peer::new(info.transport)
        }
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller")
            .field("path", &self.path)
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_shows_no_secrets() {
        let mut caller = Caller {
            token: Some(Arc::from("s3cret")),
            path: "/mcp".to_owned(),
            ..Caller::default()
        };
        caller
            .headers
            .insert("authorization", http::HeaderValue::from_static("s3cret"));
        let peer = Peer::new(Transport::StreamableHttp).called_by(Arc::new(caller));
        assert!(!format!("{peer:?}").contains("s3cret"));
    }
}
