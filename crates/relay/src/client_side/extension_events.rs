//! What happens on the side of the extensions: who is gone, and what became of commands.

use serde_json::json;

use super::ClientSide;
use crate::context::RelayContext;
use crate::extension_event::{AnswerBody, ExtensionEvent};
use crate::fault::RelayFault;
use crate::ids::{ExtensionId, RelayConnectionId};
use crate::messages;

impl ClientSide {
    /// Tells clients what has happened since the last call.
    pub(crate) fn take_events(&mut self, context: &mut RelayContext) {
        while let Some(event) = context.extension_events.pop_front() {
            match event {
                ExtensionEvent::Offline { extension, reason } => {
                    self.extension_lost(&extension, reason, context);
                }
                ExtensionEvent::Answered {
                    connection,
                    number,
                    outcome,
                } => self.answered(&connection, number, &outcome, context),
                ExtensionEvent::Notification {
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
    }

    /// A command is over. Nobody waits for it if its client has left meanwhile.
    fn answered(
        &mut self,
        connection: &RelayConnectionId,
        number: u64,
        outcome: &Result<AnswerBody, RelayFault>,
        context: &mut RelayContext,
    ) {
        context.audit.answered(number, outcome, context.now);
        if let Err(fault) = outcome {
            context.counters.count_fault(fault);
        }
        let answered = u64::from(outcome.is_ok());
        let known = self.connections.get_mut(connection);
        let waiting = known.and_then(|known| Some((known.finish(number)?, known.socket?)));
        let Some((id, socket)) = waiting else {
            context.counters.late_answers += answered;
            return;
        };
        context.counters.answers += answered;
        let answer = match outcome {
            Ok(body) => body.under(&id),
            Err(fault) => fault.answer(Some(&id)),
        };
        self.send(socket, answer, context);
    }

    /// Its commands have failed. The connections to it can be resumed.
    fn extension_lost(
        &mut self,
        extension: &ExtensionId,
        reason: &'static str,
        context: &mut RelayContext,
    ) {
        let until = context.now.elapsed + context.settings.resume_window;
        for (id, socket) in self.connections.suspend_all_of_extension(extension, until) {
            let params = json!({"connection_id": id.as_str(), "reason": reason});
            let notice = messages::notification(messages::DISCONNECTED, &params);
            self.send(socket, notice, context);
        }
    }
}
