//! Commands that nobody waits for any more, and that the extension may still carry out.
//!
//! Such a command may still attach the extension to another tab. When its late answer comes, the relay no longer knows which
//! tab is attached, and the connection has to select its own again.

use std::time::Duration;

use mcp_proxy_wire::IdKey;

use super::extension::{Extension, SentCommand};
use crate::ids::RelayConnectionId;
use crate::tabs::TabUse;

/// How many are remembered.
const MAX_CANCELLED: usize = 4096;

/// A command that failed for its client before the extension answered.
#[derive(Debug)]
pub(super) struct CancelledCommand {
    connection: RelayConnectionId,
    pub(super) tab_use: TabUse,
    /// How long others wait for it where one tab is attached for all.
    pub(super) deadline: Duration,
}

impl Extension {
    /// Nobody waits for a command any more.
    pub(super) fn cancel(&mut self, id: IdKey, sent: &SentCommand) {
        let matters = match self.debugger {
            Some(_) => sent.tab_use.uses_debugger(),
            None => sent.tab_use.acquires(),
        };
        if matters && self.commands.cancelled.len() < MAX_CANCELLED {
            let command = CancelledCommand {
                connection: sent.connection.clone(),
                tab_use: sent.tab_use,
                deadline: sent.deadline,
            };
            self.commands.cancelled.insert(id, command);
        }
    }

    /// An answer that nobody waits for. Its command may have changed the attached tab.
    pub(super) fn note_late_answer(&mut self, id: &IdKey) {
        let Some(command) = self.commands.cancelled.remove(id) else {
            return;
        };
        if command.tab_use != TabUse::Works {
            self.note_attached(None);
        }
        if let Some(known) = self.connections.get_mut(&command.connection)
            && command.tab_use.acquires()
        {
            known.current = None;
        }
    }

    /// When the next cancelled command is not waited for any longer.
    pub(super) fn next_cancelled(&self, now: Duration) -> Option<Duration> {
        let deadlines = self
            .commands
            .cancelled
            .values()
            .map(|command| command.deadline);
        deadlines.filter(|deadline| *deadline > now).min()
    }
}
