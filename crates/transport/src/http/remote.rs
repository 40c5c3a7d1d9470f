//! The server we speak to over HTTP: connections that are reused, TLS, our own headers, redirects.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use http::header::{ACCEPT_ENCODING, AUTHORIZATION, LOCATION};
use http::uri::{Authority, PathAndQuery};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, Uri, request};
use mcp_proxy_core::{Connection, LinkEnd};
use mcp_proxy_wire::{ErrorCode, Side};
use tokio::time::timeout;

use super::body_length;
use super::http_client::{HttpClient, RequestError, Resent};
use super::incoming_body::IncomingBody;
use super::outbound_proxy::OutboundProxy;
use super::outgoing_body::OutgoingBody;
use super::token_source::{self, AfterRefusal, RefusedRequest, TokenSource};
use super::tool_headers::ToolHeaders;
use crate::tls;

/// A server may think long about a request (a model, a build), but not for ever.
const ANSWER_DEADLINE: Duration = Duration::from_secs(3600);
const REDIRECTS_MAX: usize = 5;

/// Where the server is and what every request to it carries.
#[derive(Clone)]
pub struct RemoteServerOptions {
    /// Its URL.
    pub url: Uri,
    /// `--header`: these win over what the client sends.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// `--ca-file`: certificate authorities in addition to the system's.
    pub ca_file: Option<std::path::PathBuf>,
    /// A server that takes nothing for this long is given up.
    pub stall: Duration,
    /// What is known of its tools; shared with others that speak to it.
    pub tools: Arc<ToolHeaders>,
    /// The HTTP proxy on the way to it.
    pub proxy: Option<OutboundProxy>,
    /// Where requests without an `Authorization` header get one.
    pub tokens: Option<Arc<dyn TokenSource>>,
}

/// The server.
pub struct RemoteServer {
    client: HttpClient,
    url: Uri,
    headers: Vec<(HeaderName, HeaderValue)>,
    tools: Arc<ToolHeaders>,
    tokens: Option<Arc<dyn TokenSource>>,
    /// The HTTP proxy on the way to it, for texts.
    proxy: Option<String>,
}

impl RemoteServer {
    /// Makes the client; nothing is dialled yet.
    pub fn new(options: RemoteServerOptions) -> Result<Arc<RemoteServer>, tls::TlsError> {
        let (url, credentials) = without_credentials(options.url);
        // The last of a name is sent: `--header` wins over the URL as over the client.
        let headers: Vec<_> = credentials.into_iter().chain(options.headers).collect();
        let ca_file = options.ca_file.as_deref();
        let proxy = options.proxy.as_ref().map(OutboundProxy::shown);
        let client = HttpClient::new(&url, ca_file, options.stall, options.proxy)?;
        Ok(Arc::new(RemoteServer {
            client,
            url,
            headers,
            tools: options.tools,
            tokens: options.tokens,
            proxy,
        }))
    }

    /// Which arguments of its tools it wants in headers.
    pub fn tools(&self) -> &Arc<ToolHeaders> {
        &self.tools
    }

    /// The server's URL, without credentials.
    pub fn url(&self) -> &Uri {
        &self.url
    }

    /// The URL for a client's request: our target, with what the client's own query adds.
    pub fn url_with_query(&self, query: Option<&str>) -> Uri {
        let Some(query) = query.filter(|query| !query.is_empty()) else {
            return self.url.clone();
        };
        let path = self.url.path();
        let joined = match self.url.query() {
            Some(own) => format!("{path}?{own}&{query}"),
            None => format!("{path}?{query}"),
        };
        self.at(&joined)
    }

    /// The same origin, another path and query.
    pub fn at(&self, path_and_query: &str) -> Uri {
        let mut parts = self.url.clone().into_parts();
        if let Ok(path) = PathAndQuery::try_from(path_and_query) {
            parts.path_and_query = Some(path);
        }
        Uri::from_parts(parts).unwrap_or_else(|_| self.url.clone())
    }

    /// Resolves a reference the server gave (an endpoint, a Location) against `base`; another origin is refused.
    pub fn same_origin(&self, base: &Uri, reference: &str) -> Result<Uri, String> {
        let target =
            resolve(base, reference).ok_or_else(|| format!("`{reference}` is not a URL"))?;
        if target.scheme() == self.url.scheme() && authority_of(&target) == authority_of(&self.url)
        {
            Ok(target)
        } else {
            Err(format!(
                "`{reference}` is on another origin than {}",
                origin_of(&self.url)
            ))
        }
    }

    /// Sends a request as the client made it, less what belongs to the hop, and follows same-origin redirects.
    pub async fn send(
        &self,
        method: Method,
        url: Uri,
        mut headers: HeaderMap,
        payload: OutgoingBody,
    ) -> Result<Response<IncomingBody>, LinkEnd> {
        body_length::restate_in_request(&mut headers, &payload);
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        for (name, value) in &self.headers {
            headers.insert(name.clone(), value.clone());
        }
        // For a redirect, which may come after any number of other answers.
        let (mut parts, ()) = Request::new(()).into_parts();
        (parts.method, parts.uri, parts.headers) = (method, url, headers);
        match &self.tokens {
            Some(tokens) if token_source::is_without_token(&parts.headers) => {
                Box::pin(self.send_with_token(&**tokens, parts, payload)).await
            }
            _ => self.send_and_follow(parts, payload).await,
        }
    }

    /// Sends a request with the token of the sign-in, if there is one, and once more if the server refuses it and there is a
    /// better one by then. If not, the answer says what a person has to do.
    async fn send_with_token(
        &self,
        tokens: &dyn TokenSource,
        mut parts: request::Parts,
        payload: OutgoingBody,
    ) -> Result<Response<IncomingBody>, LinkEnd> {
        let mut token = tokens.token().await.map_err(|what| self.failure(what))?;
        let mut copy = payload.copy();
        let mut body = Some(payload);
        let mut is_repeated = false;
        while let Some(payload) = body.take() {
            if let Some(token) = &token {
                parts.headers.insert(AUTHORIZATION, token.clone());
            }
            let mut response = self.send_and_follow(parts.clone(), payload).await?;
            let Some(challenges) = token_source::challenges(&response) else {
                return Ok(response);
            };
            let refused = RefusedRequest {
                token: token.as_ref(),
                status: response.status(),
                challenges,
                is_repeated,
            };
            let after = tokens.refused(refused).await;
            match after.map_err(|what| self.failure(what))? {
                AfterRefusal::SendAgain(better) if copy.is_some() => {
                    (token, body) = (Some(better), copy.take());
                    is_repeated = true;
                }
                AfterRefusal::SignInNeeded(needed) => {
                    response.extensions_mut().insert(needed);
                    return Ok(response);
                }
                AfterRefusal::SendAgain(_) | AfterRefusal::PassOn => return Ok(response),
            }
        }
        Err(self.failure("refuses every token".to_owned()))
    }

    async fn send_and_follow(
        &self,
        parts: request::Parts,
        payload: OutgoingBody,
    ) -> Result<Response<IncomingBody>, LinkEnd> {
        let copy = payload.copy();
        let response = self.send_once(&parts, payload).await?;
        match location(&response) {
            None => Ok(response),
            Some(next) => Box::pin(self.follow(parts, copy, next)).await,
        }
    }

    /// Sends a request where redirects say.
    async fn follow(
        &self,
        mut parts: request::Parts,
        copy: Option<OutgoingBody>,
        mut next: String,
    ) -> Result<Response<IncomingBody>, LinkEnd> {
        for _ in 0..REDIRECTS_MAX {
            parts.uri = self.same_origin(&parts.uri, &next).map_err(|why| {
                self.failure(format!(
                    "redirects elsewhere: {why}; give that URL as the target"
                ))
            })?;
            let Some(payload) = copy.as_ref().and_then(OutgoingBody::copy) else {
                return Err(
                    self.failure("redirects a request that cannot be sent twice".to_owned())
                );
            };
            let response = self.send_once(&parts, payload).await?;
            match location(&response) {
                None => return Ok(response),
                Some(further) => next = further,
            }
        }
        Err(self.failure(format!("redirects more than {REDIRECTS_MAX} times")))
    }

    async fn send_once(
        &self,
        parts: &request::Parts,
        payload: OutgoingBody,
    ) -> Result<Response<IncomingBody>, LinkEnd> {
        let answer = timeout(ANSWER_DEADLINE, self.client.send(parts, payload)).await;
        let mut answer = answer
            .unwrap_or_else(|_| Err(RequestError::Failed("gave no answer in an hour".to_owned())))
            .map_err(|unsent| match unsent {
                RequestError::Failed(what) => self.failure(what),
                RequestError::Proxy(what) => self.proxy_failure(&what),
                RequestError::Stopped(end) => end,
            })?;
        body_length::restate_in_answer(&parts.method, &mut answer);
        Ok(answer)
    }

    fn failure(&self, what: String) -> LinkEnd {
        LinkEnd::failed(
            Side::Server,
            ErrorCode::SERVER_UNAVAILABLE,
            format!("the server at {}: {what}", origin_of(&self.url)),
        )
    }

    /// The proxy on the way to the server gives no connection.
    fn proxy_failure(&self, what: &str) -> LinkEnd {
        let (server, proxy) = (origin_of(&self.url), self.proxy.as_deref());
        let text = format!(
            "the proxy {}, through which the server at {server} is reached: {what}",
            proxy.unwrap_or("of the environment")
        );
        LinkEnd::failed(Side::Server, ErrorCode::SERVER_UNAVAILABLE, text)
    }
}

/// Notes that the request of this answer was sent twice.
pub(crate) fn note_resent<B>(connection: &Connection, response: &Response<B>) {
    if response.extensions().get::<Resent>().is_some() {
        connection.note(
            "the server closed an idle connection as the request was sent, and the request was sent again on a new one",
        );
    }
}

/// `https://host:port`, for texts.
pub(crate) fn origin_of(url: &Uri) -> String {
    format!(
        "{}://{}",
        url.scheme_str().unwrap_or("http"),
        url.authority().map_or("", Authority::as_str)
    )
}

/// Host and port with the scheme's default filled in, so that `http://h` and `http://h:80` are the same.
fn authority_of(url: &Uri) -> Option<(String, u16)> {
    let port = url.port_u16().or(match url.scheme_str() {
        Some("http") => Some(80),
        Some("https") => Some(443),
        _ => None,
    })?;
    Some((url.host()?.to_ascii_lowercase(), port))
}

/// RFC 3986 as far as servers use it: absolute, `//host`, `/path`, `?query`, `path`.
fn resolve(base: &Uri, reference: &str) -> Option<Uri> {
    let reference = reference.trim();
    if reference.contains("://") {
        return reference.parse().ok();
    }
    let mut parts = base.clone().into_parts();
    if let Some(rest) = reference.strip_prefix("//") {
        return format!("{}://{rest}", base.scheme_str()?).parse().ok();
    }
    let path = if reference.starts_with('/') {
        reference.to_owned()
    } else if reference.starts_with('?') {
        format!("{}{reference}", base.path())
    } else {
        let folder = base
            .path()
            .rsplit_once('/')
            .map_or("", |(folder, _)| folder);
        format!("{folder}/{reference}")
    };
    parts.path_and_query = Some(path.parse().ok()?);
    Uri::from_parts(parts).ok()
}

fn location<B>(response: &Response<B>) -> Option<String> {
    // 304 and 300 are answers, not places to go.
    if !matches!(response.status().as_u16(), 301 | 302 | 307 | 308) {
        return None;
    }
    Some(response.headers().get(LOCATION)?.to_str().ok()?.to_owned())
}

/// `http://user:password@host/` → the URL without them, and an Authorization header.
fn without_credentials(url: Uri) -> (Uri, Option<(HeaderName, HeaderValue)>) {
    let Some(authority) = url.authority().map(Authority::as_str) else {
        return (url, None);
    };
    let Some((credentials, host)) = authority.rsplit_once('@') else {
        return (url, None);
    };
    let header = basic(credentials);
    let host = host.parse::<Authority>();
    let mut parts = url.clone().into_parts();
    parts.authority = host.ok();
    let plain = Uri::from_parts(parts).unwrap_or(url);
    (plain, header)
}

fn basic(credentials: &str) -> Option<(HeaderName, HeaderValue)> {
    let value = format!(
        "Basic {}",
        base64::engine::general_purpose::STANDARD.encode(credentials)
    );
    let mut value = HeaderValue::from_str(&value).ok()?;
    value.set_sensitive(true);
    Some((http::header::AUTHORIZATION, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_resolve_like_a_browser_does() {
        let base: Uri = "http://h:1/a/sse?x=1".parse().unwrap();
        let cases = [
            ("/message?s=1", "http://h:1/message?s=1"),
            ("message?s=1", "http://h:1/a/message?s=1"),
            ("?s=1", "http://h:1/a/sse?s=1"),
            ("http://h:1/m", "http://h:1/m"),
            ("//h:1/m", "http://h:1/m"),
        ];
        for (reference, expected) in cases {
            assert_eq!(resolve(&base, reference).unwrap().to_string(), expected);
        }
    }

    #[test]
    fn credentials_leave_the_url() {
        let (url, header) = without_credentials("http://me:pw@h:1/x".parse().unwrap());
        assert_eq!(url.to_string(), "http://h:1/x");
        assert_eq!(header.unwrap().1, "Basic bWU6cHc=");
    }
}
