//! What a server answers to a POST: JSON, a stream, or a failure.

use std::sync::Arc;

use bytes::Bytes;
use http::response::Parts;
use http::{Response, StatusCode};
use mcp_proxy_core::LinkEnd;
use mcp_proxy_wire::headers::{self, MCP_SESSION_ID};
use mcp_proxy_wire::{
    Body, Direction, ErrorCode, Field, Frame, Id, Kind, Limits, Message, Origin, Side, SseSplitter,
    SseUnit, StreamId, TransportEnvelope,
};

use super::super::collect::{CollectedBody, collect};
use super::super::incoming_body::IncomingBody;
use super::super::relayed_body::event_frame;
use super::{HttpLink, proxy_frame};

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
        method: Option<&str>,
        asked: &[Id],
    ) -> Option<String> {
        let (parts, body) = response.into_parts();
        if method == Some("initialize")
            && let Some(session) = parts.headers.get(MCP_SESSION_ID)
        {
            self.state.set_session(session.clone());
        }
        if parts.status.is_success() && headers::is_sse(&parts.headers) {
            let mut open: Vec<Id> = asked.to_vec();
            let end = self.read_events(body, method, &mut open).await;
            if !open.is_empty() {
                self.resume(end, method, open).await;
            }
            return None;
        }
        match collect(body, self.max).await {
            CollectedBody::Whole(bytes) => self.receive_whole(parts, bytes, method, asked).await,
            CollectedBody::Partial(read, _) => {
                let end = crate::lines::too_large(Side::Server, read.len(), self.max);
                self.fail(asked, &end).await
            }
            CollectedBody::Broken(_, why) => {
                self.fail(asked, &http_failure(format!("the answer broke off: {why}")))
                    .await
            }
        }
    }

    /// An answer that is all here. Why the server did not take the message, if nobody waits for an answer.
    pub(crate) async fn receive_whole(
        &self,
        parts: Parts,
        bytes: Bytes,
        method: Option<&str>,
        asked: &[Id],
    ) -> Option<String> {
        let status = parts.status;
        let message = Message::parse(bytes);
        if is_rpc(&message) {
            let answers = message.id().is_some_and(|id| asked.contains(&id));
            if status == StatusCode::NOT_FOUND && !answers && self.state.session().0.is_some() {
                self.session_lost().await;
                return None;
            }
            self.learn(method, &message);
            let mut left = unanswered(asked, &message);
            match (left.as_slice(), lacks_id(&message)) {
                ([id], true) => {
                    self.answer_for_server(parts, message, id).await;
                    left.clear();
                }
                _ => {
                    let envelope = TransportEnvelope::Response(Box::new(parts));
                    self.hand_over(received(envelope, message)).await;
                }
            }
            if !left.is_empty() && !self.answers_later(status) {
                let text = format!(
                    "the server answered HTTP {} without an answer to this request",
                    status.as_u16()
                );
                self.fail(&left, &http_failure(text)).await;
            }
            return None;
        }
        if status == StatusCode::NOT_FOUND && self.state.session().0.is_some() {
            self.session_lost().await;
            return None;
        }
        if status.is_success() && (asked.is_empty() || self.answers_later(status)) {
            return None;
        }
        self.fail_whole(parts, message, asked, "").await
    }

    /// An answer that is no JSON-RPC and all here. It is recorded as it came; whoever waits gets its first line.
    pub(crate) async fn fail_whole(
        &self,
        parts: Parts,
        body: Message,
        asked: &[Id],
        addition: &str,
    ) -> Option<String> {
        let what = match parts.status.is_success() {
            true => " without a JSON-RPC body",
            false => "",
        };
        let (status, line) = (parts.status.as_u16(), first_line(body.raw()));
        self.record_failure(parts, body).await;
        let text = format!("the server answered HTTP {status}{what}{line}{addition}");
        self.fail(asked, &http_failure(text)).await
    }

    /// 202 says that the answer, if there is one, comes on the GET stream.
    fn answers_later(&self, status: StatusCode) -> bool {
        status == StatusCode::ACCEPTED && self.state.has_get()
    }

    /// What the server sent instead of a message is received, recorded and goes no further.
    async fn record_failure(&self, parts: Parts, body: Message) {
        let body = match body.is_empty() {
            true => Body::Empty,
            false => Body::Whole(body),
        };
        let envelope = TransportEnvelope::Response(Box::new(parts));
        self.record(Frame::new(StreamId::Only, Origin::Server, envelope, body))
            .await;
    }

    /// Records what the server sent and forwards nothing of it; its number.
    async fn record(&self, frame: Frame) -> Option<u64> {
        let mut pipeline = self
            .connection
            .record_only_pipeline(Direction::ServerToClient);
        // A record that cannot be written ends the run by itself.
        let recorded = pipeline.pass_one(frame, self.connection.run.now()).await;
        recorded.ok()??.frame().sequence
    }

    /// An error that the server could not tie to a request (`id: null`, or none) still answers the one of its POST. The
    /// record keeps what the server sent; what the client gets under its own id is the proxy's.
    async fn answer_for_server(&self, parts: Parts, message: Message, id: &Id) {
        let Some(answer) = with_id(&message, id) else {
            let envelope = TransportEnvelope::Response(Box::new(parts));
            return self.hand_over(received(envelope, message)).await;
        };
        let envelope = TransportEnvelope::Response(Box::new(parts));
        let sequence = self.record(received(envelope, message)).await;
        let why = "the error has no id; the client gets it under its request's id";
        self.connection.record_proxy_verdict(sequence, "drop", why);
        self.hand_over(proxy_frame(answer)).await;
    }

    /// Reads a stream to its end; answered ids leave `open`.
    pub(super) async fn read_events(
        &self,
        mut body: IncomingBody,
        method: Option<&str>,
        open: &mut Vec<Id>,
    ) -> StreamEnd {
        let mut splitter = SseSplitter::new(Limits {
            cut: usize::MAX,
            max: self.max,
        });
        let mut end = StreamEnd::default();
        let mut units = Vec::new();
        loop {
            match body.next().await {
                Some(Ok(piece)) => splitter.push(piece, &mut units),
                Some(Err(_)) | None => {
                    splitter.finish(&mut units);
                    self.take_units(&mut units, method, open, &mut end).await;
                    return end;
                }
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
                if let SseUnit::TooLarge { seen, .. } = unit {
                    self.end(crate::lines::too_large(Side::Server, seen, self.max))
                        .await;
                }
                continue;
            };
            if let Some(id) = &event.id {
                end.last_event_id = Some(id.clone());
            }
            end.retry_ms = event.retry.or(end.retry_ms);
            let (envelope, body) = event_frame(event);
            let Body::Whole(message) = body else {
                continue;
            };
            if matches!(message.kind(), Kind::Response | Kind::Error) {
                self.learn(method, &message);
                open.retain(|id| message.id().as_ref() != Some(id));
            } else if message.kind() == Kind::Batch {
                *open = unanswered(open, &message);
            }
            self.hand_over(received(envelope, message)).await;
        }
    }

    fn learn(&self, method: Option<&str>, answer: &Message) {
        match method {
            Some("initialize") => self.state.note_version(answer),
            Some("tools/list") => self.remote.tools().note(answer),
            _ => {}
        }
    }

    async fn session_lost(&self) {
        self.end(LinkEnd::failed(
            Side::Server,
            ErrorCode::SESSION_NOT_FOUND,
            "the server no longer knows the session (HTTP 404); initialize again on a new connection",
        ))
        .await;
    }
}

/// A message from the server.
fn received(envelope: TransportEnvelope, message: Message) -> Frame {
    Frame::new(
        StreamId::Only,
        Origin::Server,
        envelope,
        Body::Whole(message),
    )
}

fn lacks_id(message: &Message) -> bool {
    message.kind() == Kind::Error && message.id().is_none_or(|id| id.is_null())
}

/// The same error under this id, with all its other bytes as they were.
fn with_id(error: &Message, id: &Id) -> Option<Message> {
    if let Some(span) = error.span(Field::Id) {
        return error.splice(&[(span, id.token())]).ok();
    }
    let open = error.raw().iter().position(|byte| *byte == b'{')? + 1;
    let (before, after) = error.raw().split_at(open);
    let member = [br#""id":"#.as_slice(), id.token(), b","].concat();
    Some(Message::parse([before, &member, after].concat()))
}

pub(super) fn http_failure(text: String) -> LinkEnd {
    LinkEnd::failed(Side::Server, ErrorCode::SERVER_HTTP, text)
}

/// The ids that a message, or a batch of them, does not answer.
fn unanswered(asked: &[Id], message: &Message) -> Vec<Id> {
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

/// The first line of a body that is no JSON-RPC, shortened, for error texts.
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
        _ => ": a body that is no text".to_owned(),
    }
}
