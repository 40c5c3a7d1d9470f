//! The end of the hub: open requests may finish, new ones are refused.

use std::time::Instant;

use mcp_proxy_wire::{ErrorCode, error_response};

use super::Hub;
use super::requests::ClientRequest;
use super::work::WorkId;
use crate::server_link::{CallId, ClientId};

/// For requests that have not been begun.
const TRY_AGAIN: &str = "the hub is stopping; try again once it is running";

impl Hub {
    /// Requests that come from now on are refused.
    pub fn stop_taking_requests(&mut self) {
        self.is_stopping = true;
    }

    /// Whether it is stopping, and nobody waits for an answer any more.
    pub fn is_drained(&self) -> bool {
        let mut clients = self.clients.values();
        self.is_stopping && clients.all(|client| client.open.is_empty() && client.parked.is_empty())
    }

    /// Open requests fail: there is no more time for them.
    pub fn fail_open_requests(&mut self, now: Instant) {
        self.fail_open_calls(now);
        let mut works: Vec<WorkId> = self.works.keys().copied().collect();
        works.sort_unstable();
        let code = ErrorCode::SERVER_UNAVAILABLE;
        works
            .into_iter()
            .for_each(|work| self.fail_work(work, code, TRY_AGAIN));
        let mut clients: Vec<ClientId> = self.clients.keys().copied().collect();
        clients.sort_unstable();
        clients
            .into_iter()
            .for_each(|client| self.fail_parked(client, code, TRY_AGAIN));
    }

    fn fail_open_calls(&mut self, now: Instant) {
        let mut open: Vec<CallId> = self.calls.keys().copied().collect();
        open.sort_unstable();
        for id in open {
            let is_sent = self.calls.get(&id).is_some_and(|call| call.is_sent);
            let (code, outcome) = match is_sent {
                true => (ErrorCode::SERVER_EXITED, self.unknown_outcome(id)),
                false => (ErrorCode::SERVER_UNAVAILABLE, ""),
            };
            self.stop_at_server(id);
            self.fail_call(id, code, &format!("the hub is stopping{outcome}"), now);
        }
    }

    /// Refuses a request while the hub is stopping. Returns whether it did.
    pub(super) fn refuse_while_stopping(&mut self, request: ClientRequest<'_>) -> bool {
        let ClientRequest {
            client, message, ..
        } = request;
        let was_taken = self
            .clients
            .get(&client)
            .is_none_or(|it| it.parked.is_answering());
        let is_ping = message.method().as_deref() == Some("ping");
        if !self.is_stopping || was_taken || is_ping {
            return false;
        }
        let id = message.id();
        let answer = error_response(id.as_ref(), ErrorCode::SERVER_UNAVAILABLE, TRY_AGAIN, None);
        self.send_to_client(client, answer);
        true
    }
}
