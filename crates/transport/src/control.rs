//! The control socket: every proxy listens on one, viewers dial.
//!
//! What is said on it is typed in [`mcp_proxy_control`] and answered by [`mcp_proxy_core::control`]; here are the socket's place and who may come (`socket_folder`),
//! the proxy's end ([`serve`]) and the viewer's ([`ControlClient`]). It carries no MCP, and nothing here can hold a message up.

mod client;
mod line;
mod server;
mod socket_folder;

pub use client::{ControlClient, ControlClientError, ControlNotification};
pub use server::serve;
pub use socket_folder::{
    ControlSocket, ProxyDescriptor, RunningProxy, SocketFiles, private_folder,
    remove_stale_sockets, running_proxies,
};
