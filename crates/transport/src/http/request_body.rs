//! The body of a client's POST where HTTP ends here, and what a client is told about one that cannot be used.

use std::time::Duration;

use bytes::Bytes;
use mcp_proxy_core::MemoryBudget;
use mcp_proxy_wire::{ErrorCode, Message, is_blank};
use tokio::time::timeout;

use super::collect::{CollectedBody, collect};
use super::incoming_body::IncomingBody;
use super::listener::{HttpResponse, error};

/// How much of a refused body is read, and for how long.
const DISCARD_MAX: u64 = 256 << 20;
const DISCARD_DEADLINE: Duration = Duration::from_secs(10);

/// The whole body, or the answer for a client whose body is too large, finds no room in memory, or broke off.
pub(crate) async fn whole_body(
    body: impl Into<IncomingBody>,
    max: usize,
    memory: &MemoryBudget,
) -> Result<Bytes, Box<HttpResponse>> {
    match collect(body, max, memory).await {
        CollectedBody::Whole(bytes) => Ok(bytes),
        refused => Err(Box::new(refuse_body(refused, max).await)),
    }
}

/// The answer to a request whose body cannot be used, once its client has sent the rest of it.
pub(crate) async fn refuse_body(body: CollectedBody, max: usize) -> HttpResponse {
    match body {
        CollectedBody::Whole(_) => too_large(max),
        CollectedBody::TooLarge(rest) => {
            discard(rest).await;
            too_large(max)
        }
        CollectedBody::NoRoom(over, rest) => {
            discard(rest).await;
            error(503, ErrorCode::MEMORY_BUDGET, &over.to_string())
        }
        CollectedBody::Broken(_, why) => broke_off(&why),
    }
}

/// Reads the rest of a body that is refused, within limits. Many clients read the answer only when they have written all of
/// their request; if the connection were closed before, their write would fail and they would never see why.
pub(crate) async fn discard(body: impl Into<IncomingBody>) {
    let mut body = body.into();
    if body.length().is_some_and(|length| length > DISCARD_MAX) {
        return;
    }
    let reading = async {
        let mut left = DISCARD_MAX;
        while let Some(Ok(piece)) = body.next().await {
            let length = u64::try_from(piece.len()).unwrap_or(u64::MAX);
            let Some(rest) = left.checked_sub(length) else {
                break;
            };
            left = rest;
        }
    };
    // What has not come by then is not waited for.
    let _ = timeout(DISCARD_DEADLINE, reading).await;
}

/// The answer to a request whose body did not arrive.
fn broke_off(why: &str) -> HttpResponse {
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
