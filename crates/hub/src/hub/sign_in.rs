//! Servers that want to know who asks: they wait for a person and are not tried again by themselves, but every call asks them
//! once more.

use std::time::Instant;

use mcp_proxy_wire::{ErrorCode, error_response};

use super::{Hub, HubAction};
use crate::catalog::ServerIndex;
use crate::server_link::{CallId, LinkId};
use crate::sign_in_need::SignInNeed;

/// What has happened to the user's sign-in to a server. A renewed token does not count: otherwise a server that refuses every
/// token would be asked for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignInChange {
    /// The user has signed in, perhaps as somebody else.
    Account,
    /// The same account may do more than before.
    Scopes,
    /// The user has signed out, or the sign-in has ended.
    SignedOut,
}

impl Hub {
    /// The user's sign-in to this server has changed. Servers of other names are not touched.
    pub fn sign_in_changed(&mut self, name: &str, change: SignInChange, now: Instant) {
        let Some(index) = self.server_named(name) else {
            return;
        };
        let server = self.server(index);
        if server.disabled_reason().is_some() {
            return;
        }
        match (change, &server.sign_in_need) {
            // Calls that wait for a person wait on: nobody has come.
            (SignInChange::SignedOut, _) => return self.reconnect(index, now),
            (SignInChange::Account, _) | (_, Some(_)) => self.reconnect(index, now),
            (SignInChange::Scopes, None) if server.is_running() => self.list_again(index, now),
            (SignInChange::Scopes, None) => {}
        }
        self.resume_signed_in(index, now);
    }

    /// Ends what was said under another sign-in, and begins again. Calls that wait for the server continue to wait.
    fn reconnect(&mut self, index: ServerIndex, now: Instant) {
        let server = self.server(index);
        let is_wanted = server.is_running() || server.sign_in_need.is_some();
        let starts = is_wanted || server.starts_by_itself();
        let waiting = self.calls.iter_mut();
        let waiting = waiting.filter(|(_, call)| call.server == index && !call.is_sent);
        let waiting: Vec<CallId> = waiting
            .filter_map(|(id, call)| call.link.take().map(|_| *id))
            .collect();
        self.end_server(index, "the sign-in to it has changed", now);
        if starts {
            self.start_main(index, now);
        }
        waiting.into_iter().for_each(|id| self.send_call(id, now));
    }

    /// A link cannot be opened, or has ended, because the server wants to know who asks.
    pub(super) fn link_needs_sign_in(&mut self, id: LinkId, need: &SignInNeed, now: Instant) {
        let Some(link) = self.links.get(&id) else {
            return;
        };
        let (index, is_main) = (link.server, self.is_main(link));
        self.forget_link(id);
        self.note_sign_in_need(index, need);
        let server = self.server_mut(index);
        if is_main {
            server.settled = true;
            server.failures = 0;
            server.ready_since = None;
            server.retry_at = None;
            server.stale = server.listing.is_some();
        }
        let waiting = self.calls.iter();
        let waiting = waiting.filter(|(_, call)| call.link == Some(id) && !call.is_sent);
        let mut waiting: Vec<CallId> = waiting.map(|(id, _)| *id).collect();
        waiting.sort_unstable();
        for call in waiting {
            self.call_needs_sign_in(call, need, now);
        }
        self.drop_link(id, need.text(), now);
        self.answer_parked(now);
        self.refreshed(index, now);
    }

    /// The server has refused a call, and so has not run it.
    pub(super) fn call_refused_for_sign_in(&mut self, id: CallId, need: &SignInNeed, now: Instant) {
        if let Some(call) = self.calls.get(&id).filter(|_| !need.lacks_scopes_only()) {
            self.note_sign_in_need(call.server, need);
        }
        self.call_needs_sign_in(id, need, now);
    }

    /// Shows that a server needs a sign-in, and tells the operator once.
    pub(super) fn note_sign_in_need(&mut self, index: ServerIndex, need: &SignInNeed) {
        let server = self.server_mut(index);
        if server.sign_in_need.as_ref() != Some(need) {
            server.sign_in_need = Some(need.clone());
            let text = need.sentence(server.name());
            self.actions.push(HubAction::Log(text));
        }
    }

    /// The server answers, so it knows who asks.
    pub(super) fn note_answer(&mut self, index: ServerIndex) {
        let server = self.server_mut(index);
        if server.sign_in_need.is_some() && !server.lists_failed {
            server.sign_in_need = None;
        }
    }

    fn call_needs_sign_in(&mut self, id: CallId, need: &SignInNeed, now: Instant) {
        if !self.wait_for_sign_in(id, need, now) {
            self.refuse_for_sign_in(id, need, now);
        }
    }

    /// Tells a call's client what to do.
    pub(super) fn refuse_for_sign_in(&mut self, id: CallId, need: &SignInNeed, now: Instant) {
        let Some(call) = self.calls.get(&id) else {
            return;
        };
        let name = self.server(call.server).name();
        let (text, data) = (need.sentence(name), need.data(name));
        let code = ErrorCode::NEEDS_SIGN_IN;
        let answer = error_response(Some(&call.id), code, &text, Some(&data));
        self.finish_call(id, answer, now);
    }
}
