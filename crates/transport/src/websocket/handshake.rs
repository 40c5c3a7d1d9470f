//! The opening handshake of a WebSocket (RFC 6455, 4.2).

use std::sync::Arc;

use http::header::{CONNECTION, SEC_WEBSOCKET_VERSION, UPGRADE};
use http::{HeaderValue, Request};
use mcp_proxy_core::{Link, MemoryBudget};
use mcp_proxy_wire::ErrorCode;
use tungstenite::error::{Error, ProtocolError};
use tungstenite::handshake::server::create_response_with_body;

use super::link::websocket_link;
use super::{SocketOptions, WebSocketHandle};
use crate::http::listener::error;
use crate::http::{HttpResponse, PendingUpgrade};

/// Answers a request for a WebSocket. If its handshake is right, the answer is 101, and `serve` runs with the link of the socket in a
/// task of its own until it is done or the listener stops. Large messages count in `memory`.
pub fn accept_websocket<B, S, F>(
    request: &mut Request<B>,
    options: SocketOptions,
    memory: MemoryBudget,
    serve: S,
) -> HttpResponse
where
    S: FnOnce(Link, Arc<WebSocketHandle>) -> F + Send + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    if !request.headers().contains_key(UPGRADE) {
        return refusal(&ProtocolError::MissingUpgradeWebSocketHeader.into());
    }
    let answer = match create_response_with_body(request, || ()) {
        Ok(answer) => answer,
        Err(wrong) => return refusal(&wrong),
    };
    let Some(upgrade) = PendingUpgrade::take(request) else {
        return refusal(&ProtocolError::WrongHttpVersion.into());
    };
    let (parts, ()) = answer.into_parts();
    upgrade.accept(parts.headers, move |stream| {
        let (link, handle) = websocket_link(stream, options, &memory);
        serve(link, handle)
    })
}

/// What is wrong with a handshake.
fn refusal(wrong: &Error) -> HttpResponse {
    let (status, text) = match wrong {
        Error::Protocol(ProtocolError::MissingUpgradeWebSocketHeader) => {
            (426, "only WebSockets are served at this path")
        }
        Error::Protocol(ProtocolError::MissingSecWebSocketVersionHeader) => {
            (426, "only WebSocket version 13 is spoken")
        }
        Error::Protocol(ProtocolError::MissingConnectionUpgradeHeader) => {
            (400, "the header Connection does not name Upgrade")
        }
        Error::Protocol(
            ProtocolError::MissingSecWebSocketKey | ProtocolError::InvalidSecWebSocketKey,
        ) => (400, "the header Sec-WebSocket-Key is missing or wrong"),
        _ => (400, "a WebSocket is opened with GET over HTTP/1.1"),
    };
    let mut answer = error(status, ErrorCode::BAD_REQUEST, text);
    if status == 426 {
        let headers = answer.headers_mut();
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer to the client's handshake of RFC 6455, 1.3, as browsers send it, with a header changed; `""` leaves it out.
    fn answer_to(changed: &str, changed_value: &str) -> HttpResponse {
        let mut request = Request::builder();
        for (name, value) in [
            ("upgrade", "websocket"),
            ("connection", "keep-alive, Upgrade"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ("sec-websocket-version", "13"),
            ("sec-websocket-extensions", "permessage-deflate"),
        ] {
            match name == changed {
                false => request = request.header(name, value),
                true if changed_value.is_empty() => {}
                true => request = request.header(name, changed_value),
            }
        }
        if changed == "method" {
            request = request.method(changed_value);
        }
        let (options, memory) = (SocketOptions::default(), MemoryBudget::default());
        let mut request = request.body(()).unwrap();
        accept_websocket(&mut request, options, memory, |_, _| async {})
    }

    #[test]
    fn other_handshakes_are_refused() {
        for (header, value, status) in [
            ("upgrade", "", 426),
            ("upgrade", "h2c", 426),
            ("connection", "", 400),
            ("connection", "close", 400),
            ("sec-websocket-version", "", 426),
            ("sec-websocket-version", "8", 426),
            ("sec-websocket-key", "", 400),
            ("sec-websocket-key", "dGhlIHNhbXBsZQ==", 400),
            ("sec-websocket-key", "not base64 at all", 400),
            ("method", "POST", 400),
            // This one is right, but its connection cannot be upgraded.
            ("", "", 400),
        ] {
            let answer = answer_to(header, value);
            assert_eq!(answer.status(), status, "{header}: {value}");
            let version = answer.headers().get(SEC_WEBSOCKET_VERSION);
            assert_eq!(version.is_some(), status == 426);
        }
    }
}
