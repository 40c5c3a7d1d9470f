//! The answer to a request that is passed through, on its way back: whole, or as a stream of events.

use std::sync::Arc;

use http::header::CONTENT_LENGTH;
use http::{Method, Response, StatusCode};
use mcp_proxy_core::{Connection, LinkEnd, OutgoingFrame};
use mcp_proxy_wire::headers;
use mcp_proxy_wire::{Body, Direction, ExchangeId, Frame, Id, Message, Origin, TransportEnvelope};

use super::HttpPassThrough;
use crate::http::collect::collect;
use crate::http::failed_exchange::{record_failed_response, unreachable_server, withheld};
use crate::http::incoming_body::IncomingBody;
use crate::http::listener::HttpResponse;
use crate::http::outgoing_body::{OutgoingBody, UnsentMessage};
use crate::http::relayed_events::RelayedEvents;
use crate::http::tool_headers::ToolHeaders;

/// What an answer is read for, besides being passed on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerInspection {
    Nothing,
    /// The arguments that tools want in headers.
    Tools,
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
        let passed = self.pass_response(response, answered).await;
        passed.unwrap_or_else(|end| record_failed_response(502, answered.asked, &end))
    }

    /// Passes an answer through the pipeline. Fails if the record does.
    async fn pass_response(
        &self,
        response: Response<IncomingBody>,
        answered: AnsweredExchange<'_>,
    ) -> Result<HttpResponse, LinkEnd> {
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
            pipeline.pass_one(head, self.run.now()).await?;
            let through = (Arc::clone(connection), pipeline, exchange);
            // A stream ends where it ends: events may be changed, dropped or added.
            headers::remove_in_order(&mut parts.headers, |name| *name == CONTENT_LENGTH);
            let body = RelayedEvents::new(body, through, self.max, self.learned(learning));
            let body = OutgoingBody::Relayed(Box::new(body));
            return Ok(Response::from_parts(parts, body));
        }
        let collected = collect(body, self.max, self.run.memory()).await;
        let bytes = match collected.into_answer(self.max) {
            Ok(bytes) => bytes,
            Err(end) => return Ok(unreachable_server(connection, exchange, asked, &end)),
        };
        if is_no_stream(method, &parts) {
            let envelope = TransportEnvelope::Response(Box::new(parts.clone()));
            let head = Frame::new(exchange, Origin::Server, envelope, Body::Empty);
            pipeline.pass_one(head, self.run.now()).await?;
            return Ok(Response::from_parts(parts, OutgoingBody::whole(bytes)));
        }
        if learning == AnswerInspection::Tools {
            self.remote.tools().note_raw(&bytes);
        }
        let body = match bytes.is_empty() {
            true => Body::Empty,
            false => Body::Message(Message::parse(bytes)),
        };
        let envelope = TransportEnvelope::Response(Box::new(parts));
        let frame = Frame::new(exchange, Origin::Server, envelope, body);
        let answer = match pipeline.pass_one(frame, self.run.now()).await? {
            Some(OutgoingFrame::Frame(Frame {
                envelope: TransportEnvelope::Response(parts),
                body,
                sequence,
                ..
            })) => {
                let unsent = UnsentMessage::new(connection, sequence);
                Response::from_parts(*parts, OutgoingBody::recorded(body, unsent))
            }
            _ => withheld(502),
        };
        connection.run.durable().await?;
        Ok(answer)
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
