//! The answer to a request that is passed through, on its way back: whole, in pieces, or as a stream of events.

use std::sync::Arc;

use http::header::CONTENT_LENGTH;
use http::{Method, Response, StatusCode};
use mcp_proxy_core::{Connection, OutgoingFrame};
use mcp_proxy_wire::headers;
use mcp_proxy_wire::{
    Body, Direction, ExchangeId, Frame, Id, Limits, Message, Origin, Side, TransportEnvelope,
};

use super::HttpPassThrough;
use crate::http::body_length::stated;
use crate::http::collect::{CollectedBody, collect};
use crate::http::failed_exchange::{
    answer_broke_off, record_failed_response, unreachable_server, withheld,
};
use crate::http::incoming_body::IncomingBody;
use crate::http::listener::HttpResponse;
use crate::http::outgoing_body::{OutgoingBody, UnsentMessage};
use crate::http::relayed_body::RelayedBody;
use crate::http::tool_headers::ToolHeaders;

/// What an answer is read for, besides being passed on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerInspection {
    Nothing,
    /// The arguments that tools want in headers.
    Tools,
}

impl AnswerInspection {
    /// A list of tools is read whole if it has no more bytes than this; then it is passed on in one piece.
    fn needs(self, limits: Limits) -> usize {
        match self {
            AnswerInspection::Nothing => 0,
            AnswerInspection::Tools => limits.max.min(4 << 20),
        }
    }
}

/// The request that an answer belongs to.
#[derive(Clone, Copy)]
pub(super) struct AnsweredExchange<'a> {
    pub(super) connection: &'a Arc<Connection>,
    pub(super) id: ExchangeId,
    pub(super) method: &'a Method,
    /// The id of its JSON-RPC request.
    pub(super) asked: Option<&'a Id>,
    pub(super) inspection: AnswerInspection,
}

impl HttpPassThrough {
    /// The answer on its way back.
    pub(super) async fn forward_response(
        &self,
        response: Response<IncomingBody>,
        answered: AnsweredExchange<'_>,
    ) -> HttpResponse {
        let AnsweredExchange {
            connection,
            id: exchange,
            method,
            asked,
            inspection: learning,
        } = answered;
        let (mut parts, body) = response.into_parts();
        headers::strip_hop_by_hop(&mut parts.headers);
        let mut pipeline = connection.message_pipeline(Direction::ServerToClient);
        if headers::is_sse(&parts.headers) {
            let envelope = TransportEnvelope::Response(Box::new(parts.clone()));
            let head = Frame::new(exchange, Origin::Server, envelope, Body::Empty);
            if let Err(end) = pipeline.pass_one(head, self.run.now()).await {
                return record_failed_response(502, asked, &end);
            }
            let through = (Arc::clone(connection), pipeline, exchange);
            let limits = Limits {
                cut: self.limits.cut.max(learning.needs(self.limits)),
                ..self.limits
            };
            // A stream ends where it ends: events may be changed, dropped or added.
            headers::remove_in_order(&mut parts.headers, |name| *name == CONTENT_LENGTH);
            let body = RelayedBody::events(body, through, limits, self.learned(learning));
            return Response::from_parts(parts, OutgoingBody::Relayed(Box::new(body)));
        }
        let whole_up_to = self.cut().max(learning.needs(self.limits));
        let collected = collect(body, whole_up_to, self.run.memory()).await;
        if self.is_too_large(&parts.headers, &collected) {
            let seen = collected.bytes_read();
            let end = crate::lines::too_large(Side::Server, seen, self.limits.max);
            return unreachable_server(connection, exchange, asked, &end);
        }
        match collected {
            CollectedBody::Whole(bytes) if is_no_stream(method, &parts) => {
                let envelope = TransportEnvelope::Response(Box::new(parts.clone()));
                let head = Frame::new(exchange, Origin::Server, envelope, Body::Empty);
                match pipeline.pass_one(head, self.run.now()).await {
                    Ok(_) => Response::from_parts(parts, OutgoingBody::whole(bytes)),
                    Err(end) => record_failed_response(502, asked, &end),
                }
            }
            CollectedBody::Whole(bytes) => {
                if learning == AnswerInspection::Tools {
                    self.remote.tools().note_raw(&bytes);
                }
                let body = match bytes.is_empty() {
                    true => Body::Empty,
                    false => Body::Whole(Message::parse(bytes)),
                };
                let envelope = TransportEnvelope::Response(Box::new(parts));
                let frame = Frame::new(exchange, Origin::Server, envelope, body);
                let answer = match pipeline.pass_one(frame, self.run.now()).await {
                    Ok(Some(OutgoingFrame::Frame(Frame {
                        envelope: TransportEnvelope::Response(parts),
                        body,
                        sequence,
                        ..
                    }))) => {
                        let unsent = UnsentMessage::new(connection, sequence);
                        Response::from_parts(*parts, OutgoingBody::recorded(body, unsent))
                    }
                    Ok(_) => withheld(502),
                    Err(end) => return record_failed_response(502, asked, &end),
                };
                match connection.run.durable().await {
                    Ok(()) => answer,
                    Err(end) => record_failed_response(502, asked, &end),
                }
            }
            CollectedBody::Partial(first, rest) => {
                let length = stated(&parts.headers);
                let envelope = TransportEnvelope::Response(Box::new(parts.clone()));
                let through = (Arc::clone(connection), pipeline, exchange);
                let body =
                    RelayedBody::cut(rest, first, envelope, through, length, self.limits.max);
                Response::from_parts(parts, OutgoingBody::Relayed(Box::new(body)))
            }
            CollectedBody::NoRoom(over, _) => {
                unreachable_server(connection, exchange, asked, &over.end(Side::Server))
            }
            CollectedBody::Broken(read, why) => {
                let end = answer_broke_off(read.len(), &why);
                unreachable_server(connection, exchange, asked, &end)
            }
        }
    }

    /// Where the tools that a stream lists are noted.
    fn learned(&self, learning: AnswerInspection) -> Option<Arc<ToolHeaders>> {
        (learning == AnswerInspection::Tools).then(|| Arc::clone(self.remote.tools()))
    }
}

/// Whether an answer says, in words and not in JSON, that the server has no stream for a GET. That is ordinary, and not a
/// message.
fn is_no_stream(method: &Method, parts: &http::response::Parts) -> bool {
    *method == Method::GET
        && parts.status == StatusCode::METHOD_NOT_ALLOWED
        && !headers::is_json(&parts.headers)
}
