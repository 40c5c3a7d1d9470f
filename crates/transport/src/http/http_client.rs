//! How requests reach a server: plain HTTP over our own pool, https through hyper-util, both directly or through a proxy.

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use http::header::HOST;
use http::{Request, Response, Uri, request, uri};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use mcp_proxy_core::LinkEnd;
use mcp_proxy_wire::headers::remove_in_order;

use super::connect_deadline::ConnectDeadline;
use super::incoming_body::IncomingBody;
use super::outbound_proxy::OutboundProxy;
use super::outgoing_body::{BodyError, OutgoingBody};
use super::pool::{ConnectionPool, PoolError};
use crate::tls;

const CONNECT_DEADLINE: Duration = Duration::from_secs(10);
const KEEPALIVE: Duration = Duration::from_secs(60);

type TlsClient<C> = Client<ConnectDeadline<HttpsConnector<C>>, OutgoingBody>;

/// How requests go out.
pub(super) enum HttpClient {
    Plain(Arc<ConnectionPool>),
    Tls(Box<TlsClient<HttpConnector>>),
    Tunnelled(Box<TlsClient<Tunnel<HttpConnector>>>),
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

impl HttpClient {
    /// For the server of `url`. Nothing is dialled yet.
    pub(super) fn new(
        url: &Uri,
        ca_file: Option<&std::path::Path>,
        stall: Duration,
        proxy: Option<OutboundProxy>,
    ) -> Result<HttpClient, tls::TlsError> {
        let is_plain = url.scheme() != Some(&uri::Scheme::HTTPS);
        if is_plain && let Some(pool) = ConnectionPool::new(url, stall, proxy.clone()) {
            return Ok(HttpClient::Plain(pool));
        }
        let tls = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(tls::client_config(ca_file)?)
            .https_or_http()
            .enable_all_versions();
        let builder = {
            let mut builder = Client::builder(TokioExecutor::new());
            builder.pool_timer(TokioTimer::new());
            builder
        };
        let connector = connector(stall);
        Ok(match proxy {
            None => {
                let client = builder.build(ConnectDeadline(tls.wrap_connector(connector)));
                HttpClient::Tls(Box::new(client))
            }
            Some(proxy) => {
                let tunnel = Tunnel::new(proxy.url(), connector);
                let tunnel = match proxy.authorization {
                    Some(authorization) => tunnel.with_auth(authorization),
                    None => tunnel,
                };
                let client = builder.build(ConnectDeadline(tls.wrap_connector(tunnel)));
                HttpClient::Tunnelled(Box::new(client))
            }
        })
    }

    pub(super) async fn send(
        &self,
        parts: &request::Parts,
        payload: OutgoingBody,
    ) -> Result<Response<IncomingBody>, RequestError> {
        let owned = |payload| {
            let mut parts = parts.clone();
            // hyper names the server, if nobody else does.
            remove_in_order(&mut parts.headers, |name| *name == HOST);
            Request::from_parts(parts, payload)
        };
        let sent = match self {
            HttpClient::Plain(pool) => {
                let sent = pool.send(parts, payload).await;
                return sent.map_err(|error| not_sent(error, pool.has_proxy()));
            }
            HttpClient::Tls(client) => client.request(owned(payload)).await,
            HttpClient::Tunnelled(client) => client.request(owned(payload)).await,
        };
        let response = sent.map_err(|error| stopped(&error))?;
        Ok(response.map(IncomingBody::from))
    }
}

/// HTTP/1.1 or h2, as the server's TLS says.
fn connector(stall: Duration) -> HttpConnector {
    let mut http = HttpConnector::new();
    http.set_nodelay(true);
    http.enforce_http(false);
    http.set_connect_timeout(Some(CONNECT_DEADLINE));
    http.set_keepalive(Some(KEEPALIVE));
    #[cfg(target_os = "linux")]
    http.set_tcp_user_timeout(Some(stall));
    #[cfg(not(target_os = "linux"))]
    let _ = stall;
    http
}

fn not_sent(error: PoolError, has_proxy: bool) -> RequestError {
    match error {
        PoolError::Connect(_) | PoolError::Broken(_) | PoolError::Closed(_) if has_proxy => {
            RequestError::Proxy(error.to_string())
        }
        PoolError::Request(stopped) => match *stopped {
            BodyError::Stopped(end) => RequestError::Stopped(end),
            BodyError::Peer(error) => {
                RequestError::Failed(format!("the request's body broke off: {error}"))
            }
        },
        error => RequestError::Failed(error.to_string()),
    }
}

/// Whether it was us who stopped the request.
fn stopped(error: &hyper_util::client::legacy::Error) -> RequestError {
    let mut cause: Option<&dyn std::error::Error> = error.source();
    while let Some(next) = cause {
        if let Some(BodyError::Stopped(end)) = next.downcast_ref() {
            return RequestError::Stopped(end.clone());
        }
        // The type of this error is not public, but its text is known: the proxy gave no connection to the server.
        if next.to_string().starts_with("tunnel error") {
            return RequestError::Proxy(innermost(error));
        }
        cause = next.source();
    }
    RequestError::Failed(innermost(error))
}

/// The innermost cause says it best: `Connection refused`, or what is wrong with TLS.
fn innermost(error: &hyper_util::client::legacy::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    let text = loop {
        if let Some(error) = tls_error(cause) {
            break tls::failure_text(error);
        }
        match cause.source() {
            Some(next) => cause = next,
            None => break cause.to_string(),
        }
    };
    if error.is_connect() {
        format!("cannot connect ({text})")
    } else {
        format!("connection failed ({text})")
    }
}

/// TLS errors come wrapped in those of the socket.
fn tls_error<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a rustls::Error> {
    if let Some(io) = error.downcast_ref::<std::io::Error>() {
        return tls_error(io.get_ref()?);
    }
    error.downcast_ref()
}
