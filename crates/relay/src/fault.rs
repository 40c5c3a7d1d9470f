//! Everything that the relay refuses or fails, with the code and text that a peer gets.
//!
//! The specification fixes -32000 and -32001 and gives -32000…-32099 to this protocol, which is not MCP. `error.data.reason`
//! tells apart what shares a code.

use mcp_proxy_wire::{ErrorCode, Id, IdKey, Message, error_response};
use serde_json::{Map, Value, json};

use crate::policy::PolicyList;

/// Whether a command reached its extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivered {
    /// The extension has proved it by answering this command or a later one.
    Yes,
    /// Not one byte of it was written.
    No,
    /// It was written, or is with the socket's writer. Whether it arrived is not known.
    Unknown,
}

/// Why a request has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RelayFault {
    /// The token is not valid. The text is for the peer.
    #[error("Authentication failed: {0}")]
    AuthenticationFailed(String),
    /// The token names a key that is not known, and newer keys could not be fetched.
    #[error("Authentication failed: the keys that tokens are checked with could not be fetched")]
    KeysUnavailable,
    /// The user has no such extension, or it is not connected.
    #[error("Extension not found or not accessible")]
    ExtensionNotFound,
    /// A client has one connection at a time.
    #[error("MCP client already connected to an extension")]
    AlreadyConnected,
    /// Nothing works before the handshake.
    #[error("Not authenticated: send mcp_handshake first")]
    NotAuthenticated,
    /// A command of a client that has no connection.
    #[error("Not connected to an extension: send connect first")]
    NotConnected,
    /// `connectionId` is not the connection of this client.
    #[error("connectionId is not the connection of this client")]
    WrongConnection,
    /// The client has several connections, and the command names none.
    #[error("This client has several connections: connectionId must name one")]
    ConnectionNotNamed,
    /// The command needs a tab, and its connection has none.
    #[error("This connection has no tab: send createTab or selectTab first")]
    NoTab,
    /// The command names a tab that is not its connection's.
    #[error("The tab does not belong to this connection")]
    ForeignTab,
    /// No tab has this index.
    #[error("No tab has this index")]
    NoSuchTab,
    /// The tabs moved between the question which tab has an index and the command, or the extension counts them otherwise.
    #[error("The extension acted on another tab than the one with this index")]
    TabMoved(Delivered),
    /// The extension does not say which tab has an index, or it has one attached tab for all clients, and could not attach to this
    /// connection's.
    #[error("The extension could not find the tab or switch to it")]
    TabUnavailable(Delivered),
    /// The extension was lost before it answered.
    #[error("The extension disconnected before it answered")]
    ExtensionGone(Delivered),
    /// The same client, or extension, connected again while the command was open.
    #[error("A newer connection of the same {0} took over")]
    Superseded(&'static str, Delivered),
    /// The client sent `disconnect` while the command was open.
    #[error("The connection was closed before the extension answered")]
    Disconnected(Delivered),
    /// The relay closes the client's socket, for this reason.
    #[error("The relay closed the socket: {0}")]
    Closed(&'static str, Delivered),
    /// The extension did not answer in time.
    #[error("The extension did not answer in time")]
    Timeout(Delivered),
    /// Too many commands in too short a time.
    #[error("Too many commands: wait {retry_after_ms} ms")]
    RateLimited {
        /// When the next one is accepted.
        retry_after_ms: u64,
    },
    /// As many commands of this connection wait for the extension as may.
    #[error("Too many commands are waiting for the extension")]
    QueueFull,
    /// The memory for messages is used up.
    #[error("The relay has no memory for the message now (--memory-budget)")]
    NoRoom(Delivered),
    /// The user has as many connections as allowed.
    #[error("Too many connections")]
    ConnectionLimit,
    /// The user has as many sockets as allowed.
    #[error("Too many sockets of this user")]
    SocketLimit,
    /// More sockets wait to show their tokens than can be served in time.
    #[error("Too many connect at once")]
    AdmissionLimit,
    /// The message is too large.
    #[error("The message is larger than {0} bytes")]
    TooLarge(usize),
    /// The policy does not allow it.
    #[error("Denied by the relay's policy: {name}")]
    Denied {
        /// The list that does not.
        list: PolicyList,
        /// The method or URL.
        name: String,
    },
    /// Not JSON.
    #[error("Parse error: the message is not JSON")]
    NotJson,
    /// JSON, but not a request that can be taken.
    #[error("Invalid request: {0}")]
    InvalidRequest(&'static str),
    /// A name that is the relay's own.
    #[error("Method not found: {0} is never forwarded")]
    ReservedMethod(String),
    /// Extensions answer requests and send notifications.
    #[error("Method not found: extensions cannot send requests to the relay")]
    ExtensionRequest,
    /// A parameter is missing or has the wrong type.
    #[error("Invalid params: {0}")]
    InvalidParams(&'static str),
    /// The extension's answer has neither a result nor an error, has both, or is not JSON.
    #[error("The extension's answer cannot be used")]
    UnusableAnswer,
}

impl Delivered {
    fn value(self) -> Value {
        match self {
            Delivered::Yes => Value::Bool(true),
            Delivered::No => Value::Bool(false),
            Delivered::Unknown => Value::from("unknown"),
        }
    }
}

impl RelayFault {
    /// The JSON-RPC code.
    pub fn code(&self) -> i64 {
        match self {
            RelayFault::AuthenticationFailed(_)
            | RelayFault::KeysUnavailable
            | RelayFault::ExtensionNotFound => -32000,
            RelayFault::AlreadyConnected => -32001,
            RelayFault::NotAuthenticated => -32002,
            RelayFault::NotConnected
            | RelayFault::WrongConnection
            | RelayFault::ConnectionNotNamed
            | RelayFault::NoTab
            | RelayFault::ForeignTab
            | RelayFault::NoSuchTab
            | RelayFault::TabMoved(_)
            | RelayFault::TabUnavailable(_) => -32003,
            RelayFault::ExtensionGone(_)
            | RelayFault::Superseded(..)
            | RelayFault::Disconnected(_)
            | RelayFault::Closed(..) => -32004,
            RelayFault::Timeout(_) => -32005,
            RelayFault::RateLimited { .. }
            | RelayFault::QueueFull
            | RelayFault::NoRoom(_)
            | RelayFault::ConnectionLimit
            | RelayFault::SocketLimit
            | RelayFault::AdmissionLimit => -32006,
            RelayFault::TooLarge(_) => -32007,
            RelayFault::Denied { .. } => -32008,
            RelayFault::NotJson => -32700,
            RelayFault::InvalidRequest(_) => -32600,
            RelayFault::ReservedMethod(_) | RelayFault::ExtensionRequest => -32601,
            RelayFault::InvalidParams(_) => -32602,
            RelayFault::UnusableAnswer => -32603,
        }
    }

    /// The word by which programs tell faults apart that share a code.
    pub fn reason(&self) -> &'static str {
        match self {
            RelayFault::AuthenticationFailed(_) => "auth_failed",
            RelayFault::KeysUnavailable => "keys_unavailable",
            RelayFault::ExtensionNotFound => "extension_not_found",
            RelayFault::AlreadyConnected => "already_connected",
            RelayFault::NotAuthenticated => "not_authenticated",
            RelayFault::NotConnected => "not_connected",
            RelayFault::WrongConnection => "wrong_connection",
            RelayFault::ConnectionNotNamed => "connection_not_named",
            RelayFault::NoTab => "no_tab",
            RelayFault::ForeignTab => "foreign_tab",
            RelayFault::NoSuchTab => "no_such_tab",
            RelayFault::TabMoved(_) => "tab_moved",
            RelayFault::TabUnavailable(_) => "tab_unavailable",
            RelayFault::ExtensionGone(_) => "extension_gone",
            RelayFault::Superseded(..) => "superseded",
            RelayFault::Disconnected(_) | RelayFault::Closed(..) => "disconnected",
            RelayFault::Timeout(_) => "timeout",
            RelayFault::RateLimited { .. } => "rate_limited",
            RelayFault::QueueFull => "queue_full",
            RelayFault::NoRoom(_) => "no_room",
            RelayFault::ConnectionLimit => "connection_limit",
            RelayFault::SocketLimit => "socket_limit",
            RelayFault::AdmissionLimit => "admission_limit",
            RelayFault::TooLarge(_) => "too_large",
            RelayFault::Denied { .. } => "denied",
            RelayFault::NotJson => "parse_error",
            RelayFault::InvalidRequest(_) => "invalid_request",
            RelayFault::ReservedMethod(_) => "reserved_method",
            RelayFault::ExtensionRequest => "extension_request",
            RelayFault::InvalidParams(_) => "invalid_params",
            RelayFault::UnusableAnswer => "unusable_answer",
        }
    }

    /// When to try again, if that may help: every limit but those on sizes says so.
    fn retry_after_ms(&self) -> Option<u64> {
        match self {
            RelayFault::RateLimited { retry_after_ms } => Some(*retry_after_ms),
            RelayFault::QueueFull => Some(QUEUE_RETRY_MS),
            RelayFault::NoRoom(_) | RelayFault::ConnectionLimit | RelayFault::SocketLimit => {
                Some(PLACE_RETRY_MS)
            }
            RelayFault::AdmissionLimit => Some(ADMISSION_RETRY_MS),
            RelayFault::KeysUnavailable => Some(KEYS_RETRY_MS),
            _ => None,
        }
    }

    /// The answer to the request with this id.
    pub fn answer(&self, id: Option<&Id>) -> Message {
        // An array, say, is not an id that an answer can have.
        let id = id.filter(|id| !matches!(id.key(), IdKey::Other(_)));
        let code = ErrorCode(self.code());
        error_response(id, code, &self.to_string(), Some(&self.data()))
    }

    /// `error.data`, as JSON.
    pub(crate) fn data(&self) -> String {
        let mut data = Map::new();
        data.insert("reason".to_owned(), Value::from(self.reason()));
        match self {
            RelayFault::ExtensionGone(delivered)
            | RelayFault::Superseded(_, delivered)
            | RelayFault::Closed(_, delivered)
            | RelayFault::Disconnected(delivered)
            | RelayFault::TabMoved(delivered)
            | RelayFault::TabUnavailable(delivered)
            | RelayFault::NoRoom(delivered)
            | RelayFault::Timeout(delivered) => {
                data.insert("delivered".to_owned(), delivered.value());
            }
            RelayFault::RateLimited { .. } | RelayFault::QueueFull => {
                data.insert("delivered".to_owned(), Value::Bool(false));
            }
            _ => {}
        }
        if let Some(wait) = self.retry_after_ms() {
            data.insert("retry_after_ms".to_owned(), json!(wait));
        }
        Value::Object(data).to_string()
    }
}

/// How long a client with a full queue should wait. An extension takes a few milliseconds for a command.
const QUEUE_RETRY_MS: u64 = 100;
/// Retry delay when a user has no free connection or socket, or there is no memory. Nobody knows when one will be free.
const PLACE_RETRY_MS: u64 = 1_000;
/// Retry delay when too many connect at once. The others are checked within this time.
const ADMISSION_RETRY_MS: u64 = 10_000;
/// How often keys are fetched because of tokens.
const KEYS_RETRY_MS: u64 = 30_000;
