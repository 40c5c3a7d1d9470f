//! Clients that leave: gone for a while, gone for good, replaced or closed.
//!
//! Only the side of the extension knows which open commands were delivered. So a connection ends in two steps: the
//! extension's side fails what is open and confirms, and then the client gets its answer or is closed.

use mcp_proxy_wire::Id;
use serde_json::json;

use super::ClientSide;
use crate::context::RelayContext;
use crate::exchange::ToExtension;
use crate::fault::RelayFault;
use crate::ids::{ExtensionId, RelayConnectionId, SocketId};
use crate::messages;
use crate::opening::SocketRole;
use crate::outbox::RelayClose;

/// What a client gets when its connections have ended.
#[derive(Debug)]
pub(super) enum WhenEnded {
    /// The answer to its `disconnect`.
    Answer(Id),
    /// The end of its socket.
    Close(RelayClose),
}

impl ClientSide {
    /// A socket is gone. A client that can resume keeps its connections for a while.
    pub(crate) fn leave(&mut self, socket: SocketId, context: &mut RelayContext<'_>) {
        let Some(gone) = self.sockets.remove(&socket) else {
            return;
        };
        if gone.can_resume {
            let until = context.now.elapsed + context.settings.resume_window;
            for (id, extension) in self.connections.suspend_all_of_socket(socket, until) {
                let suspend = ToExtension::Suspend { connection: id };
                context.exchange.to_extension(&extension, suspend);
            }
        } else {
            for id in self.connections.of_socket(socket).to_vec() {
                self.end(id, "MCP client disconnected", context);
            }
            for (id, suspended) in self.connections.take_suspended_of(&gone.client) {
                detach(id, &suspended.extension, "MCP client disconnected", context);
            }
        }
        self.tell_count(context);
    }

    /// `disconnect`: ends the connection that it names, or all that the client has. It is fine if there is none.
    pub(super) fn disconnect(
        &mut self,
        socket: SocketId,
        id: Id,
        named: Option<&str>,
        context: &mut RelayContext<'_>,
    ) -> Result<(), RelayFault> {
        let own = self.connections.of_socket(socket);
        let ended: Vec<RelayConnectionId> = match named {
            Some(named) if !own.is_empty() => {
                let own = own.iter().find(|own| own.as_str() == named);
                vec![own.ok_or(RelayFault::WrongConnection)?.clone()]
            }
            _ => own.to_vec(),
        };
        self.end_all(socket, ended, WhenEnded::Answer(id), context);
        Ok(())
    }

    /// Closes a client's socket. What it waits for has failed then, and what it still says is not heard.
    pub(crate) fn close(
        &mut self,
        socket: SocketId,
        close: RelayClose,
        context: &mut RelayContext<'_>,
    ) {
        if let Some(known) = self.sockets.get(&socket)
            && !known.is_closing()
        {
            let (role, id) = (SocketRole::Client, known.client.as_str());
            context.audit.closed(role, id, close, context.now);
        }
        let own = self.connections.of_socket(socket).to_vec();
        self.end_all(socket, own, WhenEnded::Close(close), context);
    }

    pub(crate) fn close_all(&mut self, close: RelayClose, context: &mut RelayContext<'_>) {
        let sockets: Vec<SocketId> = self.sockets().collect();
        for socket in sockets {
            self.close(socket, close, context);
        }
    }

    /// Another socket of the same client takes over. The older one learns that what it waits for has failed, then it is closed.
    pub(super) fn supersede(&mut self, socket: SocketId, context: &mut RelayContext<'_>) {
        if let Some(known) = self.sockets.get(&socket) {
            let (role, id) = (SocketRole::Client, known.client.as_str());
            context.audit.taken_over(role, id, context.now);
        }
        let own = self.connections.of_socket(socket).to_vec();
        for connection in &own {
            let Some(known) = self.connections.get_mut(connection) else {
                continue;
            };
            let supersede = ToExtension::Supersede {
                connection: connection.clone(),
            };
            context.exchange.to_extension(&known.extension, supersede);
        }
        if let Some(known) = self.sockets.get_mut(&socket) {
            // From here on the name is the newer one's.
            known.client = context.ids.client(None);
            known.can_resume = false;
            known.ending += own.len();
            known
                .when_ended
                .push(WhenEnded::Close(RelayClose::Superseded));
        }
        self.finish_ending(socket, context);
    }

    /// The side of an extension has confirmed that a connection has ended.
    pub(super) fn ended(&mut self, id: &RelayConnectionId, context: &mut RelayContext<'_>) {
        let socket = self.connections.remove(id).and_then(|known| known.socket);
        self.count_ended(socket, context);
    }

    /// The commands of a superseded socket have failed: its connection can be resumed by the newer one.
    pub(super) fn superseded(&mut self, id: &RelayConnectionId, context: &mut RelayContext<'_>) {
        let until = context.now.elapsed + context.settings.resume_window;
        let socket = self.connections.suspend(id, until);
        self.count_ended(socket, context);
    }

    fn count_ended(&mut self, socket: Option<SocketId>, context: &mut RelayContext<'_>) {
        let known = socket.and_then(|socket| self.sockets.get_mut(&socket));
        if let (Some(socket), Some(known)) = (socket, known) {
            known.ending = known.ending.saturating_sub(1);
            self.finish_ending(socket, context);
        }
    }

    fn end_all(
        &mut self,
        socket: SocketId,
        connections: Vec<RelayConnectionId>,
        then: WhenEnded,
        context: &mut RelayContext<'_>,
    ) {
        let Some(known) = self.sockets.get_mut(&socket) else {
            return;
        };
        known.ending += connections.len();
        known.when_ended.push(then);
        for id in connections {
            self.end(id, "MCP client disconnected", context);
        }
        self.finish_ending(socket, context);
    }

    fn end(&mut self, id: RelayConnectionId, reason: &'static str, context: &mut RelayContext<'_>) {
        if let Some(extension) = self.connections.end(&id) {
            detach(id, &extension, reason, context);
        }
    }

    /// Does what waited for the end of a socket's connections, as soon as all have ended.
    fn finish_ending(&mut self, socket: SocketId, context: &mut RelayContext<'_>) {
        let Some(known) = self.sockets.get_mut(&socket) else {
            return;
        };
        if known.ending > 0 {
            return;
        }
        for then in std::mem::take(&mut known.when_ended) {
            match then {
                WhenEnded::Answer(id) => {
                    let answer = messages::result(&id, &json!({"disconnected": true}));
                    self.send(socket, answer, context);
                }
                WhenEnded::Close(close) => {
                    if let Some(outbox) = self.outbox(socket) {
                        outbox.close(close);
                        context.sockets_with_output.push(socket);
                    }
                }
            }
        }
    }
}

pub(super) fn detach(
    connection: RelayConnectionId,
    extension: &ExtensionId,
    reason: &'static str,
    context: &mut RelayContext<'_>,
) {
    context
        .audit
        .disconnected(&connection, extension, reason, context.now);
    let detach = ToExtension::Detach { connection, reason };
    context.exchange.to_extension(extension, detach);
}
