//! What a relay is set to.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mcp_proxy_core::MemoryBudget;

use crate::policy::RelayPolicy;

/// Limits, times and policy of one user's relay. The default is that of the command line.
#[derive(Clone, Debug)]
pub struct RelaySettings {
    /// Who may use it.
    pub access: RelayAccess,
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
    /// Whether a client may have several connections, and then names one in each command.
    pub multi_connection: bool,
    /// Under which ids extensions get commands.
    pub id_mode: CommandIdMode,
    /// Whether every extension is treated as one that attaches to a single tab for all clients, and not only those that send
    /// `build_info`.
    pub shared_debugger: bool,
    /// The longest command, and the longest answer.
    pub max_message: usize,
    /// Bytes of messages that wait for a client. Only one that does not read has more.
    pub max_outbox: usize,
    /// Counts messages that wait for clients.
    pub memory: MemoryBudget,
    /// How often commands may come.
    pub rates: RelayRates,
    /// What is allowed.
    pub policy: Arc<RelayPolicy>,
    /// What is allowed to single users, by their ids. Nothing in a token but its user chooses among these.
    pub user_policies: Arc<BTreeMap<String, Arc<RelayPolicy>>>,
    /// Whether somebody reads what [`crate::UserRelay::audit_events`] returns.
    pub is_audited: bool,
}

/// Under which id an extension gets a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommandIdMode {
    /// Under the id of the connection, a colon and the client's id.
    Map,
    /// Under the client's ids, as long as there is only one connection; a number takes the place of an id that was used before.
    /// As soon as there are several, as with `Map`.
    Preserve,
    /// As the extension says when it authenticates. If it says nothing, `Map`, and without tokens `Preserve`.
    #[default]
    Auto,
}

impl CommandIdMode {
    /// All of them.
    pub const ALL: [CommandIdMode; 3] = [
        CommandIdMode::Map,
        CommandIdMode::Preserve,
        CommandIdMode::Auto,
    ];

    /// Its name, on the command line and as extensions spell it.
    pub fn name(self) -> &'static str {
        match self {
            CommandIdMode::Map => "map",
            CommandIdMode::Preserve => "preserve",
            CommandIdMode::Auto => "auto",
        }
    }

    /// The mode with this name.
    pub fn named(name: &str) -> Option<CommandIdMode> {
        let mut all = CommandIdMode::ALL.into_iter();
        all.find(|mode| mode.name() == name)
    }

    /// What an extension gets that said `declared` about itself. One that asks for mapped ids always gets them.
    pub(crate) fn preserves(self, declared: Option<CommandIdMode>, access: RelayAccess) -> bool {
        match (self, access) {
            (CommandIdMode::Map, _) => false,
            (CommandIdMode::Preserve, _) | (CommandIdMode::Auto, RelayAccess::Direct) => {
                declared != Some(CommandIdMode::Map)
            }
            (CommandIdMode::Auto, RelayAccess::Tokens) => declared == Some(CommandIdMode::Preserve),
        }
    }
}

/// Who may use a relay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RelayAccess {
    /// Those who show a token, which says whose they are.
    #[default]
    Tokens,
    /// Everybody who can connect, without a token. All of them belong to one user.
    Direct,
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
            access: RelayAccess::default(),
            command_timeout: Duration::from_secs(30),
            resume_window: Duration::from_secs(30),
            // Deadlines are looked at four times a second, and 20 s are allowed.
            status_interval: Duration::from_secs(19),
            renew_before: Duration::from_secs(60),
            max_sockets: 256,
            max_connections: 64,
            max_open_commands: 256,
            max_queued_bytes: 32 << 20,
            multi_connection: false,
            id_mode: CommandIdMode::default(),
            shared_debugger: false,
            max_message: 64 << 20,
            max_outbox: 256 << 20,
            memory: MemoryBudget::default(),
            rates: RelayRates::default(),
            policy: Arc::new(RelayPolicy::standard()),
            user_policies: Arc::default(),
            is_audited: false,
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
