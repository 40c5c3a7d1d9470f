//! How clients speak where HTTP is passed through: the heads of their POSTs, for when the proxy says something in their place.
//!
//! A client with a session of its own is known by its last POST. Clients without one share a connection, and their
//! credentials must not be mixed up: there, each of the newest POSTs is remembered by its exchange.

use std::collections::VecDeque;
use std::sync::Arc;

use http::header::{ACCEPT, AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use mcp_proxy_core::replay::ReplayError;
use mcp_proxy_wire::headers::{
    self, LAST_EVENT_ID, MCP_METHOD, MCP_NAME, MCP_PARAM_PREFIX, ParamHeader,
};
use mcp_proxy_wire::revision::names_version;
use mcp_proxy_wire::{ExchangeId, Message};

/// POSTs of clients that share a connection that are remembered.
const REMEMBERED: usize = 1_024;
/// How many of the newest are searched for a similar request.
const ALIKE: usize = 16;

/// The head of a POST.
pub(crate) struct RequestHead {
    uri: Uri,
    headers: HeaderMap,
}

/// The heads of a connection's POSTs.
pub(crate) struct RecentRequestHeads {
    /// In the order of their exchanges, the oldest first.
    newest: VecDeque<(ExchangeId, Arc<RequestHead>)>,
    most: usize,
    clients: HeadClients,
}

/// Who speaks on a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HeadClients {
    /// One client.
    One,
    /// Clients without sessions, so far with the same credentials.
    SameCredentials,
    /// Clients without sessions, with different ones.
    Several,
}

impl RecentRequestHeads {
    /// Of a client that has its session to itself.
    pub(crate) fn for_one_client() -> RecentRequestHeads {
        RecentRequestHeads::new(HeadClients::One, 1)
    }

    /// Of clients that share a connection.
    pub(crate) fn for_shared_connection() -> RecentRequestHeads {
        RecentRequestHeads::new(HeadClients::SameCredentials, REMEMBERED)
    }

    fn new(clients: HeadClients, most: usize) -> RecentRequestHeads {
        RecentRequestHeads {
            newest: VecDeque::new(),
            most,
            clients,
        }
    }

    /// Remembers a POST. Clients hardly ever change what they say here, so nearly always this is a comparison.
    pub(crate) fn remember(&mut self, exchange: ExchangeId, parts: &Parts) {
        if parts.method != Method::POST {
            return;
        }
        let mut newest = self.newest.iter().rev().take(ALIKE);
        let known = newest.find(|(_, head)| head.matches(parts));
        let head = match known {
            Some((_, head)) => Arc::clone(head),
            None => {
                let last = self.newest.back();
                if self.clients == HeadClients::SameCredentials
                    && last.is_some_and(|(_, last)| !last.has_credentials_of(parts))
                {
                    self.clients = HeadClients::Several;
                }
                Arc::new(RequestHead {
                    uri: parts.uri.clone(),
                    headers: parts.headers.clone(),
                })
            }
        };
        // Nearly always the last: requests that come on several threads take their numbers before they come here.
        let before = self.newest.iter().rposition(|(known, _)| *known < exchange);
        let place = before.map_or(0, |before| before + 1);
        self.newest.insert(place, (exchange, head));
        if self.newest.len() > self.most {
            self.newest.pop_front();
        }
    }

    /// Whether there was one.
    pub(crate) fn is_known(&self) -> bool {
        !self.newest.is_empty()
    }

    /// How the client speaks that sent what came by this exchange: as it did there, or as it did last.
    pub(crate) fn head_for_exchange(
        &self,
        exchange: Option<ExchangeId>,
    ) -> Result<Arc<RequestHead>, ReplayError> {
        let there = exchange.and_then(|exchange| {
            let place = self
                .newest
                .binary_search_by_key(&exchange, |(known, _)| *known);
            self.newest.get(place.ok()?)
        });
        match (there.or(self.newest.back()), self.clients) {
            (None, _) => Err(ReplayError::NotLive(
                "the headers of its client are not known; use a fresh session",
            )),
            (Some(_), HeadClients::Several) if there.is_none() => Err(ReplayError::NotLive(
                "who sent it is not remembered, and clients with different credentials share its connection; \
                 use a fresh session",
            )),
            (Some((_, head)), _) => Ok(Arc::clone(head)),
        }
    }
}

impl RequestHead {
    /// Whether a POST speaks in the same way, as far as it does not speak of its message.
    fn matches(&self, parts: &Parts) -> bool {
        self.uri == parts.uri
            && self.headers.len() == parts.headers.len()
            && self.headers.iter().zip(&parts.headers).all(is_same)
    }

    /// Whether a POST shows the same credentials: all headers that may hold some.
    fn has_credentials_of(&self, parts: &Parts) -> bool {
        let may_hold_some = |name: &&HeaderName| !is_harmless(name);
        let names = self.headers.keys().chain(parts.headers.keys());
        names.filter(may_hold_some).all(|name| {
            let ours = self.headers.get_all(name).iter();
            ours.eq(parts.headers.get_all(name).iter())
        }) && self.uri.query() == parts.uri.query()
    }

    /// The query of its URL.
    pub(crate) fn query(&self) -> Option<&str> {
        self.uri.query()
    }

    /// The headers for a message of ours.
    pub(crate) fn headers_for(&self, message: &Message, params: &[ParamHeader]) -> HeaderMap {
        let mut headers = self.headers.clone();
        headers::strip_hop_by_hop(&mut headers);
        let is_modern = headers.contains_key(MCP_METHOD) || names_version(message);
        headers::remove_in_order(&mut headers, |name| {
            repeats_body(name) || *name == LAST_EVENT_ID
        });
        if is_modern {
            // The version is there already, from the client's own head.
            for (name, value) in headers::modern_request_headers(message, params) {
                headers.insert(name, value);
            }
        }
        let accepts = "application/json, text/event-stream";
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static(accepts));
        headers
    }
}

/// Whether a header is the same as before, as far as it does not speak of the message.
fn is_same(
    ((name, value), (new_name, new_value)): (
        (&HeaderName, &HeaderValue),
        (&HeaderName, &HeaderValue),
    ),
) -> bool {
    name == new_name && (value == new_value || repeats_body(name))
}

/// Whether a header says something about the body that it comes with.
fn repeats_body(name: &HeaderName) -> bool {
    *name == CONTENT_LENGTH
        || *name == CONTENT_ENCODING
        || *name == MCP_METHOD
        || *name == MCP_NAME
        || name.as_str().starts_with(MCP_PARAM_PREFIX)
}

/// Whether a header says nothing about who speaks. Any other name may: keys have no standard name.
fn is_harmless(name: &HeaderName) -> bool {
    *name != AUTHORIZATION
        && (repeats_body(name)
            || matches!(
                name.as_str(),
                "accept"
                    | "accept-encoding"
                    | "accept-language"
                    | "cache-control"
                    | "connection"
                    | "content-type"
                    | "host"
                    | "last-event-id"
                    | "mcp-protocol-version"
                    | "sec-fetch-mode"
                    | "traceparent"
                    | "tracestate"
                    | "transfer-encoding"
                    | "user-agent"
            ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn post(headers: &[(&'static str, &'static str)]) -> Parts {
        let mut request = http::Request::post("http://h/mcp?k=1");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn token(heads: &RecentRequestHeads, exchange: u64) -> Result<String, String> {
        let head = heads.head_for_exchange(Some(ExchangeId(exchange)));
        head.map(|head| head.headers["authorization"].to_str().unwrap().to_owned())
            .map_err(|error| error.to_string())
    }

    /// Why a message cannot be sent as its client sends.
    fn not_live(heads: &RecentRequestHeads, exchange: u64) -> &'static str {
        match heads.head_for_exchange(Some(ExchangeId(exchange))) {
            Err(ReplayError::NotLive(why)) => why,
            other => panic!("{:?}", other.map(|_| ())),
        }
    }

    #[test]
    fn headers_of_the_session_stay_and_those_of_the_message_follow_it() {
        let mut heads = RecentRequestHeads::for_one_client();
        let sent = post(&[
            ("authorization", "Bearer t"),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "echo"),
            ("mcp-param-region", "eu"),
            ("content-length", "7"),
            ("connection", "close"),
        ]);
        heads.remember(ExchangeId(1), &sent);
        let message = Message::parse(
            r#"{"id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#,
        );
        let head = heads.head_for_exchange(Some(ExchangeId(9))).unwrap();
        let headers = head.headers_for(&message, &[]);
        assert_eq!(headers["authorization"], "Bearer t");
        assert_eq!(headers["mcp-method"], "tools/list");
        assert_eq!(headers.get_all("mcp-protocol-version").iter().count(), 1);
        for gone in [
            "mcp-name",
            "mcp-param-region",
            "connection",
            "content-length",
        ] {
            assert!(!headers.contains_key(gone), "{gone}");
        }
        assert_eq!(head.query(), Some("k=1"));
    }

    #[test]
    fn posts_are_found_in_whatever_order_they_come() {
        let mut heads = RecentRequestHeads::for_shared_connection();
        for (exchange, token) in [(1, "a"), (4, "d"), (3, "c"), (2, "b")] {
            heads.remember(ExchangeId(exchange), &post(&[("authorization", token)]));
        }
        for (exchange, expected) in [(1, "a"), (2, "b"), (3, "c"), (4, "d")] {
            assert_eq!(token(&heads, exchange), Ok(expected.to_owned()));
        }
        // The newest stays that of a client with its session to itself.
        let mut own = RecentRequestHeads::for_one_client();
        own.remember(ExchangeId(2), &post(&[("authorization", "new")]));
        own.remember(ExchangeId(1), &post(&[("authorization", "old")]));
        assert_eq!(token(&own, 2), Ok("new".to_owned()));
    }

    #[test]
    fn only_what_is_new_is_remembered() {
        let mut heads = RecentRequestHeads::for_shared_connection();
        for (exchange, token, length) in [(1, "a", "1"), (2, "b", "1"), (3, "a", "2")] {
            let sent = post(&[("authorization", token), ("content-length", length)]);
            heads.remember(ExchangeId(exchange), &sent);
        }
        let [first, second, third] =
            [1, 2, 3].map(|it| heads.head_for_exchange(Some(ExchangeId(it))).unwrap());
        assert!(Arc::ptr_eq(&first, &third) && !Arc::ptr_eq(&first, &second));
    }

    #[test]
    fn clients_that_share_a_connection_are_told_apart() {
        let mut heads = RecentRequestHeads::for_shared_connection();
        let nobody_spoke = not_live(&heads, 1);
        let of = |token, agent| post(&[("authorization", token), ("user-agent", agent)]);
        for exchange in 1..=REMEMBERED as u64 + 1 {
            heads.remember(ExchangeId(exchange), &of("a", "x"));
        }
        // The first is forgotten, but there is only one who can have sent it, whatever it calls itself.
        heads.remember(ExchangeId(3_000), &of("a", "y"));
        assert_eq!(token(&heads, 1), Ok("a".to_owned()));
        heads.remember(ExchangeId(3_001), &of("b", "x"));
        assert_eq!(token(&heads, 3_000), Ok("a".to_owned()));
        assert_eq!(token(&heads, 3_001), Ok("b".to_owned()));
        assert_ne!(not_live(&heads, 1), nobody_spoke, "another reason");
        // A session has one client, and its newest token is the right one.
        let mut own = RecentRequestHeads::for_one_client();
        own.remember(ExchangeId(1), &of("a", "x"));
        own.remember(ExchangeId(2), &of("b", "x"));
        assert_eq!(token(&own, 1), Ok("b".to_owned()));
    }
}
