//! Direct mode, as an extension sees it: ids without a colon, which it can also ask for, and no name that it keeps.

use mcp_proxy_wire::{Id, Message};

use super::attached::UsedIds;
use super::{ExtensionSide, NewExtension};
use crate::command::{id_text, is_preservable};
use crate::ids::{RelayConnectionId, SocketId};
use crate::opening;

/// The ids of the one connection that an extension may take for a client of its own.
///
/// An extension tells its clients apart by what stands before the colon of an id, and all ids without one are one client
/// to it. So the first connection has ids without a prefix until it is over. Others that come meanwhile are mapped.
#[derive(Debug, Default)]
pub(super) struct PlainIds {
    owner: Option<RelayConnectionId>,
    /// Of all owners: a late answer to an older one must not fit.
    used: UsedIds,
}

impl PlainIds {
    pub(super) fn claim(&mut self, connection: &RelayConnectionId) {
        self.owner.get_or_insert_with(|| connection.clone());
    }

    pub(super) fn release(&mut self, connection: &RelayConnectionId) {
        if self.owner.as_ref() == Some(connection) {
            self.owner = None;
        }
    }

    /// The id under which the extension gets a command, if this connection's ids have no prefix: the client's own, or a
    /// number if that was used before or would not come back as it is.
    pub(super) fn id(&mut self, connection: &RelayConnectionId, id: &Id) -> Option<Id> {
        if self.owner.as_ref() != Some(connection) {
            return None;
        }
        if is_preservable(id) && self.used.is_new(&id_text(id)) {
            return Some(id.clone());
        }
        loop {
            self.used.repeated += 1;
            let number = Id::number(self.used.repeated);
            if self.used.is_new(&number.to_string()) {
                return Some(number);
            }
        }
    }
}

impl ExtensionSide {
    /// An extension that keeps no `client_id` gets the name of its browser for one, so that it has the same after a
    /// reconnect. A second browser of that name gets a number.
    pub(crate) fn named(&self, new: &NewExtension) -> NewExtension {
        let mut named = new.clone();
        named.client_id.get_or_insert_with(|| {
            let name = new.name.as_deref().unwrap_or_default();
            let letters = name.chars().filter(char::is_ascii_alphanumeric);
            let mut base: String = letters.take(32).collect::<String>().to_ascii_lowercase();
            if base.is_empty() {
                base.push_str("browser");
            }
            let numbered = (2_u64..).map(|number| format!("{base}-{number}"));
            let mut candidates = std::iter::once(base.clone()).chain(numbered);
            candidates
                .find(|id| !self.is_online(&format!("ext-{id}")))
                .unwrap_or(base)
        });
        named
    }

    /// What an extension says about itself after it was taken in without a word. It can do so as long as nobody uses it.
    pub(crate) fn late_introduction(
        &self,
        socket: SocketId,
        message: &Message,
    ) -> Option<NewExtension> {
        let mut silent = self.extensions.values().filter(|known| known.is_silent);
        let known = silent.find(|known| known.socket == Some(socket))?;
        if known.connection_count() > 0 || known.outbox.is_closing() {
            return None;
        }
        let credentials = opening::late_introduction(message)?;
        Some(NewExtension::new(&credentials, known.expires_at))
    }

    fn is_online(&self, id: &str) -> bool {
        let mut online = self
            .extensions
            .iter()
            .filter(|(_, known)| known.socket.is_some());
        online.any(|(known, _)| known.as_str() == id)
    }
}
