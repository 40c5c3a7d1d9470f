//! The body of a client's POST where HTTP ends here, and what a client is told about one that cannot be used.

use bytes::Bytes;
use mcp_proxy_wire::{ErrorCode, Message, is_blank};

use super::collect::{Collected, collect};
use super::inflow::Inflow;
use super::listener::{Answer, error};

/// The whole body, or the answer for a client whose body is too large or broke off.
pub(crate) async fn whole_body(body: impl Into<Inflow>, max: usize) -> Result<Bytes, Box<Answer>> {
    match collect(body, max).await {
        Collected::Whole(bytes) => Ok(bytes),
        Collected::More(..) => Err(Box::new(too_large(max))),
        Collected::Broken(_, why) => Err(Box::new(broke_off(&why))),
    }
}

/// The answer to a request whose body did not arrive.
pub(crate) fn broke_off(why: &str) -> Answer {
    let text = format!("the request's body broke off: {why}");
    error(400, ErrorCode::BAD_REQUEST, &text)
}

/// What to say of a body that cannot be read.
pub(crate) fn unreadable(message: &Message) -> &'static str {
    match is_blank(message.raw()) {
        true => "there is no message in the body",
        false => "the body is no JSON",
    }
}

/// The answer to a request that is larger than allowed.
pub(crate) fn too_large(max: usize) -> Answer {
    let text = format!("a message may have {max} bytes at most (--max-message)");
    error(413, ErrorCode::TOO_LARGE, &text)
}
