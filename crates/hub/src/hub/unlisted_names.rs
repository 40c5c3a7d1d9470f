//! Calls by names that may mean two things: as long as the server `git` has listed nothing, `git_log` may be its tool `git_log` or its
//! tool `log`. Such a call waits for the list.

use std::time::Instant;

use mcp_proxy_wire::{ErrorCode, Message};

use super::Hub;
use super::requests::route;
use crate::catalog::{ItemKind, ListingState, ServerIndex};
use crate::server_link::{CallId, LinkId};

/// A name that is looked up again when its server has listed what it offers.
#[derive(Clone, Debug)]
pub(super) struct UnlistedName {
    pub(super) kind: ItemKind,
    pub(super) name: String,
    /// The request with this name in it.
    pub(super) request: Message,
}

impl Hub {
    /// Finds out what a call means that is about to be sent on this link. `false`: it cannot be sent, because it has to wait for the
    /// list, or means nothing.
    pub(super) fn settle_name(&mut self, id: CallId, link: LinkId, now: Instant) -> bool {
        let Some(call) = self.calls.get(&id).filter(|call| call.unlisted.is_some()) else {
            return true;
        };
        let (server, client) = (call.server, call.client);
        if self.expects_list(server, link) {
            return false;
        }
        let unlisted = self
            .calls
            .get_mut(&id)
            .and_then(|call| call.unlisted.take());
        let Some(unlisted) = unlisted else {
            return true;
        };
        let UnlistedName {
            kind,
            name,
            request,
        } = *unlisted;
        let on = Some(self.server(server).name());
        match route(&self.view(client), kind, on, &name, &request) {
            Ok((target, sent)) => {
                if let Some(call) = self.calls.get_mut(&id) {
                    call.message = sent;
                    call.hints = target.hints;
                }
                true
            }
            // Nobody can say more.
            Err(_) if self.server(server).lists_failed => true,
            Err(error) => {
                self.fail_call(id, ErrorCode::INVALID_PARAMS, &error.to_string(), now);
                false
            }
        }
    }

    /// A call has waited long enough for a list. Whether it can be sent now, with the name taken as long as nothing is known.
    pub(super) fn stop_waiting_for_list(&mut self, id: CallId) -> bool {
        let links = &self.links;
        let call = self.calls.get_mut(&id).filter(|call| !call.is_sent);
        let ready = call.filter(|call| {
            let link = call.link.and_then(|link| links.get(&link));
            link.is_some_and(|link| link.state.is_ready())
        });
        ready.is_some_and(|call| call.unlisted.take().is_some())
    }

    /// Lists have come, or will not: calls that waited for them are sent.
    pub(super) fn send_listed_calls(&mut self, now: Instant) {
        let calls = self.calls.iter();
        let waiting = calls.filter(|(_, call)| call.unlisted.is_some() && call.link.is_some());
        let mut waiting: Vec<CallId> = waiting.map(|(id, _)| *id).collect();
        waiting.sort_unstable();
        for id in waiting {
            self.send_call(id, now);
        }
    }

    /// Whether a server that is ready will soon say what it offers, in the conversation that a call uses or in the one of all clients.
    fn expects_list(&self, index: ServerIndex, link: LinkId) -> bool {
        let server = self.server(index);
        if server.listing.is_some() {
            let mounted = self.catalog.server(index);
            let is_known = mounted.is_some_and(|server| server.state() == ListingState::Listed);
            return self.build.is_building() && !is_known;
        }
        let is_read =
            self.reads_lists_from(link) || server.shared_link(server.main_era()).is_some();
        is_read && !server.lists_failed
    }
}
