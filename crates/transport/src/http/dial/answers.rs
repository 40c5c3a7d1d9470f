//! What a server answers to a POST: JSON, a stream, or a failure.

use std::sync::Arc;

use bytes::Bytes;
use http::response::Parts;
use http::{Response, StatusCode};
use mcp_proxy_core::LinkEnd;
use mcp_proxy_wire::headers::{self, MCP_SESSION_ID};
use mcp_proxy_wire::{Body, ErrorCode, Id, Kind, Message, Side, SseUnit};

use super::super::collect::collect;
use super::super::event_collector::EventCollector;
use super::super::incoming_body::IncomingBody;
use super::super::relayed_events::event_frame;
use super::super::token_source::SignInNeeded;
use super::{HttpLink, PostedMessage, proxy_frame, received};

/// Where a stream stood when it ended.
#[derive(Default)]
pub(super) struct StreamEnd {
    pub(super) last_event_id: Option<String>,
    pub(super) retry_ms: Option<u64>,
}

impl HttpLink {
    pub(super) async fn receive(
        self: &Arc<Self>,
        response: Response<IncomingBody>,
        posted: &PostedMessage,
    ) {
        let (parts, body) = response.into_parts();
        let method = posted.method.as_deref();
        if method == Some("initialize")
            && let Some(session) = parts.headers.get(MCP_SESSION_ID)
        {
            self.state.set_session(session.clone());
        }
        if parts.status.is_success() && headers::is_sse(&parts.headers) {
            let mut open: Vec<Id> = posted.asked.clone();
            let end = Box::pin(self.read_events(body, method, &mut open)).await;
            if !open.is_empty() {
                Box::pin(self.resume(end, method, open)).await;
            }
            return;
        }
        let collected = collect(body, self.max, self.answers.memory()).await;
        let end = match collected.into_answer(self.max) {
            Ok(bytes) => return self.receive_whole(parts, bytes, posted).await,
            Err(end) => end,
        };
        if !parts.status.is_success() || posted.asked.is_empty() {
            self.answers.note_untaken(posted, &end.to_string());
        }
        Box::pin(self.answers.fail(&posted.asked, &end)).await;
    }

    /// An answer that is all here.
    pub(crate) async fn receive_whole(
        self: &Arc<Self>,
        parts: Parts,
        bytes: Bytes,
        posted: &PostedMessage,
    ) {
        let (status, asked) = (parts.status, &posted.asked);
        let message = Message::parse(bytes);
        if let Some(needed) = parts.extensions.get::<SignInNeeded>().cloned() {
            let end = needed.into_end();
            Box::pin(self.answers.record_failure(parts, message)).await;
            self.answers.note_untaken(posted, &end.to_string());
            return Box::pin(self.answers.fail(asked, &end)).await;
        }
        if posted.method.as_deref() != Some("initialize")
            && refuses_session(status, &message)
            && self.state.has_session()
        {
            Box::pin(self.answers.record_failure(parts, message)).await;
            return Box::pin(self.lose_session(status, posted, "")).await;
        }
        if is_rpc(&message) {
            self.learn(posted.method.as_deref(), &message);
            let left = self.answers.take(parts, message, asked).await;
            if left.is_empty() && (status.is_success() || !asked.is_empty()) {
                return;
            }
            let text = format!("{} without an answer to this request", status_text(status));
            if !status.is_success() && left.len() == asked.len() {
                self.answers.note_untaken(posted, &text);
            }
            if !left.is_empty() && !self.answers_later(status, &left) {
                Box::pin(self.answers.fail(&left, &http_failure(text))).await;
            }
            return;
        }
        if status.is_success() && (asked.is_empty() || self.answers_later(status, asked)) {
            return;
        }
        Box::pin(self.fail_whole(parts, message, posted, "")).await;
    }

    /// A complete answer that is not JSON-RPC. It is recorded as received; the waiting client gets its first line.
    pub(crate) async fn fail_whole(
        &self,
        parts: Parts,
        body: Message,
        posted: &PostedMessage,
        addition: &str,
    ) {
        let taken = parts.status.is_success();
        let what = match taken {
            true => " without a JSON-RPC body",
            false => "",
        };
        let (status, line) = (status_text(parts.status), first_line(body.raw()));
        self.answers.record_failure(parts, body).await;
        let text = format!("{status}{what}{line}{addition}");
        if !taken {
            self.answers.note_untaken(posted, &text);
        }
        self.answers.fail(&posted.asked, &http_failure(text)).await;
    }

    /// 202 says that the answer, if there is one, comes on the GET stream.
    fn answers_later(&self, status: StatusCode, asked: &[Id]) -> bool {
        let later = status == StatusCode::ACCEPTED && self.state.has_get();
        if later {
            self.state.promise(asked);
        }
        later
    }

    /// Reads a stream to its end; answered ids leave `open`.
    pub(super) async fn read_events(
        &self,
        mut body: IncomingBody,
        method: Option<&str>,
        open: &mut Vec<Id>,
    ) -> StreamEnd {
        let mut events = EventCollector::new(self.max, self.answers.memory());
        let mut end = StreamEnd::default();
        let mut units = Vec::new();
        loop {
            let refused = match body.next().await {
                Some(Ok(piece)) => events.push(piece, &mut units),
                Some(Err(_)) | None => {
                    events.finish(&mut units);
                    self.take_units(&mut units, method, open, &mut end).await;
                    return end;
                }
            };
            if let Some(answer) = refused.and_then(|refused| refused.answer_among(open)) {
                open.retain(|id| answer.id().as_ref() != Some(id));
                self.answers.hand_over(proxy_frame(answer)).await;
            }
            self.take_units(&mut units, method, open, &mut end).await;
        }
    }

    async fn take_units(
        &self,
        units: &mut Vec<SseUnit>,
        method: Option<&str>,
        open: &mut Vec<Id>,
        end: &mut StreamEnd,
    ) {
        for unit in units.drain(..) {
            let SseUnit::Event(event) = unit else {
                if let SseUnit::TooLarge = unit {
                    self.answers
                        .end(crate::lines::too_large(Side::Server, self.max))
                        .await;
                }
                continue;
            };
            if let Some(id) = &event.id {
                end.last_event_id = Some(id.clone());
            }
            end.retry_ms = event.retry.or(end.retry_ms);
            let (envelope, body) = event_frame(event);
            let Body::Message(message) = body else {
                continue;
            };
            if matches!(message.kind(), Kind::Response | Kind::Error) {
                self.learn(method, &message);
                open.retain(|id| message.id().as_ref() != Some(id));
            } else if message.kind() == Kind::Batch {
                *open = unanswered(open, &message);
            }
            self.answers.hand_over(received(envelope, message)).await;
        }
    }

    fn learn(&self, method: Option<&str>, answer: &Message) {
        match method {
            Some("initialize") => self.state.note_version(answer),
            Some("tools/list") => self.client.remote.tools().note(answer),
            _ => {}
        }
    }

    /// The server has refused a message together with its session. The message was not carried out, which cannot be said of
    /// others that are open: so it alone fails with this code, and the link ends when nothing is open any more.
    pub(super) async fn lose_session(
        self: &Arc<Self>,
        status: StatusCode,
        posted: &PostedMessage,
        addition: &str,
    ) {
        let status = status.as_u16();
        let text = format!("the server no longer knows the session (HTTP {status}){addition}");
        self.answers.note_untaken(posted, &text);
        let end = LinkEnd::failed(Side::Server, ErrorCode::SESSION_NOT_FOUND, text);
        self.answers.fail(&posted.asked, &end).await;
        let link = Arc::clone(self);
        tokio::spawn(async move {
            link.state.drained().await;
            link.answers.end(end).await;
        });
    }
}

/// Whether a server says that it does not know the session: by 404 (2025-11-25, transports, session management), whatever
/// its body says, or by 400 with an error or a line of text about the session, as some servers do ("Server not initialized" is
/// what those of the TypeScript SDK say after a restart). A method that is not known is another reason for 404.
pub(super) fn refuses_session(status: StatusCode, body: &Message) -> bool {
    let code = body.error_code().map(ErrorCode);
    match status {
        StatusCode::NOT_FOUND => code != Some(ErrorCode::METHOD_NOT_FOUND),
        StatusCode::BAD_REQUEST => {
            let text = match is_rpc(body) {
                true => {
                    let text = body.error().and_then(|error| body.member(error, "message"));
                    text.and_then(|span| body.text_at(span))
                        .map(std::borrow::Cow::into_owned)
                }
                false => Some(first_line(body.raw())),
            };
            let text = text.unwrap_or_default().to_ascii_lowercase();
            text.contains("session") || text.contains("not initialized")
        }
        _ => false,
    }
}

/// A status for error texts. For one that is about credentials it says where to give them.
pub(crate) fn status_text(status: StatusCode) -> String {
    let hint = match status {
        StatusCode::UNAUTHORIZED => {
            " (credentials are given with --header, or `headers` in a config file)"
        }
        StatusCode::NOT_FOUND => " (is the path right? the usual one is /mcp)",
        StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
            " (the HTTP proxy on the way asks for credentials; give them in the URL of HTTP_PROXY)"
        }
        _ => "",
    };
    format!("the server answered HTTP {}{hint}", status.as_u16())
}

pub(super) fn http_failure(text: String) -> LinkEnd {
    LinkEnd::failed(Side::Server, ErrorCode::SERVER_HTTP, text)
}

/// The ids that a message, or a batch of them, does not answer.
pub(super) fn unanswered(asked: &[Id], message: &Message) -> Vec<Id> {
    let mut left = asked.to_vec();
    for part in message
        .parts()
        .as_deref()
        .unwrap_or(std::slice::from_ref(message))
    {
        if matches!(part.kind(), Kind::Response | Kind::Error) {
            left.retain(|id| part.id().as_ref() != Some(id));
        }
    }
    left
}

/// Whether a body is JSON-RPC, whatever the status above it says.
pub(crate) fn is_rpc(message: &Message) -> bool {
    matches!(
        message.kind(),
        Kind::Request | Kind::Notification | Kind::Response | Kind::Error
    ) || message.kind() == Kind::Batch
}

/// The first line of a body that is not JSON-RPC, shortened, for error texts.
pub(crate) fn first_line(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(2048)]);
    let line: String = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default()
        .chars()
        .take(200)
        .collect();
    let is_text = |c: char| !c.is_control() && c != char::REPLACEMENT_CHARACTER;
    match line.as_str() {
        "" => line,
        _ if line.chars().all(is_text) => format!(": {line}"),
        _ => ": a body that is not text".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_say_in_several_ways_that_they_do_not_know_a_session() {
        let rpc = |text: &str| {
            format!(r#"{{"jsonrpc":"2.0","id":null,"error":{{"code":-32000,"message":"{text}"}}}}"#)
        };
        let cases = [
            (404, String::new(), true),
            (404, rpc("Session not found"), true),
            (400, rpc("Bad Request: No valid session ID provided"), true),
            (400, rpc("Bad Request: Server not initialized"), true),
            (
                400,
                "Bad Request: No valid session ID provided".to_owned(),
                true,
            ),
            (400, rpc("Bad Request: Unsupported protocol version"), false),
            (400, "Bad Request".to_owned(), false),
            (401, rpc("session"), false),
            (500, "session".to_owned(), false),
        ];
        for (status, body, refused) in cases {
            let status = StatusCode::from_u16(status).unwrap();
            let message = Message::parse(body.clone());
            assert_eq!(
                refuses_session(status, &message),
                refused,
                "{status} {body}"
            );
        }
        let unknown = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no method"}}"#;
        let status = StatusCode::NOT_FOUND;
        assert!(!refuses_session(status, &Message::parse(unknown)));
    }
}
