//! Calls whose server has gone: sent again if that is safe, else failed.

use std::time::Instant;

use mcp_proxy_wire::ErrorCode;

use super::calls::Call;
use super::links::with_name;
use super::servers::Server;
use super::{Hub, OpenLink, WrittenUpTo};
use crate::server_link::{CallId, LinkId};

impl Hub {
    /// Whether a call may be sent again: it has certainly not reached the server, or it does no harm if it has.
    pub(super) fn may_repeat(&self, id: CallId, written: Option<WrittenUpTo>) -> bool {
        let Some(call) = self.calls.get(&id).filter(|call| !call.repeated) else {
            return false;
        };
        let last = written.map(|WrittenUpTo(last)| last);
        let never_sent = call.number.zip(last).is_some_and(|(own, last)| own > last);
        never_sent || call.hints.read_only || call.hints.idempotent
    }

    /// What a client has to know about a call that its server may have run.
    pub(super) fn unknown_outcome(&self, id: CallId) -> &'static str {
        let is_tool = |call: &Call| call.message.method().as_deref() == Some("tools/call");
        match self.calls.get(&id) {
            Some(call) if is_tool(call) && !call.hints.read_only => {
                "; it is not known whether the call has taken effect"
            }
            _ => "",
        }
    }

    pub(super) fn repeat(&mut self, id: CallId, now: Instant) {
        let start_by = now + self.settings.start_patience;
        self.schedule(start_by);
        if let Some(call) = self.calls.get_mut(&id) {
            call.repeated = true;
            call.is_sent = false;
            call.start_by = start_by;
            let gone = call.link.take();
            // The link is about to end; a call that is sent again must not go there.
            if let Some(gone) = gone {
                self.forget_link(gone);
            }
        }
        self.send_call(id, now);
    }

    /// The link has ended: its calls are sent again if that is safe, else they fail. Calls that wait for it to open wait for
    /// the next attempt if there is one, and fail otherwise.
    pub(super) fn fail_calls_of(
        &mut self,
        id: LinkId,
        link: &OpenLink,
        reason: &str,
        now: Instant,
    ) {
        let mut affected: Vec<CallId> = self
            .calls
            .iter()
            .filter(|(_, call)| call.link == Some(id))
            .map(|(id, _)| *id)
            .collect();
        affected.sort_unstable();
        for id in affected {
            let was_sent = self.calls.get(&id).is_some_and(|call| call.is_sent);
            if was_sent && self.may_repeat(id, link.written) {
                self.repeat(id, now);
                continue;
            }
            let (code, outcome) = match was_sent {
                true => (ErrorCode::SERVER_EXITED, self.unknown_outcome(id)),
                false => (ErrorCode::SERVER_UNAVAILABLE, ""),
            };
            let server = self.server(link.server);
            let again = next_start(server);
            let text = with_name(server.name(), &format!("{reason}{outcome}{again}"));
            self.fail_call(id, code, &text, now);
        }
    }
}

/// How a server that has gone comes back, for those whose calls it has failed.
pub(super) fn next_start(server: &Server) -> &'static str {
    match (server.disabled_reason(), server.settings.is_remote) {
        (Some(_), _) => "",
        (None, true) => "; the next call connects to it again",
        (None, false) => "; the next call starts it again",
    }
}
