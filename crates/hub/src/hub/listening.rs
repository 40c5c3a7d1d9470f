//! `subscriptions/listen` of modern clients, and how notifications reach clients of both eras.

use std::time::Instant;

use mcp_proxy_wire::revision::meta;
use mcp_proxy_wire::{Era, Field, Id, IdKey, Message, json_string};
use rustc_hash::FxHashMap;

use super::Hub;
use super::requests::ClientRequest;
use super::servers::LinkOwner;
use super::subscriptions::SubscriptionKey;
use crate::catalog::{ItemKind, ServerIndex};
use crate::edit::{Place, with_member};
use crate::json::elements;
use crate::server_link::ClientId;

/// The members of a filter, with the lists that they are about.
const LISTS: [(&str, &str); 3] = [
    ("toolsListChanged", "tools"),
    ("promptsListChanged", "prompts"),
    ("resourcesListChanged", "resources"),
];

/// A listen request of a modern client. It is open until the client cancels it or leaves.
#[derive(Debug)]
pub(super) struct ClientListen {
    id: Id,
    /// The lists whose changes the client wants to know.
    lists: Vec<&'static str>,
    /// Without those that a server has refused. `None`: the client asked for none.
    resources: Option<Vec<ListenedResource>>,
    state: ListenState,
}

#[derive(Debug)]
struct ListenedResource {
    public: String,
    server: ServerIndex,
    /// As the server knows it.
    uri: Box<str>,
    answer: ResourceAnswer,
}

/// What the server of a resource has said to the subscription. One that it refused is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResourceAnswer {
    Awaited,
    Agreed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ListenState {
    /// Servers have until then to agree. What is not agreed to by then is left out.
    Waiting { until: Instant },
    /// The client was told what it will hear of.
    Acknowledged,
}

/// What a server said about a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SubscriptionVerdict {
    Agreed,
    Refused,
}

impl ClientListen {
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.state {
            ListenState::Waiting { until } => Some(until),
            ListenState::Acknowledged => None,
        }
    }

    /// Whether the client wants to know when this list changes.
    pub(super) fn hears_of_list(&self, list: &str) -> bool {
        self.lists.contains(&list)
    }

    pub(super) fn hears_of_resource(&self, key: &SubscriptionKey) -> bool {
        let mut resources = self.resources.iter().flatten();
        resources.any(|resource| resource.is_about(key))
    }

    /// Servers have other places in a new configuration, and some are gone.
    pub(super) fn move_servers(&mut self, moved: &FxHashMap<ServerIndex, ServerIndex>) {
        if let Some(resources) = &mut self.resources {
            resources.retain_mut(|resource| match moved.get(&resource.server) {
                Some(place) => {
                    resource.server = *place;
                    true
                }
                None => false,
            });
        }
    }

    fn is_settled(&self) -> bool {
        let mut resources = self.resources.iter().flatten();
        resources.all(|resource| resource.answer == ResourceAnswer::Agreed)
    }

    fn acknowledgement(&self) -> Message {
        let mut agreed: Vec<String> = LISTS
            .iter()
            .filter(|(_, list)| self.hears_of_list(list))
            .map(|(name, _)| format!("\"{name}\":true"))
            .collect();
        if let Some(resources) = &self.resources {
            let uris = resources.iter();
            let uris: Vec<String> = uris.map(|resource| json_string(&resource.public)).collect();
            agreed.push(format!("\"resourceSubscriptions\":[{}]", uris.join(",")));
        }
        Message::parse(format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"notifications":{{{}}}}}}}"#,
            agreed.join(",")
        ))
    }
}

impl ListenedResource {
    fn is_about(&self, key: &SubscriptionKey) -> bool {
        self.server == key.server && self.uri == key.uri
    }

    /// Modern clients use the conversations that all clients share.
    fn key(&self) -> SubscriptionKey {
        SubscriptionKey {
            server: self.server,
            owner: LinkOwner::Everyone,
            uri: self.uri.clone(),
        }
    }
}

impl Hub {
    /// `subscriptions/listen` of a modern client. It is acknowledged when all servers have agreed or refused.
    pub(super) fn listen(&mut self, request: ClientRequest<'_>, id: Id) {
        let ClientRequest {
            client,
            message,
            now,
            ..
        } = request;
        self.end_listen(client, &id.key());
        let wanted = |name: &str| {
            let notifications = message.span(Field::Param("notifications"))?;
            message.member(notifications, name)
        };
        let is_true = |name: &str| wanted(name).is_some_and(|span| message.slice(span) == b"true");
        let lists = LISTS.iter().filter(|(name, _)| is_true(name));
        let lists = lists.map(|(_, list)| *list).collect();
        let resources = wanted("resourceSubscriptions").map(|array| {
            let uris = elements(message, array).into_iter();
            let uris = uris.filter_map(|span| message.text_at(span));
            uris.filter_map(|uri| self.listened_resource(client, &uri))
                .collect::<Vec<_>>()
        });
        let keys: Vec<SubscriptionKey> = resources
            .iter()
            .flatten()
            .map(ListenedResource::key)
            .collect();
        let patience = keys.iter().map(|key| {
            let settings = &self.server(key.server).settings;
            settings.start_timeout + settings.list_timeout
        });
        let until = now + patience.max().unwrap_or_default();
        let Some(session) = self.clients.get_mut(&client) else {
            return;
        };
        session.listens.push(ClientListen {
            id,
            lists,
            resources,
            state: ListenState::Waiting { until },
        });
        for key in keys {
            self.schedule(until);
            self.subscribe_quietly(client, &key, now);
        }
        self.acknowledge_settled();
    }

    /// The resource that a client means, if a server that can be used has it.
    fn listened_resource(&self, client: ClientId, public: &str) -> Option<ListenedResource> {
        let view = self.view(client);
        let found = view.resolve(ItemKind::Resource, None, public).ok()?;
        let server = found.server();
        let is_usable = self.server(server).disabled_reason().is_none();
        is_usable.then(|| ListenedResource {
            public: public.to_owned(),
            server,
            uri: found.original().into(),
            answer: ResourceAnswer::Awaited,
        })
    }

    /// A server has agreed to a subscription or refused it.
    pub(super) fn settle_listens(&mut self, key: &SubscriptionKey, verdict: SubscriptionVerdict) {
        if key.owner != LinkOwner::Everyone {
            return;
        }
        match verdict {
            SubscriptionVerdict::Agreed => {
                let listens = self
                    .clients
                    .values_mut()
                    .flat_map(|client| &mut client.listens);
                let resources = listens.flat_map(|listen| listen.resources.iter_mut().flatten());
                for resource in resources.filter(|resource| resource.is_about(key)) {
                    resource.answer = ResourceAnswer::Agreed;
                }
            }
            SubscriptionVerdict::Refused => self.leave_out(|_, resource| resource.is_about(key)),
        }
        self.acknowledge_settled();
    }

    /// A server cannot be asked now, so what it has not agreed to is left out.
    pub(super) fn settle_listens_without(&mut self, server: ServerIndex) {
        if self.link_of(server, LinkOwner::Everyone).is_none() {
            self.leave_out(|_, resource| resource.server == server);
            self.acknowledge_settled();
        }
    }

    /// Clients have waited long enough for their servers to agree.
    pub(super) fn wake_listens(&mut self, now: Instant) {
        self.leave_out(|listen, _| listen.deadline().is_some_and(|until| until <= now));
        self.acknowledge_settled();
    }

    /// Leaves resources out of listen requests in which no server has agreed to them yet.
    fn leave_out(&mut self, is_left_out: impl Fn(&ClientListen, &ListenedResource) -> bool) {
        let mut left_out: Vec<(ClientId, SubscriptionKey)> = Vec::new();
        for (id, client) in &mut self.clients {
            for listen in &mut client.listens {
                let Some(mut resources) = listen.resources.take() else {
                    continue;
                };
                let refused = resources.extract_if(.., |resource| {
                    resource.answer == ResourceAnswer::Awaited && is_left_out(listen, resource)
                });
                left_out.extend(refused.map(|resource| (*id, resource.key())));
                listen.resources = Some(resources);
            }
        }
        for (client, key) in left_out {
            self.unsubscribe_quietly(client, &key);
        }
    }

    /// Acknowledges the listen requests that wait for no server any more.
    pub(super) fn acknowledge_settled(&mut self) {
        let mut acknowledged = Vec::new();
        for (id, client) in &mut self.clients {
            for listen in &mut client.listens {
                if listen.state != ListenState::Acknowledged && listen.is_settled() {
                    listen.state = ListenState::Acknowledged;
                    let message = with_listen_id(&listen.acknowledgement(), &listen.id);
                    acknowledged.push((*id, message));
                }
            }
        }
        for (client, message) in acknowledged {
            self.send_to_client(client, message);
        }
    }

    /// A client has cancelled one of its listen requests.
    pub(super) fn end_listen(&mut self, client: ClientId, id: &IdKey) {
        let Some(session) = self.clients.get_mut(&client) else {
            return;
        };
        let listens = &mut session.listens;
        let ended: Vec<ClientListen> = listens
            .extract_if(.., |listen| listen.id.key() == *id)
            .collect();
        let resources = ended
            .iter()
            .flat_map(|listen| listen.resources.iter().flatten());
        for resource in resources {
            self.unsubscribe_quietly(client, &resource.key());
        }
    }

    /// A client does not hear of a resource by one of its listen requests. It may by another.
    fn unsubscribe_quietly(&mut self, client: ClientId, key: &SubscriptionKey) {
        let listens = self.clients.get(&client).map(|client| &client.listens);
        let mut listens = listens.into_iter().flatten();
        if !listens.any(|listen| listen.hears_of_resource(key)) {
            self.take_back(client, key);
        }
    }

    /// Sends a notification to a client: to a modern one for each of its listen requests that hears of it.
    pub(super) fn tell(
        &mut self,
        id: ClientId,
        notification: &Message,
        hears: impl Fn(&ClientListen) -> bool,
    ) {
        let Some(client) = self.clients.get(&id) else {
            return;
        };
        let messages: Vec<Message> = match client.era() {
            Era::Legacy => vec![notification.clone()],
            Era::Modern => {
                let listens = client.listens.iter();
                let hearing = listens
                    .filter(|listen| listen.state == ListenState::Acknowledged && hears(listen));
                hearing
                    .map(|listen| with_listen_id(notification, &listen.id))
                    .collect()
            }
        };
        for message in messages {
            self.send_to_client(id, message);
        }
    }
}

/// A notification that names the listen request that it is sent for.
fn with_listen_id(notification: &Message, listen: &Id) -> Message {
    let token = String::from_utf8_lossy(listen.token());
    let place = Place::ParamsMeta;
    with_member(notification, place, meta::SUBSCRIPTION_ID, &token)
}
