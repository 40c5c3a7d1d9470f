//! What both sides of a user need for everything they do.

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
    pub(crate) exchange: &'a mut dyn Exchange,
    /// Sockets that have something to write.
    pub(crate) woken: &'a mut Vec<SocketId>,
    /// Sockets of extensions that may be read on.
    pub(crate) resumed: &'a mut Vec<SocketId>,
}

/// What the sides share.
#[derive(Debug)]
pub(crate) struct SharedRelayState {
    pub(crate) settings: RelaySettings,
    pub(crate) ids: IdSource,
    pub(crate) counters: RelayCounters,
    pub(crate) exchange: LocalExchange,
    pub(crate) woken: Vec<SocketId>,
    pub(crate) resumed: Vec<SocketId>,
}

impl SharedRelayState {
    pub(crate) fn new(settings: RelaySettings, ids: IdSource) -> SharedRelayState {
        SharedRelayState {
            settings,
            ids,
            counters: RelayCounters::default(),
            exchange: LocalExchange::default(),
            woken: Vec::new(),
            resumed: Vec::new(),
        }
    }

    pub(crate) fn context(&mut self, now: RelayTime) -> RelayContext<'_> {
        RelayContext {
            now,
            settings: &self.settings,
            ids: &mut self.ids,
            counters: &mut self.counters,
            exchange: &mut self.exchange,
            woken: &mut self.woken,
            resumed: &mut self.resumed,
        }
    }
}
