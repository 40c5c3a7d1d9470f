//! How requests reach a server: through hyper-util, for http and https, directly or through a proxy.

use std::error::Error as _;
use std::time::Duration;

use http::header::{HOST, PROXY_AUTHORIZATION};
use http::{HeaderMap, HeaderValue, Request, Response, Uri, request, uri};
use http_body::Body as _;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use mcp_proxy_core::LinkEnd;
use mcp_proxy_wire::headers::remove_in_order;

use super::connect_deadline::ConnectDeadline;
use super::incoming_body::{IncomingBody, innermost};
use super::outbound_proxy::OutboundProxy;
use super::outgoing_body::{BodyError, OutgoingBody};
use super::server_connector::{ServerConnection, ServerConnector};
use crate::tls;

/// A connection that lay idle for longer is not trusted: servers close them about then.
const IDLE_MAX: Duration = Duration::from_secs(30);
const IDLE_CONNECTIONS: usize = 256;
/// Headers that an answer may have.
const HEADERS_MAX: usize = 128;
/// Bytes that an answer's head may have, and that are read at once.
const HEAD_MAX: usize = 256 * 1024;

/// How requests go out.
pub(super) struct HttpClient {
    client: Client<ConnectDeadline<HttpsConnector<ServerConnector>>, OutgoingBody>,
    /// Requests go to a proxy, which sends them on.
    is_forwarded: bool,
    /// The name of a server over plain HTTP. Over TLS it may speak h2, which has no such header.
    host: Option<HeaderValue>,
    /// What that proxy wants to see.
    proxy_authorization: Option<HeaderValue>,
}

/// Why a request has no answer.
pub(super) enum RequestError {
    /// The server, or the way to it.
    Failed(String),
    /// The proxy on the way to it.
    Proxy(String),
    /// We stopped the request's own body; the server has no part in it.
    Stopped(LinkEnd),
}

/// Marks an answer to a request that was sent twice: the server had closed the first connection without reading it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resent;

impl HttpClient {
    /// For the server of `url`. Nothing is dialled yet.
    pub(super) fn new(
        url: &Uri,
        ca_file: Option<&std::path::Path>,
        stall: Duration,
        proxy: Option<OutboundProxy>,
    ) -> Result<HttpClient, tls::TlsError> {
        let is_plain = url.scheme() != Some(&uri::Scheme::HTTPS);
        let is_forwarded = is_plain && proxy.is_some();
        let authorization = proxy.as_ref().and_then(OutboundProxy::authorization);
        let proxy_authorization = authorization.filter(|_| is_forwarded).cloned();
        let connector = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(tls::client_config(ca_file)?)
            .https_or_http()
            .enable_all_versions()
            .wrap_connector(ServerConnector::new(is_plain, proxy, stall));
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_MAX)
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .http1_max_headers(HEADERS_MAX)
            .http1_max_buf_size(HEAD_MAX)
            .build(ConnectDeadline(connector));
        let authority = url.authority().filter(|_| is_plain);
        let host = authority.and_then(|it| HeaderValue::from_str(it.as_str()).ok());
        Ok(HttpClient {
            client,
            host,
            is_forwarded,
            proxy_authorization,
        })
    }

    /// Sends a request. A server may close an idle connection at any moment, so a request that it did not read there is sent
    /// once more. hyper-util does that only for requests that it had not begun to write.
    pub(super) async fn send(
        &self,
        parts: &request::Parts,
        payload: OutgoingBody,
    ) -> Result<Response<IncomingBody>, RequestError> {
        let copy = payload.copy();
        let error = match self.client.request(self.request(parts, payload)).await {
            Ok(answer) => return Ok(received(answer)),
            Err(error) => error,
        };
        let connection = ServerConnection::of(&error);
        if let (Some(copy), Some(connection)) = (copy, connection)
            && let length = copy.size_hint().exact()
            && connection.may_resend(&parts.method, length).await
        {
            let sent = self.client.request(self.request(parts, copy)).await;
            let mut answer = sent.map_err(|error| self.failure(&error)).map(received)?;
            answer.extensions_mut().insert(Resent);
            return Ok(answer);
        }
        Err(self.failure(&error))
    }

    fn request(&self, parts: &request::Parts, payload: OutgoingBody) -> Request<OutgoingBody> {
        let mut parts = parts.clone();
        // Without this header hyper names the server itself, behind all others.
        remove_in_order(&mut parts.headers, |name| *name == HOST);
        if let Some(host) = &self.host {
            let first = HeaderMap::from_iter([(HOST, host.clone())]);
            let others = std::mem::replace(&mut parts.headers, first);
            parts.headers.extend(others);
        }
        if let Some(authorization) = &self.proxy_authorization {
            parts
                .headers
                .insert(PROXY_AUTHORIZATION, authorization.clone());
        }
        Request::from_parts(parts, payload)
    }

    /// Whose fault an error is, and what to say of it.
    fn failure(&self, error: &Error) -> RequestError {
        let mut is_parse = false;
        let mut cause: Option<&dyn std::error::Error> = error.source();
        while let Some(next) = cause {
            match next.downcast_ref() {
                Some(BodyError::Stopped(end)) => return RequestError::Stopped(end.clone()),
                Some(BodyError::Peer(error)) => {
                    let text = format!("the request's body broke off: {error}");
                    return RequestError::Failed(text);
                }
                None => {}
            }
            // The type of this error is not public, but its text is known: the proxy gave no connection to the server.
            if next.to_string().starts_with("tunnel error") {
                return RequestError::Proxy(failure_text(error));
            }
            is_parse |= next.downcast_ref().is_some_and(hyper::Error::is_parse);
            cause = next.source();
        }
        match self.is_forwarded && !is_parse {
            true => RequestError::Proxy(failure_text(error)),
            false => RequestError::Failed(failure_text(error)),
        }
    }
}

fn received(answer: Response<hyper::body::Incoming>) -> Response<IncomingBody> {
    let mut answer = answer.map(IncomingBody::from);
    // The connection is not kept open for as long as its answer.
    ServerConnection::remove_from(answer.extensions_mut());
    answer
}

fn failure_text(error: &Error) -> String {
    let hyper_error = error.source().and_then(|cause| cause.downcast_ref());
    let cause = innermost(error);
    if error.is_connect() {
        format!("cannot connect ({cause})")
    } else if hyper_error.is_some_and(hyper::Error::is_incomplete_message) {
        "connection closed before it answered".to_owned()
    } else if hyper_error.is_some_and(hyper::Error::is_parse) {
        format!("the answer is not HTTP ({cause})")
    } else {
        format!("connection failed ({cause})")
    }
}
