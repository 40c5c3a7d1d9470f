//! HTTP on both sides.
//!
//! [`listener`] accepts clients, [`routes`] finds the [`handler`] of a request by its path. Two handlers speak
//! streamable HTTP: [`exchange`] passes it through; [`sessions`] ends it here for servers of another kind.
//! [`dial`] speaks it towards a server for clients of another kind. The rest are their parts.

pub mod admission;
pub mod auto;
pub mod collect;
pub mod dial;
pub mod exchange;
pub mod h1;
pub mod handler;
pub mod heads;
pub mod inflow;
mod joined;
mod known;
mod legacy;
pub mod listener;
pub mod meanwhile;
pub mod modern;
pub mod outlet;
pub mod payload;
pub mod pool;
pub mod posting;
pub mod remote;
pub mod replay;
pub(crate) mod request_body;
pub mod router;
pub mod routes;
pub mod session;
pub mod sessions;
pub mod socket;
pub mod stream;
pub mod through;
pub mod tool_headers;
pub mod upgrade;

/// Where streamable HTTP is served.
pub const PATH: &str = "/mcp";
