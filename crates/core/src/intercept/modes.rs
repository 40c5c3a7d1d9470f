//! The mode of each part of a run: a connection's own, else its server's, else the run's.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use mcp_proxy_control::{ConnectionNumber, InterceptMode, ModeOverride};

use crate::connection::Connection;

/// The part of a run that a mode or a breakpoint is for.
#[derive(Clone, Debug, Default)]
pub enum HoldScope {
    /// All of it.
    #[default]
    Run,
    /// One connection. The scope does not keep it alive.
    Connection {
        /// Its number.
        id: u32,
        /// The connection, until it ends.
        connection: Weak<Connection>,
    },
    /// All connections to the server of this name.
    Server(Arc<str>),
}

impl HoldScope {
    /// The scope that is this connection.
    pub fn connection(connection: &Arc<Connection>) -> HoldScope {
        HoldScope::Connection {
            id: connection.id,
            connection: Arc::downgrade(connection),
        }
    }

    /// Whether messages of this connection are meant.
    pub fn has(&self, connection: &Connection) -> bool {
        match self {
            HoldScope::Run => true,
            HoldScope::Connection { id, .. } => *id == connection.id,
            HoldScope::Server(name) => name == connection.server_name(),
        }
    }
}

/// The modes of a run and of those of its parts that differ.
#[derive(Debug, Default)]
pub(super) struct Modes {
    run: InterceptMode,
    servers: BTreeMap<Arc<str>, InterceptMode>,
    connections: BTreeMap<u32, (Weak<Connection>, InterceptMode)>,
}

impl Modes {
    pub(super) fn new(run: InterceptMode) -> Modes {
        Modes {
            run,
            ..Modes::default()
        }
    }

    /// The mode of a part of the run, set there or inherited.
    pub(super) fn of(&self, scope: &HoldScope) -> InterceptMode {
        match scope {
            HoldScope::Run => self.run,
            HoldScope::Connection { connection, .. } => match connection.upgrade() {
                Some(connection) => self.of_connection(&connection),
                None => self.run,
            },
            HoldScope::Server(name) => self.servers.get(name).copied().unwrap_or(self.run),
        }
    }

    /// The mode of a connection.
    pub(super) fn of_connection(&self, connection: &Connection) -> InterceptMode {
        // Read for every message while something may be held.
        if let Some((_, mode)) = self.connections.get(&connection.id) {
            return *mode;
        }
        match self.servers.is_empty() {
            true => self.run,
            false => self.of(&HoldScope::Server(Arc::clone(connection.server_name()))),
        }
    }

    /// Sets the mode of a part of the run. `None`: it has none of its own.
    pub(super) fn set(&mut self, scope: &HoldScope, mode: Option<InterceptMode>) {
        self.forget_ended();
        match (scope, mode) {
            (HoldScope::Run, mode) => self.run = mode.unwrap_or_default(),
            (HoldScope::Connection { id, connection }, Some(mode)) => {
                self.connections.insert(*id, (connection.clone(), mode));
            }
            (HoldScope::Connection { id, .. }, None) => {
                self.connections.remove(id);
            }
            (HoldScope::Server(name), Some(mode)) => {
                self.servers.insert(Arc::clone(name), mode);
            }
            (HoldScope::Server(name), None) => {
                self.servers.remove(name);
            }
        }
    }

    /// Whether all messages of some part of the run are held.
    pub(super) fn hold_anything(&self) -> bool {
        let own = self.connections.values().map(|(_, mode)| mode);
        let mut all = own.chain(self.servers.values()).chain([&self.run]);
        all.any(|mode| *mode == InterceptMode::Intercept)
    }

    /// The modes that differ from the run's, or would if that changed.
    pub(super) fn overrides(&self) -> Vec<ModeOverride> {
        let servers = self.servers.iter().map(|(name, mode)| ModeOverride {
            connection: None,
            server: Some(name.as_ref().to_owned()),
            mode: *mode,
        });
        let open = |(_, (connection, _)): &(&u32, &(Weak<Connection>, InterceptMode))| {
            connection.strong_count() > 0
        };
        let connections = self.connections.iter().filter(open);
        let connections = connections.map(|(id, (_, mode))| ModeOverride {
            connection: Some(ConnectionNumber(*id)),
            server: None,
            mode: *mode,
        });
        servers.chain(connections).collect()
    }

    /// Forgets the modes of connections that have ended. Returns whether there were any.
    pub(super) fn forget_ended(&mut self) -> bool {
        let before = self.connections.len();
        self.connections
            .retain(|_, (connection, _)| connection.strong_count() > 0);
        self.connections.len() < before
    }
}
