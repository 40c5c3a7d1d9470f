//! Ids without a colon, for the commands of one connection: in direct mode, and for extensions that ask for them.

use mcp_proxy_wire::Id;

use super::attached_connection::UsedIds;
use crate::command::{id_text, is_preservable};
use crate::ids::RelayConnectionId;

/// The ids of the one connection that an extension may take for a client of its own.
///
/// An extension tells its clients apart by what stands before the colon of an id, and all ids without one are one client
/// to it. So a connection has ids without a prefix as long as it is the only one.
#[derive(Debug, Default)]
pub(super) struct PlainIds {
    owner: Option<RelayConnectionId>,
    /// Of all owners: a late answer to an older one must not fit.
    used: UsedIds,
}

impl PlainIds {
    pub(super) fn claim(&mut self, connection: &RelayConnectionId) {
        self.owner = Some(connection.clone());
    }

    pub(super) fn belong_to(&self, connection: &RelayConnectionId) -> bool {
        self.owner.as_ref() == Some(connection)
    }

    /// There are several connections now. Returns the one that was alone.
    pub(super) fn end(&mut self) -> Option<RelayConnectionId> {
        self.owner.take()
    }

    pub(super) fn release(&mut self, connection: &RelayConnectionId) {
        if self.belong_to(connection) {
            self.owner = None;
        }
    }

    /// The id under which the extension gets a command, if this connection's ids have no prefix: the client's own, or a
    /// number if that was used before or would not come back as it is.
    pub(super) fn id(&mut self, connection: &RelayConnectionId, id: &Id) -> Option<Id> {
        if !self.belong_to(connection) {
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

/// Whether an id that an extension was sent has no prefix.
pub(super) fn is_plain(id: &Id) -> bool {
    !id.token().contains(&b':')
}
