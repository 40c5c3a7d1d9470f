//! One extension: who uses it, and what it was sent.

use std::time::Duration;

use bytes::Bytes;
use mcp_proxy_wire::{Id, IdKey, Message};
use rustc_hash::FxHashMap;

use super::attached_connection::{AttachedConnection, QueuedCommand};
use super::cancelled_commands::CancelledCommand;
use super::command_queue::ConnectionTurns;
use super::plain_ids::PlainIds;
use super::shared_debugger::{SharedDebugger, TabSwitch};
use super::{NewExtension, answer};
use crate::command::Command;
use crate::context::RelayContext;
use crate::fault::{Delivered, RelayFault};
use crate::ids::{McpClientId, RelayConnectionId, SocketId};
use crate::messages;
use crate::opening;
use crate::outbox::{Outbox, RelayClose};
use crate::settings::RelayAccess;
use crate::tabs::{NamedTabs, TabId, TabOwners, TabUse};

/// An extension and everything between it and its clients.
#[derive(Debug, Default)]
pub(super) struct Extension {
    /// None while it is away.
    pub(super) socket: Option<SocketId>,
    /// It was taken in without a word about itself, as direct mode allows.
    pub(super) is_silent: bool,
    pub(super) offline_since: Option<Duration>,
    pub(super) expires_at: i64,
    pub(super) status_due: Duration,
    pub(super) outbox: Outbox,
    /// How many connections there are, until the extension is told. Only the latest is worth telling.
    pub(super) connection_status: Option<Bytes>,
    /// The expiry of the token that it was asked to replace, and when.
    pub(super) asked_for_token: Option<(i64, Duration)>,
    /// One connection at a time has ids without a prefix, as in direct mode.
    preserves_ids: bool,
    pub(super) connections: FxHashMap<RelayConnectionId, AttachedConnection>,
    /// The connection whose ids have no prefix.
    pub(super) plain_ids: PlainIds,
    pub(super) turns: ConnectionTurns,
    pub(super) tabs: TabOwners,
    /// Set for an extension that attaches to one tab for all clients.
    pub(super) debugger: Option<SharedDebugger>,
    pub(super) commands: SentCommands,
    pub(super) questions: RelayQuestions,
}

/// The commands that an extension was sent.
#[derive(Debug, Default)]
pub(super) struct SentCommands {
    /// Those that are not answered, by the id that the extension knows.
    pub(super) open: FxHashMap<IdKey, SentCommand>,
    /// Those that nobody waits for any more.
    pub(super) cancelled: FxHashMap<IdKey, CancelledCommand>,
    /// The number of the command that was sent last, and of the last that the extension has certainly received.
    pub(super) last: u64,
    pub(super) proven: u64,
    /// How many messages the socket's writer has taken, and how many of these were begun, once nothing more is written.
    pub(super) taken: u64,
    pub(super) begun: Option<u64>,
}

/// The relay's own questions, with their deadlines.
#[derive(Debug, Default)]
pub(super) struct RelayQuestions {
    pub(super) open: FxHashMap<u64, (RelayQuestion, Duration)>,
    last: u64,
}

/// A command that an extension was sent.
#[derive(Debug)]
pub(super) struct SentCommand {
    pub(super) connection: RelayConnectionId,
    pub(super) number: u64,
    pub(super) tab_use: TabUse,
    /// The tab that it is about, if the relay knows.
    pub(super) tab: Option<TabId>,
    /// The client named that tab by its index.
    pub(super) is_by_index: bool,
    /// Its place among all that were sent.
    pub(super) place: u64,
    /// Its place among all messages that the socket's writer has taken.
    pub(super) message: u64,
    pub(super) deadline: Duration,
}

/// What the relay itself asks an extension.
#[derive(Clone, Debug)]
pub(super) enum RelayQuestion {
    /// For another token.
    Token,
    /// For its tabs, on behalf of a connection.
    Tabs(RelayConnectionId),
    /// For its tabs, to find the place of the one to select.
    Place(TabSwitch),
    /// To select a tab.
    Selection(TabSwitch),
}

impl Extension {
    /// A new socket of this extension.
    pub(super) fn open(&mut self, socket: SocketId, new: &NewExtension, context: &RelayContext) {
        let settings = &context.settings;
        self.preserves_ids = settings.id_mode.preserves(new.id_mode, settings.access);
        self.socket = Some(socket);
        self.offline_since = None;
        let is_direct = context.settings.access == RelayAccess::Direct;
        self.is_silent = is_direct && new.name.is_none();
        self.expires_at = new.expires_at;
        self.status_due = context.now.elapsed + context.settings.status_interval;
        self.questions.open.clear();
        self.commands.taken = 0;
        self.commands.begun = None;
        let is_shared = context.settings.shared_debugger || self.debugger.is_some();
        self.debugger = is_shared.then(SharedDebugger::default);
        if !is_shared && self.connections.len() > 1 {
            // Published extensions forget whose tab is whose, and would act on the one that was attached last.
            for known in self.connections.values_mut() {
                known.current = None;
            }
        }
        // `proxy:1` was the question that it has answered. Numbers of an older socket are not used again: it may still answer them.
        self.questions.last = self.questions.last.max(1);
        self.asked_for_token = None;
    }

    pub(super) fn send(&mut self, message: Message, context: &mut RelayContext) {
        let Some(socket) = self.socket else {
            return;
        };
        context.sockets_with_output.push(socket);
        if self.outbox.bytes() + message.len() > context.settings.max_outbox {
            context.counters.slow_readers += 1;
            let close = RelayClose::NotRead("the extension does not read");
            return self.outbox.cut(close);
        }
        self.outbox.push(message);
    }

    pub(super) fn close(&mut self, close: RelayClose, context: &mut RelayContext) {
        if let Some(socket) = self.socket {
            self.outbox.close(close);
            context.sockets_with_output.push(socket);
        }
    }

    pub(super) fn connection_count(&self) -> usize {
        self.connections.len()
    }

    pub(super) fn clients(&self) -> impl Iterator<Item = (&RelayConnectionId, &McpClientId)> {
        let mut all: Vec<_> = self.connections.iter().collect();
        all.sort_by_key(|(id, _)| *id);
        all.into_iter().map(|(id, known)| (id, &known.client))
    }

    pub(super) fn attach(&mut self, connection: RelayConnectionId, client: McpClientId) {
        // A connection that is resumed keeps its kind of ids: the extension knows it by them.
        if !self.connections.contains_key(&connection) {
            self.choose_ids(&connection);
        }
        let new = || AttachedConnection::new(client);
        self.connections.entry(connection).or_insert_with(new);
    }

    /// Whether a new connection has ids without a prefix. They are for one that is alone: an extension has one tab for all of
    /// them, and acts on another client's if there is one.
    fn choose_ids(&mut self, new: &RelayConnectionId) {
        if self.connections.is_empty() && self.preserves_ids {
            self.plain_ids.claim(new);
        } else if let Some(alone) = self.plain_ids.end()
            && let Some(known) = self.connections.get_mut(&alone)
        {
            // The extension does not know its tab by the ids that it has from now on.
            known.current = None;
        }
    }

    /// A connection is over: what is open fails. Whether there was one.
    pub(super) fn detach(
        &mut self,
        connection: &RelayConnectionId,
        context: &mut RelayContext,
    ) -> bool {
        self.fail_all_of(connection, RelayFault::Disconnected, context);
        self.tabs.release_all(connection);
        self.plain_ids.release(connection);
        self.connections.remove(connection).is_some()
    }

    /// The id under which it gets a command.
    pub(super) fn outgoing_id(&mut self, connection: &RelayConnectionId, id: &Id) -> Option<Id> {
        let known = self.connections.get_mut(connection)?;
        let plain = self.plain_ids.id(connection, id);
        Some(plain.unwrap_or_else(|| known.mapped_id(connection, id)))
    }

    pub(super) fn enqueue(&mut self, command: Command, context: &mut RelayContext) {
        let (connection, number) = (command.connection.clone(), command.number);
        if let Err(fault) = self.try_enqueue(command, context) {
            answer(connection, number, Err(fault), context);
        }
    }

    fn try_enqueue(
        &mut self,
        command: Command,
        context: &mut RelayContext,
    ) -> Result<(), RelayFault> {
        let socket = self
            .socket
            .ok_or(RelayFault::ExtensionGone(Delivered::No))?;
        let known = self.connections.get_mut(&command.connection);
        let known = known.ok_or(RelayFault::NotConnected)?;
        let bytes = known.queued_bytes + command.message.len();
        if !known.queue.is_empty() && bytes > context.settings.max_queued_bytes {
            return Err(RelayFault::QueueFull);
        }
        let named = NamedTabs::of(&command.method, &command.message)?;
        known.queued_bytes = bytes;
        self.turns.add(&command.connection);
        known.queue.push_back(QueuedCommand {
            command,
            named,
            deadline: context.now.elapsed + context.settings.command_timeout,
        });
        context.sockets_with_output.push(socket);
        Ok(())
    }

    pub(super) fn next_deadline(&self, now: Duration) -> Option<Duration> {
        let sent = self.commands.open.values().map(|sent| sent.deadline);
        let questions = self.questions.open.values().map(|(_, deadline)| *deadline);
        let connections = self.connections.values();
        let queued = connections.filter_map(|known| Some(known.queue.front()?.deadline));
        let cancelled = self.next_cancelled(now);
        sent.chain(questions).chain(queued).chain(cancelled).min()
    }

    pub(super) fn asks_for_token(&self, number: u64) -> bool {
        matches!(
            self.questions.open.get(&number),
            Some((RelayQuestion::Token, _))
        )
    }

    pub(super) fn ask_for_token(&mut self, context: &mut RelayContext) {
        self.asked_for_token = Some((self.expires_at, context.now.elapsed));
        let number = self.ask(RelayQuestion::Token, context);
        self.send(opening::authenticate(number), context);
    }

    pub(super) fn ask_for_tabs(
        &mut self,
        connection: &RelayConnectionId,
        context: &mut RelayContext,
    ) -> Message {
        let number = self.ask(RelayQuestion::Tabs(connection.clone()), context);
        messages::request(&messages::relay_id(number), messages::GET_TABS, Some(b"{}"))
    }

    pub(super) fn ask(&mut self, question: RelayQuestion, context: &RelayContext) -> u64 {
        self.questions.last += 1;
        let patience = context
            .settings
            .command_timeout
            .min(super::QUESTION_DEADLINE);
        let deadline = context.now.elapsed + patience;
        self.questions
            .open
            .insert(self.questions.last, (question, deadline));
        self.questions.last
    }
}
