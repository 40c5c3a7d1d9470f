//! Direct mode, as an extension sees it: the name of its browser is its id.

use mcp_proxy_wire::Message;

use super::{ExtensionSide, NewExtension};
use crate::ids::{ExtensionId, SocketId};
use crate::opening;

impl ExtensionSide {
    /// An extension that keeps no `client_id` gets the name of its browser for one, so that it has the same after a
    /// reconnect. A second browser of that name gets a number.
    pub(crate) fn named(&self, new: &NewExtension) -> NewExtension {
        let mut named = new.clone();
        // One that has said who it is does not count as silent.
        named.name = named.name.or_else(|| new.client_id.clone());
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
                .find(|id| !self.is_online(&ExtensionId::named(&format!("ext-{id}"))))
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

    /// How many messages the writer of a socket has taken.
    pub(crate) fn taken(&self, socket: SocketId) -> u64 {
        let mut all = self.extensions.values();
        let known = all.find(|known| known.socket == Some(socket));
        known.map_or(0, |known| known.commands.taken)
    }

    /// The same socket joined before, and its writer had taken this many messages by then.
    pub(crate) fn add_taken(&mut self, socket: SocketId, before: u64) {
        if let Some((_, known)) = self.at(socket) {
            known.commands.taken += before;
        }
    }
}
