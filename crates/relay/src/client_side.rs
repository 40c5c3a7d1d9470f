//! The clients of a user: their sockets, their connections, and the commands that they wait for.

mod connections;
mod direct;
mod disconnects;
mod extension_events;
mod requests;

use std::cell::LazyCell;
use std::time::Duration;

use mcp_proxy_core::{COUNTED_FROM, MemoryBudget};
use mcp_proxy_wire::{Id, Message};
use rustc_hash::FxHashMap;
use serde_json::json;

use self::connections::ClientConnections;
use self::disconnects::detach;
use crate::context::RelayContext;
use crate::extension_side::ExtensionSide;
use crate::fault::{Delivered, RelayFault};
use crate::ids::{McpClientId, SocketId};
use crate::messages;
use crate::opening::Credentials;
use crate::outbox::{Outbox, RelayClose};
use crate::rates::{CommandRate, RateClock};
use crate::settings::RelaySettings;

/// What a client said about itself.
#[derive(Clone, Debug, Default)]
pub struct NewClient {
    /// The id that it keeps across connections. A client without one cannot resume.
    pub client_id: Option<String>,
    /// It gave one that cannot be used, and is told so.
    pub has_unusable_client_id: bool,
    /// When its token expires, in seconds since 1970.
    pub expires_at: i64,
    /// The id of its handshake, if it had one.
    pub request: Option<Id>,
}

impl NewClient {
    /// What a client's handshake said. Its token has been checked.
    pub fn new(credentials: &Credentials, expires_at: i64) -> NewClient {
        NewClient {
            client_id: credentials.client_id.clone(),
            has_unusable_client_id: credentials.has_unusable_client_id,
            expires_at,
            request: credentials.request.clone(),
        }
    }
}

/// The clients of one user.
#[derive(Debug)]
pub(crate) struct ClientSide {
    user: String,
    sockets: FxHashMap<SocketId, ClientSocket>,
    connections: ClientConnections,
    rate: CommandRate,
    control_rate: CommandRate,
    clock: RateClock,
    next_number: u64,
}

#[derive(Debug)]
struct ClientSocket {
    client: McpClientId,
    /// It gave a `client_id`, so it may come back.
    can_resume: bool,
    has_unusable_client_id: bool,
    expires_at: i64,
    status_due: Duration,
    outbox: Outbox,
}

impl ClientSide {
    pub(crate) fn new(user: &str, settings: &RelaySettings, clock: RateClock) -> ClientSide {
        ClientSide {
            user: user.to_owned(),
            sockets: FxHashMap::default(),
            connections: ClientConnections::default(),
            rate: CommandRate::new(settings.rates.per_user, &clock),
            control_rate: CommandRate::new(settings.rates.control, &clock),
            clock,
            next_number: 0,
        }
    }

    pub(crate) fn has(&self, socket: SocketId) -> bool {
        self.sockets.contains_key(&socket)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sockets.is_empty() && self.connections.is_empty()
    }

    pub(crate) fn outbox(&mut self, socket: SocketId) -> Option<&mut Outbox> {
        Some(&mut self.sockets.get_mut(&socket)?.outbox)
    }

    pub(crate) fn sockets(&self) -> impl Iterator<Item = SocketId> + '_ {
        self.sockets.keys().copied()
    }

    /// A client has shown a valid token of this user.
    pub(crate) fn join(
        &mut self,
        socket: SocketId,
        new: &NewClient,
        extensions: &mut ExtensionSide,
        context: &mut RelayContext,
    ) {
        let client = context.ids.client(new.client_id.as_deref());
        self.supersede_older(&client, extensions, context);
        let interval = context.settings.status_interval;
        self.sockets.insert(
            socket,
            ClientSocket {
                can_resume: new.client_id.is_some(),
                has_unusable_client_id: new.has_unusable_client_id,
                client,
                expires_at: new.expires_at,
                status_due: context.now.elapsed + interval,
                outbox: Outbox::default(),
            },
        );
        self.welcome(socket, new.request.as_ref(), context);
        extensions.set_client_count(self.sockets.len(), context);
    }

    /// The same client has shown another token on the same socket.
    pub(crate) fn renew(
        &mut self,
        socket: SocketId,
        credentials: &Credentials,
        expires_at: i64,
        extensions: &mut ExtensionSide,
        context: &mut RelayContext,
    ) {
        if let Some(known) = self.sockets.get_mut(&socket) {
            known.expires_at = expires_at;
            self.take_late_name(socket, credentials, extensions, context);
            self.welcome(socket, credentials.request.as_ref(), context);
        }
    }

    /// A client that gave no `client_id` can still give one until it connects: in direct mode it is taken in before it has said
    /// anything.
    fn take_late_name(
        &mut self,
        socket: SocketId,
        credentials: &Credentials,
        extensions: &mut ExtensionSide,
        context: &mut RelayContext,
    ) {
        let Some(known) = self.sockets.get_mut(&socket) else {
            return;
        };
        if known.can_resume || known.outbox.is_closing() {
            return;
        }
        known.has_unusable_client_id = credentials.has_unusable_client_id;
        if credentials.client_id.is_none() || !self.connections.of_socket(socket).is_empty() {
            return;
        }
        let client = context.ids.client(credentials.client_id.as_deref());
        self.supersede_older(&client, extensions, context);
        if let Some(known) = self.sockets.get_mut(&socket) {
            known.client = client;
            known.can_resume = true;
        }
    }

    /// A socket takes this name: an older one that has it is closed.
    fn supersede_older(
        &mut self,
        client: &McpClientId,
        extensions: &mut ExtensionSide,
        context: &mut RelayContext,
    ) {
        let mut all = self.sockets.iter();
        let older = all.find(|(_, known)| known.client == *client);
        if let Some((older, _)) = older {
            self.supersede(*older, extensions, context);
        }
    }

    fn welcome(&mut self, socket: SocketId, request: Option<&Id>, context: &mut RelayContext) {
        let Some(known) = self.sockets.get(&socket) else {
            return;
        };
        let mut value = json!({
            "authenticated": true,
            "user_id": self.user,
            "mcp_client_id": known.client.as_str(),
        });
        if known.has_unusable_client_id {
            value["client_id_ignored"] = true.into();
        }
        let message = match request {
            Some(id) => messages::result(id, &value),
            None => messages::notification(messages::HANDSHAKE_ACK, &value),
        };
        self.send(socket, message, context);
    }

    /// Does what is due, and says when to call again.
    pub(crate) fn tick(
        &mut self,
        extensions: &mut ExtensionSide,
        context: &mut RelayContext,
    ) -> Duration {
        let now = context.now;
        let mut next = now.elapsed + context.settings.status_interval;
        for (id, expired) in self.connections.take_expired(now.elapsed) {
            let reason = "MCP client did not come back";
            detach(&id, &expired.extension, reason, extensions, context);
        }
        if let Some(until) = self.connections.next_expiry() {
            next = next.min(until);
        }
        let peers = extensions.sockets().count();
        let status = LazyCell::new(|| messages::status(peers, now));
        let mut expired = Vec::new();
        for (socket, known) in &mut self.sockets {
            if known.expires_at <= now.wall_seconds() && !known.outbox.is_closing() {
                expired.push(*socket);
                continue;
            }
            if known.status_due <= now.elapsed {
                known.status_due = now.elapsed + context.settings.status_interval;
                known.outbox.push(status.clone());
                context.sockets_with_output.push(*socket);
            }
            next = next.min(known.status_due);
            next = next.min(now.until_wall(known.expires_at));
        }
        for socket in expired {
            let close = RelayClose::Unauthorized("Token expired");
            self.close(socket, close, extensions, context);
        }
        next
    }

    /// Counts a request to the relay itself.
    pub(crate) fn count_control(&self) -> Result<(), RelayFault> {
        self.control_rate.count()
    }

    pub(crate) fn count(&self) -> usize {
        self.sockets.len()
    }

    /// A client's socket does not take what is written to it.
    pub(crate) fn stalled(&mut self, socket: SocketId, context: &mut RelayContext) {
        if let Some(outbox) = self.outbox(socket)
            && !outbox.is_closing()
        {
            outbox.cut(RelayClose::NotRead("the client does not read"));
            context.counters.slow_readers += 1;
        }
    }

    fn send(&mut self, socket: SocketId, message: Message, context: &mut RelayContext) {
        let Some(known) = self.sockets.get_mut(&socket) else {
            return;
        };
        let max = context.settings.max_outbox;
        let is_full = |outbox: &Outbox, message: &Message| {
            outbox.bytes() + message.len() > max && !outbox.is_empty()
        };
        let close = match held(message, &context.settings.memory) {
            Some(message) if !is_full(&known.outbox, &message) => {
                known.outbox.push(message);
                None
            }
            Some(_) => Some("the client does not read"),
            None => Some("there is no memory for an event"),
        };
        if let Some(why) = close {
            context.counters.slow_readers += 1;
            known.outbox.cut(RelayClose::NotRead(why));
        }
        context.sockets_with_output.push(socket);
    }
}

/// Counts a large message as long as it waits; [`RelaySettings::max_outbox`] bounds smaller ones. If there is no room for an answer,
/// its client gets an error in its place; there is none for an event.
fn held(message: Message, memory: &MemoryBudget) -> Option<Message> {
    if message.len() < COUNTED_FROM {
        return Some(message);
    }
    let (is_answer, id) = (message.is_answer(), message.id());
    let held = message.try_rehouse(|bytes| memory.hold(bytes)).ok();
    let fault = RelayFault::NoRoom(Delivered::Yes);
    held.or_else(|| is_answer.then(|| fault.answer(id.as_ref())))
}
