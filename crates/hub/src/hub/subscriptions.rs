//! Subscriptions to resources.
//!
//! Several clients may want to know about the same resource. The server is asked once for each conversation with it, and
//! told to stop when the last of its clients has gone.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use mcp_proxy_spill::is_handle;
use mcp_proxy_wire::{Era, Field, Message, json_string};
use rustc_hash::FxHashMap;

use super::calls::{AnswerForm, Call, NewCall};
use super::listening::SubscriptionVerdict;
use super::requests::ClientRequest;
use super::servers::LinkOwner;
use super::{Hub, HubAction};
use crate::catalog::{ItemKind, ServerIndex};
use crate::server_link::{ClientId, LinkId};

/// A resource, and the conversation in which its server tells about it. A conversation has another [`LinkId`] after each
/// restart, so it is known by whose it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SubscriptionKey {
    pub(super) server: ServerIndex,
    pub(super) owner: LinkOwner,
    pub(super) uri: Box<str>,
}

#[derive(Debug, Default)]
pub(super) struct Subscription {
    pub(super) clients: BTreeSet<ClientId>,
    /// The link on which the server agreed.
    pub(super) agreed: Option<LinkId>,
}

/// Who wants to know about which resources of which server.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    pub(super) table: BTreeMap<SubscriptionKey, Subscription>,
    /// Servers whose part of the table may differ from what they were told.
    pub(super) changed: BTreeSet<ServerIndex>,
}

impl Subscriptions {
    /// Adds a wish that the server has not answered yet.
    pub(super) fn add(&mut self, key: SubscriptionKey, client: ClientId) {
        self.table.entry(key).or_default().clients.insert(client);
    }

    /// The server has agreed.
    fn agree(&mut self, key: SubscriptionKey, link: LinkId) -> &mut Subscription {
        let subscription = self.table.entry(key).or_default();
        subscription.agreed = Some(link);
        subscription
    }

    fn has_agreed(&self, key: &SubscriptionKey, link: Option<LinkId>) -> bool {
        let found = self.table.get(key);
        link.is_some() && found.is_some_and(|found| found.agreed == link)
    }

    fn is_wanted(&self, key: &SubscriptionKey) -> bool {
        self.table
            .get(key)
            .is_some_and(|found| !found.clients.is_empty())
    }

    /// Servers have other places in a new configuration, and some are gone.
    pub(super) fn move_servers(&mut self, moved: &FxHashMap<ServerIndex, ServerIndex>) {
        let old = std::mem::take(&mut self.table);
        self.changed = moved.values().copied().collect();
        let kept = old.into_iter().filter_map(|(mut key, subscription)| {
            key.server = *moved.get(&key.server)?;
            Some((key, subscription))
        });
        self.table = kept.collect();
    }

    /// The resources that somebody wants to know about in this conversation.
    pub(super) fn of_link(&self, server: ServerIndex, owner: LinkOwner) -> BTreeSet<Box<str>> {
        let all = self.table.iter().filter(|(key, subscription)| {
            key.server == server && key.owner == owner && !subscription.clients.is_empty()
        });
        all.map(|(key, _)| key.uri.clone()).collect()
    }

    fn of_client(&self, client: ClientId) -> Vec<SubscriptionKey> {
        let all = self.table.iter();
        all.filter(|(_, subscription)| subscription.clients.contains(&client))
            .map(|(key, _)| key.clone())
            .collect()
    }
}

impl Hub {
    /// `resources/subscribe`. Once the server has agreed, further clients are told so without asking it. Until then each is
    /// told what the server answers to its own request.
    pub(super) fn subscribe(&mut self, request: ClientRequest<'_>) {
        self.change_subscription(request, |hub, client, key| {
            let link = hub.link_of(key.server, key.owner);
            if !hub.subscriptions.has_agreed(key, link) {
                let uri = key.uri.clone();
                return Some(AnswerForm::Subscribe { uri });
            }
            hub.subscriptions.add(key.clone(), client);
            None
        });
    }

    /// `resources/unsubscribe`. Only the last one for a resource reaches the server.
    pub(super) fn unsubscribe(&mut self, request: ClientRequest<'_>) {
        self.change_subscription(request, |hub, client, key| {
            let subscription = hub.subscriptions.table.get_mut(key)?;
            subscription.clients.remove(&client);
            let agreed = subscription.agreed;
            let asks = hub
                .legacy_link(key)
                .is_some_and(|link| agreed == Some(link));
            if !asks || !hub.is_unwanted(key) {
                hub.end_if_unwanted(key);
                return None;
            }
            hub.subscriptions.table.remove(key);
            Some(AnswerForm::Plain)
        });
    }

    /// Makes a change to the hub's own table, which says in what form the server is asked as well, if it has to be.
    fn change_subscription(
        &mut self,
        request: ClientRequest<'_>,
        change: impl FnOnce(&mut Hub, ClientId, &SubscriptionKey) -> Option<AnswerForm>,
    ) {
        let ClientRequest {
            client, message, ..
        } = request;
        let (Some(id), Some(uri)) = (message.id(), message.text(Field::Uri)) else {
            return self.invalid_params(client, message, "params.uri is missing");
        };
        if is_handle(&uri) {
            let text = "a result in a file never changes, so there is nothing to subscribe to";
            return self.invalid_params(client, message, text);
        }
        let (target, sent) = match self.route(client, ItemKind::Resource, &uri, message) {
            Ok(routed) => routed,
            Err(error) => {
                self.audit_refused(request, ItemKind::Resource, &uri);
                return self.refuse_call(client, message, &error);
            }
        };
        let key = self.key_for(client, target.server, &target.original);
        match change(self, client, &key) {
            None => self.result(client, &id, "{}"),
            Some(form) => self.forward(NewCall {
                request,
                sent,
                server: target.server,
                form,
                what: uri.into_owned(),
                hints: target.hints,
                unlisted: target.unlisted,
            }),
        }
    }

    /// The server has answered a client's `resources/subscribe`. One that it refused is not remembered.
    pub(super) fn subscription_answered(&mut self, call: &Call, uri: &str, answer: &Message) {
        let Some((link, key)) = self.key_of_call(call, uri) else {
            return self.withdraw_wish(call, uri);
        };
        if answer.result().is_none() {
            return self.withdraw_wish(call, uri);
        }
        let subscription = self.subscriptions.agree(key.clone(), link);
        subscription.clients.insert(call.client);
        self.subscriptions.changed.insert(call.server);
        self.settle_listens(&key, SubscriptionVerdict::Agreed);
    }

    /// A client no longer waits for the answer to its `resources/subscribe`. The server may have agreed all the same.
    pub(super) fn subscription_abandoned(&mut self, call: &Call, uri: &str) {
        let Some((link, key)) = self.key_of_call(call, uri).filter(|_| call.is_sent) else {
            return self.withdraw_wish(call, uri);
        };
        let is_ending =
            matches!(key.owner, LinkOwner::Client(owner) if !self.clients.contains_key(&owner));
        if !is_ending && self.is_unwanted(&key) {
            self.subscriptions.agree(key.clone(), link);
            self.end_if_unwanted(&key);
        }
    }

    /// A client that asked for a subscription does not get it, and does not want it from a later conversation either.
    fn withdraw_wish(&mut self, call: &Call, uri: &str) {
        let key = match self.key_of_call(call, uri) {
            Some((_, key)) => key,
            None => self.key_for(call.client, call.server, uri),
        };
        if let Some(wish) = self.subscriptions.table.get_mut(&key)
            && wish.agreed.is_none()
        {
            wish.clients.remove(&call.client);
        }
        self.end_if_unwanted(&key);
    }

    /// A resource in the conversation that a client has with a server.
    fn key_for(&self, client: ClientId, server: ServerIndex, uri: &str) -> SubscriptionKey {
        SubscriptionKey {
            server,
            owner: self.owner_for(client, server),
            uri: uri.into(),
        }
    }

    /// A resource in the conversation of this link.
    pub(super) fn key_on_link(&self, id: LinkId, uri: &str) -> Option<SubscriptionKey> {
        let link = self.links.get(&id)?;
        Some(SubscriptionKey {
            server: link.server,
            owner: link.owner,
            uri: uri.into(),
        })
    }

    fn key_of_call(&self, call: &Call, uri: &str) -> Option<(LinkId, SubscriptionKey)> {
        let link = call.link?;
        Some((link, self.key_on_link(link, uri)?))
    }

    /// Nobody has the subscription or has asked for it.
    fn is_unwanted(&self, key: &SubscriptionKey) -> bool {
        let is_for_key = |call: &Call| {
            matches!(&call.form, AnswerForm::Subscribe { uri } if *uri == key.uri)
                && call.server == key.server
                && call.link == self.link_of(key.server, key.owner)
        };
        !self.subscriptions.is_wanted(key) && !self.calls.values().any(is_for_key)
    }

    /// Tells the server to stop, if nobody wants to know about the resource any more.
    fn end_if_unwanted(&mut self, key: &SubscriptionKey) {
        if !self.is_unwanted(key) {
            return;
        }
        let Some(subscription) = self.subscriptions.table.remove(key) else {
            return;
        };
        let link = self
            .legacy_link(key)
            .filter(|link| subscription.agreed == Some(*link));
        let Some(id) = link else {
            self.subscriptions.changed.insert(key.server);
            return;
        };
        if let Some(link) = self.links.get_mut(&id) {
            link.state.unsubscribe(&key.uri);
        }
        self.flush_link(id, None);
    }

    /// The conversation that carries a subscription, if it is open and has requests for that.
    fn legacy_link(&self, key: &SubscriptionKey) -> Option<LinkId> {
        let id = self.link_of(key.server, key.owner)?;
        let state = &self.links.get(&id)?.state;
        let takes = state.is_ready() && state.era == Era::Legacy;
        (takes && state.description.offers.subscriptions).then_some(id)
    }

    /// Whether a server has said that it does not know subscriptions.
    fn has_no_subscriptions(&self, key: &SubscriptionKey) -> bool {
        let link = self.link_of(key.server, key.owner);
        let link = link.and_then(|id| self.links.get(&id));
        link.is_some_and(|link| {
            let state = &link.state;
            let offers = state.description.offers;
            state.is_ready() && state.era == Era::Legacy && !offers.subscriptions
        })
    }

    /// Asks for a subscription that no client waits for.
    fn request_subscription(&mut self, key: &SubscriptionKey) {
        let link = self.link_of(key.server, key.owner);
        if self.subscriptions.has_agreed(key, link) {
            return self.settle_listens(key, SubscriptionVerdict::Agreed);
        }
        if self.has_no_subscriptions(key) {
            return self.settle_listens(key, SubscriptionVerdict::Refused);
        }
        let Some(id) = self.legacy_link(key) else {
            self.subscriptions.changed.insert(key.server);
            return;
        };
        if let Some(link) = self.links.get_mut(&id) {
            link.state.subscribe(&key.uri);
        }
        self.flush_link(id, None);
    }

    /// After a restart the server is told again what its clients want.
    pub(super) fn restore_link_state(&mut self, id: LinkId) {
        self.apply_log_level(id);
        let Some(link) = self.links.get(&id) else {
            return;
        };
        let (server, owner) = (link.server, link.owner);
        if self.link_of(server, owner) != Some(id) {
            return;
        }
        for uri in self.subscriptions.of_link(server, owner) {
            self.request_subscription(&SubscriptionKey { server, owner, uri });
        }
    }

    /// The server has agreed to a subscription that the hub asked for by itself.
    pub(super) fn subscription_agreed(&mut self, id: LinkId, uri: &str) {
        let Some(key) = self.key_on_link(id, uri) else {
            return;
        };
        self.subscriptions.agree(key.clone(), id);
        self.settle_listens(&key, SubscriptionVerdict::Agreed);
        self.end_if_unwanted(&key);
    }

    /// The server has refused one. The next client that wants it asks again.
    pub(super) fn subscription_refused(&mut self, id: LinkId, uri: &str, reason: &str) {
        let Some(key) = self.key_on_link(id, uri) else {
            return;
        };
        if !self.subscriptions.has_agreed(&key, Some(id)) {
            self.subscriptions.table.remove(&key);
            self.settle_listens(&key, SubscriptionVerdict::Refused);
        }
        let name = self.server(key.server).name();
        let text = format!("server {name}: it refused a subscription to a resource: {reason}");
        self.actions.push(HubAction::Log(text));
    }

    /// Takes back what a client that has gone had subscribed to.
    pub(super) fn drop_subscriptions(&mut self, client: ClientId) {
        for key in self.subscriptions.of_client(client) {
            if key.owner == LinkOwner::Client(client) {
                self.subscriptions.table.remove(&key);
            } else {
                self.take_back(client, &key);
            }
        }
    }

    /// A client uses another conversation with this server from now on, and its subscriptions go with it.
    pub(super) fn move_subscriptions(&mut self, client: ClientId, server: ServerIndex) {
        let owner = self.owner_for(client, server);
        let of_client = self.subscriptions.of_client(client).into_iter();
        let left = of_client.filter(|key| key.server == server && key.owner != owner);
        for key in left.collect::<Vec<_>>() {
            let Some(subscription) = self.subscriptions.table.get_mut(&key) else {
                continue;
            };
            subscription.clients.remove(&client);
            let agreed = subscription.agreed;
            if subscription.clients.is_empty() {
                self.subscriptions.table.remove(&key);
            }
            let moved = SubscriptionKey { owner, ..key };
            self.subscriptions.add(moved.clone(), client);
            // A link that became the client's own has what was subscribed to on it before.
            match agreed.filter(|link| self.link_of(server, owner) == Some(*link)) {
                Some(link) => drop(self.subscriptions.agree(moved, link)),
                None => self.request_subscription(&moved),
            }
        }
    }

    /// Whether a client wants to know about a resource of this server.
    pub(super) fn has_subscriptions(&self, server: ServerIndex) -> bool {
        let mut all = self.subscriptions.table.iter();
        all.any(|(key, subscription)| key.server == server && !subscription.clients.is_empty())
    }

    /// Whether clients that share this server have subscriptions at it.
    pub(super) fn has_shared_subscriptions(&self, server: ServerIndex) -> bool {
        let shared = self.subscriptions.of_link(server, LinkOwner::Everyone);
        !shared.is_empty()
    }

    /// A resource has changed. Its subscribers know it by another URI.
    pub(super) fn resource_updated(&mut self, id: LinkId, message: &Message) {
        let Some(span) = message.span(Field::Uri) else {
            return;
        };
        let uri = message.text_at(span).unwrap_or_default();
        let Some(key) = self.key_on_link(id, &uri) else {
            return;
        };
        let Some(subscription) = self.subscriptions.table.get(&key) else {
            return;
        };
        let clients = subscription.clients.clone();
        let public = self.catalog.publish_uri(key.server, &key.uri);
        let public = json_string(public.as_deref().unwrap_or(&key.uri));
        let Ok(told) = message.splice(&[(span, public.as_bytes())]) else {
            return;
        };
        for client in clients {
            self.tell(client, &told, |listen| listen.hears_of_resource(&key));
        }
    }

    /// Subscribes for a modern client, which hears of the server's answer in the acknowledgement of its listen request.
    pub(super) fn subscribe_quietly(
        &mut self,
        client: ClientId,
        key: &SubscriptionKey,
        now: Instant,
    ) {
        self.subscriptions.add(key.clone(), client);
        self.start_main(key.server, now);
        self.request_subscription(key);
    }

    /// A client does not want to know about a resource any more.
    pub(super) fn take_back(&mut self, client: ClientId, key: &SubscriptionKey) {
        if let Some(subscription) = self.subscriptions.table.get_mut(key) {
            subscription.clients.remove(&client);
            self.end_if_unwanted(key);
        }
    }
}
