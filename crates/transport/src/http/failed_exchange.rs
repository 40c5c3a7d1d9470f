//! The answers of our own to requests that are passed through and do not reach their server, or whose answers do not come back.

use mcp_proxy_core::{Connection, LinkEnd, OutgoingFrame};
use mcp_proxy_wire::{Body, Direction, ErrorCode, ExchangeId, Id, Side, error_response};

use super::listener::{HttpResponse, bare, error_answering, events, json};
use super::outgoing_body::OutgoingBody;
use super::progress_stream::DroppedMarker;

/// The answer to a request that was held and not released: an error of ours, or nothing at all. The stream of a request that
/// its client cancelled ends, as it does where HTTP ends here.
pub(crate) fn dropped_response(outgoing: Option<OutgoingFrame>) -> HttpResponse {
    if let Some(OutgoingFrame::Cancelled(_)) = outgoing {
        return events(OutgoingBody::empty());
    }
    let is_dropped = matches!(outgoing, Some(OutgoingFrame::Dropped(_)));
    match outgoing.map(|outgoing| outgoing.frame().body.clone()) {
        Some(Body::Message(message)) if is_dropped && !message.expects_any_answer() => {
            withheld(202)
        }
        Some(Body::Message(answer)) if !is_dropped => json(200, answer),
        _ => withheld(502),
    }
}

pub(super) fn withheld(status: u16) -> HttpResponse {
    let mut answer = bare(status);
    answer.extensions_mut().insert(DroppedMarker);
    answer
}

/// The record cannot be written: nothing passes.
pub(crate) fn record_failed_response(status: u16, id: Option<&Id>, end: &LinkEnd) -> HttpResponse {
    error_answering(id, status, code_of(end), &end.to_string())
}

fn code_of(end: &LinkEnd) -> ErrorCode {
    match end {
        LinkEnd::Failed(failure) => failure.code,
        LinkEnd::Closed => ErrorCode::SERVER_UNAVAILABLE,
    }
}

/// The server's answer ended too early.
pub(crate) fn answer_broke_off(read: usize, why: &str) -> LinkEnd {
    let text = format!("the server's answer broke off after {read} bytes: {why}");
    LinkEnd::failed(Side::Server, ErrorCode::SERVER_HTTP, text)
}

/// 502 with a JSON-RPC error that answers the request, if it was one.
pub(crate) fn unreachable_server(
    connection: &Connection,
    exchange: ExchangeId,
    id: Option<&Id>,
    end: &LinkEnd,
) -> HttpResponse {
    let message = error_response(id, code_of(end), &end.to_string(), None);
    let now = connection.run.now();
    drop(connection.author(Direction::ServerToClient, exchange, message.clone(), now));
    json(502, message)
}
