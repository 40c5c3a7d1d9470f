//! What the side of an extension says: who is there, and what became of commands.

use serde_json::json;

use super::{ClientSide, KnownExtension, MAX_REMEMBERED};
use crate::context::RelayContext;
use crate::exchange::ToClients;
use crate::ids::ExtensionId;
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
}
