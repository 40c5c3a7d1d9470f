//! Clients that leave: gone for a while, gone for good, replaced or closed.
//!
//! Only the side of the extension knows which open commands were delivered. It fails them first, and then the client gets its
//! answer or is closed.

use mcp_proxy_wire::Id;
use serde_json::json;

use super::ClientSide;
use crate::context::RelayContext;
use crate::extension_side::ExtensionSide;
use crate::fault::RelayFault;
use crate::ids::{ExtensionId, RelayConnectionId, SocketId};
use crate::messages;
use crate::opening::SocketRole;
use crate::outbox::RelayClose;

/// Why a connection ends, for its extension and the audit log.
pub(super) const CLIENT_LEFT: &str = "MCP client disconnected";

impl ClientSide {
    /// A socket is gone. A client that can resume keeps its connections for a while.
    pub(crate) fn leave(
        &mut self,
        socket: SocketId,
        extensions: &mut ExtensionSide,
        context: &mut RelayContext,
    ) {
        let Some(gone) = self.sockets.remove(&socket) else {
            return;
        };
        if gone.can_resume {
            let until = context.now.elapsed + context.settings.resume_window;
            for (id, extension) in self.connections.suspend_all_of_socket(socket, until) {
                extensions.suspend(&extension, &id, context);
            }
        } else {
            self.end_all_of(socket, extensions, context);
            for (id, suspended) in self.connections.take_suspended_of(&gone.client) {
                detach(&id, &suspended.extension, CLIENT_LEFT, extensions, context);
            }
        }
        extensions.set_client_count(self.sockets.len(), context);
    }

    /// `disconnect`: ends the connection that it names, or all that the client has. It is fine if there is none.
    pub(super) fn disconnect(
        &mut self,
        socket: SocketId,
        id: &Id,
        named: Option<&str>,
        extensions: &mut ExtensionSide,
        context: &mut RelayContext,
    ) -> Result<(), RelayFault> {
        let own = self.connections.of_socket(socket);
        match named {
            Some(named) if !own.is_empty() => {
                let own = own.iter().find(|own| own.as_str() == named);
                let own = own.ok_or(RelayFault::WrongConnection)?.clone();
                self.end(&own, extensions, context);
            }
            _ => self.end_all_of(socket, extensions, context),
        }
        let answer = messages::result(id, &json!({"disconnected": true}));
        self.send(socket, answer, context);
        Ok(())
    }

    /// Closes a client's socket. What it waits for has failed then, and what it still says is not heard.
    pub(crate) fn close(
        &mut self,
        socket: SocketId,
        close: RelayClose,
        extensions: &mut ExtensionSide,
        context: &mut RelayContext,
    ) {
        let Some(known) = self.sockets.get(&socket) else {
            return;
        };
        if !known.outbox.is_closing() {
            let (role, id) = (SocketRole::Client, known.client.as_str());
            context.audit.closed(role, id, close, context.now);
        }
        self.end_all_of(socket, extensions, context);
        self.close_outbox(socket, close, context);
    }

    pub(crate) fn close_all(
        &mut self,
        close: RelayClose,
        extensions: &mut ExtensionSide,
        context: &mut RelayContext,
    ) {
        let sockets: Vec<SocketId> = self.sockets().collect();
        for socket in sockets {
            self.close(socket, close, extensions, context);
        }
    }

    /// Another socket of the same client takes over. The older one learns that what it waits for has failed, then it is closed.
    pub(super) fn supersede(
        &mut self,
        socket: SocketId,
        extensions: &mut ExtensionSide,
        context: &mut RelayContext,
    ) {
        if let Some(known) = self.sockets.get(&socket) {
            let (role, id) = (SocketRole::Client, known.client.as_str());
            context.audit.taken_over(role, id, context.now);
        }
        let until = context.now.elapsed + context.settings.resume_window;
        for id in self.connections.of_socket(socket).to_vec() {
            if let Some(extension) = self.connections.extension_of(&id) {
                extensions.supersede(&extension, &id, context);
                self.take_events(context);
                self.connections.suspend(&id, until);
            }
        }
        if let Some(known) = self.sockets.get_mut(&socket) {
            // From here on the name is the newer one's.
            known.client = context.ids.client(None);
            known.can_resume = false;
        }
        self.close_outbox(socket, RelayClose::Superseded, context);
    }

    fn close_outbox(&mut self, socket: SocketId, close: RelayClose, context: &mut RelayContext) {
        if let Some(outbox) = self.outbox(socket) {
            outbox.close(close);
            context.sockets_with_output.push(socket);
        }
    }

    fn end_all_of(
        &mut self,
        socket: SocketId,
        extensions: &mut ExtensionSide,
        context: &mut RelayContext,
    ) {
        for id in self.connections.of_socket(socket).to_vec() {
            self.end(&id, extensions, context);
        }
    }

    /// Ends a connection for good.
    fn end(
        &mut self,
        id: &RelayConnectionId,
        extensions: &mut ExtensionSide,
        context: &mut RelayContext,
    ) {
        if let Some(extension) = self.connections.extension_of(id) {
            detach(id, &extension, CLIENT_LEFT, extensions, context);
            // The connection knows under which ids its commands are answered.
            self.take_events(context);
            self.connections.remove(id);
        }
    }
}

pub(super) fn detach(
    connection: &RelayConnectionId,
    extension: &ExtensionId,
    reason: &'static str,
    extensions: &mut ExtensionSide,
    context: &mut RelayContext,
) {
    context
        .audit
        .disconnected(connection, extension, reason, context.now);
    extensions.detach(extension, connection, reason, context);
}
