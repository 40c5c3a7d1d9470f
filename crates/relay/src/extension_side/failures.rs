//! Commands that get no answer: their socket is lost, their client has left, or their time is up.

use super::answer;
use super::attached_connection::QueuedCommand;
use super::extension::{Extension, RelayQuestion, SentCommand};
use crate::context::RelayContext;
use crate::fault::{Delivered, RelayFault};
use crate::ids::RelayConnectionId;

impl Extension {
    /// Its socket is lost or replaced: fails what was sent, and what still waits to be sent.
    pub(super) fn fail_everything(
        &mut self,
        fault: impl Fn(Delivered) -> RelayFault,
        context: &mut RelayContext,
    ) {
        let sent = std::mem::take(&mut self.commands.open);
        for (id, command) in &sent {
            // It may be carried out and answered all the same, even on another socket.
            self.cancel(id.clone(), command);
        }
        self.fail(sent.into_values().collect(), &fault, context);
        let connections: Vec<_> = self.connections.keys().cloned().collect();
        for connection in connections {
            self.fail_queued_of(&connection, || fault(Delivered::No), context);
        }
        for known in self.connections.values_mut() {
            known.forget_acquiring();
        }
        self.questions.open.clear();
    }

    fn fail(
        &mut self,
        mut sent: Vec<SentCommand>,
        fault: impl Fn(Delivered) -> RelayFault,
        context: &mut RelayContext,
    ) {
        sent.sort_by_key(|command| command.place);
        for command in sent {
            let delivered = match command.place {
                place if place <= self.commands.proven => Delivered::Yes,
                _ if self
                    .commands
                    .begun
                    .is_some_and(|begun| command.message > begun) =>
                {
                    Delivered::No
                }
                _ => Delivered::Unknown,
            };
            answer(
                command.connection,
                command.number,
                Err(fault(delivered)),
                context,
            );
        }
    }

    pub(super) fn fail_queued_of(
        &mut self,
        connection: &RelayConnectionId,
        fault: impl Fn() -> RelayFault,
        context: &mut RelayContext,
    ) {
        self.forget_listing(connection);
        let Some(known) = self.connections.get_mut(connection) else {
            return;
        };
        known.queued_bytes = 0;
        for QueuedCommand { command, .. } in std::mem::take(&mut known.queue) {
            answer(command.connection, command.number, Err(fault()), context);
        }
    }

    /// A newer socket of the client takes over: what the older one waits for has failed.
    pub(super) fn supersede(&mut self, connection: &RelayConnectionId, context: &mut RelayContext) {
        let fault = |delivered| RelayFault::Superseded("client", delivered);
        self.fail_all_of(connection, fault, context);
        if let Some(known) = self.connections.get_mut(connection) {
            known.forget_acquiring();
        }
    }

    /// Fails what a connection has sent, and what it still waits to send.
    pub(super) fn fail_all_of(
        &mut self,
        connection: &RelayConnectionId,
        fault: impl Fn(Delivered) -> RelayFault,
        context: &mut RelayContext,
    ) {
        let sent: Vec<_> = self
            .commands
            .open
            .extract_if(|_, sent| sent.connection == *connection)
            .collect();
        for (id, command) in &sent {
            self.cancel(id.clone(), command);
        }
        let sent = sent.into_iter().map(|(_, command)| command).collect();
        self.fail(sent, &fault, context);
        self.fail_queued_of(connection, || fault(Delivered::No), context);
    }

    /// Fails what was not answered in time.
    pub(super) fn expire(&mut self, context: &mut RelayContext) {
        let now = context.now.elapsed;
        let late: Vec<_> = self
            .commands
            .open
            .extract_if(|_, sent| sent.deadline <= now)
            .collect();
        for (id, command) in &late {
            self.cancel(id.clone(), command);
            if let Some(known) = self.connections.get_mut(&command.connection)
                && command.tab_use.acquires()
            {
                known.acquiring = known.acquiring.saturating_sub(1);
                // The extension may still attach to another tab, and nobody would notice.
                known.current = None;
            }
        }
        if !late.is_empty() {
            self.note_attached(None);
        }
        let late = late.into_iter().map(|(_, command)| command).collect();
        self.fail(late, RelayFault::Timeout, context);
        self.expire_queued(context);
        self.expire_questions(context);
    }

    /// Commands that an extension did not take in time were not delivered.
    fn expire_queued(&mut self, context: &mut RelayContext) {
        let now = context.now.elapsed;
        let mut late = Vec::new();
        for (connection, known) in &self.connections {
            let expired = known
                .queue
                .iter()
                .take_while(|queued| queued.deadline <= now);
            late.extend(expired.map(|_| connection.clone()));
        }
        for connection in late {
            self.fail_next(&connection, RelayFault::Timeout(Delivered::No), context);
        }
    }

    fn expire_questions(&mut self, context: &mut RelayContext) {
        let now = context.now.elapsed;
        let late: Vec<_> = self
            .questions
            .open
            .extract_if(|_, (_, deadline)| *deadline <= now)
            .collect();
        for (_, (question, _)) in late {
            match question {
                // The one that it has is still good for a while.
                RelayQuestion::Token => {}
                RelayQuestion::Tabs(connection) => {
                    let fault = || RelayFault::Timeout(Delivered::No);
                    self.fail_next(&connection, fault(), context);
                }
                RelayQuestion::Place(switch) | RelayQuestion::Selection(switch) => {
                    self.note_attached(None);
                    self.fail_switch(&switch, RelayFault::Timeout, context);
                }
            }
        }
    }

    /// Fails the next command of a connection.
    pub(super) fn fail_next(
        &mut self,
        connection: &RelayConnectionId,
        fault: RelayFault,
        context: &mut RelayContext,
    ) {
        self.forget_listing(connection);
        let Some(known) = self.connections.get_mut(connection) else {
            return;
        };
        if let Some(QueuedCommand { command, .. }) = known.queue.pop_front() {
            known.queued_bytes = known.queued_bytes.saturating_sub(command.message.len());
            answer(command.connection, command.number, Err(fault), context);
        }
    }

    /// The command that needed the list of tabs is gone: an answer that still comes would be too old for the next one.
    fn forget_listing(&mut self, connection: &RelayConnectionId) {
        let is_theirs = |question: &RelayQuestion| matches!(question, RelayQuestion::Tabs(theirs) if theirs == connection);
        self.questions
            .open
            .retain(|_, (question, _)| !is_theirs(question));
        if let Some(known) = self.connections.get_mut(connection) {
            known.is_asking = false;
            known.listing = None;
        }
    }
}
