//! The extensions of a user: their sockets, the commands that wait for them, and whose tabs are whose.

mod answers;
mod attached_connection;
mod cancelled_commands;
mod command_queue;
mod direct;
mod extension;
mod failures;
mod own_tab;
mod plain_ids;
mod shared_debugger;

use std::collections::BTreeMap;
use std::time::Duration;

use mcp_proxy_wire::{Kind, Message};
use serde_json::{Value, json};

use self::extension::Extension;
use crate::command::Command;
use crate::context::RelayContext;
use crate::extension_event::{AnswerBody, ExtensionEvent};
use crate::fault::{Delivered, RelayFault};
use crate::ids::{ExtensionId, McpClientId, RelayConnectionId, SocketId};
use crate::messages::{self, AnsweredRequest};
use crate::opening::{Credentials, SocketRole};
use crate::outbox::{Outbox, RelayClose, SocketOutput};
use crate::settings::{CommandIdMode, RelaySettings};

/// How long an extension may take to say which tabs there are, or to show a new token.
const QUESTION_DEADLINE: Duration = Duration::from_secs(10);
/// Extensions that are remembered after they have left, so that a client can be told about them.
const MAX_REMEMBERED: usize = 64;
/// When an extension whose new token could not be checked is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(20);

/// What an extension said about itself.
#[derive(Clone, Debug, Default)]
pub struct NewExtension {
    /// The name of its browser.
    pub name: Option<String>,
    /// The id that it keeps across connections.
    pub client_id: Option<String>,
    /// It gave one that cannot be used, and is told so.
    pub has_unusable_client_id: bool,
    /// Under which ids it wants its commands, if it says so.
    pub id_mode: Option<CommandIdMode>,
    /// When its token expires, in seconds since 1970.
    pub expires_at: i64,
}

impl NewExtension {
    /// What an extension's answer to `authenticate` said. Its token has been checked.
    pub fn new(credentials: &Credentials, expires_at: i64) -> NewExtension {
        NewExtension {
            name: credentials.name.clone(),
            client_id: credentials.client_id.clone(),
            has_unusable_client_id: credentials.has_unusable_client_id,
            id_mode: credentials.id_mode,
            expires_at,
        }
    }
}

/// The extensions of one user.
#[derive(Debug, Default)]
pub(crate) struct ExtensionSide {
    extensions: BTreeMap<ExtensionId, Extension>,
    /// What the browsers of these extensions, and of some that have left, are called.
    names: BTreeMap<ExtensionId, String>,
    client_count: usize,
}

impl ExtensionSide {
    pub(crate) fn is_empty(&self) -> bool {
        self.extensions.is_empty()
    }

    pub(crate) fn sockets(&self) -> impl Iterator<Item = SocketId> + '_ {
        self.extensions.values().filter_map(|known| known.socket)
    }

    fn of_socket(&self, socket: SocketId) -> Option<&ExtensionId> {
        let mut all = self.extensions.iter();
        all.find_map(|(id, known)| (known.socket == Some(socket)).then_some(id))
    }

    fn at(&mut self, socket: SocketId) -> Option<(ExtensionId, &mut Extension)> {
        let id = self.of_socket(socket)?.clone();
        let known = self.extensions.get_mut(&id)?;
        Some((id, known))
    }

    /// An extension has shown a valid token of this user. Returns the older socket of the same extension, which is closed.
    pub(crate) fn join(
        &mut self,
        socket: SocketId,
        user: &str,
        new: &NewExtension,
        context: &mut RelayContext,
    ) -> Option<(SocketId, Outbox)> {
        let id = context.ids.extension(new.client_id.as_deref());
        let name = new.name.clone().unwrap_or_else(|| "Browser".to_owned());
        let known = self.extensions.entry(id.clone()).or_default();
        let older = known.socket.map(|older| {
            let fault = |delivered| RelayFault::Superseded("extension", delivered);
            known.fail_everything(fault, context);
            let role = SocketRole::Extension;
            context.audit.taken_over(role, id.as_str(), context.now);
            let mut outbox = std::mem::take(&mut known.outbox);
            outbox.cut(RelayClose::Superseded);
            context.sockets_with_output.push(older);
            (older, outbox)
        });
        known.open(socket, new, context);
        let mut params = json!({
            "user_id": user,
            "extension_id": id.as_str(),
        });
        if new.has_unusable_client_id {
            params["client_id_ignored"] = true.into();
        }
        known.send(
            messages::notification(messages::AUTHENTICATED, &params),
            context,
        );
        self.names.insert(id, name);
        self.tell_connections(context);
        older
    }

    /// An extension has shown another token on the same socket.
    pub(crate) fn renew(&mut self, socket: SocketId, expires_at: i64) {
        if let Some((_, known)) = self.at(socket) {
            known.expires_at = expires_at;
        }
    }

    /// Whether a message answers the relay's question for another token.
    pub(crate) fn is_renewal(&self, socket: SocketId, message: &Message) -> bool {
        let known = self
            .of_socket(socket)
            .and_then(|id| self.extensions.get(id));
        let answered = message.id().map(|id| AnsweredRequest::of(&id.key()));
        match (known, answered) {
            (Some(known), Some(AnsweredRequest::Question(number))) => known.asks_for_token(number),
            _ => false,
        }
    }

    pub(crate) fn message(
        &mut self,
        socket: SocketId,
        message: Message,
        context: &mut RelayContext,
    ) {
        let Some((_, known)) = self.at(socket) else {
            return;
        };
        if known.outbox.is_closing() {
            return;
        }
        match message.kind() {
            Kind::Response | Kind::Error => known.answer(&message, context),
            // `{"id": …}` alone, or broken JSON behind an id, is an answer that cannot be read.
            Kind::Other | Kind::Malformed if message.id().is_some() => {
                known.answer(&message, context);
            }
            Kind::Request => {
                context.counters.ignored += 1;
                let refused = RelayFault::ExtensionRequest;
                known.send(refused.answer(message.id().as_ref()), context);
            }
            Kind::Notification => known.notification(&message, context),
            Kind::Batch | Kind::Other | Kind::Malformed => context.counters.ignored += 1,
        }
        if known.has_ready() {
            context.sockets_with_output.push(socket);
        }
    }

    /// Memory ran out for an answer. `refusal` has its id.
    pub(crate) fn answer_refused(
        &mut self,
        socket: SocketId,
        refusal: &Message,
        context: &mut RelayContext,
    ) {
        if let Some((_, known)) = self.at(socket)
            && let Some(id) = refusal.id()
        {
            known.refuse_answer(&id.key(), RelayFault::NoRoom(Delivered::Yes), context);
        }
    }

    /// Nothing more is written to a socket. `begun` is how many messages it got at least one byte of.
    pub(crate) fn messages_begun(&mut self, socket: SocketId, begun: u64) {
        if let Some((_, known)) = self.at(socket) {
            known.commands.begun = Some(begun);
        }
    }

    /// An extension's socket does not take what is written to it.
    pub(crate) fn stalled(&mut self, socket: SocketId, context: &mut RelayContext) {
        if let Some((_, known)) = self.at(socket)
            && !known.outbox.is_closing()
        {
            let close = RelayClose::NotRead("the extension does not read");
            known.outbox.cut(close);
            context.counters.slow_readers += 1;
        }
    }

    /// A socket is gone: everything that waits for it fails at once.
    pub(crate) fn leave(
        &mut self,
        socket: SocketId,
        reason: &'static str,
        context: &mut RelayContext,
    ) {
        let Some((id, known)) = self.at(socket) else {
            return;
        };
        known.fail_everything(RelayFault::ExtensionGone, context);
        known.socket = None;
        known.outbox = Outbox::default();
        known.offline_since = Some(context.now.elapsed);
        context.extension_events.push_back(ExtensionEvent::Offline {
            extension: id,
            reason,
        });
        self.forget_oldest_name();
        self.tell_connections(context);
    }

    fn forget_oldest_name(&mut self) {
        let mut offline = self.names.keys().filter(|id| !self.is_online(id));
        if self.names.len() > MAX_REMEMBERED
            && let Some(oldest) = offline.next().cloned()
        {
            self.names.remove(&oldest);
        }
    }

    fn is_online(&self, id: &ExtensionId) -> bool {
        let known = self.extensions.get(id);
        known.is_some_and(|known| known.socket.is_some())
    }

    /// The name of an extension's browser, if it is there.
    pub(crate) fn name_of_online(&self, id: &ExtensionId) -> Option<&str> {
        let name = self.names.get(id)?;
        self.is_online(id).then_some(name)
    }

    /// The only extension that is there.
    pub(crate) fn only_online(&self) -> Option<&ExtensionId> {
        let mut online = self.names.keys().filter(|id| self.is_online(id));
        let only = online.next()?;
        online.next().is_none().then_some(only)
    }

    /// The answer to `list_extensions`.
    pub(crate) fn list(&self, with_offline: bool) -> Value {
        let all = self.names.iter().map(|(id, name)| {
            let is_online = self.is_online(id);
            (
                is_online,
                json!({"id": id.as_str(), "name": name, "connected": is_online}),
            )
        });
        let shown = all.filter(|(is_online, _)| *is_online || with_offline);
        json!({"extensions": shown.map(|(_, shown)| shown).collect::<Vec<_>>()})
    }

    /// A client has connected.
    pub(crate) fn attach(
        &mut self,
        extension: &ExtensionId,
        connection: RelayConnectionId,
        client: McpClientId,
        context: &mut RelayContext,
    ) {
        if let Some(known) = self.extensions.get_mut(extension) {
            known.attach(connection, client);
            self.tell_connections(context);
        }
    }

    /// A client has left for good: what is open fails, and its tabs are free.
    pub(crate) fn detach(
        &mut self,
        extension: &ExtensionId,
        connection: &RelayConnectionId,
        reason: &'static str,
        context: &mut RelayContext,
    ) {
        let Some(known) = self.extensions.get_mut(extension) else {
            return;
        };
        if known.detach(connection, context) {
            let params = json!({"connection_id": connection.as_str(), "reason": reason});
            let notice = messages::notification(messages::DISCONNECTED, &params);
            known.send(notice, context);
        }
        self.tell_connections(context);
    }

    /// A client's socket was lost, and it may come back: what was not sent yet is not sent.
    pub(crate) fn suspend(
        &mut self,
        extension: &ExtensionId,
        connection: &RelayConnectionId,
        context: &mut RelayContext,
    ) {
        if let Some(known) = self.extensions.get_mut(extension) {
            let fault = || RelayFault::Disconnected(Delivered::No);
            known.fail_queued_of(connection, fault, context);
        }
    }

    /// A newer socket of the same client takes over: what is open fails.
    pub(crate) fn supersede(
        &mut self,
        extension: &ExtensionId,
        connection: &RelayConnectionId,
        context: &mut RelayContext,
    ) {
        if let Some(known) = self.extensions.get_mut(extension) {
            known.supersede(connection, context);
        }
    }

    /// Queues a command.
    pub(crate) fn forward(
        &mut self,
        extension: &ExtensionId,
        command: Command,
        context: &mut RelayContext,
    ) {
        match self.extensions.get_mut(extension) {
            Some(known) => known.enqueue(command, context),
            None => {
                let fault = RelayFault::ExtensionGone(Delivered::No);
                answer(command.connection, command.number, Err(fault), context);
            }
        }
    }

    /// How many clients the user has.
    pub(crate) fn set_client_count(&mut self, count: usize, context: &mut RelayContext) {
        if self.client_count != count {
            self.client_count = count;
            self.tell_connections(context);
        }
    }

    /// What to write to an extension next: the relay's own messages, then commands in fair turns.
    pub(crate) fn take(
        &mut self,
        socket: SocketId,
        budget: usize,
        context: &mut RelayContext,
    ) -> SocketOutput {
        match self.at(socket) {
            Some((_, known)) => known.take(budget, context),
            None => SocketOutput::default(),
        }
    }

    /// Does what is due, and says when to call again.
    pub(crate) fn tick(&mut self, context: &mut RelayContext) -> Duration {
        let now = context.now;
        let RelaySettings {
            status_interval,
            renew_before,
            resume_window,
            ..
        } = context.settings;
        let mut next = now.elapsed + status_interval;
        for (id, known) in &mut self.extensions {
            known.expire(context);
            if known.has_ready() {
                // A command may have waited for one that has failed.
                context.sockets_with_output.extend(known.socket);
            }
            if let Some(deadline) = known.next_deadline(now.elapsed) {
                next = next.min(deadline);
            }
            if known.socket.is_none() || known.outbox.is_closing() {
                continue;
            }
            if known.expires_at <= now.wall_seconds() {
                let close = RelayClose::Unauthorized("Token expired");
                let role = SocketRole::Extension;
                context.audit.closed(role, id.as_str(), close, now);
                known.close(close, context);
                continue;
            }
            let renewal = now
                .until_wall(known.expires_at)
                .saturating_sub(renew_before);
            let is_asked = known.asked_for_token.is_some_and(|(expiry, at)| {
                expiry == known.expires_at && now.elapsed < at + ASK_AGAIN
            });
            if renewal <= now.elapsed && !is_asked {
                known.ask_for_token(context);
            }
            if known.status_due <= now.elapsed {
                known.status_due = now.elapsed + status_interval;
                known.send(messages::status(known.connection_count(), now), context);
            }
            next = next
                .min(known.status_due)
                .min(now.until_wall(known.expires_at));
            if renewal > now.elapsed {
                next = next.min(renewal);
            }
        }
        // An extension that stays away is forgotten as soon as nobody can resume a connection to it.
        self.extensions.retain(|_, known| {
            let is_waited_for = known
                .offline_since
                .is_some_and(|since| now.elapsed < since + resume_window);
            known.socket.is_some() || known.connection_count() > 0 || is_waited_for
        });
        next
    }

    pub(crate) fn close_all(&mut self, close: RelayClose, context: &mut RelayContext) {
        for known in self.extensions.values_mut() {
            known.send(
                messages::notification(messages::SHUTTING_DOWN, &json!({})),
                context,
            );
            known.close(close, context);
        }
    }

    pub(crate) fn close(
        &mut self,
        socket: SocketId,
        close: RelayClose,
        context: &mut RelayContext,
    ) {
        let Some((id, known)) = self.at(socket) else {
            return;
        };
        if !known.outbox.is_closing() {
            let role = SocketRole::Extension;
            context.audit.closed(role, id.as_str(), close, context.now);
        }
        known.close(close, context);
    }

    /// Tells every extension how many connections there are, and whose its own are.
    fn tell_connections(&mut self, context: &mut RelayContext) {
        let used: usize = self
            .extensions
            .values()
            .map(|known| known.connection_count())
            .sum();
        let browsers = self.sockets().count();
        let clients = self.client_count;
        for known in self
            .extensions
            .values_mut()
            .filter(|known| known.socket.is_some())
        {
            let active: Vec<_> = known.clients().map(|(connection, client)| {
                json!({"connection_id": connection.as_str(), "mcp_client_id": client.as_str(), "name": client.as_str()})
            }).collect();
            let params = json!({
                "max_connections": context.settings.max_connections,
                "connections_used": used,
                "connections_to_this_browser": known.connection_count(),
                "total_browsers": browsers,
                "total_mcp_clients": clients,
                "active_connections": active,
            });
            known.connection_status =
                Some(messages::notification(messages::CONNECTION_STATUS, &params).into_raw());
            context.sockets_with_output.extend(known.socket);
        }
    }
}

/// A command is over.
fn answer(
    connection: RelayConnectionId,
    number: u64,
    outcome: Result<AnswerBody, RelayFault>,
    context: &mut RelayContext,
) {
    context
        .extension_events
        .push_back(ExtensionEvent::Answered {
            connection,
            number,
            outcome,
        });
}

/// A notification that reaches the client of one connection.
fn notify(connection: &RelayConnectionId, message: &Message, context: &mut RelayContext) {
    context
        .extension_events
        .push_back(ExtensionEvent::Notification {
            connection: connection.clone(),
            message: message.clone(),
        });
}
