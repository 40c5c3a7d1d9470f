//! The hub's own `subscriptions/listen` at a modern server: changes of its lists, and all resources that somebody
//! subscribed to.

use std::collections::BTreeSet;

use mcp_proxy_wire::revision::meta;
use mcp_proxy_wire::{Field, Message, Span, json_string};

use super::{HubRequest, Requester, ServerLink};
use crate::json::member_cuts;

/// One of the listen requests of a link. Later ones have higher numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ListenNumber(u32);

/// What a link listens to.
#[derive(Debug, Default)]
pub(super) struct Listening {
    uris: BTreeSet<Box<str>>,
    last: u32,
    open: Vec<ListenNumber>,
}

impl ServerLink {
    /// Listens to these resources. What a listen request is about cannot be changed, so there is a new one, and the old one
    /// stays open until the server has taken it up: nothing is missed in between.
    pub(crate) fn listen_to(&mut self, uris: BTreeSet<Box<str>>) {
        if self.listening.uris == uris {
            return;
        }
        self.listening.uris = uris;
        if self.is_ready() {
            self.listen();
        }
    }

    /// Asks a modern server to tell about its changes.
    pub(super) fn listen(&mut self) {
        let meta = self.client.meta();
        let offers = self.description.offers;
        let lists = [
            (offers.tools, "toolsListChanged"),
            (offers.prompts, "promptsListChanged"),
            (offers.resources, "resourcesListChanged"),
        ];
        let mut wanted: Vec<String> = lists
            .iter()
            .filter(|(offered, _)| *offered)
            .map(|(_, name)| format!("\"{name}\":true"))
            .collect();
        if !self.listening.uris.is_empty() {
            let uris: Vec<String> = self
                .listening
                .uris
                .iter()
                .map(|uri| json_string(uri))
                .collect();
            wanted.push(format!("\"resourceSubscriptions\":[{}]", uris.join(",")));
        }
        let message = Message::parse(format!(
            r#"{{"jsonrpc":"2.0","id":0,"method":"subscriptions/listen","params":{{"notifications":{{{}}},"_meta":{{{meta}}}}}}}"#,
            wanted.join(",")
        ));
        self.listening.last += 1;
        let number = ListenNumber(self.listening.last);
        self.listening.open.push(number);
        self.request(HubRequest::Listen(number), &message);
    }

    /// The server has told something on a listen request. The ones before it are not needed any more, and their messages
    /// would come twice. Returns the message without our request's id, which means nothing to clients.
    pub(super) fn told_on_listen(&mut self, number: ListenNumber, message: Message) -> Message {
        if message.method().as_deref() == Some("notifications/cancelled") {
            self.listen_ended(number);
            return message;
        }
        let (replaced, open) = self.listening.open.iter().partition(|open| **open < number);
        self.listening.open = open;
        let replaced: Vec<ListenNumber> = replaced;
        for old in replaced {
            let requester = Requester::Hub(HubRequest::Listen(old));
            self.to_server.extend(self.multiplexer.close(&requester));
        }
        without_subscription_id(message)
    }

    /// The server has refused or ended a listen request.
    pub(super) fn listen_ended(&mut self, number: ListenNumber) {
        self.listening.open.retain(|open| *open != number);
    }
}

fn without_subscription_id(message: Message) -> Message {
    let Some(object) = message.span(Field::Param("_meta")) else {
        return message;
    };
    let cuts = member_cuts(&message, object, |name| name == meta::SUBSCRIPTION_ID);
    let edits: Vec<(Span, &[u8])> = cuts.into_iter().map(|cut| (cut, &b""[..])).collect();
    message.splice(&edits).unwrap_or(message)
}
