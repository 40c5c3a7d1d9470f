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
            ToClients::AnswerBegins { extension, command } => {
                self.begin_answer(extension, command, context);
            }
            ToClients::AnswerPiece { command, bytes } => {
                self.add_to_answer(&command, bytes, context);
            }
            ToClients::AnswerEnds { command } => self.end_answer(&command, context),
            ToClients::AnswerCut { command, cause } => self.cut_answer(&command, cause, context),
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

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use mcp_proxy_wire::Message;

    use super::*;
    use crate::client_side::NewClient;
    use crate::context::SharedRelayState;
    use crate::exchange::CommandKey;
    use crate::ids::{IdSource, SocketId};
    use crate::rates::RateClock;
    use crate::settings::RelaySettings;
    use crate::time::RelayTime;

    /// The sides know each other by messages alone: how many clients there are is one, and answers are told apart by their
    /// connections, because another client's side has the same numbers.
    #[test]
    fn messages_of_an_extensions_side_are_all_that_a_clients_side_needs() {
        let (settings, socket) = (RelaySettings::default(), SocketId(1));
        let mut clients = ClientSide::new("ada", &settings, RateClock::default());
        let mut shared = SharedRelayState::new("ada", settings, IdSource::Counting(0));
        let mut context = shared.context(RelayTime::default());
        let new = NewClient {
            expires_at: i64::MAX,
            ..NewClient::default()
        };
        clients.join(socket, &new, &mut context);
        let extension = ExtensionId::named("ext-chrome");
        let online = ToClients::Online {
            extension: extension.clone(),
            name: "Chrome".to_owned(),
        };
        clients.receive(online, &mut context);
        for request in [
            r#"{"id":1,"method":"connect","params":{"extension_id":"ext-chrome"}}"#,
            r#"{"id":2,"method":"getTabs"}"#,
        ] {
            clients.message(socket, Message::parse(request), &mut context);
        }
        let other = context.ids.connection();
        let sent: Vec<_> = shared.exchange.for_extensions.drain(..).collect();
        let [
            (_, ToExtension::ClientCount(1)),
            (_, ToExtension::Attach { .. }),
            (_, ToExtension::Command(command)),
        ] = &sent[..]
        else {
            panic!("{sent:?}");
        };
        let own = CommandKey {
            connection: command.connection.clone(),
            number: command.number,
        };
        let other = CommandKey {
            connection: other,
            number: command.number,
        };
        let piece = |command: &CommandKey, text: &'static str| ToClients::AnswerPiece {
            command: command.clone(),
            bytes: Bytes::from_static(text.as_bytes()),
        };
        let mut context = shared.context(RelayTime::default());
        for message in [
            ToClients::AnswerBegins {
                extension,
                command: own.clone(),
            },
            piece(&other, "another's"),
            piece(&own, "[]"),
            ToClients::AnswerEnds {
                command: other.clone(),
            },
            ToClients::AnswerEnds { command: own },
        ] {
            clients.receive(message, &mut context);
        }
        let output = clients.take(socket, 1 << 20, &mut context).unwrap();
        let pieces: Vec<&[u8]> = output.pieces.iter().map(|piece| &piece.bytes[..]).collect();
        let answer = br#"{"jsonrpc":"2.0","id":2,"result":[]}"#;
        assert_eq!(pieces.concat(), answer);
    }
}
