//! How a modern client finds out that its server is a legacy one, and gets the server that it has asked.

use mcp_proxy_wire::{ErrorCode, Message};

use super::{HttpSession, HttpSessionState};

/// What modern clients ask first.
pub(super) const DISCOVER: &str = "server/discover";

/// What a shared session was used for. Modern clients ask `server/discover` first; a server that does not know it is a
/// legacy one, and then the same client opens a session with `initialize`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EraProbe {
    /// Nothing but `server/discover`, without an answer yet.
    Asked,
    /// Nothing but `server/discover`, which the server refused.
    Refused,
    /// Something else: it is in use.
    Used,
}

impl HttpSessionState {
    /// Looks at an answer of the server's. Only `server/discover` was asked as long as the session is not used, so an
    /// error of the server's own refuses that.
    pub(super) fn note_probe_answer(&mut self, answer: &Message) {
        let code = answer.error_code();
        if self.probe == EraProbe::Asked && code.is_some_and(|code| !ErrorCode::is_own(code)) {
            self.probe = EraProbe::Refused;
        }
    }
}

impl HttpSession {
    /// Gives a shared session, of which nobody wanted more than to find out that its server is a legacy one, to a legacy
    /// client. Its server was asked nothing else, so it is as good as a new one.
    pub(crate) fn adopt(&self, id: &str) -> bool {
        let state = self.state();
        let is_free = state.probe == EraProbe::Refused && state.streams.is_empty() && !state.ended;
        let adopted = self.is_shared() && is_free && self.adopted.set(id.to_owned()).is_ok();
        if adopted {
            self.connection.unshare();
        }
        adopted
    }
}
