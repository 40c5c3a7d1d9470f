//! Who answers the requests of a listener.
//!
//! The listener knows sockets, TLS and admission; a [`Handler`] knows what a path means. Several handlers share one
//! listener through its path table ([`super::routes`]).

use std::net::SocketAddr;
use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Request};
use hyper::body::Incoming;
use mcp_proxy_core::{BoxFuture, Caller};

use super::admission::bearer;
use super::listener::HttpResponse;

/// Answers the requests to one or more paths of a listener.
///
/// An answer is one boxed future a request: that is what it costs to let other crates put their own handlers next to
/// ours.
pub trait Handler: Send + Sync {
    /// Answers one request. Admission has accepted it and removed the listener's own token from its head.
    fn handle(
        self: Arc<Self>,
        source: RequestSource,
        request: Request<Incoming>,
    ) -> BoxFuture<'static, HttpResponse>;

    /// Asks every session that ends at this handler to end.
    fn stop_all(&self) {}

    /// How many sessions that end at this handler are open.
    fn open_count(&self) -> usize {
        0
    }
}

/// Where a request came from, as far as its head does not say so itself.
///
/// This is not yet a [`Caller`]: a caller owns a copy of the headers, and most requests belong to a connection whose
/// caller is known already. So a handler makes a caller only when a request opens a connection.
#[derive(Clone)]
pub struct RequestSource {
    /// The bearer token that admission accepted. `None` if the listener requires none.
    pub token: Option<Arc<str>>,
    /// Where the client connected from.
    pub address: SocketAddr,
}

impl RequestSource {
    /// The caller that opens a connection with this request.
    pub fn caller(&self, parts: &Parts) -> Arc<Caller> {
        let sent = || {
            let value = parts.headers.get(AUTHORIZATION)?;
            let token = std::str::from_utf8(bearer(value.as_bytes())?).ok()?;
            Some(Arc::from(token))
        };
        Arc::new(Caller {
            token: self.token.clone().or_else(sent),
            path: parts.uri.path().to_owned(),
            headers: copied(&parts.headers),
            address: Some(self.address),
        })
    }
}

/// The same headers in memory of their own. They are kept as long as their session, and what was received lies in a read
/// buffer of its connection.
fn copied(headers: &HeaderMap) -> HeaderMap {
    let pairs = headers.iter().filter_map(|(name, value)| {
        let mut copy = HeaderValue::from_bytes(value.as_bytes()).ok()?;
        copy.set_sensitive(value.is_sensitive());
        Some((name.clone(), copy))
    });
    let mut all = HeaderMap::with_capacity(headers.keys_len());
    for (name, value) in pairs {
        all.append(name, value);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(accepted: Option<&str>, authorization: Option<&str>) -> Arc<Caller> {
        let mut request = Request::get("http://localhost/mcp/p/work?x=1");
        if let Some(value) = authorization {
            request = request.header(AUTHORIZATION, value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let source = RequestSource {
            token: accepted.map(Arc::from),
            address: "127.0.0.1:1".parse().unwrap(),
        };
        source.caller(&parts)
    }

    #[test]
    fn a_caller_has_the_accepted_token_or_else_the_one_it_sent() {
        let accepted = caller(Some("ours"), None);
        assert_eq!(accepted.token.as_deref(), Some("ours"));
        assert_eq!(accepted.path, "/mcp/p/work");
        let sent = caller(None, Some("Bearer theirs"));
        assert_eq!(sent.token.as_deref(), Some("theirs"));
        assert!(sent.headers.contains_key(AUTHORIZATION));
        assert_eq!(caller(None, Some("Basic theirs")).token, None);
        assert_eq!(caller(None, None).token, None);
    }
}
