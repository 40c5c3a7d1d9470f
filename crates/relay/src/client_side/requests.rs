//! What clients ask for: browsers, connections, and commands to forward.

use mcp_proxy_wire::{Id, Message};
use serde_json::json;

use super::ClientSide;
use super::connections::ClientConnection;
use super::departures::detach;
use crate::command::{self, ClientRequest, Command, UnusableMessage};
use crate::context::RelayContext;
use crate::exchange::ToExtension;
use crate::fault::RelayFault;
use crate::ids::{ExtensionId, SocketId};
use crate::messages;
use crate::rates::CommandRate;

impl ClientSide {
    pub(crate) fn message(
        &mut self,
        socket: SocketId,
        message: Message,
        context: &mut RelayContext<'_>,
    ) {
        if self
            .sockets
            .get(&socket)
            .is_none_or(|known| known.is_closing())
        {
            return;
        }
        let (id, request) = match command::read(&message) {
            Ok(read) => read,
            Err(UnusableMessage::Ignore) => {
                context.counters.ignored += 1;
                return;
            }
            Err(UnusableMessage::Refuse(fault)) => {
                return self.refuse(socket, message.id().as_ref(), &fault, context);
            }
        };
        let request = request.and_then(|request| match request {
            ClientRequest::Forward { .. } => Ok(request),
            _ => self.control_rate.count().map(|()| request),
        });
        let done = request.and_then(|request| match request {
            ClientRequest::List { with_offline } => Ok(Some(self.list(with_offline))),
            ClientRequest::Connect(extension) => self.connect(socket, extension, context).map(Some),
            ClientRequest::Disconnect { connection } => {
                self.disconnect(socket, id.clone(), connection.as_deref(), context)?;
                Ok(None)
            }
            ClientRequest::Forward { method, connection } => {
                let command = (id.clone(), method, message);
                self.forward(socket, command, connection.as_deref(), context)?;
                Ok(None)
            }
        });
        match done {
            Ok(Some(value)) => self.send(socket, messages::result(&id, &value), context),
            Ok(None) => {}
            Err(fault) => self.refuse(socket, Some(&id), &fault, context),
        }
    }

    /// Answers a request with a fault, and counts it.
    pub(crate) fn refuse(
        &mut self,
        socket: SocketId,
        id: Option<&Id>,
        fault: &RelayFault,
        context: &mut RelayContext<'_>,
    ) {
        context.counters.count_fault(fault);
        self.send(socket, fault.answer(id), context);
    }

    fn list(&self, with_offline: bool) -> serde_json::Value {
        let shown = self
            .directory
            .iter()
            .filter(|(_, known)| known.is_online || with_offline)
            .map(|(id, known)| json!({"id": id.as_str(), "name": known.name, "connected": known.is_online}));
        json!({"extensions": shown.collect::<Vec<_>>()})
    }

    pub(super) fn connect(
        &mut self,
        socket: SocketId,
        extension: ExtensionId,
        context: &mut RelayContext<'_>,
    ) -> Result<serde_json::Value, RelayFault> {
        let is_connected = !self.connections.of_socket(socket).is_empty();
        if is_connected && !context.settings.multi_connection {
            return Err(RelayFault::AlreadyConnected);
        }
        let known = self
            .directory
            .get(&extension)
            .filter(|known| known.is_online);
        let name = known.ok_or(RelayFault::ExtensionNotFound)?.name.clone();
        let client = match self.sockets.get(&socket) {
            Some(known) => known.client.clone(),
            None => return Err(RelayFault::NotAuthenticated),
        };
        let id = match self.connections.resume(&client, &extension, socket) {
            Some(id) => id,
            None => {
                // A client with one connection has chosen another browser: what it had suspended is over.
                if !context.settings.multi_connection {
                    for (id, suspended) in self.connections.take_suspended_of(&client) {
                        detach(id, &suspended.extension, "MCP client disconnected", context);
                    }
                }
                if self.connections.len() >= context.settings.max_connections {
                    return Err(RelayFault::ConnectionLimit);
                }
                let id = context.ids.connection();
                let rate = CommandRate::new(context.settings.rates.per_connection, &self.clock);
                let new = ClientConnection::new(client.clone(), extension.clone(), socket, rate);
                self.connections.insert(id.clone(), new);
                id
            }
        };
        context
            .audit
            .connected(&client, &id, &extension, context.now);
        let attach = ToExtension::Attach {
            connection: id.clone(),
            client,
        };
        context.exchange.to_extension(&extension, attach);
        Ok(json!({
            "connection_id": id.as_str(),
            "extension_id": extension.as_str(),
            "extension_name": name,
        }))
    }

    fn forward(
        &mut self,
        socket: SocketId,
        (id, method, message): (Id, String, Message),
        named: Option<&str>,
        context: &mut RelayContext<'_>,
    ) -> Result<(), RelayFault> {
        self.connect_directly(socket, context)?;
        let settings = context.settings;
        if self.connections.has_open(socket, &id) {
            return Err(RelayFault::InvalidRequest("a request with this id is open"));
        }
        let (own, connection) = self.connections.choose(socket, named)?;
        if message.len() > settings.max_message {
            return Err(RelayFault::TooLarge(settings.max_message));
        }
        settings
            .policy
            .check(&method, &message)
            .inspect_err(|fault| {
                let at = (&own, &connection.extension);
                context
                    .audit
                    .denied(&method, &message, at, fault, context.now);
            })?;
        if connection.open_count() >= settings.max_open_commands {
            return Err(RelayFault::QueueFull);
        }
        connection.rate.count()?;
        self.rate.count()?;
        self.next_number += 1;
        let number = self.next_number;
        connection.begin(number, id.clone());
        context.counters.commands += 1;
        let command = Command {
            connection: own,
            number,
            id,
            method,
            message,
        };
        let extension = connection.extension.clone();
        context.audit.begin(&command, &extension, context.now);
        let message = ToExtension::Command(Box::new(command));
        context.exchange.to_extension(&extension, message);
        Ok(())
    }
}
