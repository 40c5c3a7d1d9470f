//! The requests of a sign-in: to addresses that the policy allows, without redirects to other origins, bounded in size and time.

mod address_policy;
mod connection;
mod observed;
mod proxy_finder;

use std::sync::Arc;
use std::time::Duration;

use http::header::{CONTENT_TYPE, HOST, LOCATION, USER_AGENT};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use tokio::time::timeout;
use url::Url;

use crate::server_key::host_of;
use crate::{AuthError, AuthSettings};
pub(crate) use address_policy::AddressPolicy;
use connection::Connector;
pub(crate) use observed::ObservedClient;
pub use proxy_finder::{HttpProxy, ProxyFinder};

/// Metadata and tokens are a few kilobytes.
const ANSWER_MAX: usize = 1024 * 1024;
/// From the resolution of the name to the last byte of the answer.
const DEADLINE: Duration = Duration::from_secs(30);

/// Sends requests to whatever a server may lead to. Clones share the certificate authorities.
#[derive(Debug, Clone)]
pub(crate) struct SafeClient {
    connector: Arc<Connector>,
    deadline: Duration,
}

impl SafeClient {
    pub(crate) fn new(policy: AddressPolicy, settings: &AuthSettings) -> SafeClient {
        SafeClient {
            connector: Arc::new(Connector::new(policy, settings)),
            deadline: DEADLINE,
        }
    }

    pub(crate) fn policy(&self) -> &AddressPolicy {
        self.connector.policy()
    }

    /// The same client with less patience.
    pub(crate) fn with_deadline(&self, deadline: Duration) -> SafeClient {
        SafeClient {
            connector: Arc::clone(&self.connector),
            deadline,
        }
    }

    /// Sends one request and reads its answer. No redirect is followed. One that would take a body or credentials
    /// anywhere, or that leaves the origin, is an error.
    pub(crate) async fn send(
        &self,
        request: Request<Vec<u8>>,
    ) -> Result<Response<Vec<u8>>, AuthError> {
        let url = Url::parse(&request.uri().to_string()).map_err(|_| AuthError::InsecureUrl {
            server: host_of(self.policy().server()),
            host: "a malformed URL".to_owned(),
        })?;
        self.policy().check(&url)?;
        let is_read = request.method() == Method::GET;
        let answered = timeout(self.deadline, self.exchange(&url, request)).await;
        let response = answered.map_err(|_| AuthError::TooSlow {
            host: host_of(&url),
            seconds: self.deadline.as_secs(),
        })??;
        match response.status().is_redirection() && !(is_read && stays_in_origin(&url, &response)) {
            true => Err(AuthError::Redirected {
                host: host_of(&url),
            }),
            false => Ok(response),
        }
    }

    async fn exchange(
        &self,
        url: &Url,
        mut request: Request<Vec<u8>>,
    ) -> Result<Response<Vec<u8>>, AuthError> {
        let origin_form = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        let bad = |error: String| unreachable(url, error);
        *request.uri_mut() = origin_form
            .parse()
            .map_err(|error: http::uri::InvalidUri| bad(error.to_string()))?;
        let host = HeaderValue::from_str(&host_of(url)).map_err(|error| bad(error.to_string()))?;
        let headers = request.headers_mut();
        headers.insert(HOST, host);
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        let mut sender = self.connector.connect(url).await?;
        let request = request.map(|body| Full::new(Bytes::from(body)));
        let sent = sender.send_request(request).await;
        let (head, body) = sent.map_err(|error| bad(error.to_string()))?.into_parts();
        let body = match is_event_stream(&head.headers) {
            // Its end may never come, and nobody asked for events.
            true => Vec::new(),
            false => read_body(url, body).await?,
        };
        Ok(Response::from_parts(head, body))
    }
}

const AGENT: &str = concat!("mcp-proxy/", env!("CARGO_PKG_VERSION"));

async fn read_body(url: &Url, mut body: Incoming) -> Result<Vec<u8>, AuthError> {
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| unreachable(url, error.to_string()))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if bytes.len() + data.len() > ANSWER_MAX {
            return Err(AuthError::TooLarge {
                host: host_of(url),
                limit: ANSWER_MAX,
            });
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}

fn is_event_stream(headers: &http::HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

fn stays_in_origin(url: &Url, response: &Response<Vec<u8>>) -> bool {
    let Some(location) = response.headers().get(LOCATION) else {
        return response.status() == StatusCode::NOT_MODIFIED;
    };
    let next = location.to_str().ok().and_then(|next| url.join(next).ok());
    next.is_some_and(|next| next.origin() == url.origin())
}

fn unreachable(url: &Url, why: String) -> AuthError {
    AuthError::Unreachable {
        host: host_of(url),
        why,
    }
}
