//! `subscriptions/listen` of modern clients, and how notifications reach clients of both eras.

use mcp_proxy_wire::revision::meta;
use mcp_proxy_wire::{Era, Field, Id, Message, json_string};

use super::Hub;
use super::requests::ClientRequest;
use crate::edit::{Place, with_member};
use crate::json::elements;
use crate::server_link::ClientId;

/// What a modern client wants to be told.
#[derive(Clone, Debug, Default)]
pub(super) struct ListenFilter {
    pub(super) tools: bool,
    pub(super) prompts: bool,
    pub(super) resources: bool,
}

impl Hub {
    /// `subscriptions/listen` of a modern client: acknowledged at once, and open until the client leaves.
    pub(super) fn listen(&mut self, request: ClientRequest<'_>, id: Id) {
        let ClientRequest {
            client,
            message,
            now,
            ..
        } = request;
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
            .filter(|uri| self.subscribe_quietly(client, uri, now))
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
