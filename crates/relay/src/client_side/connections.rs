//! The connections of a user's clients, by id and by socket.

use std::time::Duration;

use mcp_proxy_wire::{Id, IdKey};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::ids::{ExtensionId, McpClientId, RelayConnectionId, SocketId};
use crate::rates::CommandRate;

/// What ties a client to an extension, as the client's side sees it.
#[derive(Debug)]
pub(super) struct ClientConnection {
    client: McpClientId,
    pub(super) extension: ExtensionId,
    /// The client's socket. None while it is suspended.
    pub(super) socket: Option<SocketId>,
    /// Until when it can be resumed, while it is suspended.
    pub(super) resume_until: Option<Duration>,
    pub(super) rate: CommandRate,
    /// The ids of open commands by their numbers, and what they mean.
    open: FxHashMap<u64, Id>,
    open_keys: FxHashSet<IdKey>,
}

/// All connections of a user.
#[derive(Debug, Default)]
pub(super) struct ClientConnections {
    all: FxHashMap<RelayConnectionId, ClientConnection>,
    by_socket: FxHashMap<SocketId, RelayConnectionId>,
}

impl ClientConnection {
    pub(super) fn new(
        client: McpClientId,
        extension: ExtensionId,
        socket: SocketId,
        rate: CommandRate,
    ) -> ClientConnection {
        ClientConnection {
            client,
            extension,
            socket: Some(socket),
            resume_until: None,
            rate,
            open: FxHashMap::default(),
            open_keys: FxHashSet::default(),
        }
    }

    pub(super) fn has_open(&self, id: &Id) -> bool {
        self.open_keys.contains(&id.key())
    }

    pub(super) fn open_count(&self) -> usize {
        self.open.len()
    }

    pub(super) fn open_ids(&self) -> impl Iterator<Item = &Id> {
        self.open.values()
    }

    pub(super) fn begin(&mut self, number: u64, id: Id) {
        self.open_keys.insert(id.key());
        self.open.insert(number, id);
    }

    /// A command is answered: the id that its client gave it.
    pub(super) fn finish(&mut self, number: u64) -> Option<Id> {
        let id = self.open.remove(&number)?;
        self.open_keys.remove(&id.key());
        Some(id)
    }

    /// Its client waits for nothing any more.
    fn suspend(&mut self, until: Duration) {
        self.socket = None;
        self.resume_until = Some(until);
        self.open.clear();
        self.open_keys.clear();
    }
}

impl ClientConnections {
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn get_mut(&mut self, id: &RelayConnectionId) -> Option<&mut ClientConnection> {
        self.all.get_mut(id)
    }

    pub(super) fn of_socket(
        &mut self,
        socket: SocketId,
    ) -> Option<(RelayConnectionId, &mut ClientConnection)> {
        let id = self.by_socket.get(&socket)?;
        Some((id.clone(), self.all.get_mut(id)?))
    }

    pub(super) fn insert(&mut self, id: RelayConnectionId, connection: ClientConnection) {
        if let Some(socket) = connection.socket {
            self.by_socket.insert(socket, id.clone());
        }
        self.all.insert(id, connection);
    }

    /// Gives a suspended connection to an extension back to its client.
    pub(super) fn resume(
        &mut self,
        client: &McpClientId,
        extension: &ExtensionId,
        socket: SocketId,
    ) -> Option<RelayConnectionId> {
        let (id, connection) = self.all.iter_mut().find(|(_, known)| {
            known.client == *client && known.extension == *extension && known.socket.is_none()
        })?;
        connection.socket = Some(socket);
        connection.resume_until = None;
        self.by_socket.insert(socket, id.clone());
        Some(id.clone())
    }

    pub(super) fn unbind(&mut self, socket: SocketId) {
        self.by_socket.remove(&socket);
    }

    /// Suspends the connection of a socket that is gone.
    pub(super) fn suspend(
        &mut self,
        socket: SocketId,
        until: Duration,
    ) -> Option<(RelayConnectionId, ExtensionId)> {
        let id = self.by_socket.remove(&socket)?;
        let connection = self.all.get_mut(&id)?;
        connection.suspend(until);
        Some((id, connection.extension.clone()))
    }

    /// Suspends the connections to an extension that is gone. Their commands have failed already.
    pub(super) fn suspend_all_of(
        &mut self,
        extension: &ExtensionId,
        until: Duration,
    ) -> Vec<(RelayConnectionId, SocketId)> {
        let mut suspended = Vec::new();
        for (id, connection) in &mut self.all {
            if connection.extension == *extension
                && let Some(socket) = connection.socket
            {
                connection.suspend(until);
                self.by_socket.remove(&socket);
                suspended.push((id.clone(), socket));
            }
        }
        suspended
    }

    pub(super) fn take_of_socket(
        &mut self,
        socket: SocketId,
    ) -> Option<(RelayConnectionId, ClientConnection)> {
        let id = self.by_socket.remove(&socket)?;
        self.all.remove_entry(&id)
    }

    pub(super) fn take_suspended_of(
        &mut self,
        client: &McpClientId,
    ) -> Vec<(RelayConnectionId, ClientConnection)> {
        self.take_where(|known| known.socket.is_none() && known.client == *client)
    }

    pub(super) fn take_expired(
        &mut self,
        now: Duration,
    ) -> Vec<(RelayConnectionId, ClientConnection)> {
        self.take_where(|known| known.resume_until.is_some_and(|until| until <= now))
    }

    pub(super) fn next_expiry(&self) -> Option<Duration> {
        self.all
            .values()
            .filter_map(|known| known.resume_until)
            .min()
    }

    fn take_where(
        &mut self,
        is_taken: impl Fn(&ClientConnection) -> bool,
    ) -> Vec<(RelayConnectionId, ClientConnection)> {
        let mut taken: Vec<_> = self.all.extract_if(|_, known| is_taken(known)).collect();
        taken.sort_by(|(one, _), (other, _)| one.cmp(other));
        taken
    }
}
