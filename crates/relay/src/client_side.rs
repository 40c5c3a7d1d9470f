//! The clients of a user: their sockets, their connections, and the commands that they wait for.

mod connections;
mod long_answers;

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use mcp_proxy_wire::{Id, Message};
use rustc_hash::FxHashMap;
use serde_json::json;

use self::connections::{ClientConnection, ClientConnections};
use self::long_answers::LongAnswer;
use crate::command::{self, ClientRequest, Command, NotRequest};
use crate::context::RelayContext;
use crate::exchange::{ToClients, ToExtension};
use crate::fault::RelayFault;
use crate::ids::{ExtensionId, McpClientId, RelayConnectionId, SocketId};
use crate::messages;
use crate::outbox::{Outbox, RelayClose};
use crate::rates::{CommandRate, ToldClock};
use crate::settings::RelaySettings;
use crate::time::RelayTime;

/// Extensions that are remembered after they have left, so that a client can be told about them.
const MAX_REMEMBERED: usize = 64;

/// What a client said about itself.
#[derive(Clone, Debug, Default)]
pub struct NewClient {
    /// The id that it keeps across connections. A client without one cannot resume.
    pub client_id: Option<String>,
    /// When its token expires, in seconds since 1970.
    pub expires_at: i64,
    /// The id of its handshake, if it had one.
    pub request: Option<Id>,
}

/// The clients of one user.
#[derive(Debug)]
pub(crate) struct ClientSide {
    user: String,
    sockets: FxHashMap<SocketId, ClientSocket>,
    connections: ClientConnections,
    /// In the order in which they began.
    long_answers: Vec<LongAnswer>,
    directory: BTreeMap<ExtensionId, KnownExtension>,
    rate: CommandRate,
    control_rate: CommandRate,
    clock: ToldClock,
    next_number: u64,
}

#[derive(Debug)]
struct ClientSocket {
    client: McpClientId,
    /// It gave a `client_id`, so it may come back.
    can_resume: bool,
    expires_at: i64,
    status_due: Duration,
    outbox: Outbox,
}

#[derive(Debug)]
struct KnownExtension {
    name: String,
    is_online: bool,
}

impl ClientSide {
    pub(crate) fn new(user: &str, settings: &RelaySettings, clock: ToldClock) -> ClientSide {
        ClientSide {
            user: user.to_owned(),
            sockets: FxHashMap::default(),
            connections: ClientConnections::default(),
            long_answers: Vec::new(),
            directory: BTreeMap::new(),
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
        context: &mut RelayContext<'_>,
    ) {
        let client = context.ids.client(new.client_id.as_deref());
        let older = self
            .sockets
            .iter()
            .find(|(_, known)| known.client == client);
        if let Some((older, _)) = older {
            self.supersede(*older, context);
        }
        let interval = context.settings.status_interval;
        self.sockets.insert(
            socket,
            ClientSocket {
                can_resume: new.client_id.is_some(),
                client,
                expires_at: new.expires_at,
                status_due: context.now.elapsed + interval,
                outbox: Outbox::default(),
            },
        );
        self.welcome(socket, new.request.as_ref(), context);
        self.tell_count(context);
    }

    /// The same client has shown another token on the same socket.
    pub(crate) fn renew(
        &mut self,
        socket: SocketId,
        expires_at: i64,
        request: Option<&Id>,
        context: &mut RelayContext<'_>,
    ) {
        if let Some(known) = self.sockets.get_mut(&socket) {
            known.expires_at = expires_at;
            self.welcome(socket, request, context);
        }
    }

    fn welcome(&mut self, socket: SocketId, request: Option<&Id>, context: &mut RelayContext<'_>) {
        let Some(known) = self.sockets.get(&socket) else {
            return;
        };
        let value = json!({
            "authenticated": true,
            "user_id": self.user,
            "mcp_client_id": known.client.as_str(),
        });
        let message = match request {
            Some(id) => messages::result(id, &value),
            None => messages::notification(messages::HANDSHAKE_ACK, &value),
        };
        self.send(socket, message, context);
    }

    pub(crate) fn message(
        &mut self,
        socket: SocketId,
        message: Message,
        context: &mut RelayContext<'_>,
    ) {
        if self.outbox(socket).is_none_or(|outbox| outbox.is_closing()) {
            return;
        }
        let (id, request) = match command::read(&message) {
            Ok(read) => read,
            Err(NotRequest::Ignore) => {
                context.counters.ignored += 1;
                return;
            }
            Err(NotRequest::Refuse(fault)) => {
                context.counters.refused += 1;
                return self.send(socket, fault.answer(message.id().as_ref()), context);
            }
        };
        let request = request.and_then(|request| match request {
            ClientRequest::Forward { .. } => Ok(request),
            _ => self.control_rate.count().map(|()| request),
        });
        let done = request.and_then(|request| match request {
            ClientRequest::List { with_offline } => Ok(Some(self.list(with_offline))),
            ClientRequest::Connect(extension) => self.connect(socket, extension, context).map(Some),
            ClientRequest::Disconnect => {
                self.disconnect(socket, "MCP client disconnected", context);
                Ok(Some(json!({"disconnected": true})))
            }
            ClientRequest::Forward { method, connection } => {
                let command = (id.clone(), method, message);
                self.forward(socket, command, connection.as_deref(), context)?;
                Ok(None)
            }
        });
        match done {
            Ok(Some(value)) => self.send(socket, messages::result(&id, &value), context),
            Ok(None) => {}
            Err(fault) => {
                match fault {
                    RelayFault::RateLimited { .. } => context.counters.rate_limited += 1,
                    _ => context.counters.refused += 1,
                }
                self.send(socket, fault.answer(Some(&id)), context);
            }
        }
    }

    fn list(&self, with_offline: bool) -> serde_json::Value {
        let shown = self
            .directory
            .iter()
            .filter(|(_, known)| known.is_online || with_offline)
            .map(|(id, known)| json!({"id": id.as_str(), "name": known.name, "connected": known.is_online}));
        json!({"extensions": shown.collect::<Vec<_>>()})
    }

    fn connect(
        &mut self,
        socket: SocketId,
        extension: ExtensionId,
        context: &mut RelayContext<'_>,
    ) -> Result<serde_json::Value, RelayFault> {
        if self.connections.of_socket(socket).is_some() {
            return Err(RelayFault::AlreadyConnected);
        }
        let known = self
            .directory
            .get(&extension)
            .filter(|known| known.is_online);
        let name = known.ok_or(RelayFault::ExtensionNotFound)?.name.clone();
        let client = match self.sockets.get(&socket) {
            Some(known) => known.client.clone(),
            None => return Err(RelayFault::NotAuthenticated),
        };
        let id = match self.connections.resume(&client, &extension, socket) {
            Some(id) => id,
            None => {
                // The client has chosen another browser: what it had suspended is over.
                for (id, left) in self.connections.take_suspended_of(&client) {
                    detach(id, &left.extension, "MCP client disconnected", context);
                }
                if self.connections.len() >= context.settings.max_connections {
                    return Err(RelayFault::ConnectionLimit);
                }
                let id = context.ids.connection();
                let rate = CommandRate::new(context.settings.rates.per_connection, &self.clock);
                let new = ClientConnection::new(client.clone(), extension.clone(), socket, rate);
                self.connections.insert(id.clone(), new);
                id
            }
        };
        let attach = ToExtension::Attach {
            connection: id.clone(),
            client,
        };
        context.exchange.to_extension(&extension, attach);
        Ok(json!({
            "connection_id": id.as_str(),
            "extension_id": extension.as_str(),
            "extension_name": name,
        }))
    }

    fn disconnect(
        &mut self,
        socket: SocketId,
        reason: &'static str,
        context: &mut RelayContext<'_>,
    ) {
        if let Some((id, connection)) = self.connections.take_of_socket(socket) {
            for open in connection.open_ids() {
                self.send(socket, RelayFault::Disconnected.answer(Some(open)), context);
            }
            detach(id, &connection.extension, reason, context);
        }
    }

    fn forward(
        &mut self,
        socket: SocketId,
        (id, method, message): (Id, String, Message),
        named: Option<&str>,
        context: &mut RelayContext<'_>,
    ) -> Result<(), RelayFault> {
        let settings = context.settings;
        let (own, connection) = self
            .connections
            .of_socket(socket)
            .ok_or(RelayFault::NotConnected)?;
        if named.is_some_and(|named| named != own.as_str()) {
            return Err(RelayFault::WrongConnection);
        }
        if message.len() > settings.max_command {
            return Err(RelayFault::TooLarge(settings.max_command));
        }
        settings.policy.check(&method, &message)?;
        if connection.has_open(&id) {
            return Err(RelayFault::InvalidRequest("a request with this id is open"));
        }
        if connection.open_count() >= settings.max_open_commands {
            return Err(RelayFault::QueueFull);
        }
        connection.rate.count()?;
        self.rate.count()?;
        self.next_number += 1;
        let number = self.next_number;
        connection.begin(number, id.clone());
        context.counters.commands += 1;
        let command = Command {
            connection: own,
            number,
            id,
            method,
            message,
            deadline: context.now.elapsed + settings.command_timeout,
        };
        let extension = connection.extension.clone();
        let message = ToExtension::Command(Box::new(command));
        context.exchange.to_extension(&extension, message);
        Ok(())
    }

    /// A socket is gone. A client that can resume keeps its connection for a while.
    pub(crate) fn leave(&mut self, socket: SocketId, context: &mut RelayContext<'_>) {
        let Some(gone) = self.sockets.remove(&socket) else {
            return;
        };
        self.abandon_answers(socket, context);
        if gone.can_resume {
            let until = context.now.elapsed + context.settings.resume_window;
            if let Some((id, extension)) = self.connections.suspend(socket, until) {
                let suspend = ToExtension::Suspend { connection: id };
                context.exchange.to_extension(&extension, suspend);
            }
        } else {
            self.disconnect(socket, "MCP client disconnected", context);
            for (id, left) in self.connections.take_suspended_of(&gone.client) {
                detach(id, &left.extension, "MCP client disconnected", context);
            }
        }
        self.tell_count(context);
    }

    /// Another socket of the same client takes over. The older one learns that what it waits for has failed, then it is closed.
    fn supersede(&mut self, socket: SocketId, context: &mut RelayContext<'_>) {
        match self.connections.of_socket(socket) {
            Some((id, connection)) => {
                let extension = connection.extension.clone();
                let supersede = ToExtension::Supersede { connection: id };
                context.exchange.to_extension(&extension, supersede);
            }
            None => self.close_superseded(socket, context),
        }
        // From here on the name is the newer one's.
        if let Some(known) = self.sockets.get_mut(&socket) {
            known.client = context.ids.client(None);
            known.can_resume = false;
        }
    }

    fn close_superseded(&mut self, socket: SocketId, context: &mut RelayContext<'_>) {
        if let Some(outbox) = self.outbox(socket) {
            outbox.close(RelayClose::Superseded);
            context.woken.push(socket);
        }
    }

    /// A message of an extension's side.
    pub(crate) fn receive(&mut self, message: ToClients, context: &mut RelayContext<'_>) {
        match message {
            ToClients::Online { extension, name } => {
                let known = KnownExtension {
                    name,
                    is_online: true,
                };
                self.directory.insert(extension, known);
            }
            ToClients::Offline { extension, reason } => {
                self.extension_lost(&extension, reason, context);
            }
            ToClients::Answer {
                connection,
                number,
                outcome,
            } => {
                let Some(known) = self.connections.get_mut(&connection) else {
                    context.counters.late_answers += 1;
                    return;
                };
                let (Some(id), socket) = (known.finish(number), known.socket) else {
                    context.counters.late_answers += 1;
                    return;
                };
                let answer = match &outcome {
                    Ok(body) => messages::raw_answer(&id, body.member, &body.value),
                    Err(fault) => fault.answer(Some(&id)),
                };
                match socket {
                    Some(socket) => {
                        context.counters.answers += u64::from(outcome.is_ok());
                        self.send(socket, answer, context);
                    }
                    None => context.counters.late_answers += 1,
                }
            }
            ToClients::AnswerBegins {
                extension,
                connection,
                number,
            } => self.begin_answer(extension, &connection, number, context),
            ToClients::AnswerPiece { number, bytes } => self.add_to_answer(number, bytes, context),
            ToClients::AnswerEnds { number } => self.end_answer(number, context),
            ToClients::AnswerCut { number, cause } => self.cut_answer(number, cause, context),
            ToClients::Superseded { connection } => {
                let until = context.now.elapsed + context.settings.resume_window;
                let socket = self.connections.get_mut(&connection).and_then(|known| {
                    let socket = known.socket.take();
                    known.resume_until = Some(until);
                    socket
                });
                if let Some(socket) = socket {
                    self.connections.unbind(socket);
                    self.close_superseded(socket, context);
                }
            }
            ToClients::Notification {
                connection,
                message,
            } => {
                let known = self.connections.get_mut(&connection);
                if let Some(socket) = known.and_then(|known| known.socket) {
                    self.send(socket, message, context);
                }
            }
        }
    }

    fn extension_lost(
        &mut self,
        extension: &ExtensionId,
        reason: &'static str,
        context: &mut RelayContext<'_>,
    ) {
        if let Some(known) = self.directory.get_mut(extension) {
            known.is_online = false;
        }
        let offline = |(id, known): (&ExtensionId, &KnownExtension)| {
            (!known.is_online && id != extension).then(|| id.clone())
        };
        if self.directory.len() > MAX_REMEMBERED
            && let Some(oldest) = self.directory.iter().find_map(offline)
        {
            self.directory.remove(&oldest);
        }
        let until = context.now.elapsed + context.settings.resume_window;
        for (id, socket) in self.connections.suspend_all_of(extension, until) {
            let params = json!({"connection_id": id.as_str(), "reason": reason});
            let notice = messages::notification(messages::DISCONNECTED, &params);
            self.send(socket, notice, context);
        }
    }

    /// Does what is due, and says when to call again.
    pub(crate) fn tick(&mut self, context: &mut RelayContext<'_>) -> Duration {
        let now = context.now;
        let mut next = now.elapsed + context.settings.status_interval;
        for (id, left) in self.connections.take_expired(now.elapsed) {
            detach(id, &left.extension, "MCP client did not come back", context);
        }
        if let Some(until) = self.connections.next_expiry() {
            next = next.min(until);
        }
        let peers = self
            .directory
            .values()
            .filter(|known| known.is_online)
            .count();
        let status = status(peers, now);
        let mut expired = Vec::new();
        for (socket, known) in &mut self.sockets {
            if known.expires_at <= now.wall_seconds() && !known.outbox.is_closing() {
                expired.push(*socket);
                continue;
            }
            if known.status_due <= now.elapsed {
                known.status_due = now.elapsed + context.settings.status_interval;
                known.outbox.push(status.clone());
                context.woken.push(*socket);
            }
            next = next.min(known.status_due);
            next = next.min(until_wall(now, known.expires_at));
        }
        for socket in expired {
            self.close(socket, RelayClose::Unauthorized("Token expired"), context);
        }
        next
    }

    /// Closes a client's socket. What it waits for has failed then, and what it still says is not heard.
    pub(crate) fn close(
        &mut self,
        socket: SocketId,
        close: RelayClose,
        context: &mut RelayContext<'_>,
    ) {
        self.disconnect(socket, "MCP client disconnected", context);
        if let Some(outbox) = self.outbox(socket) {
            outbox.close(close);
            context.woken.push(socket);
        }
    }

    /// Counts a request to the relay itself.
    pub(crate) fn count_control(&self) -> Result<(), RelayFault> {
        self.control_rate.count()
    }

    pub(crate) fn close_all(&mut self, close: RelayClose, context: &mut RelayContext<'_>) {
        let sockets: Vec<SocketId> = self.sockets().collect();
        for socket in sockets {
            self.close(socket, close, context);
        }
    }

    fn tell_count(&mut self, context: &mut RelayContext<'_>) {
        let count = self.sockets.len();
        for (extension, _) in self.directory.iter().filter(|(_, known)| known.is_online) {
            let message = ToExtension::ClientCount(count);
            context.exchange.to_extension(extension, message);
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.sockets.len()
    }

    fn send(&mut self, socket: SocketId, message: Bytes, context: &mut RelayContext<'_>) {
        let Some(known) = self.sockets.get_mut(&socket) else {
            return;
        };
        if known.outbox.bytes() + message.len() > context.settings.max_outbox
            && !known.outbox.is_empty()
        {
            context.counters.slow_readers += 1;
            let close = RelayClose::TryLater("the client does not read");
            known.outbox.cut(close);
        } else {
            known.outbox.push(message);
        }
        context.woken.push(socket);
    }
}

/// The `status` notification.
pub(crate) fn status(peers: usize, now: RelayTime) -> Bytes {
    let params = json!({"connected": true, "peer_count": peers, "timestamp": now.timestamp()});
    messages::notification(messages::STATUS, &params)
}

/// When the clock on the wall shows these seconds.
pub(crate) fn until_wall(now: RelayTime, seconds: i64) -> Duration {
    let milliseconds = seconds.saturating_mul(1000).saturating_sub(now.wall_ms);
    let wait = Duration::from_millis(u64::try_from(milliseconds).unwrap_or(0));
    now.elapsed.saturating_add(wait)
}

fn detach(
    connection: RelayConnectionId,
    extension: &ExtensionId,
    reason: &'static str,
    context: &mut RelayContext<'_>,
) {
    let detach = ToExtension::Detach { connection, reason };
    context.exchange.to_extension(extension, detach);
}
