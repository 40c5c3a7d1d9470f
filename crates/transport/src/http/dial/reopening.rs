//! A session that the server has lost is opened again, with the client's own `initialize`, and what the server refused is
//! sent once more: it was not carried out. The record shows all of it as the proxy's own messages.

use std::sync::{Arc, Mutex, PoisonError};

use http::{HeaderMap, Response, StatusCode};
use mcp_proxy_core::LinkEnd;
use mcp_proxy_wire::headers::{self, MCP_SESSION_ID};
use mcp_proxy_wire::{Body, Direction, ErrorCode, Id, Message, Side, SseUnit};
use tokio::time::{Instant, timeout_at};

use super::super::collect::collect;
use super::super::event_collector::EventCollector;
use super::super::incoming_body::IncomingBody;
use super::super::relayed_events::event_frame;
use super::answers::{refuses_session, status_text};
use super::{HttpLink, PostedMessage, session_headers};
use crate::reopen_attempts::{ReopenAttempts, ReopenError};
use crate::session_opening::{SessionLoss, SessionOpening, check_reopened};

/// What is known for opening a session again.
pub(super) struct Reopening {
    opening: Mutex<SessionOpening>,
    /// Locked while the session is opened; holds how that failed last.
    attempt: tokio::sync::Mutex<Option<FailedReopening>>,
}

struct FailedReopening {
    why: String,
    at: Instant,
    /// The server refused, so it is not asked again.
    is_final: bool,
}

/// Who opened the session again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reopened {
    /// The caller.
    Now,
    /// Somebody else, since the caller's message was sent.
    Before,
}

impl Reopening {
    pub(super) fn new(on_loss: SessionLoss) -> Option<Reopening> {
        (on_loss == SessionLoss::Reopen).then(|| Reopening {
            opening: Mutex::default(),
            attempt: tokio::sync::Mutex::default(),
        })
    }

    fn opening<T>(&self, read: impl FnOnce(&mut SessionOpening) -> T) -> T {
        read(&mut self.opening.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl HttpLink {
    /// Remembers what a new session would need.
    pub(super) fn observe(&self, method: Option<&str>, message: &Message) {
        if let (Some(reopening), true) = (&self.reopening, SessionOpening::needs(method)) {
            reopening.opening(|opening| opening.observe(method, message));
        }
    }

    /// Whether this answer may say that the session is lost, and the message could go out on another one. Answers to
    /// requests of the server could not: those requests went with the session.
    pub(super) fn may_have_lost_session(
        &self,
        response: &Response<IncomingBody>,
        posted: &PostedMessage,
        message: &Message,
    ) -> bool {
        matches!(
            response.status(),
            StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST
        ) && !message.is_answer()
            && posted.method.as_deref() != Some("initialize")
            && self.can_reopen()
    }

    pub(super) fn can_reopen(&self) -> bool {
        let is_complete = |reopening: &Reopening| reopening.opening(|it| it.is_complete());
        self.state.has_session() && self.reopening.as_ref().is_some_and(is_complete)
    }

    /// Reads the answer to a message that was sent on the session of this generation. If it says that the session is lost,
    /// the message is sent on a new one. `None`: the answer was something else, and is dealt with.
    pub(super) async fn send_on_new_session(
        self: &Arc<Self>,
        response: Response<IncomingBody>,
        (generation, message): (u64, &Message),
        posted: &PostedMessage,
    ) -> Option<Result<Response<IncomingBody>, LinkEnd>> {
        let (parts, body) = response.into_parts();
        let bytes = collect(body, self.max, self.answers.memory())
            .await
            .into_bytes();
        let (status, answer) = (parts.status, Message::parse(bytes.clone()));
        if !refuses_session(status, &answer) {
            self.receive_whole(parts, bytes, posted).await;
            return None;
        }
        self.answers.record_failure(parts, answer).await;
        match self.reopen(generation).await {
            Ok(reopened) => {
                if reopened == Reopened::Now {
                    self.open_get();
                }
                Some(self.send_as(message, super::era(message), posted).await)
            }
            Err(why) => {
                self.lose_session(status, posted, &why).await;
                None
            }
        }
    }

    /// Opens the session again, unless somebody else has meanwhile. Others that need it wait.
    pub(super) async fn reopen(&self, generation: u64) -> Result<Reopened, String> {
        let Some(reopening) = &self.reopening else {
            return Err(String::new());
        };
        let asked = Instant::now();
        let mut failed = reopening.attempt.lock().await;
        // A failure is also that of all who waited for the attempt.
        if let Some(failure) = &*failed
            && (failure.is_final || failure.at >= asked)
        {
            return Err(failure.why.clone());
        }
        if self.state.generation() != generation {
            return Ok(Reopened::Before);
        }
        match self.keep_opening(reopening).await {
            Ok(()) => {
                let text = "the server had lost the session; the proxy opened it again";
                self.client.connection.warn(text);
                Ok(Reopened::Now)
            }
            Err(error) => {
                let why = format!("; it could not be opened again: {}", error.text());
                *failed = Some(FailedReopening {
                    why: why.clone(),
                    at: Instant::now(),
                    is_final: matches!(error, ReopenError::Never(_)),
                });
                Err(why)
            }
        }
    }

    /// Tries until the session is open, the server refuses, or the time is over: a server that is starting refuses
    /// connections or answers 503.
    async fn keep_opening(&self, reopening: &Reopening) -> Result<(), ReopenError> {
        let mut attempts = ReopenAttempts::default();
        let deadline = attempts.deadline();
        let mut last = "the server did not answer in time".to_owned();
        loop {
            match timeout_at(deadline, self.open_again(reopening)).await {
                Ok(Err(ReopenError::Later(why))) => last = why,
                Ok(done) => return done,
                Err(_) => return Err(ReopenError::Later(last)),
            }
            if !attempts.wait().await {
                return Err(ReopenError::Later(last));
            }
        }
    }

    /// Until the new session is as the old one was, no other message is sent on it.
    async fn open_again(&self, reopening: &Reopening) -> Result<(), ReopenError> {
        let version = self.state.session().1;
        let initialize = reopening.opening(SessionOpening::initialize);
        let initialize = initialize.ok_or_else(|| {
            ReopenError::Never("the client's `initialize` is not known".to_owned())
        })?;
        let (response, answer) = self.ask(HeaderMap::new(), &initialize).await?;
        let session = response.get(MCP_SESSION_ID).cloned();
        let agreed = version.as_ref().and_then(|version| version.to_str().ok());
        let checked = check_reopened(&answer, agreed);
        let headers = session_headers(session.clone(), version);
        let opened = match checked {
            Ok(()) => self.complete(reopening, &headers).await,
            Err(why) => Err(ReopenError::Never(why)),
        };
        if opened.is_err() {
            self.end_session(headers).await;
            return opened;
        }
        let promised = self.state.replace_session(session);
        self.fail_promised(promised).await;
        Ok(())
    }

    /// Sends what the client had sent after `initialize`, on the session of these headers.
    async fn complete(
        &self,
        reopening: &Reopening,
        headers: &HeaderMap,
    ) -> Result<(), ReopenError> {
        if let Some(initialized) = reopening.opening(|it| it.initialized()) {
            self.tell(headers.clone(), initialized).await?;
        }
        for message in reopening.opening(SessionOpening::settings) {
            if let Err(error) = self.ask(headers.clone(), &message).await {
                self.answers.warn_unset(&message, &error);
            }
        }
        Ok(())
    }

    /// What the lost session was to answer on its GET stream is not answered any more.
    async fn fail_promised(&self, mut promised: Vec<Id>) {
        if promised.is_empty() {
            return;
        }
        let direction = Direction::ClientToServer;
        let open = self.client.connection.open_requests(direction);
        promised.retain(|id| open.iter().any(|asked| asked.id == *id));
        let text = "the server lost the session before it answered";
        let end = LinkEnd::failed(Side::Server, ErrorCode::SESSION_NOT_FOUND, text);
        self.answers.fail(&promised, &end).await;
    }

    /// Sends a request of the proxy's own; the headers of the response, and the answer.
    async fn ask(
        &self,
        session: HeaderMap,
        message: &Message,
    ) -> Result<(HeaderMap, Message), ReopenError> {
        let answer = async {
            let response = self.send_with(session, message, None).await;
            let response = response.map_err(|end| ReopenError::Later(end.to_string()))?;
            let id = message.id().unwrap_or_else(|| Id::from_token(b"null"));
            self.own_answer(response, &id).await
        };
        self.answers.ask(message.clone(), answer).await
    }

    /// Sends a notification of the proxy's own.
    async fn tell(&self, session: HeaderMap, message: Message) -> Result<(), ReopenError> {
        let sending = async {
            match self.send_with(session, &message, None).await {
                Ok(response) if response.status().is_success() => Ok(()),
                Ok(response) => Err(status_text(response.status())),
                Err(end) => Err(end.to_string()),
            }
        };
        self.answers.tell(message.clone(), sending).await
    }

    /// The answer to a request of ours. What else comes with it is for the client.
    async fn own_answer(
        &self,
        response: Response<IncomingBody>,
        id: &Id,
    ) -> Result<(HeaderMap, Message), ReopenError> {
        let (parts, mut body) = response.into_parts();
        let headers = parts.headers.clone();
        if !(parts.status.is_success() && headers::is_sse(&parts.headers)) {
            let status = parts.status;
            let body = collect(body, self.max, self.answers.memory()).await;
            let message = Message::parse(body.into_bytes());
            let is_answer = message.is_answer() && message.id().as_ref() == Some(id);
            self.answers.record_failure(parts, message.clone()).await;
            return match is_answer {
                _ if may_pass(status) => Err(ReopenError::Later(status_text(status))),
                true => Ok((headers, message)),
                false => Err(ReopenError::Never(status_text(status))),
            };
        }
        let mut events = EventCollector::new(self.max, self.answers.memory());
        let mut units = Vec::new();
        while let Some(Ok(piece)) = body.next().await {
            let refused = events.push(piece, &mut units);
            for unit in units.drain(..) {
                let SseUnit::Event(event) = unit else {
                    continue;
                };
                let (envelope, Body::Message(message)) = event_frame(event) else {
                    continue;
                };
                if let Some(message) = self.answers.take_own(id, envelope, message).await {
                    return Ok((headers, message));
                }
            }
            if let Some(refused) = refused {
                return Err(ReopenError::Later(refused.over.to_string()));
            }
        }
        let why = "the server's stream ended before the answer came";
        Err(ReopenError::Later(why.to_owned()))
    }
}

/// Whether a server that is starting, or the gateway in front of it, may answer like this for a while.
fn may_pass(status: StatusCode) -> bool {
    use StatusCode as S;
    status.is_server_error()
        || matches!(
            status,
            S::NOT_FOUND | S::REQUEST_TIMEOUT | S::TOO_MANY_REQUESTS
        )
}
