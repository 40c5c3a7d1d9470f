//! Direct mode: a client need not say which browser it means while there is only one.

use super::ClientSide;
use crate::context::RelayContext;
use crate::fault::RelayFault;
use crate::ids::SocketId;
use crate::settings::RelayAccess;

impl ClientSide {
    /// Connects a client that sends a command without having connected to the only browser there is.
    pub(super) fn connect_directly(
        &mut self,
        socket: SocketId,
        context: &mut RelayContext<'_>,
    ) -> Result<(), RelayFault> {
        let is_needed = context.settings.access == RelayAccess::Direct
            && self.connections.of_socket(socket).is_empty();
        if !is_needed {
            return Ok(());
        }
        let mut online = self.directory.iter().filter(|(_, known)| known.is_online);
        match (online.next(), online.next()) {
            (Some((only, _)), None) => {
                let only = only.clone();
                self.connect(socket, only, context).map(drop)
            }
            _ => Ok(()),
        }
    }
}
