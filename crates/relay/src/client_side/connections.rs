//! The connections of a user's clients, by id and by socket.

use std::time::Duration;

use mcp_proxy_wire::{Id, IdKey};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::fault::RelayFault;
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
    resume_until: Option<Duration>,
    pub(super) rate: CommandRate,
    /// The ids of open commands by their numbers, and what they mean.
    open: FxHashMap<u64, Id>,
    open_keys: FxHashSet<IdKey>,
}

/// All connections of a user.
#[derive(Debug, Default)]
pub(super) struct ClientConnections {
    all: FxHashMap<RelayConnectionId, ClientConnection>,
    /// Those that a socket can use, in the order of their `connect`.
    by_socket: FxHashMap<SocketId, Vec<RelayConnectionId>>,
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

    pub(super) fn open_count(&self) -> usize {
        self.open.len()
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

    fn is_suspended(&self) -> bool {
        self.socket.is_none()
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

    /// The connections that a socket can use.
    pub(super) fn of_socket(&self, socket: SocketId) -> &[RelayConnectionId] {
        self.by_socket.get(&socket).map_or(&[], Vec::as_slice)
    }

    /// The connection of a socket that a command is for: the one that it names, or the only one.
    pub(super) fn choose(
        &mut self,
        socket: SocketId,
        named: Option<&str>,
    ) -> Result<(RelayConnectionId, &mut ClientConnection), RelayFault> {
        let id = match (self.of_socket(socket), named) {
            ([], _) => return Err(RelayFault::NotConnected),
            (own, Some(named)) => own
                .iter()
                .find(|id| id.as_str() == named)
                .ok_or(RelayFault::WrongConnection)?,
            ([only], None) => only,
            (_, None) => return Err(RelayFault::ConnectionNotNamed),
        };
        let id = id.clone();
        let connection = self.all.get_mut(&id).ok_or(RelayFault::NotConnected)?;
        Ok((id, connection))
    }

    /// Whether a socket waits for an answer under this id. It could not tell two answers apart.
    pub(super) fn has_open(&self, socket: SocketId, id: &Id) -> bool {
        let key = id.key();
        let mut own = self.of_socket(socket).iter();
        own.any(|id| {
            let known = self.all.get(id);
            known.is_some_and(|known| known.open_keys.contains(&key))
        })
    }

    pub(super) fn insert(&mut self, id: RelayConnectionId, connection: ClientConnection) {
        if let Some(socket) = connection.socket {
            self.by_socket.entry(socket).or_default().push(id.clone());
        }
        self.all.insert(id, connection);
    }

    /// Gives a suspended connection to an extension back to its client: of several, the one that could be resumed for the
    /// shortest time.
    pub(super) fn resume(
        &mut self,
        client: &McpClientId,
        extension: &ExtensionId,
        socket: SocketId,
    ) -> Option<RelayConnectionId> {
        let suspended = self.all.iter_mut().filter(|(_, known)| {
            known.is_suspended() && known.client == *client && known.extension == *extension
        });
        let (id, connection) =
            suspended.min_by_key(|(id, known)| (known.resume_until, (*id).clone()))?;
        connection.socket = Some(socket);
        connection.resume_until = None;
        let id = id.clone();
        self.by_socket.entry(socket).or_default().push(id.clone());
        Some(id)
    }

    /// Suspends a connection whose commands have failed. Returns the socket that used it.
    pub(super) fn suspend(&mut self, id: &RelayConnectionId, until: Duration) -> Option<SocketId> {
        let connection = self.all.get_mut(id)?;
        let socket = connection.socket?;
        connection.suspend(until);
        self.unbind(socket, id);
        Some(socket)
    }

    /// Suspends the connections of a socket that is gone.
    pub(super) fn suspend_all_of_socket(
        &mut self,
        socket: SocketId,
        until: Duration,
    ) -> Vec<(RelayConnectionId, ExtensionId)> {
        let ids = self.by_socket.remove(&socket).unwrap_or_default();
        let mut suspended = Vec::with_capacity(ids.len());
        for id in ids {
            if let Some(connection) = self.all.get_mut(&id) {
                connection.suspend(until);
                suspended.push((id, connection.extension.clone()));
            }
        }
        suspended
    }

    /// Suspends the connections to an extension that is gone. Their commands have failed already.
    pub(super) fn suspend_all_of_extension(
        &mut self,
        extension: &ExtensionId,
        until: Duration,
    ) -> Vec<(RelayConnectionId, SocketId)> {
        let theirs = self.all.iter();
        let ids = theirs.filter(|(_, known)| known.extension == *extension);
        let mut ids: Vec<RelayConnectionId> = ids.map(|(id, _)| id.clone()).collect();
        ids.sort();
        let suspend = |id: RelayConnectionId| {
            let socket = self.suspend(&id, until)?;
            Some((id, socket))
        };
        ids.into_iter().filter_map(suspend).collect()
    }

    /// The extension that a connection leads to.
    pub(super) fn extension_of(&self, id: &RelayConnectionId) -> Option<ExtensionId> {
        Some(self.all.get(id)?.extension.clone())
    }

    pub(super) fn remove(&mut self, id: &RelayConnectionId) {
        let removed = self.all.remove(id);
        if let Some(socket) = removed.and_then(|known| known.socket) {
            self.unbind(socket, id);
        }
    }

    pub(super) fn take_suspended_of(
        &mut self,
        client: &McpClientId,
    ) -> Vec<(RelayConnectionId, ClientConnection)> {
        self.take_where(|known| known.is_suspended() && known.client == *client)
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
        let taken = self.all.extract_if(|_, known| is_taken(known));
        let mut taken: Vec<_> = taken.collect();
        taken.sort_by(|(one, _), (other, _)| one.cmp(other));
        taken
    }

    fn unbind(&mut self, socket: SocketId, id: &RelayConnectionId) {
        if let Some(own) = self.by_socket.get_mut(&socket) {
            own.retain(|own| own != id);
            if own.is_empty() {
                self.by_socket.remove(&socket);
            }
        }
    }
}
