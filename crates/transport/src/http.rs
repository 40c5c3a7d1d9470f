//! HTTP on both sides.
//!
//! `listener` accepts clients, `routes` finds the `handler` of a request by its path. Two handlers speak
//! streamable HTTP: `pass_through` passes it through; `mcp_endpoint` ends it here for servers of another kind.
//! `dial` speaks it towards a server for clients of another kind. The rest are their parts.

pub(crate) mod admission;
pub(crate) mod auto_detect;
mod body_length;
pub(crate) mod bridge_client;
mod client_socket;
pub(crate) mod collect;
mod connect_deadline;
mod connection_places;
mod cookies;
mod cors;
pub(crate) mod dial;
pub(crate) mod event_collector;
pub(crate) mod event_stream;
pub(crate) mod failed_exchange;
pub(crate) mod handler;
mod http_client;
pub(crate) mod incoming_body;
pub(crate) mod injected_post;
mod legacy;
pub(crate) mod listener;
pub(crate) mod mcp_endpoint;
pub(crate) mod modern;
mod outbound_proxy;
pub(crate) mod outgoing_body;
pub(crate) mod pass_through;
pub(crate) mod progress_stream;
pub(crate) mod relayed_events;
pub(crate) mod remote;
pub(crate) mod request_body;
pub(crate) mod request_heads;
pub(crate) mod resume_buffer;
pub(crate) mod routes;
mod server_connector;
pub(crate) mod session;
mod session_connections;
pub(crate) mod session_memory;
pub(crate) mod session_places;
mod slow_answer;
pub(crate) mod stream_queue;
pub(crate) mod stream_router;
mod tls_handshakes;
pub(crate) mod token_source;
pub(crate) mod tool_headers;
pub(crate) mod upgrade;

pub use admission::{Admission, BrowserExtensions, LocalPages, Token, is_extension_origin};
pub use auto_detect::{AutoDetectEndpoint, auto_detect_link};
pub use collect::{CollectedBody, collect};
pub use dial::HttpLink;
pub use handler::{Handler, RequestSource};
pub use listener::{HttpResponse, Listener, ListenerLimits, ListenerOptions, bare, json_bytes};
pub use mcp_endpoint::{EndpointOptions, LegacyClients, McpEndpoint, ModernClients, SessionLimits};
pub use outbound_proxy::{OutboundProxy, OutboundProxyError};
pub use outgoing_body::OutgoingBody;
pub use pass_through::HttpPassThrough;
pub use remote::{RemoteServer, RemoteServerOptions};
pub use routes::{Route, Routes, not_found};
pub use session_memory::{SavedSession, SessionMemory};
pub use session_places::SessionPlaces;
pub use token_source::{AfterRefusal, RefusedRequest, SignInNeeded, TokenSource};
pub use tool_headers::ToolHeaders;
pub use upgrade::{PendingUpgrade, UpgradedStream};

/// Where streamable HTTP is served.
pub const PATH: &str = "/mcp";
