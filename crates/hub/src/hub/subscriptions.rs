//! Standing wishes of clients: subscriptions to resources, and `subscriptions/listen`.
//!
//! Several clients may want the same thing of one server. It is asked once, and told to stop when the last of them
//! has gone.

use mcp_proxy_wire::revision::meta;
use mcp_proxy_wire::{Era, Field, Id, Message, json_string};
use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use super::Hub;
use super::calls::{AnswerForm, NewCall};
use super::requests::ClientRequest;
use crate::catalog::{ItemKind, ServerIndex};
use crate::edit::{Place, with_member};
use crate::json::elements;
use crate::server_link::{ClientId, HubRequest, LinkId};

/// What a modern client wants to be told.
#[derive(Clone, Debug, Default)]
pub(super) struct ListenFilter {
    pub(super) tools: bool,
    pub(super) prompts: bool,
    pub(super) resources: bool,
}

/// Who wants to know about which resources of which server.
#[derive(Debug, Default)]
pub(super) struct Subscriptions(BTreeMap<(ServerIndex, Box<str>), BTreeSet<ClientId>>);

impl Subscriptions {
    /// Adds a wish. `true` if it is the first for this resource.
    fn add(&mut self, server: ServerIndex, uri: &str, client: ClientId) -> bool {
        let clients = self.0.entry((server, uri.into())).or_default();
        clients.insert(client);
        clients.len() == 1
    }

    /// Takes a wish back. `true` if it was the last for this resource.
    fn remove(&mut self, server: ServerIndex, uri: &str, client: ClientId) -> bool {
        let key = (server, uri.into());
        let Some(clients) = self.0.get_mut(&key) else {
            return false;
        };
        clients.remove(&client);
        let last = clients.is_empty();
        if last {
            self.0.remove(&key);
        }
        last
    }

    /// Takes all wishes of a client back. Returns those that nobody has any more.
    fn remove_client(&mut self, client: ClientId) -> Vec<(ServerIndex, Box<str>)> {
        let mut orphaned = Vec::new();
        self.0.retain(|key, clients| {
            if clients.remove(&client) && clients.is_empty() {
                orphaned.push(key.clone());
            }
            !clients.is_empty()
        });
        orphaned
    }

    /// Servers have other places in a new configuration, and some are gone.
    pub(super) fn move_servers(&mut self, moved: &FxHashMap<ServerIndex, ServerIndex>) {
        let old = std::mem::take(&mut self.0);
        let kept = old
            .into_iter()
            .filter_map(|((server, uri), clients)| Some(((*moved.get(&server)?, uri), clients)));
        self.0 = kept.collect();
    }

    fn of_server(&self, server: ServerIndex) -> impl Iterator<Item = &str> {
        let all = self.0.keys().filter(move |(owner, _)| *owner == server);
        all.map(|(_, uri)| &**uri)
    }

    fn subscribers(&self, server: ServerIndex, uri: &str) -> Vec<ClientId> {
        let found = self.0.get(&(server, uri.into()));
        found.into_iter().flatten().copied().collect()
    }
}

impl Hub {
    /// After a restart the server is told again what its clients want.
    pub(super) fn restore_link_state(&mut self, id: LinkId) {
        self.apply_log_level(id);
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        if link.state.era == Era::Legacy && link.state.description.offers.subscriptions {
            let wanted: Vec<String> = self
                .subscriptions
                .of_server(link.server)
                .map(str::to_owned)
                .collect();
            for uri in wanted {
                link.state
                    .request(HubRequest::Subscribe, &subscription("subscribe", &uri));
            }
        }
        self.flush_link(id, None);
    }

    /// `resources/subscribe`. Only the first wish for a resource reaches the server.
    pub(super) fn subscribe(&mut self, request: ClientRequest<'_>) {
        self.change_subscription(request, Subscriptions::add);
    }

    /// `resources/unsubscribe`. Only the last one for a resource reaches the server.
    pub(super) fn unsubscribe(&mut self, request: ClientRequest<'_>) {
        self.change_subscription(request, Subscriptions::remove);
    }

    fn change_subscription(
        &mut self,
        request: ClientRequest<'_>,
        change: fn(&mut Subscriptions, ServerIndex, &str, ClientId) -> bool,
    ) {
        let ClientRequest {
            client, message, ..
        } = request;
        let (Some(id), Some(uri)) = (message.id(), message.text(Field::Uri)) else {
            return self.invalid_params(client, message, "params.uri is missing");
        };
        let (target, sent) = match self.route(client, ItemKind::Resource, &uri, message) {
            Ok(routed) => routed,
            Err(error) => return self.refuse_call(client, message, &error),
        };
        if !change(
            &mut self.subscriptions,
            target.server,
            &target.original,
            client,
        ) {
            return self.result(client, &id, "{}");
        }
        self.forward(NewCall {
            request,
            sent,
            server: target.server,
            form: AnswerForm::Plain,
            what: uri.into_owned(),
            hints: target.hints,
        });
    }

    /// Takes back what a client that has gone had subscribed to.
    pub(super) fn drop_subscriptions(&mut self, client: ClientId) {
        for (server, uri) in self.subscriptions.remove_client(client) {
            let Some(id) = self.server(server).shared_link(Era::Legacy) else {
                continue;
            };
            if let Some(link) = self.links.get_mut(&id) {
                link.state
                    .request(HubRequest::Subscribe, &subscription("unsubscribe", &uri));
            }
            self.flush_link(id, None);
        }
    }

    /// A resource has changed. Its subscribers know it by another URI.
    pub(super) fn resource_updated(&mut self, id: LinkId, message: &Message) {
        let (Some(link), Some(span)) = (self.links.get(&id), message.span(Field::Uri)) else {
            return;
        };
        let server = link.server;
        let uri = message.text_at(span).unwrap_or_default().into_owned();
        let public = self.catalog.publish_uri(server, &uri);
        let public = json_string(public.as_deref().unwrap_or(&uri));
        let Ok(told) = message.splice(&[(span, public.as_bytes())]) else {
            return;
        };
        for client in self.subscriptions.subscribers(server, &uri) {
            self.tell(client, &told);
        }
    }

    /// `subscriptions/listen` of a modern client: acknowledged at once, and open until the client leaves.
    pub(super) fn listen(&mut self, client: ClientId, id: Id, message: &Message) {
        let wanted = |name: &str| {
            let notifications = message.span(Field::Param("notifications"))?;
            message.member(notifications, name)
        };
        let is_true = |name: &str| wanted(name).is_some_and(|span| message.slice(span) == b"true");
        let filter = ListenFilter {
            tools: is_true("toolsListChanged"),
            prompts: is_true("promptsListChanged"),
            resources: is_true("resourcesListChanged"),
        };
        let uris: Vec<String> = wanted("resourceSubscriptions")
            .into_iter()
            .flat_map(|array| elements(message, array))
            .filter_map(|span| Some(message.text_at(span)?.into_owned()))
            .collect();
        let mut honoured: Vec<String> = [
            (filter.tools, "toolsListChanged"),
            (filter.prompts, "promptsListChanged"),
            (filter.resources, "resourcesListChanged"),
        ]
        .iter()
        .filter(|(wanted, _)| *wanted)
        .map(|(_, name)| format!("\"{name}\":true"))
        .collect();
        let subscribed: Vec<String> = uris
            .iter()
            .filter(|uri| self.subscribe_quietly(client, uri))
            .map(|uri| json_string(uri))
            .collect();
        if !uris.is_empty() {
            honoured.push(format!(
                "\"resourceSubscriptions\":[{}]",
                subscribed.join(",")
            ));
        }
        if let Some(client) = self.clients.get_mut(&client) {
            client.listen = Some((id, filter));
        }
        let acknowledged = Message::parse(format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"notifications":{{{}}}}}}}"#,
            honoured.join(",")
        ));
        self.tell(client, &acknowledged);
    }

    /// Subscribes without a client that waits for the server's answer.
    fn subscribe_quietly(&mut self, client: ClientId, uri: &str) -> bool {
        let view = self.view(client);
        let Ok(found) = view.resolve(ItemKind::Resource, None, uri) else {
            return false;
        };
        let (server, original) = (found.server(), found.original());
        if self.subscriptions.add(server, original, client)
            && let Some(id) = self.server(server).shared_link(Era::Legacy)
            && let Some(link) = self.links.get_mut(&id)
        {
            let message = subscription("subscribe", original);
            link.state.request(HubRequest::Subscribe, &message);
            self.flush_link(id, None);
        }
        true
    }

    /// Sends a notification to a client, marked with its listen request if it is a modern one.
    pub(super) fn tell(&mut self, id: ClientId, notification: &Message) {
        let Some(client) = self.clients.get(&id) else {
            return;
        };
        let message = match (&client.listen, client.era()) {
            (Some((listen, _)), Era::Modern) => {
                let token = String::from_utf8_lossy(listen.token());
                with_member(
                    notification,
                    Place::ParamsMeta,
                    meta::SUBSCRIPTION_ID,
                    &token,
                )
            }
            (None, Era::Modern) => return,
            (_, Era::Legacy) => notification.clone(),
        };
        self.send_to_client(id, message);
    }
}

fn subscription(verb: &str, uri: &str) -> Message {
    Message::parse(format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"resources/{verb}","params":{{"uri":{}}}}}"#,
        json_string(uri)
    ))
}
