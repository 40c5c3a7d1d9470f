//! The body of a client's POST where HTTP ends here, and what a client is told about one that cannot be used.

use bytes::Bytes;
use mcp_proxy_wire::{ErrorCode, Message, is_blank};

use super::collect::{CollectedBody, collect};
use super::incoming_body::IncomingBody;
use super::listener::{HttpResponse, error};

/// The whole body, or the answer for a client whose body is too large or broke off.
pub(crate) async fn whole_body(
    body: impl Into<IncomingBody>,
    max: usize,
) -> Result<Bytes, Box<HttpResponse>> {
    match collect(body, max).await {
        CollectedBody::Whole(bytes) => Ok(bytes),
        CollectedBody::Partial(..) => Err(Box::new(too_large(max))),
        CollectedBody::Broken(_, why) => Err(Box::new(broke_off(&why))),
    }
}

/// The answer to a request whose body did not arrive.
pub(crate) fn broke_off(why: &str) -> HttpResponse {
    let text = format!("the request's body broke off: {why}");
    error(400, ErrorCode::BAD_REQUEST, &text)
}

/// What to say of a body that cannot be read.
pub(crate) fn unreadable(message: &Message) -> &'static str {
    match is_blank(message.raw()) {
        true => "the body contains no message",
        false => "the body is not JSON",
    }
}

/// The answer to a request that is larger than allowed.
pub(crate) fn too_large(max: usize) -> HttpResponse {
    let text = format!("a message may have {max} bytes at most (--max-message)");
    error(413, ErrorCode::TOO_LARGE, &text)
}
