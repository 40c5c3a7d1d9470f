//! The sessions of an endpoint.

use std::sync::Arc;

use http::HeaderValue;
use mcp_proxy_wire::ExchangeId;
use rustc_hash::FxHashMap;

use crate::http::session::{HttpSession, SessionKind};

/// All sessions whose servers run.
#[derive(Default)]
pub(super) struct SessionTable {
    /// Those of legacy clients, by their id.
    pub(super) legacy: FxHashMap<String, Arc<HttpSession>>,
    /// Those that modern clients share, by what they show as `Authorization`.
    pub(super) shared: FxHashMap<Option<HeaderValue>, Arc<HttpSession>>,
    /// Those of one request.
    pub(super) requests: FxHashMap<ExchangeId, Arc<HttpSession>>,
    /// Those that were told to end, while their server is being stopped.
    pub(super) ending: Vec<Arc<HttpSession>>,
}

impl SessionTable {
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<HttpSession>> {
        self.open().chain(&self.ending)
    }

    /// Those that were not told to end.
    pub(super) fn open(&self) -> impl Iterator<Item = &Arc<HttpSession>> {
        self.lasting().chain(self.requests.values())
    }

    /// Those that last longer than a request.
    pub(super) fn lasting(&self) -> impl Iterator<Item = &Arc<HttpSession>> {
        self.legacy.values().chain(self.shared.values())
    }

    /// Tells a session to end. Nobody finds it any more. If its server has ended already, nothing is left to wait for.
    pub(super) fn end(&mut self, session: &Arc<HttpSession>) {
        let is_running = self.remove(session);
        session.leave();
        if is_running {
            self.ending.push(Arc::clone(session));
        }
    }

    /// The server of a session has ended. Returns whether the session was still here.
    pub(super) fn remove(&mut self, session: &Arc<HttpSession>) -> bool {
        let before = self.all().count();
        if let Some(id) = session.legacy_id() {
            self.legacy.remove(id);
        }
        if let SessionKind::Request(exchange) | SessionKind::Stateless(exchange) = &session.kind {
            self.requests.remove(exchange);
        }
        self.shared.retain(|_, it| !Arc::ptr_eq(it, session));
        self.ending.retain(|it| !Arc::ptr_eq(it, session));
        self.all().count() < before
    }

    /// The session that has been idle for longest.
    pub(super) fn longest_idle(&self) -> Option<Arc<HttpSession>> {
        let idle = self.lasting().filter_map(|it| Some((it.idle_since()?, it)));
        let longest = idle.min_by_key(|(since, _)| *since)?.1;
        Some(Arc::clone(longest))
    }
}
