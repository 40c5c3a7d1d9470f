//! What the side of an extension says: who is there, and what became of commands.

use serde_json::json;

use super::{ClientSide, KnownExtension, MAX_REMEMBERED};
use crate::context::RelayContext;
use crate::exchange::{AnswerBody, ToClients, ToExtension};
use crate::fault::RelayFault;
use crate::ids::{ExtensionId, RelayConnectionId};
use crate::messages;

impl ClientSide {
    /// A message of an extension's side.
    pub(crate) fn receive(&mut self, message: ToClients, context: &mut RelayContext<'_>) {
        match message {
            ToClients::Online { extension, name } => {
                let known = KnownExtension {
                    name,
                    is_online: true,
                };
                self.directory.insert(extension.clone(), known);
                let count = ToExtension::ClientCount(self.sockets.len());
                context.exchange.to_extension(&extension, count);
            }
            ToClients::Offline { extension, reason } => {
                self.extension_lost(&extension, reason, context);
            }
            ToClients::Answer {
                connection,
                number,
                outcome,
            } => self.answered(&connection, number, &outcome, context),
            ToClients::Superseded { connection } => self.superseded(&connection, context),
            ToClients::Detached { connection } => self.ended(&connection, context),
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

    /// What became of a command. Nobody waits for it if its client has left meanwhile.
    fn answered(
        &mut self,
        connection: &RelayConnectionId,
        number: u64,
        outcome: &Result<AnswerBody, RelayFault>,
        context: &mut RelayContext<'_>,
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
        for (id, socket) in self.connections.suspend_all_of_extension(extension, until) {
            let params = json!({"connection_id": id.as_str(), "reason": reason});
            let notice = messages::notification(messages::DISCONNECTED, &params);
            self.send(socket, notice, context);
        }
    }
}
