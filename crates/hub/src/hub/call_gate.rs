//! Calls that wait for a moment, so that a new server can ask for roots first.
//!
//! A server that works in its client's folders asks for them when it is open. A client that starts its own servers has
//! answered long before it calls anything. Here a call may be what starts the server, and would find it without folders.

use std::time::{Duration, Instant};

use mcp_proxy_wire::Era;

use super::Hub;
use crate::server_link::{ClientId, LinkId};

/// The longest that calls wait.
const PATIENCE: Duration = Duration::from_secs(1);
/// What a server has to look at the folders that it was told.
const TO_TAKE_IN: Duration = Duration::from_millis(50);

/// Whether calls of clients with roots can be sent on a link.
#[derive(Debug, Default)]
pub(super) enum CallGate {
    #[default]
    Open,
    /// Not before the lists are read, by when the server has asked if it wants to know, or before its question is answered.
    Closed { until: Instant, has_asked: bool },
}

impl CallGate {
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self {
            CallGate::Open => None,
            CallGate::Closed { until, .. } => Some(*until),
        }
    }
}

impl Hub {
    /// A link is ready. If its server may ask for roots, it gets the time to do so.
    pub(super) fn close_gate(&mut self, id: LinkId, now: Instant) {
        let until = now + PATIENCE;
        if let Some(link) = self.links.get_mut(&id)
            && link.state.era == Era::Legacy
            && self.servers[usize::from(link.server.0)]
                .settings
                .roots
                .is_none()
        {
            let has_asked = false;
            link.gate = CallGate::Closed { until, has_asked };
            self.schedule(until);
        }
    }

    /// Whether this client's calls have to wait.
    pub(super) fn is_gate_closed(&self, id: LinkId, client: ClientId) -> bool {
        let is_closed = |id| self.links.get(&id).and_then(|link| link.gate.deadline());
        let client = self.clients.get(&client);
        is_closed(id).is_some() && client.is_some_and(|client| client.can("roots"))
    }

    /// The server has asked for roots. If it does so apart from any call, new calls wait for the answer too.
    pub(super) fn note_roots_asked(&mut self, id: LinkId, now: Instant) {
        let mut calls = self.calls.values();
        let in_a_call = calls.any(|call| call.is_sent && call.link == Some(id));
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        let until = match link.gate {
            CallGate::Closed { until, .. } => until,
            CallGate::Open if in_a_call => return,
            CallGate::Open => now + PATIENCE,
        };
        let has_asked = true;
        link.gate = CallGate::Closed { until, has_asked };
        self.schedule(until);
    }

    /// The server has an answer to its question.
    pub(super) fn note_roots_answered(&mut self, id: LinkId, now: Instant) {
        let link = self.links.get_mut(&id);
        if let Some(CallGate::Closed { until, has_asked }) = link.map(|link| &mut link.gate)
            && *has_asked
        {
            *until = (*until).min(now + TO_TAKE_IN);
            let until = *until;
            self.schedule(until);
        }
    }

    /// The lists have been read. If the server has not asked by now, it will not.
    pub(super) fn open_gate_if_unasked(&mut self, id: LinkId, now: Instant) {
        let gate = self.links.get(&id).map(|link| &link.gate);
        if matches!(
            gate,
            Some(CallGate::Closed {
                has_asked: false,
                ..
            })
        ) {
            self.open_gate(id, now);
        }
    }

    pub(super) fn wake_gates(&mut self, now: Instant) {
        let links = self.links.iter();
        let due = links.filter(|(_, link)| link.gate.deadline().is_some_and(|at| at <= now));
        let due: Vec<LinkId> = due.map(|(id, _)| *id).collect();
        due.into_iter().for_each(|id| self.open_gate(id, now));
    }

    fn open_gate(&mut self, id: LinkId, now: Instant) {
        if let Some(link) = self.links.get_mut(&id) {
            link.gate = CallGate::Open;
            let server = link.server;
            self.send_waiting_calls(server, now);
        }
    }
}
