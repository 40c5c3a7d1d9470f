//! How clients speak where HTTP is passed through: the heads of their POSTs, for when the proxy says something in their place.
//!
//! A client with a session of its own is known by its last POST. Clients without one share a connection, and their
//! credentials must not be mixed up: there, each of the newest POSTs is remembered by its exchange, and no other will do.

use std::collections::VecDeque;
use std::sync::Arc;

use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
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
/// The head of a POST.
pub(crate) struct RequestHead {
    uri: Uri,
    headers: HeaderMap,
}

/// The heads of a connection's POSTs.
pub(crate) enum RecentRequestHeads {
    /// The last one of a client that has its session to itself.
    OneClient(Option<(ExchangeId, Arc<RequestHead>)>),
    /// Those of clients that share the connection, in the order of their exchanges.
    Shared(VecDeque<(ExchangeId, Arc<RequestHead>)>),
}

impl RecentRequestHeads {
    /// Remembers a POST.
    pub(crate) fn remember(&mut self, exchange: ExchangeId, parts: &Parts) {
        if parts.method != Method::POST {
            return;
        }
        let head = Arc::new(RequestHead {
            uri: parts.uri.clone(),
            headers: parts.headers.clone(),
        });
        match self {
            RecentRequestHeads::OneClient(last) => {
                // Requests that come on several threads take their numbers before they come here.
                if last.as_ref().is_none_or(|(known, _)| *known < exchange) {
                    *last = Some((exchange, head));
                }
            }
            RecentRequestHeads::Shared(newest) => {
                let place = newest.partition_point(|(known, _)| *known < exchange);
                newest.insert(place, (exchange, head));
                if newest.len() > REMEMBERED {
                    newest.pop_front();
                }
            }
        }
    }

    /// Whether there was one.
    pub(crate) fn is_known(&self) -> bool {
        match self {
            RecentRequestHeads::OneClient(last) => last.is_some(),
            RecentRequestHeads::Shared(newest) => !newest.is_empty(),
        }
    }

    /// How the client speaks that sent what came by this exchange.
    pub(crate) fn head_for_exchange(
        &self,
        exchange: Option<ExchangeId>,
    ) -> Result<Arc<RequestHead>, ReplayError> {
        match self {
            RecentRequestHeads::OneClient(Some((_, head))) => Ok(Arc::clone(head)),
            RecentRequestHeads::OneClient(None) => Err(ReplayError::NotLive(
                "the headers of its client are not known; use a fresh session",
            )),
            RecentRequestHeads::Shared(newest) => {
                let place = exchange.and_then(|exchange| {
                    newest
                        .binary_search_by_key(&exchange, |(known, _)| *known)
                        .ok()
                });
                let found = place.and_then(|place| newest.get(place));
                found.map(|(_, head)| Arc::clone(head)).ok_or(ReplayError::NotLive(
                    "who sent it is not remembered, and clients may share its connection; use a fresh session",
                ))
            }
        }
    }
}

impl RequestHead {
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

/// Whether a header says something about the body that it comes with.
fn repeats_body(name: &HeaderName) -> bool {
    *name == CONTENT_LENGTH
        || *name == CONTENT_ENCODING
        || *name == MCP_METHOD
        || *name == MCP_NAME
        || name.as_str().starts_with(MCP_PARAM_PREFIX)
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

    #[test]
    fn headers_of_the_session_stay_and_those_of_the_message_follow_it() {
        let mut heads = RecentRequestHeads::OneClient(None);
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
        let mut heads = RecentRequestHeads::Shared(VecDeque::new());
        for (exchange, token) in [(1, "a"), (4, "d"), (3, "c"), (2, "b")] {
            heads.remember(ExchangeId(exchange), &post(&[("authorization", token)]));
        }
        for (exchange, expected) in [(1, "a"), (2, "b"), (3, "c"), (4, "d")] {
            assert_eq!(token(&heads, exchange), Ok(expected.to_owned()));
        }
        // The newest stays that of a client with its session to itself.
        let mut own = RecentRequestHeads::OneClient(None);
        own.remember(ExchangeId(2), &post(&[("authorization", "new")]));
        own.remember(ExchangeId(1), &post(&[("authorization", "old")]));
        assert_eq!(token(&own, 2), Ok("new".to_owned()));
    }

    #[test]
    fn clients_that_share_a_connection_are_told_apart() {
        let mut heads = RecentRequestHeads::Shared(VecDeque::new());
        assert!(!heads.is_known() && heads.head_for_exchange(None).is_err());
        for exchange in 1..=REMEMBERED as u64 + 1 {
            heads.remember(ExchangeId(exchange), &post(&[("authorization", "a")]));
        }
        heads.remember(ExchangeId(3_000), &post(&[("authorization", "b")]));
        assert_eq!(token(&heads, 3), Ok("a".to_owned()));
        assert_eq!(token(&heads, 3_000), Ok("b".to_owned()));
        // The first is forgotten, and nobody else will do.
        assert!(heads.head_for_exchange(Some(ExchangeId(1))).is_err());
        assert!(heads.head_for_exchange(None).is_err());
    }
}
