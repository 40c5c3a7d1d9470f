//! The end of the hub: open calls may finish, new ones are refused.

use std::time::Instant;

use mcp_proxy_wire::{ErrorCode, error_response};

use super::Hub;
use super::requests::ClientRequest;
use crate::server_link::CallId;

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

    /// Open calls fail: there is no more time for them.
    pub fn fail_open_calls(&mut self, now: Instant) {
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

    /// Refuses a request if the hub is stopping. Whether it has.
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
        let text = "the hub is stopping; try again when it has been started again";
        let id = message.id();
        let answer = error_response(id.as_ref(), ErrorCode::SERVER_UNAVAILABLE, text, None);
        self.send_to_client(client, answer);
        true
    }
}
