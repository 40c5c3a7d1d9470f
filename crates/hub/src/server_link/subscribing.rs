//! Subscriptions that the hub asks for by itself, without a client that waits for the answer.

use mcp_proxy_wire::{Message, json_string};
use rustc_hash::FxHashMap;

use super::{HubRequest, LinkNews, ServerLink};

/// Which of the hub's subscriptions an answer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SubscribeNumber(u32);

/// Requests without an answer yet, and the resources that they are about.
#[derive(Debug, Default)]
pub(super) struct OpenSubscribes {
    last: u32,
    open: FxHashMap<SubscribeNumber, Box<str>>,
}

impl ServerLink {
    /// Asks for a subscription, unless such a request is on its way.
    pub(crate) fn subscribe(&mut self, uri: &str) {
        if self.subscribing.open.values().any(|open| **open == *uri) {
            return;
        }
        self.subscribing.last = self.subscribing.last.wrapping_add(1);
        let number = SubscribeNumber(self.subscribing.last);
        self.subscribing.open.insert(number, uri.into());
        self.request(HubRequest::Subscribe(number), &request("subscribe", uri));
    }

    /// Ends a subscription.
    pub(crate) fn unsubscribe(&mut self, uri: &str) {
        self.request(HubRequest::Unsubscribe, &request("unsubscribe", uri));
    }

    pub(super) fn subscribe_answered(
        &mut self,
        number: SubscribeNumber,
        answer: &Message,
    ) -> Vec<LinkNews> {
        let Some(uri) = self.subscribing.open.remove(&number) else {
            return Vec::new();
        };
        if answer.result().is_some() {
            return vec![LinkNews::Subscribed(uri)];
        }
        let error = answer.error();
        let text = error.and_then(|error| answer.text_at(answer.member(error, "message")?));
        let text = text.map_or_else(|| "no reason given".to_owned(), |text| text.into_owned());
        vec![LinkNews::SubscriptionRefused(uri, text)]
    }
}

fn request(verb: &str, uri: &str) -> Message {
    Message::parse(format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"resources/{verb}","params":{{"uri":{}}}}}"#,
        json_string(uri)
    ))
}
