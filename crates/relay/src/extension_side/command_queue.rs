//! Which command an extension gets next.
//!
//! Connections take turns, one command each, so that a client with hundreds of commands does not keep the others waiting. A
//! command that has to wait, for a tab that is being opened or for the list of tabs, keeps its place, and only its own
//! connection waits with it.

use std::collections::VecDeque;

use mcp_proxy_wire::{Message, Span};

use super::attached_connection::QueuedCommand;
use super::extension::{Extension, SentCommand};
use super::shared_debugger::DebuggerTurn;
use crate::command::Command;
use crate::context::RelayContext;
use crate::fault::RelayFault;
use crate::ids::RelayConnectionId;
use crate::outbox::SocketOutput;
use crate::tabs::{self, ListedTab, NamedTabs, TabId, TabReference, TabUse};

/// Connections that have commands waiting, in the order of their turns.
#[derive(Debug, Default)]
pub(super) struct ConnectionTurns(VecDeque<RelayConnectionId>);

/// What a connection has for the extension now.
enum Turn {
    /// Nothing at all.
    Empty,
    /// A command that has to wait.
    Waiting,
    /// A message to write.
    Message(Message),
    /// A command that was refused.
    Refused,
}

/// What the parameters of a command say about tabs.
#[derive(Default)]
struct ResolvedTab {
    /// The tab that the command is about.
    named: Option<TabId>,
    /// The same, if it is named by its index.
    by_index: Option<ListedTab>,
}

impl ConnectionTurns {
    pub(super) fn add(&mut self, connection: &RelayConnectionId) {
        if !self.0.contains(connection) {
            self.0.push_back(connection.clone());
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Extension {
    pub(super) fn has_ready(&self) -> bool {
        !self.turns.is_empty() || !self.outbox.is_empty() || self.connection_status.is_some()
    }

    /// The relay's own messages, then commands, up to about `budget` bytes.
    pub(super) fn take(&mut self, budget: usize, context: &mut RelayContext) -> SocketOutput {
        let mut output = self.outbox.take(budget);
        let is_closing = self.outbox.is_closing();
        if !is_closing {
            let status = self.connection_status.take();
            output.messages.extend(status.map(Message::parse));
        }
        self.commands.taken += output.messages.len() as u64;
        if is_closing {
            return output;
        }
        let mut bytes: usize = output.messages.iter().map(Message::len).sum();
        let mut waiting = 0;
        while bytes < budget && waiting < self.turns.0.len() {
            let Some(connection) = self.turns.0.pop_front() else {
                break;
            };
            let turn = self.next_of(&connection, context);
            waiting = match turn {
                Turn::Waiting => waiting + 1,
                _ => 0,
            };
            match turn {
                Turn::Empty => continue,
                Turn::Message(message) => {
                    bytes += message.len();
                    self.commands.taken += 1;
                    output.messages.push(message);
                }
                Turn::Waiting | Turn::Refused => {}
            }
            self.turns.0.push_back(connection);
        }
        output
    }

    /// What the next command of a connection comes to.
    fn next_of(&mut self, connection: &RelayConnectionId, context: &mut RelayContext) -> Turn {
        let Some(known) = self.connections.get_mut(connection) else {
            return Turn::Empty;
        };
        let Some(QueuedCommand {
            command: next,
            named,
            ..
        }) = known.queue.front()
        else {
            return Turn::Empty;
        };
        let tab_use = TabUse::of_command(&next.method, &next.message);
        if known.is_asking || (tab_use.needs_own() && known.acquiring > 0) {
            return Turn::Waiting;
        }
        let named = named.clone();
        if named.has_index() && known.listing.is_none() {
            known.is_asking = true;
            return Turn::Message(self.ask_for_tabs(connection, context));
        }
        let listing = known.listing.take().unwrap_or_default();
        let tab = match self.resolve_tab(connection, tab_use, named, &listing) {
            Ok(tab) => tab,
            Err(fault) => {
                self.fail_next(connection, fault, context);
                return Turn::Refused;
            }
        };
        match self.debugger_turn(connection, tab_use, tab.named.as_ref(), context) {
            DebuggerTurn::Ready => {}
            DebuggerTurn::Switch(question) => return Turn::Message(question),
            DebuggerTurn::Waiting => {
                self.keep_listing(connection, listing);
                return Turn::Waiting;
            }
        }
        let next = self.pop(connection);
        match next.and_then(|next| self.sent(next, tab_use, tab)) {
            Some(message) => Turn::Message(message),
            None => Turn::Empty,
        }
    }

    /// A command has to wait: it need not ask for the tabs again.
    fn keep_listing(&mut self, connection: &RelayConnectionId, listing: Vec<Option<ListedTab>>) {
        if let Some(known) = self.connections.get_mut(connection)
            && !listing.is_empty()
        {
            known.listing = Some(listing);
        }
    }

    fn pop(&mut self, connection: &RelayConnectionId) -> Option<QueuedCommand> {
        let known = self.connections.get_mut(connection)?;
        let next = known.queue.pop_front()?;
        let bytes = next.command.message.len();
        known.queued_bytes = known.queued_bytes.saturating_sub(bytes);
        Some(next)
    }

    /// The tab that a command is about, if it may be about it.
    fn resolve_tab(
        &self,
        connection: &RelayConnectionId,
        tab_use: TabUse,
        named: NamedTabs,
        listing: &[Option<ListedTab>],
    ) -> Result<ResolvedTab, RelayFault> {
        if tab_use.needs_own() && !self.tabs.has_any(connection) {
            return Err(RelayFault::NoTab);
        }
        let listed = |index: usize| {
            let listed = listing.get(index).cloned().flatten();
            listed.ok_or(RelayFault::NoSuchTab)
        };
        for reference in named.nested {
            let tab = match reference {
                TabReference::Id(tab) => tab,
                TabReference::Index(index) => listed(index)?.id,
            };
            self.tabs.check(&tab, connection, tab_use)?;
        }
        for tab in named.possible {
            if self
                .tabs
                .owner(&tab)
                .is_some_and(|owner| owner != connection)
            {
                return Err(RelayFault::ForeignTab);
            }
        }
        let mut resolved = ResolvedTab::default();
        for reference in named.subject {
            let tab = match reference {
                TabReference::Id(tab) => tab,
                TabReference::Index(index) => resolved.by_index.insert(listed(index)?).id.clone(),
            };
            if resolved.named.as_ref().is_some_and(|named| *named != tab) {
                return Err(RelayFault::InvalidParams(
                    "tabId, tabIndex and index name different tabs",
                ));
            }
            self.tabs.check(&tab, connection, tab_use)?;
            resolved.named = Some(tab);
        }
        if resolved.named.is_none() && tab_use.needs_own() {
            // The extension works on the connection's current tab, which must be one that it still owns.
            let known = self.connections.get(connection);
            let current = known.and_then(|known| known.current.as_ref());
            let current = current.ok_or(RelayFault::NoTab)?.id.clone();
            self.tabs.check(&current, connection, tab_use)?;
            resolved.named = Some(current);
        }
        Ok(resolved)
    }

    /// Notes a command as sent. Its message is what the extension gets.
    fn sent(&mut self, next: QueuedCommand, tab_use: TabUse, tab: ResolvedTab) -> Option<Message> {
        let QueuedCommand {
            command, deadline, ..
        } = next;
        let Command {
            connection,
            number,
            id,
            message,
            ..
        } = command;
        let known = self.connections.get_mut(&connection)?;
        known.acquiring += usize::from(tab_use.acquires());
        let outgoing = self.outgoing_id(&connection, &id)?;
        self.commands.last += 1;
        let edit = message.params().zip(tab.by_index.as_ref());
        let edit =
            edit.map(|(params, listed)| (params, tabs::params_with_id(&message, params, listed)));
        let edits: Vec<(Span, &[u8])> = edit.iter().map(|(span, new)| (*span, &**new)).collect();
        let message = message.restated(&outgoing, &edits)?;
        self.commands.open.insert(
            outgoing.key(),
            SentCommand {
                connection,
                number,
                tab_use,
                tab: tab.named,
                is_by_index: tab.by_index.is_some(),
                place: self.commands.last,
                message: self.commands.taken + 1,
                deadline,
            },
        );
        Some(message)
    }
}
