//! HTTP+SSE, the transport of 2024-11-05: a GET stream that names an endpoint, POSTs to it, answers on the stream.
//!
//! `dial` speaks it towards servers, `endpoint` towards clients of another kind of server, and `pass_through`
//! passes it through when both sides speak it.

pub(crate) mod dial;
mod endpoint;
mod pass_through;

pub use dial::sse_link;
pub use endpoint::SseEndpoint;
pub use pass_through::SsePassThrough;

/// Where HTTP+SSE streams begin.
pub const PATH: &str = "/sse";
/// Where clients of `endpoint` POST their messages.
pub const MESSAGE_PATH: &str = "/message";
