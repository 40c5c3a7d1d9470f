//! A request that the proxy sends to a server itself, on a client's connection.

use std::sync::Arc;

use mcp_proxy_wire::{Direction, Frame, Id, Message, StreamId};

use crate::connection::Connection;
use crate::link::LinkEnd;

/// Keeps a request of the proxy's own open. When it is dropped the request is over, answered or not, so that its error
/// never goes to the client.
pub struct OwnRequest {
    connection: Arc<Connection>,
    id: Id,
}

impl OwnRequest {
    /// Records a request to the server, ready to be sent. Its id must be one that the client does not use.
    pub fn author(
        connection: &Arc<Connection>,
        message: Message,
    ) -> Result<(OwnRequest, Frame), LinkEnd> {
        let id = message.id().unwrap_or_else(|| Id::from_token(b"null"));
        let (direction, now) = (Direction::ClientToServer, connection.run.now());
        let frame = connection.author(direction, StreamId::Only, message, now)?;
        let connection = Arc::clone(connection);
        Ok((OwnRequest { connection, id }, frame))
    }

    /// The id that its answer has.
    pub fn id(&self) -> &Id {
        &self.id
    }
}

impl Drop for OwnRequest {
    fn drop(&mut self) {
        self.connection
            .give_up(Direction::ClientToServer, StreamId::Only, &self.id);
    }
}
