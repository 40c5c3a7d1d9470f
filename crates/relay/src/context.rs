//! What both sides of a user need for everything they do.

use crate::audit::RelayAudit;
use crate::counters::RelayCounters;
use crate::exchange::{Exchange, LocalExchange};
use crate::ids::{IdSource, SocketId};
use crate::settings::RelaySettings;
use crate::time::RelayTime;

/// What the sides share, as one of them sees it while it handles something.
pub(crate) struct RelayContext<'a> {
    pub(crate) now: RelayTime,
    pub(crate) settings: &'a RelaySettings,
    pub(crate) ids: &'a mut IdSource,
    pub(crate) counters: &'a mut RelayCounters,
    pub(crate) audit: &'a mut RelayAudit,
    pub(crate) exchange: &'a mut dyn Exchange,
    /// Sockets that have something to write.
    pub(crate) sockets_with_output: &'a mut Vec<SocketId>,
}

/// What the sides share.
#[derive(Debug)]
pub(crate) struct SharedRelayState {
    pub(crate) settings: RelaySettings,
    pub(crate) ids: IdSource,
    pub(crate) counters: RelayCounters,
    pub(crate) audit: RelayAudit,
    pub(crate) exchange: LocalExchange,
    pub(crate) sockets_with_output: Vec<SocketId>,
}

impl SharedRelayState {
    pub(crate) fn new(user: &str, settings: RelaySettings, ids: IdSource) -> SharedRelayState {
        SharedRelayState {
            audit: RelayAudit::new(user, settings.is_audited),
            settings,
            ids,
            counters: RelayCounters::default(),
            exchange: LocalExchange::default(),
            sockets_with_output: Vec::new(),
        }
    }

    pub(crate) fn context(&mut self, now: RelayTime) -> RelayContext<'_> {
        RelayContext {
            now,
            settings: &self.settings,
            ids: &mut self.ids,
            counters: &mut self.counters,
            audit: &mut self.audit,
            exchange: &mut self.exchange,
            sockets_with_output: &mut self.sockets_with_output,
        }
    }
}
