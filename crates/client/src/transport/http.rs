//! Streamable HTTP on hyper.
//!
//! rmcp decides what is sent and when: sessions, streams, retries, the `DELETE` at the end. Here is the part below it,
//! one request and its answer.

mod events;
mod responses;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, LOCATION};
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::http_header::{
    EVENT_STREAM_MIME_TYPE, HEADER_LAST_EVENT_ID, HEADER_SESSION_ID, JSON_MIME_TYPE,
};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::Sse;

use super::MAX_MESSAGE;
use crate::connect_error::ConnectError;
use crate::target::without_secrets;

const CONNECT_DEADLINE: Duration = Duration::from_secs(10);
const KEEPALIVE: Duration = Duration::from_secs(60);
const MAX_REDIRECTS: usize = 5;

type HttpResult<T> = Result<T, StreamableHttpError<HttpError>>;
type EventStream = BoxStream<'static, Result<Sse, SseError>>;

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    #[error("the URL is not valid")]
    Url(#[from] http::uri::InvalidUri),
    #[error("the request is not valid")]
    Request(#[from] http::Error),
    #[error("no certificate authorities were found on this system")]
    NoRoots,
    #[error("TLS")]
    Tls(#[from] rustls::Error),
    #[error("the request failed")]
    Send(#[from] hyper_util::client::legacy::Error),
    #[error("the answer broke off")]
    Body(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("the server redirects to {0}, which is another origin or too far")]
    Redirect(String),
    #[error("the server answered with HTTP {}", .0.as_u16())]
    Status(StatusCode),
    #[error("the answer is a web page (HTML) and not MCP")]
    WebPage,
    #[error("the answer has the type {}", .0.as_deref().unwrap_or("of nothing"))]
    ContentType(Option<String>),
}

impl From<HttpError> for ConnectError {
    fn from(error: HttpError) -> ConnectError {
        match error {
            HttpError::Status(status) => ConnectError::Http {
                status: status.as_u16(),
            },
            HttpError::WebPage => ConnectError::WebPage,
            HttpError::ContentType(content_type) => ConnectError::NotMcp { content_type },
            error => ConnectError::Unreachable(error.into()),
        }
    }
}

/// The error without what rmcp wraps around it, which ends the chain of causes. `None` if the conversation has ended.
pub(crate) fn http_cause(
    error: Box<dyn std::error::Error + Send + Sync>,
) -> Option<Box<dyn std::error::Error + Send + Sync>> {
    match error.downcast::<StreamableHttpError<HttpError>>() {
        Ok(error) => match *error {
            StreamableHttpError::Client(error) => Some(error.into()),
            StreamableHttpError::TransportChannelClosed => None,
            error => Some(match refused_status(&error) {
                Some(status) => HttpError::Status(status).into(),
                None => error.into(),
            }),
        },
        Err(error) => Some(error),
    }
}

/// The status that rmcp has a name for.
pub(crate) fn refused_status(error: &StreamableHttpError<HttpError>) -> Option<StatusCode> {
    match error {
        StreamableHttpError::AuthRequired(_) => Some(StatusCode::UNAUTHORIZED),
        StreamableHttpError::InsufficientScope(_) => Some(StatusCode::FORBIDDEN),
        StreamableHttpError::HttpStatus(error) => StatusCode::from_u16(error.status).ok(),
        _ => None,
    }
}

/// One pool of connections.
#[derive(Clone)]
pub(crate) struct HyperClient(Client<HttpsConnector<HttpConnector>, Full<Bytes>>);

/// The transport to the server at `url`, which sends `headers` with each request.
pub(crate) fn http_transport(
    url: &str,
    headers: HashMap<HeaderName, HeaderValue>,
) -> Result<StreamableHttpClientTransport<HyperClient>, HttpError> {
    let _: Uri = url.parse()?;
    let mut config = StreamableHttpClientTransportConfig::with_uri(url).custom_headers(headers);
    config.max_sse_event_size = MAX_MESSAGE;
    Ok(StreamableHttpClientTransport::with_client(
        HyperClient::new()?,
        config,
    ))
}

impl HyperClient {
    fn new() -> Result<HyperClient, HttpError> {
        let mut http = HttpConnector::new();
        http.set_nodelay(true);
        http.enforce_http(false);
        http.set_connect_timeout(Some(CONNECT_DEADLINE));
        http.set_keepalive(Some(KEEPALIVE));
        let https = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(tls_config()?)
            .https_or_http()
            .enable_all_versions()
            .wrap_connector(http);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .build(https);
        Ok(HyperClient(client))
    }

    /// Sends a request. A redirect that keeps the method and the origin, such as one to the path with a slash, is
    /// followed.
    async fn send(
        &self,
        method: Method,
        url: &str,
        headers: Vec<(HeaderName, HeaderValue)>,
        body: Bytes,
    ) -> Result<Response<Incoming>, HttpError> {
        let mut url: Uri = url.parse()?;
        for _ in 0..=MAX_REDIRECTS {
            let mut request = Request::builder().method(method.clone()).uri(url.clone());
            for (name, value) in &headers {
                request = request.header(name, value);
            }
            let request = request.body(Full::new(body.clone()))?;
            let response = self.0.request(request).await?;
            match redirect(&url, &response)? {
                Some(next) => url = next,
                None => return Ok(response),
            }
        }
        Err(HttpError::Redirect(without_secrets(&url.to_string())))
    }
}

impl StreamableHttpClient for HyperClient {
    type Error = HttpError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> HttpResult<StreamableHttpPostResponse> {
        let body = Bytes::from(serde_json::to_vec(&message)?);
        let has_session = session_id.is_some();
        let mut headers = headers(session_id, auth_header, custom_headers)?;
        headers.push((CONTENT_TYPE, HeaderValue::from_static(JSON_MIME_TYPE)));
        let response = self
            .send(Method::POST, &uri, headers, body)
            .await
            .map_err(StreamableHttpError::Client)?;
        responses::to_post(&message, has_session, response).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> HttpResult<()> {
        let headers = headers(Some(session_id), auth_header, custom_headers)?;
        let response = self
            .send(Method::DELETE, &uri, headers, Bytes::new())
            .await
            .map_err(StreamableHttpError::Client)?;
        match response.status() {
            // The server ends its sessions by itself.
            StatusCode::METHOD_NOT_ALLOWED => Ok(()),
            status if status.is_success() => Ok(()),
            status => Err(StreamableHttpError::Client(HttpError::Status(status))),
        }
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> HttpResult<EventStream> {
        let mut headers = headers(session_id, auth_header, custom_headers)?;
        if let Some(id) = last_event_id {
            let name = HeaderName::from_bytes(HEADER_LAST_EVENT_ID.as_bytes()).map_err(invalid)?;
            headers.push((name, HeaderValue::from_str(&id).map_err(invalid)?));
        }
        let response = self
            .send(Method::GET, &uri, headers, Bytes::new())
            .await
            .map_err(StreamableHttpError::Client)?;
        responses::to_get(response)
    }
}

/// The headers of every request.
fn headers(
    session_id: Option<Arc<str>>,
    token: Option<String>,
    custom_headers: HashMap<HeaderName, HeaderValue>,
) -> HttpResult<Vec<(HeaderName, HeaderValue)>> {
    let mut headers: Vec<_> = custom_headers.into_iter().collect();
    let accepted = format!("{JSON_MIME_TYPE}, {EVENT_STREAM_MIME_TYPE}");
    headers.push((ACCEPT, HeaderValue::from_str(&accepted).map_err(invalid)?));
    if let Some(token) = token {
        let token = HeaderValue::from_str(&format!("Bearer {token}")).map_err(invalid)?;
        headers.push((AUTHORIZATION, token));
    }
    if let Some(id) = session_id {
        let name = HeaderName::from_bytes(HEADER_SESSION_ID.as_bytes()).map_err(invalid)?;
        headers.push((name, HeaderValue::from_str(&id).map_err(invalid)?));
    }
    Ok(headers)
}

fn invalid(error: impl Into<http::Error>) -> StreamableHttpError<HttpError> {
    StreamableHttpError::Client(HttpError::Request(error.into()))
}

/// Where `response` to a request of `url` sends us.
fn redirect(url: &Uri, response: &Response<Incoming>) -> Result<Option<Uri>, HttpError> {
    let keeps_method = matches!(
        response.status(),
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
    );
    let location = response.headers().get(LOCATION).filter(|_| keeps_method);
    let Some(location) = location.and_then(|location| location.to_str().ok()) else {
        return Ok(None);
    };
    let elsewhere = || HttpError::Redirect(without_secrets(location));
    let next: Uri = location.parse().map_err(|_| elsewhere())?;
    if next.authority().is_none() && location.starts_with('/') {
        let mut parts = url.clone().into_parts();
        parts.path_and_query = next.path_and_query().cloned();
        return Uri::from_parts(parts).map(Some).map_err(|_| elsewhere());
    }
    if (next.scheme(), next.authority()) == (url.scheme(), url.authority()) {
        Ok(Some(next))
    } else {
        Err(elsewhere())
    }
}

/// Trusts the system's authorities.
fn tls_config() -> Result<rustls::ClientConfig, HttpError> {
    let mut roots = rustls::RootCertStore::empty();
    // Single unreadable system certificates are common and harmless.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(HttpError::NoRoots);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth())
}
