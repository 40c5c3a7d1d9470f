//! One user's relay behind its lock, with what wakes the writers of its sockets.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustc_hash::FxHashMap;
use tokio::sync::Notify;

use super::due_users::DueUsers;
use super::{CheckedToken, lock};
use crate::audit::AuditSink;
use crate::counters::RelayCounters;
use crate::ids::SocketId;
use crate::outbox::SocketOutput;
use crate::time::RelayTime;
use crate::user::UserRelay;

/// How many bytes a socket's writer takes at once.
const WRITE_BUDGET: usize = 256 << 10;

/// A user's state. All that users share is the list of who is due, which messages hardly ever change.
pub(super) struct SharedUser {
    name: Arc<str>,
    state: Mutex<UserState>,
    audit: Option<AuditSink>,
    due_users: Arc<DueUsers>,
}

struct UserState {
    relay: UserRelay,
    sockets: FxHashMap<SocketId, OpenSocket>,
    /// Where the user is among [`DueUsers`].
    due: Option<Duration>,
}

struct OpenSocket {
    writer: Arc<Notify>,
    token: CheckedToken,
}

impl SharedUser {
    pub(super) fn new(
        name: Arc<str>,
        relay: UserRelay,
        audit: Option<AuditSink>,
        due_users: Arc<DueUsers>,
    ) -> SharedUser {
        SharedUser {
            name,
            audit,
            due_users,
            state: Mutex::new(UserState {
                relay,
                sockets: FxHashMap::default(),
                due: None,
            }),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Lets something happen, and wakes the writers that have something to write because of it.
    pub(super) fn change<T>(
        &self,
        now: RelayTime,
        change: impl FnOnce(&mut UserRelay, RelayTime) -> T,
    ) -> T {
        let mut state = lock(&self.state);
        let done = change(&mut state.relay, now);
        self.settle(&mut state);
        done
    }

    fn settle(&self, state: &mut UserState) {
        if let Some(audit) = &self.audit {
            let events = state.relay.audit_events();
            if !events.is_empty() {
                audit(&events);
            }
        }
        for socket in state.relay.take_sockets_with_output() {
            if let Some(open) = state.sockets.get(&socket) {
                open.writer.notify_one();
            }
        }
        let next = state.relay.next_tick();
        if state.due != Some(next) {
            let before = state.due.replace(next);
            self.due_users.reschedule(&self.name, before, next);
        }
    }

    /// Does what is due. The user was taken out of [`DueUsers`] for that, and is there again afterwards.
    pub(super) fn tick(&self, now: RelayTime) {
        let mut state = lock(&self.state);
        self.leave_due_users(&mut state);
        state.relay.tick(now);
        self.settle(&mut state);
    }

    /// The relay forgets this user.
    pub(super) fn retire(&self) {
        self.leave_due_users(&mut lock(&self.state));
    }

    fn leave_due_users(&self, state: &mut UserState) {
        if let Some(due) = state.due.take() {
            self.due_users.remove(&self.name, due);
        }
    }

    /// Registers a socket before it joins: what it hears first must not be missed.
    pub(super) fn remember(&self, socket: SocketId, token: CheckedToken) -> Arc<Notify> {
        let writer = Arc::new(Notify::new());
        let open = OpenSocket {
            writer: Arc::clone(&writer),
            token,
        };
        lock(&self.state).sockets.insert(socket, open);
        writer
    }

    pub(super) fn set_token(&self, socket: SocketId, token: CheckedToken) {
        if let Some(open) = lock(&self.state).sockets.get_mut(&socket) {
            open.token = token;
        }
    }

    pub(super) fn forget(&self, socket: SocketId) {
        lock(&self.state).sockets.remove(&socket);
    }

    /// What to write to a socket now.
    pub(super) fn take(&self, socket: SocketId, now: RelayTime) -> SocketOutput {
        let mut state = lock(&self.state);
        let output = state.relay.take(socket, WRITE_BUDGET, now);
        // A refused command has an answer for its client.
        self.settle(&mut state);
        output
    }

    pub(super) fn is_empty(&self) -> bool {
        let state = lock(&self.state);
        state.sockets.is_empty() && state.relay.is_empty()
    }

    pub(super) fn tokens(&self) -> Vec<(SocketId, CheckedToken)> {
        let state = lock(&self.state);
        let open = state.sockets.iter();
        open.map(|(socket, open)| (*socket, open.token.clone()))
            .collect()
    }

    pub(super) fn socket_count(&self) -> usize {
        lock(&self.state).sockets.len()
    }

    pub(super) fn peer_counts(&self) -> (usize, usize) {
        lock(&self.state).relay.peer_counts()
    }

    pub(super) fn counters(&self) -> RelayCounters {
        lock(&self.state).relay.counters()
    }
}
