//! The sessions of an endpoint.

use std::sync::Arc;

use http::HeaderValue;
use mcp_proxy_wire::ExchangeId;
use rustc_hash::FxHashMap;

use crate::http::session::{HttpSession, SessionKind};

/// All sessions that are open.
#[derive(Default)]
pub(super) struct SessionTable {
    /// Those of legacy clients, by their id.
    pub(super) legacy: FxHashMap<String, Arc<HttpSession>>,
    /// Those that modern clients share, by what they show as `Authorization`.
    pub(super) shared: FxHashMap<Option<HeaderValue>, Arc<HttpSession>>,
    /// Those of one modern request.
    pub(super) requests: FxHashMap<ExchangeId, Arc<HttpSession>>,
    /// Shared ones that a new one has replaced, while their server is being stopped.
    pub(super) ending: Vec<Arc<HttpSession>>,
}

impl SessionTable {
    /// How many sessions there are that last longer than a request.
    pub(super) fn lasting(&self) -> usize {
        self.legacy.len() + self.shared.len()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<HttpSession>> {
        let lasting = self.legacy.values().chain(self.shared.values());
        lasting.chain(self.requests.values()).chain(&self.ending)
    }

    pub(super) fn remove(&mut self, session: &Arc<HttpSession>) {
        match &session.kind {
            SessionKind::Legacy(id) => drop(self.legacy.remove(id)),
            SessionKind::Shared => {
                self.shared.retain(|_, it| !Arc::ptr_eq(it, session));
                self.ending.retain(|it| !Arc::ptr_eq(it, session));
            }
            SessionKind::Request(exchange) => drop(self.requests.remove(exchange)),
        }
    }
}
