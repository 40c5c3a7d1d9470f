//! The headers without which a browser does not let a page of another origin use a listener (CORS, the Fetch standard).
//!
//! Only origins that the user named get them. Requests from loopback origins are admitted without, but a browser lets their
//! pages read nothing.

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use mcp_proxy_wire::headers::remove_in_order;

use super::admission::Admission;
use super::listener::{HttpResponse, bare};

/// Sent when a page of a public site wants to connect to a private address, and the answer to it.
const REQUEST_PRIVATE_NETWORK: HeaderName =
    HeaderName::from_static("access-control-request-private-network");
const ALLOW_PRIVATE_NETWORK: HeaderName =
    HeaderName::from_static("access-control-allow-private-network");

/// What MCP clients send, for a preflight that names no headers.
const REQUEST_HEADERS: HeaderValue = HeaderValue::from_static(
    "Authorization, Content-Type, Accept, Last-Event-ID, Mcp-Session-Id, MCP-Protocol-Version, Mcp-Method, Mcp-Name",
);
/// What MCP clients read in an answer.
const EXPOSED_HEADERS: HeaderValue =
    HeaderValue::from_static("Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate, Retry-After");
const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE, OPTIONS");
/// How long a browser may remember a preflight, in seconds.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// The origin of a request, if it is one that the user named.
pub(super) fn named_origin(admission: &Admission, headers: &HeaderMap) -> Option<HeaderValue> {
    if admission.origins.is_empty() {
        return None;
    }
    let origin = headers.get(ORIGIN)?;
    let text = origin.to_str().ok()?;
    admission.names_origin(text).then(|| origin.clone())
}

/// Whether a browser asks if it may send another request. It asks without credentials.
pub(super) fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    *method == Method::OPTIONS && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// The answer to a preflight of a named origin, without [`allow`]'s part of it.
pub(super) fn preflight_answer(asked: &HeaderMap) -> HttpResponse {
    let mut answer = bare(204);
    let headers = answer.headers_mut();
    // Any header is allowed: those that carry arguments of tools have names that only the client knows.
    let wanted = asked.get(ACCESS_CONTROL_REQUEST_HEADERS).cloned();
    let wanted = wanted.unwrap_or(REQUEST_HEADERS);
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, wanted);
    headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    if asked.contains_key(REQUEST_PRIVATE_NETWORK) {
        headers.insert(ALLOW_PRIVATE_NETWORK, HeaderValue::from_static("true"));
    }
    answer
}

/// Lets a page of this origin read the answer. A server's own header is replaced, because an answer may name only one origin.
/// If the server did not name this origin itself, its consent to credentials (cookies) does not count for it: a browser refuses
/// them with `*`, and must not take them because another name stands there now.
pub(super) fn allow(answer: &mut HttpResponse, origin: HeaderValue) {
    let headers = answer.headers_mut();
    if headers.get(ACCESS_CONTROL_ALLOW_ORIGIN) != Some(&origin) {
        remove_in_order(headers, |name| *name == ACCESS_CONTROL_ALLOW_CREDENTIALS);
    }
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.append(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED_HEADERS);
    headers.append(VARY, HeaderValue::from_static("Origin"));
}
