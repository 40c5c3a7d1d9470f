//! Conversations with servers: opened when they are needed, noticed when they end, and tried again.

use std::time::Instant;

use bytes::Bytes;
use mcp_proxy_wire::{Era, Message, Origin};

use super::call_gate::CallGate;
use super::roots::RootsQuestion;
use super::server_listening::ListenRefusal;
use super::servers::{EraSupport, LinkOwner, SettleDeadlines, other, slot};
use super::{Hub, HubAction, LinkClosed, LinkUsers, OpenLink, WrittenUpTo};
use crate::backoff::{RECOVERED, wait_after};
use crate::catalog::ServerIndex;
use crate::config::{RestartPolicy, SharingScope, StartMode};
use crate::server_link::{
    ClientDescription, ClientId, LinkDeadlines, LinkId, LinkNews, ServerLink,
};

impl Hub {
    /// Servers that cannot be used are told about once.
    pub(super) fn report_disabled_servers(&mut self) {
        let disabled = self.servers.iter().filter_map(|server| {
            let reason = server.disabled_reason()?;
            Some(HubAction::Log(format!(
                "server {}: {reason}",
                server.name()
            )))
        });
        let disabled: Vec<HubAction> = disabled.collect();
        self.actions.extend(disabled);
    }

    pub(super) fn start_eager_servers(&mut self, now: Instant) {
        for index in self.server_indices() {
            if self.server(index).starts_by_itself() {
                self.start_main(index, now);
            }
        }
    }

    /// Starts the conversation that the lists are read from, unless there is one.
    pub(super) fn start_main(&mut self, index: ServerIndex, now: Instant) {
        let era = self.server(index).main_era();
        if self.server(index).shared_link(era).is_none() {
            self.start_shared(index, era, now);
        }
    }

    /// The conversation that a client's calls to a server use, opened if there is none yet. `None`: the server cannot be used.
    pub(super) fn link_for(
        &mut self,
        client: ClientId,
        index: ServerIndex,
        now: Instant,
    ) -> Option<LinkId> {
        let client_era = self.clients.get(&client)?.era();
        let server = self.server(index);
        if server.disabled_reason().is_some() {
            return None;
        }
        let era = server.era_for(client_era);
        if self.owner_for(client, index) == LinkOwner::Client(client) {
            let own = server.own.get(&client).copied();
            return Some(own.unwrap_or_else(|| self.start_own(client, index, now)));
        }
        if let Some(client) = self.clients.get_mut(&client) {
            client.shares.insert(index);
        }
        match self.server(index).shared[slot(era)] {
            Some(link) => Some(link),
            None => Some(self.start_shared(index, era, now)),
        }
    }

    /// Whose conversation with a server a client's requests use.
    pub(super) fn owner_for(&self, client: ClientId, index: ServerIndex) -> LinkOwner {
        let server = self.server(index);
        let Some(session) = self.clients.get(&client) else {
            return LinkOwner::Everyone;
        };
        let is_legacy = session.era() == Era::Legacy && server.main_era() == Era::Legacy;
        let shares = server.settings.scope == SharingScope::Auto && session.shares.contains(&index);
        match is_legacy && (server.has_own(client) || server.needs_own && !shares) {
            true => LinkOwner::Client(client),
            false => LinkOwner::Everyone,
        }
    }

    /// Whether the lists are read in this conversation, and the server counts as down without it.
    pub(super) fn is_main(&self, link: &OpenLink) -> bool {
        link.is_for_everyone && link.state.era == self.server(link.server).main_era()
    }

    /// The conversation in which a server tells this owner about its resources, if there is one.
    pub(super) fn link_of(&self, index: ServerIndex, owner: LinkOwner) -> Option<LinkId> {
        let server = self.server(index);
        match owner {
            LinkOwner::Everyone => server.shared_link(server.main_era()),
            LinkOwner::Client(client) => server.own.get(&client).copied(),
        }
    }

    fn start_shared(&mut self, index: ServerIndex, era: Era, now: Instant) -> LinkId {
        let link = self.open_link(index, LinkOwner::Everyone, era, now);
        let (settle, first_list) = (self.settings.settle, self.settings.first_list);
        let server = self.server_mut(index);
        let patience = match server.listing {
            Some(_) => settle,
            None => first_list,
        };
        server.settle_by.get_or_insert(SettleDeadlines {
            opening: now + settle,
            lists: now + patience,
        });
        server.shared[slot(era)] = Some(link);
        server.retry_at = None;
        server.lists_failed = false;
        server.note_start();
        server.last_stderr.clear();
        self.update_listening(index);
        link
    }

    fn start_own(&mut self, client: ClientId, index: ServerIndex, now: Instant) -> LinkId {
        let link = self.open_link(index, LinkOwner::Client(client), Era::Legacy, now);
        let server = self.server_mut(index);
        server.own.insert(client, link);
        server.note_start();
        link
    }

    fn open_link(
        &mut self,
        index: ServerIndex,
        owner: LinkOwner,
        era: Era,
        now: Instant,
    ) -> LinkId {
        let id = LinkId(self.next_id());
        let settings = &self.server(index).settings;
        let deadlines = LinkDeadlines {
            start: settings.start_timeout,
            list: settings.list_timeout,
        };
        let capabilities = match owner {
            LinkOwner::Client(client) => self
                .clients
                .get(&client)
                .map(|client| client.capabilities()),
            LinkOwner::Everyone => None,
        };
        let description = ClientDescription {
            info: self.settings.client_info.clone(),
            capabilities: capabilities.unwrap_or_else(|| shared_capabilities(era)),
        };
        let state = ServerLink::new(id, era, description, deadlines, now);
        self.links.insert(
            id,
            OpenLink {
                server: index,
                owner,
                level: None,
                state,
                is_for_everyone: owner == LinkOwner::Everyone,
                written: None,
                roots: RootsQuestion::default(),
                gate: CallGate::default(),
                users: LinkUsers::default(),
            },
        );
        self.schedule(now + deadlines.start);
        self.actions.push(HubAction::Dial {
            link: id,
            server: index,
        });
        id
    }

    /// A server printed a line on stderr. It has no secrets in it. Whether the operator has not seen it yet: a server that
    /// cannot start prints the same at each attempt.
    pub fn server_printed(&mut self, name: &str, line: &str) -> bool {
        let server = self.servers.iter_mut().find(|server| server.name() == name);
        server.is_none_or(|server| server.printed(line))
    }

    /// A link is open. What it says first is sent.
    pub fn link_opened(&mut self, id: LinkId) {
        if let Some(link) = self.links.get_mut(&id) {
            link.state.opened();
        }
        self.flush_link(id, None);
    }

    /// A message from a server.
    pub fn link_message(&mut self, id: LinkId, message: &Message, origin: Origin, now: Instant) {
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        let server = link.server;
        link.state.origin = origin;
        let news = link.state.received(message, now);
        self.note_announced(server, message);
        for news in news {
            self.handle_news(id, news, now);
        }
        if let Some(link) = self.links.get_mut(&id) {
            link.written = None;
        }
        self.flush_link(id, None);
    }

    pub(super) fn handle_news(&mut self, id: LinkId, news: LinkNews, now: Instant) {
        let Some(link) = self.links.get(&id) else {
            return;
        };
        let index = link.server;
        match news {
            LinkNews::Ready => self.link_ready(id, now),
            LinkNews::Listed { listing, failed } => {
                match self.reads_lists_from(id) {
                    true => self.listed(index, listing, failed, now),
                    false => self.listed_elsewhere(index),
                }
                self.open_gate_if_unasked(id, now);
            }
            LinkNews::ForCall(call, message) => self.call_message(id, call, message, now),
            LinkNews::Asks(message) => self.server_asks(id, &message, now),
            LinkNews::ForClient(client, message) => self.send_to_client(client, message),
            LinkNews::Notifies(message) => self.server_notifies(id, &message),
            LinkNews::Subscribed(uri) => self.subscription_agreed(id, &uri),
            LinkNews::SubscriptionRefused(uri, reason) => {
                self.subscription_refused(id, &uri, &reason);
            }
            LinkNews::ListenAgreed { agreed, refused } => {
                self.listen_agreed(id, agreed, refused, now);
            }
            LinkNews::ListenRefused { uris, code, reason } => {
                self.listen_refused(id, uris, &ListenRefusal { code, reason }, now);
            }
            LinkNews::Failed(reason) => {
                self.actions.push(HubAction::Close(id));
                let closed = LinkClosed {
                    reason,
                    is_orderly: false,
                    sign_in: None,
                };
                self.link_closed(id, &closed, now);
            }
            LinkNews::NeedsSignIn(need) => {
                self.actions.push(HubAction::Close(id));
                self.link_needs_sign_in(id, &need, now);
            }
            LinkNews::WrongEra => self.wrong_era(id, now),
        }
    }

    fn link_ready(&mut self, id: LinkId, now: Instant) {
        let Some(link) = self.links.get(&id) else {
            return;
        };
        let (index, era, is_main) = (link.server, link.state.era, self.is_main(link));
        let description = link.state.description.clone();
        let server = self.server_mut(index);
        server.support[slot(era)] = EraSupport::Yes;
        server.sign_in_need = None;
        if is_main {
            server.description = description;
            server.ready_since = Some(now);
            server.seen_stderr.clear();
            server.retry_at = None;
            if let Some(idle) = self.server(index).idle_deadline() {
                self.schedule(idle);
            }
        }
        self.close_gate(id, now);
        self.restore_link_state(id);
        self.send_waiting_calls(index, now);
    }

    /// The server does not speak the era of this link. Clients that waited for it wait for one of the other era.
    fn wrong_era(&mut self, id: LinkId, now: Instant) {
        let Some(link) = self.links.remove(&id) else {
            return;
        };
        self.actions.push(HubAction::Close(id));
        let (index, era) = (link.server, link.state.era);
        let server = self.server_mut(index);
        server.support[slot(era)] = EraSupport::No;
        server.shared[slot(era)] = server.shared[slot(era)].filter(|shared| *shared != id);
        server.own.retain(|_, own| *own != id);
        if server.support[slot(other(era))] == EraSupport::No {
            let reason = "it speaks no protocol revision that the hub knows".to_owned();
            server.support = [EraSupport::Unknown; 2];
            self.server_failed(index, reason, now);
            return;
        }
        if self.server(index).shared[slot(other(era))].is_none() {
            self.start_shared(index, other(era), now);
        }
        self.send_waiting_calls(index, now);
    }

    /// How far the requests on a link have been written. This is true for the message or the end that is reported next, and
    /// forgotten after that: the link may write more.
    pub fn link_written(&mut self, id: LinkId, written: WrittenUpTo) {
        if let Some(link) = self.links.get_mut(&id) {
            link.written = Some(written);
        }
    }

    /// A link has ended, or could not be opened.
    pub fn link_closed(&mut self, id: LinkId, closed: &LinkClosed, now: Instant) {
        if let Some(need) = &closed.sign_in {
            return self.link_needs_sign_in(id, need, now);
        }
        let Some(link) = self.links.get(&id) else {
            return;
        };
        let (index, is_main, was_ready) = (link.server, self.is_main(link), link.state.is_ready());
        let server = self.server(index);
        let reason = server.with_stderr(&closed.reason);
        if is_main && self.server(index).shared_link(link.state.era) == Some(id) {
            // Requests that waited for the server are told why it failed, not that it is starting.
            self.forget_link(id);
            self.server_failed(index, reason.clone(), now);
            let server = self.server_mut(index);
            if closed.is_orderly && server.settings.restart == RestartPolicy::OnFailure {
                server.retry_at = None;
            }
        } else {
            // A link that was replaced already, or is one client's, is not missed.
            if is_main && was_ready {
                self.report_failure(index, &reason);
            }
            let server = self.server_mut(index);
            server.last_error = Some(reason.clone());
            server.settled |= is_main;
            match server.shared.iter().any(Option::is_some) {
                true if is_main => server.note_restart(),
                true => {}
                false => server.has_failed |= is_main,
            }
        }
        self.drop_link(id, &reason, now);
    }

    pub(super) fn report_failure(&mut self, index: ServerIndex, reason: &str) {
        let text = with_name(self.server(index).name(), reason);
        self.actions.push(HubAction::Log(text));
    }

    /// Forgets a link. Calls on it fail with this reason, or are sent again if that is safe.
    pub(super) fn drop_link(&mut self, id: LinkId, reason: &str, now: Instant) {
        self.forget_link(id);
        self.cache.forget(id);
        if let Some(link) = self.links.remove(&id) {
            if let LinkOwner::Client(client) = link.owner {
                self.move_subscriptions(client, link.server);
            }
            self.fail_calls_of(id, &link, reason, now);
            self.settle_listens_without(link.server);
        }
    }

    /// New calls must not go to this link: it is about to end.
    pub(super) fn forget_link(&mut self, id: LinkId) {
        let Some(link) = self.links.get(&id) else {
            return;
        };
        let server = self.server_mut(link.server);
        for shared in &mut server.shared {
            *shared = shared.filter(|shared| *shared != id);
        }
        server.own.retain(|_, own| *own != id);
    }

    fn server_failed(&mut self, index: ServerIndex, reason: String, now: Instant) {
        let server = self.server_mut(index);
        let ready_since = server.ready_since.take();
        if ready_since.is_some_and(|since| now.duration_since(since) >= RECOVERED) {
            server.failures = 0;
        }
        let wait = wait_after(server.failures);
        server.failures += 1;
        server.settled = true;
        server.has_failed = true;
        server.sign_in_need = None;
        server.stale = server.listing.is_some();
        // One that never works fails in the same way again and again.
        let is_news = ready_since.is_some() || server.last_error.as_ref() != Some(&reason);
        server.last_error = Some(reason.clone());
        let retries = server.settings.start == StartMode::Eager
            && server.settings.restart != RestartPolicy::Never
            && server
                .settings
                .restart_limit
                .is_none_or(|limit| server.failures <= limit);
        server.retry_at = retries.then(|| now + wait);
        self.schedule(now + wait);
        if is_news {
            self.report_failure(index, &reason);
        } else if retries {
            let (failures, name) = (self.server(index).failures, self.server(index).name());
            let wait = wait.as_secs();
            let text = format!(
                "server {name}: failed {failures} times in the same way; next start in {wait} s"
            );
            self.actions.push(HubAction::Log(text));
        }
        self.answer_parked(now);
        self.refreshed(index, now);
    }

    pub(super) fn wake_links(&mut self, now: Instant) {
        let due = |link: &OpenLink| {
            link.state
                .deadline()
                .is_some_and(|deadline| deadline <= now)
        };
        let late: Vec<LinkId> = self
            .links
            .iter()
            .filter(|(_, link)| due(link))
            .map(|(id, _)| *id)
            .collect();
        for id in late {
            let news = self
                .links
                .get_mut(&id)
                .map(|link| link.state.timed_out(now));
            for news in news.into_iter().flatten() {
                self.handle_news(id, news, now);
            }
            self.flush_link(id, None);
        }
    }

    pub(super) fn wake_servers(&mut self, now: Instant) {
        for index in self.server_indices() {
            let server = self.server(index);
            let is_idle = server.idle_deadline().is_some_and(|at| at <= now);
            if server.retry_at.is_some_and(|at| at <= now) {
                self.server_mut(index).retry_at = None;
                self.start_main(index, now);
            } else if is_idle {
                self.stop_idle(index, now);
            }
        }
    }

    /// Stops a server that nobody uses. What it offers stays known, and the next call starts it.
    fn stop_idle(&mut self, index: ServerIndex, now: Instant) {
        let has_calls = self.calls.values().any(|call| call.server == index);
        let is_used = has_calls || self.has_subscriptions(index);
        self.server_mut(index).used_at = Some(now);
        if is_used {
            return;
        }
        self.end_server(index, "it was stopped because nobody used it", now);
        let text = format!(
            "server {}: stopped because nobody used it",
            self.server(index).name()
        );
        self.actions.push(HubAction::Log(text));
    }

    /// Ends the conversations that a client had for itself.
    pub(super) fn close_own_links(&mut self, client: ClientId) {
        let own: Vec<LinkId> = self
            .servers
            .iter_mut()
            .filter_map(|server| server.own.remove(&client))
            .collect();
        for id in own {
            self.cache.forget(id);
            self.links.remove(&id);
            self.actions.push(HubAction::Close(id));
        }
    }

    /// A server that has learned a client's roots works in that client's folders, and must not do so for others. The
    /// conversation becomes that client's own, and other clients get another.
    pub(super) fn claim_link(&mut self, id: LinkId, client: ClientId, now: Instant) {
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        let index = link.server;
        let server = &self.servers[usize::from(index.0)];
        if server.settings.scope != SharingScope::Auto || link.owner != LinkOwner::Everyone {
            return;
        }
        link.owner = LinkOwner::Client(client);
        self.forget_link(id);
        // What the server said before it knew the client's folders may be different now.
        self.forget_results_of(id);
        self.server_mut(index).own.insert(client, id);
        self.stop_sharing(index);
        self.move_subscriptions(client, index);
        self.tasks.claim(index, client);
        if self.has_shared_subscriptions(index) {
            self.start_main(index, now);
        }
    }

    /// From now on, new client sessions get a conversation of their own with this server.
    pub(super) fn stop_sharing(&mut self, index: ServerIndex) {
        let server = self.server_mut(index);
        if server.settings.scope == SharingScope::Auto && !server.needs_own {
            server.needs_own = true;
            let text = format!(
                "server {} asks its clients questions, so new sessions get a server of their own",
                server.name()
            );
            self.actions.push(HubAction::Log(text));
        }
    }
}

/// `server NAME: REASON`, unless the reason names the server already.
pub(super) fn with_name(name: &str, reason: &str) -> String {
    let is_named = |prefix: String| reason.starts_with(&prefix);
    if is_named(format!("server `{name}`")) || is_named(format!("server {name} ")) {
        return reason.to_owned();
    }
    match reason.strip_prefix("the server ") {
        Some(rest) => format!("server {name} {rest}"),
        None => format!("server {name}: {reason}"),
    }
}

/// What the hub declares where clients share a conversation: whatever one of them may be able to do.
fn shared_capabilities(era: Era) -> Bytes {
    Bytes::from_static(match era {
        Era::Legacy => br#"{"roots":{"listChanged":true},"sampling":{"tools":{},"context":{}},"elicitation":{"form":{},"url":{}}}"#,
        // A modern request says what its own client can do; these are for the hub's own requests.
        Era::Modern => b"{}",
    })
}
