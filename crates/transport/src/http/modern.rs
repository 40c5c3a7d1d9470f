//! The HTTP rules of 2026-07-28 for a listener whose server speaks something else.
//!
//! One message a POST, headers that repeat the body, no sessions, no GET; closing the stream is the cancel.

use std::sync::Arc;

use http::HeaderMap;
use http::request::Parts;
use mcp_proxy_wire::headers::{self, MCP_PROTOCOL_VERSION};
use mcp_proxy_wire::revision::{self, meta};
use mcp_proxy_wire::{ErrorCode, ExchangeId, Field, Frame, Id, Kind, Message, Origin, StreamId};

use super::event_stream::{EventStream, KEEP_ALIVE_COMMENT, StreamItem, encode};
use super::listener::{HttpResponse, bare, error_answering, recorded_json};
use super::outgoing_body::UnsentMessage;
use super::request_body::unreadable;
use super::session::{HttpSession, PostStream, SessionKind, frame};
use super::slow_answer::{SlowAnswer, accepts_events, first_item};
use crate::inbox::{InboxItem, SEND_DEADLINE};

/// Whether a head alone says that its client is modern.
pub(crate) fn is_modern_head(headers: &HeaderMap) -> bool {
    headers
        .get(MCP_PROTOCOL_VERSION)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|version| version > revision::LATEST_LEGACY)
}

/// Whether a message is of the modern era: its header or its `_meta` says so.
pub(crate) fn is_modern(headers: &HeaderMap, message: &Message) -> bool {
    is_modern_head(headers) || revision::names_version(message)
}

/// Answers a modern POST.
pub(crate) async fn post(
    session: Arc<HttpSession>,
    exchange: ExchangeId,
    parts: Parts,
    message: Message,
) -> HttpResponse {
    let id = message.id();
    let lists_tools = message.method().as_deref() == Some("tools/list");
    let mut guard = Box::new(CancelGuard {
        session: Arc::clone(&session),
        exchange,
        number: None,
        id: id.clone(),
    });
    if let Some((code, text)) = find_fault(&session, &parts, &message) {
        let status = if code == ErrorCode::METHOD_NOT_FOUND {
            404
        } else {
            400
        };
        session.refuse(frame(exchange, parts, message), code, &text);
        return error_answering(id.as_ref(), status, code, &text);
    }
    let asked = message.clone();
    // The headers that tools ask for are learned from a list that is an answer as a whole.
    let can_stream = accepts_events(&parts.headers) && !lists_tools;
    let Some(PostStream {
        mut messages,
        number,
        expects: awaits,
    }) = session.open_modern_post(exchange, &message)
    else {
        let text = "the server has ended; try again";
        return error_answering(id.as_ref(), 503, ErrorCode::SERVER_EXITED, text);
    };
    guard.number = Some(number);
    let arrival = InboxItem::Frame(frame(exchange, parts, message));
    let sent = session.inbox.send_timeout(arrival, SEND_DEADLINE).await;
    if sent.is_err() {
        let text = "the server takes no more messages";
        return error_answering(id.as_ref(), 503, ErrorCode::PEER_STALLED, text);
    }
    if awaits == super::stream_router::PostExpectation::Nothing {
        return bare(202);
    }
    let first = match first_item(&mut messages, can_stream).await {
        Ok(first) => first,
        Err(SlowAnswer) => {
            let stream = EventStream::new(vec![KEEP_ALIVE_COMMENT], messages, Some(guard));
            return stream.answering(id).into_response();
        }
    };
    match first {
        Some(StreamItem::Dropped) => bare(502),
        Some(StreamItem::Accepted) => bare(202),
        Some(StreamItem::Ended) => EventStream::finished(Vec::new()).into_response(),
        Some(StreamItem::Message(message)) if message.last => {
            let unsent = UnsentMessage::new(&session.connection, message.sequence);
            let answer = Message::parse(message.data);
            if lists_tools {
                session.tools.note(&answer);
            }
            let status = match answer.error_code() {
                Some(code) if code == ErrorCode::INVALID_PARAMS.0 && lacks_meta(&asked) => 400,
                _ => headers::modern_status(&answer),
            };
            recorded_json(status, answer.into_raw(), unsent)
        }
        Some(StreamItem::Message(message)) => {
            let first = vec![encode(&message)];
            EventStream::new(first, messages, Some(guard)).into_response()
        }
        None => {
            let text = "the server ended before it answered";
            error_answering(id.as_ref(), 200, ErrorCode::SERVER_EXITED, text)
        }
    }
}

/// What is wrong with a POST by the rules of the transport, before any server sees it.
fn find_fault(
    session: &HttpSession,
    parts: &Parts,
    message: &Message,
) -> Option<(ErrorCode, String)> {
    match message.kind() {
        Kind::Malformed => {
            return Some((ErrorCode::PARSE_ERROR, unreadable(message).to_owned()));
        }
        Kind::Batch | Kind::Other => {
            let text = "the body must be one JSON-RPC message".to_owned();
            return Some((ErrorCode::INVALID_REQUEST, text));
        }
        _ => {}
    }
    let checked =
        headers::check_modern_headers(&parts.headers, message, &session.tools.of(message));
    if let Err(fault) = checked {
        return Some((ErrorCode::HEADER_MISMATCH, fault.to_string()));
    }
    match session.kind {
        SessionKind::Request(_) if message.kind() == Kind::Request => find_legacy_form(message),
        _ => None,
    }
}

/// A server for one request sees no headers. It would take a request that does not name its revision for a legacy one.
fn find_legacy_form(message: &Message) -> Option<(ErrorCode, String)> {
    if message.method().as_deref() == Some("initialize") {
        let text = "this protocol revision has no method \"initialize\"".to_owned();
        return Some((ErrorCode::METHOD_NOT_FOUND, text));
    }
    let lacks_version = !revision::names_version(message);
    lacks_version.then(|| {
        let text = format!("params._meta needs {}", meta::PROTOCOL_VERSION);
        (ErrorCode::INVALID_PARAMS, text)
    })
}

fn lacks_meta(message: &Message) -> bool {
    !revision::names_version(message)
        || message
            .span(Field::Meta(meta::CLIENT_CAPABILITIES))
            .is_none()
}

/// Dropped with the answer: if the request is still open then, the client has closed its stream.
struct CancelGuard {
    session: Arc<HttpSession>,
    exchange: ExchangeId,
    /// The number of its stream, once it has one.
    number: Option<u64>,
    id: Option<Id>,
}

impl Drop for CancelGuard {
    fn drop(&mut self) {
        match self.number {
            Some(number) => self.session.stream_closed(self.exchange, number),
            None => self.session.touch(),
        }
        if let Some(id) = &self.id {
            self.session.connection.client_left(self.exchange, id);
        }
        let cancel = |id: &Id| self.session.cancel(self.exchange, id);
        if let Some(cancelled) = self.id.as_ref().and_then(cancel) {
            let frame = Frame::message(StreamId::Only, Origin::Proxy, cancelled);
            // A full inbox means a stalled server, which a cancel would not reach either.
            drop(self.session.inbox.try_send(InboxItem::Frame(frame)));
        }
        self.session.request_over();
    }
}
