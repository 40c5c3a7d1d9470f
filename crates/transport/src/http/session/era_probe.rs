//! How a modern client finds out that its server is a legacy one, and gets the server that it has asked.

use super::HttpSession;

/// What modern clients ask first.
pub(crate) const DISCOVER: &str = "server/discover";

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

impl HttpSession {
    /// On a shared session: the server answered `server/discover` with an error.
    pub(crate) fn discover_refused(&self) {
        let mut state = self.state();
        if state.probe == EraProbe::Asked {
            state.probe = EraProbe::Refused;
        }
    }

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
