//! Legacy requests without a session: each has a server of its own, which we initialize for it. With `--stateless` that is
//! every legacy request; a server in this process ([`ModernClients::OneByOne`](super::ModernClients)) is cheap enough to do it for each that
//! comes without a session.
//!
//! A legacy server answers nothing before `initialize`. A client that does not send it, or whose `initialize` went to
//! another server, gets one that was opened by us. There is no `Mcp-Session-Id`, no GET stream, and no way for the server
//! to get an answer from the client.

use std::sync::Arc;

use http::request::Parts;
use mcp_proxy_core::{NewConnection, Peer, PipelineOutput};
use mcp_proxy_wire::headers::MCP_PROTOCOL_VERSION;
use mcp_proxy_wire::{
    Direction, ErrorCode, ExchangeId, Frame, Kind, Message, Origin, Transport, revision,
};
use serde_json::{Value, json};

use super::{McpEndpoint, opens_session};
use crate::http::event_stream::StreamItem;
use crate::http::handler::RequestSource;
use crate::http::legacy::legacy_post;
use crate::http::listener::{HttpResponse, bare, error, error_answering};
use crate::http::outgoing_body::OutgoingBody;
use crate::http::request_body::unreadable;
use crate::http::session::{HttpSession, SessionKind, frame};
use crate::inbox::{InboxItem, SEND_DEADLINE};

/// The id of our own `initialize`; no client would choose it.
const INITIALIZE_ID: &str = "mcp-proxy-initialize";

impl McpEndpoint {
    /// Answers a legacy POST by a server of its own.
    pub(super) async fn stateless_post(
        self: Arc<Self>,
        source: RequestSource,
        parts: Parts,
        message: Message,
        exchange: ExchangeId,
    ) -> HttpResponse {
        if !message.expects_any_answer() {
            return match refusal(&message) {
                Some((code, text)) => error(400, code, text),
                None => self.accept_unsent(&source, parts, message, exchange),
            };
        }
        let asked = message.id();
        let session = {
            let (kind, caller) = (SessionKind::Stateless(exchange), source.caller(&parts));
            let mut table = self.table();
            match self.open(&mut table, kind, caller, asked.as_ref()) {
                Ok(session) => {
                    table.requests.insert(exchange, Arc::clone(&session));
                    session
                }
                Err(answer) => return *answer,
            }
        };
        let guard = EndOnDrop(Arc::clone(&self), Arc::clone(&session));
        if !opens_session(&message)
            && let Err((code, text)) = initialize(&session, self.next_exchange(), &parts).await
        {
            return error_answering(asked.as_ref(), 200, code, &text);
        }
        let mut answer = legacy_post(&session, exchange, parts, message).await;
        if let OutgoingBody::Events(events) = answer.body_mut() {
            events.hold(Box::new(guard));
        }
        answer
    }

    /// A notification or an answer: no server runs that could take it. Clients send them as if there were a session.
    fn accept_unsent(
        &self,
        source: &RequestSource,
        parts: Parts,
        message: Message,
        exchange: ExchangeId,
    ) -> HttpResponse {
        let client = Peer::new(Transport::StreamableHttp).called_by(source.caller(&parts));
        let new = NewConnection::between(client, self.options.server.clone());
        let connection = self.run.open(new);
        let mut pipeline = connection.record_only_pipeline(Direction::ClientToServer);
        let mut passed = PipelineOutput::default();
        let mut frames = vec![frame(exchange, parts, message)];
        let recorded = pipeline.pass(&mut frames, self.run.now(), &mut passed);
        let sequence = passed.forward.first().and_then(|out| out.frame().sequence);
        let why = "it came without a session, and no server runs between requests";
        connection.record_proxy_verdict(sequence, "drop", why);
        connection.close(why);
        match recorded {
            Ok(()) => bare(202),
            Err(_) => bare(500),
        }
    }
}

/// Why a body that asks nothing is not accepted either: there is no message in it.
fn refusal(message: &Message) -> Option<(ErrorCode, &'static str)> {
    let is_message = |part: &Message| {
        let kinds = [Kind::Notification, Kind::Response, Kind::Error];
        kinds.contains(&part.kind())
    };
    match message.kind() {
        Kind::Malformed => Some((ErrorCode::PARSE_ERROR, unreadable(message))),
        Kind::Other => Some((ErrorCode::INVALID_REQUEST, "the body is not a message")),
        Kind::Batch if !message.parts()?.iter().any(is_message) => {
            let text = "the batch contains no message";
            Some((ErrorCode::INVALID_REQUEST, text))
        }
        _ => None,
    }
}

/// Opens the server's session as a client would.
async fn initialize(
    session: &HttpSession,
    exchange: ExchangeId,
    parts: &Parts,
) -> Result<(), (ErrorCode, String)> {
    let version = parts.headers.get(MCP_PROTOCOL_VERSION);
    let version = version.and_then(|value| value.to_str().ok());
    let params = json!({
        "protocolVersion": version.unwrap_or(revision::LATEST_LEGACY),
        "capabilities": {},
        "clientInfo": {"name": "mcp-proxy", "version": env!("CARGO_PKG_VERSION")},
    });
    initialize_with(session, exchange, &params).await
}

/// Opens the server's session with these `params` of `initialize`.
pub(super) async fn initialize_with(
    session: &HttpSession,
    exchange: ExchangeId,
    params: &Value,
) -> Result<(), (ErrorCode, String)> {
    let ended = || {
        let text = "the server ended before it answered initialize".to_owned();
        (ErrorCode::SERVER_EXITED, text)
    };
    let request = json!({
        "jsonrpc": "2.0",
        "id": INITIALIZE_ID,
        "method": "initialize",
        "params": params,
    });
    let request = Message::parse(request.to_string());
    let mut post = session.open_post(exchange, &request).ok_or_else(ended)?;
    send(session, exchange, request).await?;
    // A server may log or report progress before it answers. Nobody waits for that.
    let answer = loop {
        match post.messages.next().await {
            Some(StreamItem::Message(message)) if message.last => break message,
            Some(StreamItem::Message(_)) => {}
            _ => return Err(ended()),
        }
    };
    let answer: Value = serde_json::from_slice(&answer.data).unwrap_or_default();
    if let Some(error) = answer.get("error") {
        let code = error["code"].as_i64().unwrap_or(ErrorCode::INTERNAL.0);
        let text = error["message"].as_str().unwrap_or_default();
        return Err((ErrorCode(code), text.to_owned()));
    }
    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    send(session, exchange, Message::parse(initialized)).await
}

async fn send(
    session: &HttpSession,
    exchange: ExchangeId,
    message: Message,
) -> Result<(), (ErrorCode, String)> {
    let frame = Frame::message(exchange, Origin::Proxy, message);
    let sent = session
        .inbox
        .send_timeout(InboxItem::Frame(frame), SEND_DEADLINE);
    sent.await.map_err(|_| {
        let text = "the server takes no more messages".to_owned();
        (ErrorCode::PEER_STALLED, text)
    })
}

/// Dropped with the answer: the server ends.
struct EndOnDrop(Arc<McpEndpoint>, Arc<HttpSession>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.table().end(&self.1);
    }
}
