//! The connections of a run: those that are open, and the last ones that have ended.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use mcp_proxy_control::{ConnectionNumber, ConnectionRow, PeerRow};
use mcp_proxy_session::UNNAMED_SERVER;

use crate::connection::Connection;
use crate::peer::Peer;

/// Ended connections that are remembered.
const REMEMBERED: usize = 100;

/// The connections of a run.
#[derive(Default)]
pub struct ConnectionRegistry(Mutex<State>);

#[derive(Default)]
struct State {
    open: BTreeMap<u32, Weak<Connection>>,
    /// The newest at the back.
    ended: VecDeque<ConnectionRow>,
}

/// The name that requests use for a server.
pub(crate) fn name_of(server: &Peer) -> Arc<str> {
    let name = server.name.clone();
    name.unwrap_or_else(|| Arc::from(UNNAMED_SERVER))
}

impl ConnectionRegistry {
    /// A connection begins.
    pub(crate) fn opened(&self, connection: &Arc<Connection>) {
        let connection = (connection.id, Arc::downgrade(connection));
        self.state().open.extend([connection]);
    }

    /// A connection ends. It may be told more than once.
    pub(crate) fn ended(&self, connection: &Connection) {
        let row = ConnectionRow {
            open: false,
            ..row(connection)
        };
        let mut state = self.state();
        if state.open.remove(&connection.id).is_some() {
            if state.ended.len() == REMEMBERED {
                state.ended.pop_front();
            }
            state.ended.push_back(row);
        }
    }

    /// The open connection of this number.
    pub fn find(&self, id: u32) -> Option<Arc<Connection>> {
        self.state().open.get(&id).and_then(Weak::upgrade)
    }

    /// The open connections, the oldest first.
    pub fn open(&self) -> Vec<Arc<Connection>> {
        // Dropped outside of the lock: a connection that goes with its last handle takes the lock itself.
        self.state()
            .open
            .values()
            .filter_map(Weak::upgrade)
            .collect()
    }

    /// The open connections and the last that have ended, the newest first.
    pub fn list(&self) -> Vec<ConnectionRow> {
        let mut rows: Vec<_> = self.open().iter().map(|open| row(open)).collect();
        rows.extend(self.state().ended.iter().cloned());
        rows.sort_by_key(|row| std::cmp::Reverse(row.connection));
        // One that ended meanwhile is in both.
        rows.dedup_by_key(|row| row.connection);
        rows
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection as viewers see it.
fn row(connection: &Connection) -> ConnectionRow {
    let server = connection.server_peer();
    ConnectionRow {
        connection: ConnectionNumber(connection.id),
        client: peer_row(&connection.client),
        server: PeerRow {
            name: Some(connection.server_name().as_ref().to_owned()),
            ..peer_row(&server)
        },
        open: true,
        parent: connection.parent(),
    }
}

fn peer_row(peer: &Peer) -> PeerRow {
    let address = peer.caller.as_ref().and_then(|caller| caller.address);
    PeerRow {
        name: peer.name.as_ref().map(|name| name.as_ref().to_owned()),
        transport: peer.transport.as_str().to_owned(),
        address: address.map(|address| address.to_string()),
    }
}
