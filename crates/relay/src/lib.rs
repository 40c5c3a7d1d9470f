//! The relay between MCP clients and browser extensions.
//!
//! A client sends commands such as `createTab`; an extension in somebody's browser carries them out. The relay stands between
//! them: it knows who belongs to which user, gives each client a connection to one extension, and forwards nothing across users
//! or into a tab of another connection.
//!
//! Everything here is a state machine: sockets are numbers, messages and the time come in, messages and closes are taken out of
//! a queue for each socket. All state belongs to one user ([`UserRelay`]), so users never wait for each other. The side of a
//! user's clients calls the side of the extensions, which answers with events.
//!
//! [`RelayDriver`] is the one part that waits: it carries out what the state machine decides.
//!
//! **It must not know** sockets, HTTP or tokens' signatures, and only the driver knows tokio and the run.

#![warn(unreachable_pub)]

mod audit;
mod client_side;
mod command;
mod context;
mod counters;
mod driver;
mod extension_event;
mod extension_side;
mod fault;
mod ids;
mod messages;
mod opening;
mod outbox;
mod policy;
mod rates;
mod settings;
mod tabs;
mod time;
mod user;

pub use audit::{AuditSink, AuditedAction, AuditedCommand, AuditedPeer, RelayAuditEvent};
pub use client_side::NewClient;
pub use counters::RelayCounters;
pub use driver::{
    CheckedToken, KeyRefresh, PeerFailure, RelayDriver, RelayOptions, RelaySocket,
    RelaySocketHandle, TokenCheck,
};
pub use extension_side::NewExtension;
pub use fault::{Delivered, RelayFault};
pub use ids::{ExtensionId, IdSource, RelayConnectionId, SocketId};
pub use opening::{
    AuthenticationStep, Credentials, SocketAuthentication, SocketPath, SocketRole, TokenRefusal,
};
pub use outbox::{RelayClose, SocketOutput};
pub use policy::{PolicyList, RelayPolicy};
pub use settings::{CommandIdMode, RelayAccess, RelayRates, RelaySettings};
pub use time::RelayTime;
pub use user::UserRelay;
