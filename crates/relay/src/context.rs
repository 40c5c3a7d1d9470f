//! What both sides of a user need for everything they do.

use std::collections::VecDeque;

use crate::audit::RelayAudit;
use crate::counters::RelayCounters;
use crate::extension_event::ExtensionEvent;
use crate::ids::{IdSource, SocketId};
use crate::settings::RelaySettings;
use crate::time::RelayTime;

/// What the sides share.
#[derive(Debug)]
pub(crate) struct RelayContext {
    pub(crate) now: RelayTime,
    pub(crate) settings: RelaySettings,
    pub(crate) ids: IdSource,
    pub(crate) counters: RelayCounters,
    pub(crate) audit: RelayAudit,
    /// Events that the clients' side has not seen yet.
    pub(crate) extension_events: VecDeque<ExtensionEvent>,
    /// Sockets that have something to write.
    pub(crate) sockets_with_output: Vec<SocketId>,
}

impl RelayContext {
    pub(crate) fn new(user: &str, settings: RelaySettings, ids: IdSource) -> RelayContext {
        RelayContext {
            now: RelayTime::default(),
            audit: RelayAudit::new(user, settings.is_audited),
            settings,
            ids,
            counters: RelayCounters::default(),
            extension_events: VecDeque::new(),
            sockets_with_output: Vec::new(),
        }
    }
}
