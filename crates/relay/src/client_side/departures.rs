//! Clients that leave: gone for a while, gone for good, replaced or closed.

use super::ClientSide;
use crate::context::RelayContext;
use crate::exchange::ToExtension;
use crate::ids::{ExtensionId, RelayConnectionId, SocketId};
use crate::outbox::RelayClose;

impl ClientSide {
    /// A socket is gone. A client that can resume keeps its connection for a while.
    pub(crate) fn leave(&mut self, socket: SocketId, context: &mut RelayContext<'_>) {
        let Some(gone) = self.sockets.remove(&socket) else {
            return;
        };
        if gone.can_resume {
            let until = context.now.elapsed + context.settings.resume_window;
            if let Some((id, extension)) = self.connections.suspend(socket, until) {
                let suspend = ToExtension::Suspend { connection: id };
                context.exchange.to_extension(&extension, suspend);
            }
        } else {
            self.disconnect(socket, "MCP client disconnected", context);
            for (id, suspended) in self.connections.take_suspended_of(&gone.client) {
                detach(id, &suspended.extension, "MCP client disconnected", context);
            }
        }
        self.tell_count(context);
    }

    /// Another socket of the same client takes over. The older one learns that what it waits for has failed, then it is closed.
    pub(super) fn supersede(&mut self, socket: SocketId, context: &mut RelayContext<'_>) {
        match self.connections.of_socket(socket) {
            Some((id, connection)) => {
                let extension = connection.extension.clone();
                let supersede = ToExtension::Supersede { connection: id };
                context.exchange.to_extension(&extension, supersede);
            }
            None => self.close_superseded(socket, context),
        }
        // From here on the name is the newer one's.
        if let Some(known) = self.sockets.get_mut(&socket) {
            known.client = context.ids.client(None);
            known.can_resume = false;
        }
    }

    pub(super) fn close_superseded(&mut self, socket: SocketId, context: &mut RelayContext<'_>) {
        if let Some(outbox) = self.outbox(socket) {
            outbox.close(RelayClose::Superseded);
            context.sockets_with_output.push(socket);
        }
    }

    /// Closes a client's socket. What it waits for has failed then, and what it still says is not heard.
    pub(crate) fn close(
        &mut self,
        socket: SocketId,
        close: RelayClose,
        context: &mut RelayContext<'_>,
    ) {
        self.disconnect(socket, "MCP client disconnected", context);
        if let Some(outbox) = self.outbox(socket) {
            outbox.close(close);
            context.sockets_with_output.push(socket);
        }
    }

    pub(crate) fn close_all(&mut self, close: RelayClose, context: &mut RelayContext<'_>) {
        let sockets: Vec<SocketId> = self.sockets().collect();
        for socket in sockets {
            self.close(socket, close, context);
        }
    }
}

pub(super) fn detach(
    connection: RelayConnectionId,
    extension: &ExtensionId,
    reason: &'static str,
    context: &mut RelayContext<'_>,
) {
    let detach = ToExtension::Detach { connection, reason };
    context.exchange.to_extension(extension, detach);
}
