//! Which command an extension gets next.
//!
//! Connections take turns, one command each, so that a client with hundreds of commands does not keep the others waiting. A
//! command that has to wait, for a tab that is being opened or for the list of tabs, keeps its place, and only its own
//! connection waits with it.

use std::collections::VecDeque;

use bytes::Bytes;

use super::extension::{Extension, SentCommand};
use crate::command::Command;
use crate::context::RelayContext;
use crate::fault::RelayFault;
use crate::ids::RelayConnectionId;
use crate::messages;
use crate::outbox::SocketOutput;
use crate::tabs::{self, TabId, TabReference, TabUse};

/// Connections that have commands waiting, in the order of their turns.
#[derive(Debug, Default)]
pub(super) struct Turns(VecDeque<RelayConnectionId>);

/// What a connection has for the extension now.
enum Turn {
    /// Nothing at all.
    Empty,
    /// A command that has to wait.
    Waiting,
    /// A message to write.
    Message(Bytes),
    /// A command that was refused.
    Refused,
}

impl Turns {
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
    pub(super) fn take(&mut self, budget: usize, context: &mut RelayContext<'_>) -> SocketOutput {
        let mut output = SocketOutput::default();
        self.outbox.take(budget, &mut output);
        if self.outbox.is_closing() {
            return output;
        }
        output.messages.extend(self.connection_status.take());
        let mut bytes: usize = output.messages.iter().map(Bytes::len).sum();
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
                    output.messages.push(message);
                }
                Turn::Waiting | Turn::Refused => {}
            }
            self.turns.0.push_back(connection);
        }
        output
    }

    /// What the next command of a connection comes to.
    fn next_of(&mut self, connection: &RelayConnectionId, context: &mut RelayContext<'_>) -> Turn {
        let Some(known) = self.connections.get_mut(connection) else {
            return Turn::Empty;
        };
        let Some(next) = known.queue.front() else {
            return Turn::Empty;
        };
        let tab_use = TabUse::of_command(&next.method, &next.message);
        if known.is_asking || (tab_use.needs_own() && known.acquiring > 0) {
            return Turn::Waiting;
        }
        let references = match tabs::references(&next.message) {
            Ok(references) => references,
            Err(fault) => {
                self.fail_next(connection, fault, context);
                return Turn::Refused;
            }
        };
        let by_index = |reference: &TabReference| matches!(reference, TabReference::Index(_));
        if references.iter().any(by_index) && known.listing.is_none() {
            known.is_asking = true;
            return Turn::Message(self.ask_for_tabs(connection, context));
        }
        let listing = known.listing.take().unwrap_or_default();
        let named = match self.named_tabs(connection, tab_use, references, &listing) {
            Ok(named) => named,
            Err(fault) => {
                context.counters.refused += 1;
                self.fail_next(connection, fault, context);
                return Turn::Refused;
            }
        };
        match self.pop(connection) {
            Some(command) => Turn::Message(self.sent(command, tab_use, named)),
            None => Turn::Empty,
        }
    }

    fn pop(&mut self, connection: &RelayConnectionId) -> Option<Command> {
        let known = self.connections.get_mut(connection)?;
        let command = known.queue.pop_front()?;
        known.queued_bytes = known.queued_bytes.saturating_sub(command.message.len());
        Some(command)
    }

    /// The tabs that a command is about, if it may be about them.
    fn named_tabs(
        &self,
        connection: &RelayConnectionId,
        tab_use: TabUse,
        references: Vec<TabReference>,
        listing: &[TabId],
    ) -> Result<Vec<TabId>, RelayFault> {
        if tab_use.needs_own() && !self.tabs.has_any(connection) {
            return Err(RelayFault::NoTab);
        }
        let mut named = Vec::with_capacity(references.len());
        for reference in references {
            let tab = match reference {
                TabReference::Id(tab) => tab,
                TabReference::Index(index) => {
                    listing.get(index).cloned().ok_or(RelayFault::NoSuchTab)?
                }
            };
            self.tabs.check(&tab, connection, tab_use)?;
            named.push(tab);
        }
        let current = || {
            let known = self.connections.get(connection)?;
            known.current.as_ref().map(|current| current.id.clone())
        };
        if named.is_empty() && tab_use.needs_own() {
            // The extension works on the connection's current tab, which must be one that it still owns.
            let current = current().ok_or(RelayFault::NoTab)?;
            self.tabs.check(&current, connection, tab_use)?;
            named.push(current);
        }
        Ok(named)
    }

    /// Notes a command as sent. Its message is what the extension gets.
    fn sent(&mut self, command: Command, tab_use: TabUse, named: Vec<TabId>) -> Bytes {
        let Command {
            connection,
            number,
            id,
            method,
            message,
            deadline,
        } = command;
        let Some(known) = self.connections.get_mut(&connection) else {
            return Bytes::new();
        };
        let mapped = match self.direct.id(&connection, &id) {
            Some(direct) => direct,
            None => known.mapped_id(&connection, &id),
        };
        known.acquiring += usize::from(tab_use.acquires());
        self.last_sent += 1;
        let params = message.params().map(|span| message.slice(span));
        let bytes = messages::request(&mapped, &method, params);
        self.sent.insert(
            mapped.key(),
            SentCommand {
                connection,
                number,
                tab_use,
                named,
                place: self.last_sent,
                deadline,
            },
        );
        bytes
    }
}
