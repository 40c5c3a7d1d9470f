//! What the protocol says about HTTP headers, as pure functions on a header map.
//!
//! Which request goes where is not decided here, and nothing is sent. The rules for 2026-07-28 are those of SEP-2243:
//! the version, the method, the name and annotated arguments of a request stand in headers as well as in the body, and
//! both must agree.

mod edits;
mod modern;
mod params;
mod value;

use http::header::{
    ACCEPT, CONNECTION, CONTENT_TYPE, HeaderMap, HeaderName, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};

pub use edits::{HeaderEditError, HeaderEdits};
pub use modern::{
    HeaderFault, check_modern_headers, modern_request_headers, modern_status,
    update_headers_for_edit,
};
pub use params::{ParamHeader, infer_param_headers, param_headers};
pub use value::{decode_value, encode_value};

/// `Mcp-Session-Id`, which names a legacy session.
pub const MCP_SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// `MCP-Protocol-Version`.
pub const MCP_PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// `Mcp-Method`.
pub const MCP_METHOD: HeaderName = HeaderName::from_static("mcp-method");
/// `Mcp-Name`.
pub const MCP_NAME: HeaderName = HeaderName::from_static("mcp-name");
/// `Last-Event-ID`.
pub const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// How the name of a header begins that carries an argument.
pub const MCP_PARAM_PREFIX: &str = "mcp-param-";

/// Headers that concern one connection only (RFC 9110 section 7.6.1, and those that proxies by custom keep to
/// themselves).
const HOP_BY_HOP: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    HeaderName::from_static("proxy-connection"),
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Removes what must not be passed on: the hop-by-hop headers and those that `Connection` names.
pub fn strip_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = match headers.contains_key(CONNECTION) {
        true => headers
            .get_all(CONNECTION)
            .iter()
            .flat_map(|value| value.as_bytes().split(|&byte| byte == b','))
            .filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok())
            .collect(),
        false => Vec::new(),
    };
    remove_in_order(headers, |name| {
        HOP_BY_HOP.contains(name) || named.contains(name)
    });
}

/// Removes the headers that `is_removed` names. The others keep their order, which [`HeaderMap::remove`] does not
/// promise: it moves the last header into the gap.
pub fn remove_in_order(headers: &mut HeaderMap, is_removed: impl Fn(&HeaderName) -> bool) {
    // Comparing names is cheap, and mostly there is nothing to remove.
    if !headers.keys().any(&is_removed) {
        return;
    }
    let all = std::mem::take(headers);
    headers.reserve(all.keys_len());
    let mut kept = None;
    for (name, value) in all {
        // Of a header with several values, only the first comes with the name.
        if let Some(name) = name {
            kept = (!is_removed(&name)).then_some(name);
        }
        if let Some(name) = &kept {
            headers.append(name, value);
        }
    }
}

/// Whether the body is an event stream.
pub fn is_sse(headers: &HeaderMap) -> bool {
    media_type(headers).is_some_and(|kind| kind.eq_ignore_ascii_case(b"text/event-stream"))
}

/// Whether the body is JSON.
pub fn is_json(headers: &HeaderMap) -> bool {
    media_type(headers).is_some_and(|kind| kind.eq_ignore_ascii_case(b"application/json"))
}

/// Whether the sender takes an event stream for an answer. Without an `Accept` header it takes anything.
pub fn accepts_sse(headers: &HeaderMap) -> bool {
    if !headers.contains_key(ACCEPT) {
        return true;
    }
    let values = headers.get_all(ACCEPT).iter();
    values
        .flat_map(|value| value.as_bytes().split(|&byte| byte == b','))
        .any(|range| {
            let mut parts = range.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
            let Some(media) = parts.next() else {
                return false;
            };
            let mut halves = media.splitn(2, |&byte| byte == b'/');
            let fits = |half: Option<&[u8]>, wanted: &[u8]| {
                half.is_some_and(|half| half == b"*" || half.eq_ignore_ascii_case(wanted))
            };
            let is_sse = fits(halves.next(), b"text") && fits(halves.next(), b"event-stream");
            is_sse && !parts.any(refuses)
        })
}

fn media_type(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(CONTENT_TYPE)?.as_bytes();
    value
        .split(|&byte| byte == b';')
        .next()
        .map(<[u8]>::trim_ascii)
}

/// Whether a parameter of a media range is a weight of zero.
fn refuses(parameter: &[u8]) -> bool {
    let Some(weight) = parameter
        .strip_prefix(b"q=")
        .or(parameter.strip_prefix(b"Q="))
    else {
        return false;
    };
    weight.first() == Some(&b'0') && weight.iter().all(|byte| matches!(byte, b'0' | b'.'))
}
