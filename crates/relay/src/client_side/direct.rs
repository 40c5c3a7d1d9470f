//! Direct mode: a client need not say which browser it means while there is only one.

use super::ClientSide;
use crate::context::RelayContext;
use crate::extension_side::ExtensionSide;
use crate::fault::RelayFault;
use crate::ids::SocketId;
use crate::settings::RelayAccess;

impl ClientSide {
    /// Connects a client that sends a command without having connected to the only browser there is.
    pub(super) fn connect_directly(
        &mut self,
        socket: SocketId,
        extensions: &mut ExtensionSide,
        context: &mut RelayContext,
    ) -> Result<(), RelayFault> {
        let is_needed = context.settings.access == RelayAccess::Direct
            && self.connections.of_socket(socket).is_empty();
        if !is_needed {
            return Ok(());
        }
        match extensions.only_online().cloned() {
            Some(only) => self.connect(socket, only, extensions, context).map(drop),
            None => Ok(()),
        }
    }
}
