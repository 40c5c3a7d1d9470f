//! What a relay is set to.

use std::time::Duration;

use crate::policy::RelayPolicy;

/// Limits, times and policy of one user's relay. The default is that of the command line.
#[derive(Clone, Debug)]
pub struct RelaySettings {
    /// How long an extension may take for a command.
    pub command_timeout: Duration,
    /// How long a lost client or extension can come back to its connections.
    pub resume_window: Duration,
    /// How often extensions get a `status`. A service worker that gets no message for 30 s is stopped by its browser, and
    /// WebSocket pings do not count.
    pub status_interval: Duration,
    /// How long before its token expires an extension is asked for another.
    pub renew_before: Duration,
    /// Sockets of one user at once, of clients and extensions together.
    pub max_sockets: usize,
    /// Connections of one user at once.
    pub max_connections: usize,
    /// Commands of one connection that wait for the extension or for its answer.
    pub max_open_commands: usize,
    /// Bytes of commands of one connection that wait for the extension.
    pub max_queued_bytes: usize,
    /// The longest command.
    pub max_command: usize,
    /// The longest answer.
    pub max_answer: usize,
    /// How long a client may take nothing of a long answer while others wait for its extension.
    pub stall: Duration,
    /// Bytes of messages that wait for a client. Only one that does not read has more.
    pub max_outbox: usize,
    /// How often commands may come.
    pub rates: RelayRates,
    /// What is allowed.
    pub policy: RelayPolicy,
}

/// How many commands a second are accepted, after a burst of the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelayRates {
    /// Of all clients of a user together.
    pub per_user: u32,
    /// Of one connection.
    pub per_connection: u32,
    /// Requests to the relay itself, such as `connect`, of all clients of a user together.
    pub control: u32,
}

impl Default for RelaySettings {
    fn default() -> RelaySettings {
        RelaySettings {
            command_timeout: Duration::from_secs(30),
            resume_window: Duration::from_secs(30),
            status_interval: Duration::from_secs(20),
            renew_before: Duration::from_secs(60),
            max_sockets: 256,
            max_connections: 64,
            max_open_commands: 256,
            max_queued_bytes: 32 << 20,
            max_command: 16 << 20,
            max_answer: 128 << 20,
            stall: Duration::from_secs(5),
            max_outbox: 256 << 20,
            rates: RelayRates::default(),
            policy: RelayPolicy::default(),
        }
    }
}

impl Default for RelayRates {
    fn default() -> RelayRates {
        RelayRates {
            per_user: 500,
            per_connection: 200,
            control: 100,
        }
    }
}
