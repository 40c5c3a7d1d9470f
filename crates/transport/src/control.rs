//! The control socket: every proxy listens on one, viewers dial.
//!
//! What is said on it is typed in [`mcp_proxy_control`] and answered by [`mcp_proxy_core::control`]; here are the socket's place and who may come ([`place`]),
//! the proxy's end ([`serve`]) and the viewer's ([`Client`]). It carries no MCP, and nothing here can hold a message up.

pub mod client;
mod line;
pub mod place;
mod server;

pub use client::{Client, ClientError};
pub use place::{Descriptor, OwnSocket, Running, SocketFiles, private_folder, running, sweep};
pub use server::serve;
