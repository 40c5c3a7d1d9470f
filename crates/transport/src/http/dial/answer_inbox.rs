//! What becomes of the answers to POSTs: into the record, and to the pump. And the messages of the proxy's own, whose answers
//! come the same way.

use std::sync::Arc;

use http::response::Parts;
use mcp_proxy_core::{Connection, LinkEnd, MemoryBudget, OwnRequest};
use mcp_proxy_wire::{
    Body, Direction, ErrorCode, Field, Frame, Id, Kind, Message, Origin, StreamId,
    TransportEnvelope, error_response,
};

use super::PostedMessage;
use super::answers::unanswered;
use crate::inbox::{InboxItem, InboxSender};
use crate::reopen_attempts::ReopenError;

/// Where the answers to POSTs go.
pub(crate) struct AnswerInbox {
    connection: Arc<Connection>,
    inbox: InboxSender,
}

impl AnswerInbox {
    pub(crate) fn new(connection: Arc<Connection>, inbox: InboxSender) -> AnswerInbox {
        AnswerInbox { connection, inbox }
    }

    /// What answers count in while they are read.
    pub(crate) fn memory(&self) -> &MemoryBudget {
        self.connection.run.memory()
    }

    pub(crate) fn hand_over(&self, frame: Frame) -> impl Future<Output = ()> {
        let sending = self.inbox.send(InboxItem::Frame(frame));
        // The pump is gone only when the whole link is; then nobody waits.
        async move { drop(sending.await) }
    }

    pub(crate) async fn end(&self, end: LinkEnd) {
        drop(self.inbox.send(InboxItem::End(end)).await);
    }

    /// Notes that the server did not take a message. This comes before the error that its sender gets: the sender may
    /// end the connection as soon as it has that.
    pub(crate) fn note_untaken(&self, posted: &PostedMessage, why: &str) {
        self.connection.undelivered(posted.sequence.as_slice(), why);
    }

    /// Answers open requests with why they cannot be answered.
    pub(crate) async fn fail(&self, asked: &[Id], end: &LinkEnd) {
        let (code, data) = match end {
            LinkEnd::Failed(failure) => (failure.code, failure.data.as_deref()),
            LinkEnd::Closed => (ErrorCode::SERVER_EXITED, None),
        };
        for id in asked {
            let answer = error_response(Some(id), code, &end.to_string(), data);
            self.hand_over(proxy_frame(answer)).await;
        }
    }

    /// Takes a JSON-RPC body. Returns the requests that it does not answer.
    pub(crate) async fn take(&self, parts: Parts, message: Message, asked: &[Id]) -> Vec<Id> {
        let left = unanswered(asked, &message);
        let names_none =
            lacks_id(&message) || (message.kind() == Kind::Error && !parts.status.is_success());
        if let ([id], true) = (left.as_slice(), names_none) {
            Box::pin(self.answer_for_server(parts, message, id)).await;
            return Vec::new();
        }
        let envelope = TransportEnvelope::Response(Box::new(parts));
        self.hand_over(received(envelope, message)).await;
        left
    }

    /// What the server sent instead of a message is received, recorded and goes no further.
    pub(crate) async fn record_failure(&self, parts: Parts, body: Message) {
        let body = match body.is_empty() {
            true => Body::Empty,
            false => Body::Message(body),
        };
        let envelope = TransportEnvelope::Response(Box::new(parts));
        self.record(Frame::new(StreamId::Only, Origin::Server, envelope, body))
            .await;
    }

    /// Records what the server sent and forwards nothing of it; its number.
    pub(crate) async fn record(&self, frame: Frame) -> Option<u64> {
        let mut pipeline = self
            .connection
            .record_only_pipeline(Direction::ServerToClient);
        // A record that cannot be written ends the run by itself.
        let recorded = pipeline.pass_one(frame, self.connection.run.now()).await;
        recorded.ok()??.frame().sequence
    }

    /// Sends a request of the proxy's own: `answer` sends it and waits for its answer.
    pub(crate) async fn ask<T>(
        &self,
        message: Message,
        answer: impl Future<Output = Result<T, ReopenError>>,
    ) -> Result<T, ReopenError> {
        let authored = OwnRequest::author(&self.connection, message);
        let (_open, frame) = authored.map_err(|end| ReopenError::Never(end.to_string()))?;
        answer
            .await
            .inspect_err(|error| self.note_unsent(&frame, error))
    }

    /// Sends a notification of the proxy's own, by `sending`.
    pub(crate) async fn tell(
        &self,
        message: Message,
        sending: impl Future<Output = Result<(), String>>,
    ) -> Result<(), ReopenError> {
        let (direction, now) = (Direction::ClientToServer, self.connection.run.now());
        let frame = self
            .connection
            .author(direction, StreamId::Only, message, now)
            .map_err(|end| ReopenError::Never(end.to_string()))?;
        let sent = sending.await.map_err(ReopenError::Later);
        sent.inspect_err(|error| self.note_unsent(&frame, error))
    }

    /// Takes a message that came while the answer to the request of ours with this id is awaited. If it is that answer, it is
    /// recorded and returned; anything else is for the client.
    pub(crate) async fn take_own(
        &self,
        id: &Id,
        envelope: TransportEnvelope,
        message: Message,
    ) -> Option<Message> {
        let is_answer = message.is_answer() && message.id().as_ref() == Some(id);
        let frame = received(envelope, message.clone());
        match is_answer {
            true => drop(self.record(frame).await),
            false => self.hand_over(frame).await,
        }
        is_answer.then_some(message)
    }

    /// A setting of the old session could not be given to the new one.
    pub(crate) fn warn_unset(&self, message: &Message, error: &ReopenError) {
        let (method, why) = (message.method().unwrap_or_default(), error.text());
        let text = format!("`{method}` could not be sent on the new session: {why}");
        self.connection.warn(&text);
    }

    fn note_unsent(&self, frame: &Frame, error: &ReopenError) {
        self.connection
            .undelivered(frame.sequence.as_slice(), error.text());
    }

    /// An error that the server could not tie to a request still answers the one of its POST: it has no id, or it came with the
    /// status of a failure under an id of the server's own (SDK servers for Python write "server-error"). The record keeps what the server sent; what the client gets under its own id is the proxy's.
    async fn answer_for_server(&self, parts: Parts, message: Message, id: &Id) {
        let envelope = TransportEnvelope::Response(Box::new(parts));
        let Some(answer) = with_id(&message, id) else {
            return self.hand_over(received(envelope, message)).await;
        };
        let is_sign_in = answer.error_code() == Some(ErrorCode::NEEDS_SIGN_IN.0);
        let sequence = self.record(received(envelope, message)).await;
        let why = "the error has no id of a request; the client gets it under its request's id";
        self.connection.record_proxy_verdict(sequence, "drop", why);
        let mut frame = proxy_frame(answer);
        if is_sign_in {
            // A hub takes our word that somebody has to sign in, and this is the server's.
            frame.origin = Origin::Server;
        }
        self.hand_over(frame).await;
    }
}

/// An answer that the proxy gives in the server's place.
pub(crate) fn proxy_frame(message: Message) -> Frame {
    Frame::message(StreamId::Only, Origin::Proxy, message)
}

/// A message from the server.
pub(crate) fn received(envelope: TransportEnvelope, message: Message) -> Frame {
    Frame::new(
        StreamId::Only,
        Origin::Server,
        envelope,
        Body::Message(message),
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
