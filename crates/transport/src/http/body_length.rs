//! What a forwarded head says about the length of its body: what the body is, not what its sender claimed.
//!
//! A `Content-Length` that disagrees with how a body was read would let its sender put a message of its choice into the
//! connection of the next peer, past the record (RFC 9112 section 6.3).

use http::header::CONTENT_LENGTH;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use http_body::Body as _;
use mcp_proxy_wire::headers::remove_in_order;

use super::incoming_body::IncomingBody;
use super::outgoing_body::OutgoingBody;

/// Makes the head of a request fit the body that is sent.
pub(super) fn restate_in_request(headers: &mut HeaderMap, body: &OutgoingBody) {
    match body.size_hint().exact() {
        Some(length) => restate(headers, length),
        None => remove_in_order(headers, is_length),
    }
}

/// Makes the head of an answer say how its body was read.
pub(super) fn restate_in_answer(asked: &Method, answer: &mut Response<IncomingBody>) {
    let length = match answer.status() {
        // The length of a body that is not sent.
        _ if *asked == Method::HEAD => stated(answer.headers()),
        StatusCode::NOT_MODIFIED => stated(answer.headers()),
        StatusCode::NO_CONTENT => None,
        _ => answer.body().length(),
    };
    match length {
        Some(length) => restate(answer.headers_mut(), length),
        None => remove_in_order(answer.headers_mut(), is_length),
    }
}

/// The one length that a head states, if it states one.
pub(super) fn stated(headers: &HeaderMap) -> Option<u64> {
    let values = headers.get_all(CONTENT_LENGTH).iter();
    let mut lengths = values.flat_map(|value| {
        let items = value.as_bytes().split(|byte| *byte == b',');
        items.map(|item| std::str::from_utf8(item).ok()?.trim().parse().ok())
    });
    let first = lengths.next()?;
    lengths.all(|other| other == first).then_some(first)?
}

/// Puts the right number into the place of what is stated, if anything is.
fn restate(headers: &mut HeaderMap, length: u64) {
    let mut values = headers.get_all(CONTENT_LENGTH).iter();
    let Some(first) = values.next() else { return };
    let is_right = |value: &HeaderValue| {
        let number = value.to_str().ok().and_then(|text| text.parse().ok());
        number == Some(length)
    };
    if values.next().is_some() || !is_right(first) {
        headers.insert(CONTENT_LENGTH, length.into());
    }
}

fn is_length(name: &HeaderName) -> bool {
    *name == CONTENT_LENGTH
}
