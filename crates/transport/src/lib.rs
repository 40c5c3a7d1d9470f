//! Makes [`Link`](mcp_proxy_core::Link)s: stdio with its process supervisor, streamable HTTP, HTTP+SSE; and TLS.
//!
//! Towards clients we are a server ([`stdio`], `http::listener`); towards servers a client (`child`,
//! `http::dial`, `sse::dial`). Where both sides speak streamable HTTP, `http::pass_through` passes
//! requests through. [`websocket`] serves WebSockets on the same listener. [`control`] carries viewers over a Unix socket. This crate
//! knows sockets, pipes and processes. It must not know policy, files of record, command lines.

#![warn(unreachable_pub)]

#[cfg(test)]
#[macro_use]
#[path = "../../core/tests/it/runtimes.rs"]
mod runtimes;

mod child;
pub mod control;
pub mod http;
mod in_flight_budget;
mod inbox;
mod lines;
pub mod process;
mod queue;
mod refused_message;
mod reopen_attempts;
mod session_opening;
pub mod sse;
pub mod stdio;
pub mod tls;
pub mod websocket;

pub use child::{ChildServer, StderrCallback};
pub use lines::{LineReader, LineWriter};
pub use session_opening::{RemoteLinkOptions, SessionLoss};
