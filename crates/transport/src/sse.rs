//! HTTP+SSE, the transport of 2024-11-05: a GET stream that names an endpoint, POSTs to it, answers on the stream.
//!
//! [`dial`] speaks it towards servers, [`front`] towards clients of another kind of server, and [`exchange`]
//! passes it through when both sides speak it.

pub mod dial;
pub mod exchange;
pub mod front;

/// Where HTTP+SSE streams begin.
pub const PATH: &str = "/sse";
/// Where clients of [`front`] POST their messages.
pub const MESSAGE_PATH: &str = "/message";
