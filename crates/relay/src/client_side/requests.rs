//! What clients ask for: browsers, connections, and commands to forward.

use mcp_proxy_wire::{Id, Message};
use serde_json::json;

use super::ClientSide;
use super::connections::ClientConnection;
use super::disconnects::{CLIENT_LEFT, detach};
use crate::command::{self, ClientRequest, Command, UnusableMessage};
use crate::context::RelayContext;
use crate::extension_side::ExtensionSide;
use crate::fault::RelayFault;
use crate::ids::{ExtensionId, SocketId};
use crate::messages;
use crate::rates::CommandRate;

impl ClientSide {
    pub(crate) fn message(
        &mut self,
        socket: SocketId,
        message: Message,
        extensions: &mut ExtensionSide,
        context: &mut RelayContext,
    ) {
        let known = self.sockets.get(&socket);
        if known.is_none_or(|known| known.outbox.is_closing()) {
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
            ClientRequest::List { with_offline } => Ok(Some(extensions.list(with_offline))),
            ClientRequest::Connect(extension) => self
                .connect(socket, extension, extensions, context)
                .map(Some),
            ClientRequest::Disconnect { connection } => {
                self.disconnect(socket, &id, connection.as_deref(), extensions, context)?;
                Ok(None)
            }
            ClientRequest::Forward { method, connection } => {
                let command = (id.clone(), method, message);
                self.forward(socket, command, connection.as_deref(), extensions, context)?;
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
        context: &mut RelayContext,
    ) {
        context.counters.count_fault(fault);
        self.send(socket, fault.answer(id), context);
    }

    pub(super) fn connect(
        &mut self,
        socket: SocketId,
        extension: ExtensionId,
        extensions: &mut ExtensionSide,
        context: &mut RelayContext,
    ) -> Result<serde_json::Value, RelayFault> {
        let is_connected = !self.connections.of_socket(socket).is_empty();
        if is_connected && !context.settings.multi_connection {
            return Err(RelayFault::AlreadyConnected);
        }
        let name = extensions.name_of_online(&extension);
        let name = name.ok_or(RelayFault::ExtensionNotFound)?.to_owned();
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
                        detach(&id, &suspended.extension, CLIENT_LEFT, extensions, context);
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
        extensions.attach(&extension, id.clone(), client, context);
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
        extensions: &mut ExtensionSide,
        context: &mut RelayContext,
    ) -> Result<(), RelayFault> {
        self.connect_directly(socket, extensions, context)?;
        let settings = &context.settings;
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
        extensions.forward(&extension, command, context);
        Ok(())
    }
}
