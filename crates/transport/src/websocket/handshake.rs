//! The opening handshake of a WebSocket (RFC 6455, 4.2).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use mcp_proxy_wire::ErrorCode;
use tungstenite::handshake::derive_accept_key;

use super::{SocketOptions, WebSocket};
use crate::http::listener::error;
use crate::http::{HttpResponse, PendingUpgrade};

/// The only version there is.
const VERSION: &str = "13";

/// Answers a request for a WebSocket. If its handshake is right, the answer is 101, and `serve` runs with the socket in a task of its
/// own until it is done or the listener stops.
pub fn accept_websocket<B, S, F>(
    request: &mut Request<B>,
    options: SocketOptions,
    serve: S,
) -> HttpResponse
where
    S: FnOnce(WebSocket) -> F + Send + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let headers = match check(request) {
        Ok(headers) => headers,
        Err(refusal) => return refusal.answer(),
    };
    let Some(upgrade) = PendingUpgrade::take(request) else {
        return HandshakeRefusal::NotHttp11.answer();
    };
    upgrade.accept(headers, move |stream| {
        serve(WebSocket::new(stream, &options))
    })
}

/// What is wrong with a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HandshakeRefusal {
    NotGet,
    NoUpgrade,
    NoConnectionUpgrade,
    OtherVersion,
    BadKey,
    NotHttp11,
}

impl HandshakeRefusal {
    fn answer(self) -> HttpResponse {
        let (status, text) = match self {
            HandshakeRefusal::NotGet => (400, "a WebSocket is opened with GET"),
            HandshakeRefusal::NoUpgrade => (426, "only WebSockets are served at this path"),
            HandshakeRefusal::NoConnectionUpgrade => {
                (400, "the header Connection does not name Upgrade")
            }
            HandshakeRefusal::OtherVersion => (426, "only WebSocket version 13 is spoken"),
            HandshakeRefusal::BadKey => (400, "the header Sec-WebSocket-Key is missing or wrong"),
            HandshakeRefusal::NotHttp11 => (400, "a WebSocket is opened over HTTP/1.1"),
        };
        let mut answer = error(status, ErrorCode::BAD_REQUEST, text);
        let headers = answer.headers_mut();
        if status == 426 {
            headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
            headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
            headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static(VERSION));
        }
        answer
    }
}

/// The headers of the answer, if the handshake is right.
fn check<B>(request: &Request<B>) -> Result<HeaderMap, HandshakeRefusal> {
    let headers = request.headers();
    if !lists(headers, &UPGRADE, "websocket") {
        return Err(HandshakeRefusal::NoUpgrade);
    }
    if request.method() != Method::GET {
        return Err(HandshakeRefusal::NotGet);
    }
    if !lists(headers, &CONNECTION, "upgrade") {
        return Err(HandshakeRefusal::NoConnectionUpgrade);
    }
    if headers
        .get(SEC_WEBSOCKET_VERSION)
        .is_none_or(|it| it != VERSION)
    {
        return Err(HandshakeRefusal::OtherVersion);
    }
    let key = headers.get(SEC_WEBSOCKET_KEY).map(HeaderValue::as_bytes);
    let key = key.filter(|key| STANDARD.decode(key).is_ok_and(|nonce| nonce.len() == 16));
    let key = key.ok_or(HandshakeRefusal::BadKey)?;
    // Base64, so it is always a header value.
    let accept = HeaderValue::try_from(derive_accept_key(key));
    let accept = accept.map_err(|_| HandshakeRefusal::BadKey)?;
    let mut answer = HeaderMap::with_capacity(3);
    answer.insert(UPGRADE, HeaderValue::from_static("websocket"));
    answer.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    answer.insert(SEC_WEBSOCKET_ACCEPT, accept);
    Ok(answer)
}

/// Whether a header that is a list, or one of several, has this item.
fn lists(headers: &HeaderMap, name: &HeaderName, item: &str) -> bool {
    let values = headers.get_all(name).into_iter();
    let values = values.filter_map(|value| value.to_str().ok());
    let mut items = values.flat_map(|value| value.split(',').map(str::trim));
    items.any(|listed| listed.eq_ignore_ascii_case(item))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The client's handshake of RFC 6455, 1.3, as browsers send it, with some headers changed; `""` leaves one out.
    fn handshake(changes: &[(&str, &str)]) -> Result<HeaderMap, HandshakeRefusal> {
        let mut headers = vec![
            ("upgrade", "websocket"),
            ("connection", "keep-alive, Upgrade"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ("sec-websocket-version", "13"),
            (
                "sec-websocket-extensions",
                "permessage-deflate; client_max_window_bits",
            ),
            ("sec-websocket-protocol", "chat, relay"),
        ];
        headers.retain(|(name, _)| changes.iter().all(|(changed, _)| changed != name));
        headers.extend(changes.iter().filter(|(_, value)| !value.is_empty()));
        let builder = headers
            .iter()
            .fold(Request::builder(), |it, (name, value)| match *name {
                "method" => it.method(*value),
                _ => it.header(*name, *value),
            });
        check(&builder.body(()).unwrap())
    }

    #[test]
    fn the_handshake_of_the_rfc_is_granted_without_extensions_and_subprotocols() {
        let answer = handshake(&[]).unwrap();
        assert_eq!(answer["upgrade"], "websocket");
        assert_eq!(answer["connection"], "Upgrade");
        let accept = &answer["sec-websocket-accept"];
        assert_eq!(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_eq!(answer.len(), 3);
    }

    #[test]
    fn other_handshakes_are_refused() {
        for (header, value, refusal, status) in [
            ("upgrade", "", HandshakeRefusal::NoUpgrade, 426),
            ("upgrade", "h2c", HandshakeRefusal::NoUpgrade, 426),
            ("connection", "", HandshakeRefusal::NoConnectionUpgrade, 400),
            (
                "connection",
                "close",
                HandshakeRefusal::NoConnectionUpgrade,
                400,
            ),
            (
                "sec-websocket-version",
                "",
                HandshakeRefusal::OtherVersion,
                426,
            ),
            (
                "sec-websocket-version",
                "8",
                HandshakeRefusal::OtherVersion,
                426,
            ),
            ("sec-websocket-key", "", HandshakeRefusal::BadKey, 400),
            (
                "sec-websocket-key",
                "dGhlIHNhbXBsZQ==",
                HandshakeRefusal::BadKey,
                400,
            ),
            (
                "sec-websocket-key",
                "not base64 at all",
                HandshakeRefusal::BadKey,
                400,
            ),
            ("method", "POST", HandshakeRefusal::NotGet, 400),
        ] {
            let found = handshake(&[(header, value)]);
            assert_eq!(found.err(), Some(refusal), "{header}: {value}");
            let answer = refusal.answer();
            assert_eq!(answer.status(), status);
            let version = answer.headers().get(SEC_WEBSOCKET_VERSION);
            assert_eq!(version.is_some(), status == 426);
        }
    }

    #[test]
    fn a_request_without_an_upgrade_is_refused() {
        let mut request = Request::builder()
            .header(UPGRADE, "websocket")
            .header(CONNECTION, "upgrade")
            .header(SEC_WEBSOCKET_VERSION, VERSION)
            .header(SEC_WEBSOCKET_KEY, "dGhlIHNhbXBsZSBub25jZQ==")
            .body(())
            .unwrap();
        let answer = accept_websocket(&mut request, SocketOptions::default(), |_| async {});
        assert_eq!(answer.status(), 400);
    }
}
