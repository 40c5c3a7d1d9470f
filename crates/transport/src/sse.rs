//! HTTP+SSE, the transport of 2024-11-05: a GET stream that names an endpoint, POSTs to it, answers on the stream.
//!
//! `dial` speaks it to servers, and `endpoint` to clients, whatever their server speaks.

pub(crate) mod dial;
mod endpoint;

pub use dial::sse_link;
pub use endpoint::SseEndpoint;

/// Where HTTP+SSE streams begin.
pub const PATH: &str = "/sse";
/// Where clients of `endpoint` POST their messages.
pub const MESSAGE_PATH: &str = "/message";
