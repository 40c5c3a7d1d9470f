//! A POST of a legacy session, on a listener whose server speaks something else, and what tells the session that a
//! stream's client has gone.

use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use mcp_proxy_wire::{ErrorCode, ExchangeId, Field, Id, Kind, Message, is_blank};
use tokio::time::timeout;

use super::event_stream::{EventStream, KEEP_ALIVE_COMMENT, StreamItem, encode};
use super::listener::{HttpResponse, bare, error, error_answering, json_bytes, recorded_json};
use super::outgoing_body::UnsentMessage;
use super::request_body::unreadable;
use super::session::{HttpSession, PostStream, frame};
use super::slow_answer::{
    SlowAnswer, accepts_events, first_item, priming_event, takes_priming_event,
};
use super::stream_router::PostExpectation;
use crate::inbox::{InboxItem, SEND_DEADLINE};

/// A server that answers nothing to a body it cannot read is waited for this long.
const UNPARSED_WAIT: Duration = Duration::from_secs(1);

/// Answers a legacy POST.
pub(super) async fn legacy_post(
    session: &Arc<HttpSession>,
    exchange: ExchangeId,
    parts: Parts,
    message: Message,
) -> HttpResponse {
    let id = message.id();
    let is_batch = message.kind() == Kind::Batch;
    if is_blank(message.raw()) {
        let (code, text) = (ErrorCode::PARSE_ERROR, unreadable(&message));
        session.refuse(frame(exchange, parts, message), code, text);
        return error(400, code, text);
    }
    let Some(PostStream {
        mut messages,
        number,
        expects: awaits,
    }) = session.open_post(exchange, &message)
    else {
        return session_not_found(id.as_ref());
    };
    let mut doubtful = ForgetPostOnDrop {
        session: Some(session),
        exchange,
    };
    let cancelled = cancelled_requests(&message);
    let can_stream = accepts_events(&parts.headers) && !is_batch;
    let takes_priming = takes_priming_event(&parts.headers);
    let arrival = InboxItem::Frame(frame(exchange, parts, message));
    let sent = session.inbox.send_timeout(arrival, SEND_DEADLINE).await;
    if sent.is_err() {
        let text = "the server takes no more messages";
        return error_answering(id.as_ref(), 503, ErrorCode::PEER_STALLED, text);
    }
    for request in &cancelled {
        session.cancelled(request);
    }
    match awaits {
        PostExpectation::Nothing => return bare(202),
        PostExpectation::UnparsedBody => {
            return match timeout(UNPARSED_WAIT, messages.next()).await {
                Ok(Some(StreamItem::Message(message))) => json_bytes(400, message.data),
                _ => bare(202),
            };
        }
        PostExpectation::Answers => doubtful.session = None,
    }
    let guard = Box::new(PostStreamGuard {
        session: Arc::clone(session),
        exchange,
        number,
    });
    let first = match first_item(&mut messages, can_stream).await {
        Ok(first) => first,
        Err(SlowAnswer) => {
            let id_to_resume = match takes_priming {
                true => session.begin_stream(exchange),
                false => None,
            };
            let first = id_to_resume.map_or(KEEP_ALIVE_COMMENT, |id| priming_event(&id));
            let stream = EventStream::new(vec![first], messages, Some(guard));
            return stream.answering(id).into_response();
        }
    };
    match first {
        Some(StreamItem::Dropped) => bare(502),
        Some(StreamItem::Accepted) => bare(202),
        Some(StreamItem::Ended) => EventStream::finished(Vec::new()).into_response(),
        Some(StreamItem::Message(message)) if message.last && !is_batch => {
            let unsent = UnsentMessage::new(&session.connection, message.sequence);
            recorded_json(200, message.data, unsent)
        }
        Some(StreamItem::Message(message)) => {
            let first = vec![encode(&message)];
            EventStream::new(first, messages, Some(guard)).into_response()
        }
        // A batch is always answered with events; one that nothing was sent for ends without any.
        None if is_batch => EventStream::finished(Vec::new()).into_response(),
        None => session_ended(id.as_ref()),
    }
}

/// The requests that a message cancels.
fn cancelled_requests(message: &Message) -> Vec<Id> {
    let cancelled = |message: &Message| {
        let is_cancel = message.method().as_deref() == Some("notifications/cancelled");
        let span = message.span(Field::RequestId).filter(|_| is_cancel)?;
        Some(Id::from_token(message.slice(span)))
    };
    match message.kind() {
        Kind::Notification => cancelled(message).into_iter().collect(),
        Kind::Batch => {
            let parts = message.parts().unwrap_or_default();
            parts.iter().filter_map(cancelled).collect()
        }
        _ => Vec::new(),
    }
}

/// A POST of which no answer is certain: when it is over, or its client goes, the session forgets it.
struct ForgetPostOnDrop<'a> {
    session: Option<&'a HttpSession>,
    exchange: ExchangeId,
}

impl Drop for ForgetPostOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(session) = self.session {
            session.forget_post(self.exchange);
        }
    }
}

/// Closes a POST's stream with its client. Legacy: that is not a cancel, the answer can be fetched later.
pub(super) struct PostStreamGuard {
    pub(super) session: Arc<HttpSession>,
    pub(super) exchange: ExchangeId,
    /// The stream's number.
    pub(super) number: u64,
}

impl Drop for PostStreamGuard {
    fn drop(&mut self) {
        self.session.stream_closed(self.exchange, self.number);
    }
}

/// Closes the GET stream with its client.
pub(super) struct GetStreamGuard {
    pub(super) session: Arc<HttpSession>,
    /// The stream's number.
    pub(super) number: u64,
}

impl Drop for GetStreamGuard {
    fn drop(&mut self) {
        self.session.get_closed(self.number);
    }
}

/// The answer for a session that is not there.
pub(super) fn session_not_found(id: Option<&Id>) -> HttpResponse {
    let text = "unknown session (it ended, or the server restarted): restart the MCP connection, which sends initialize";
    error_answering(id, 404, ErrorCode::SESSION_NOT_FOUND, text)
}

/// The answer for a request whose session ended before the server answered, and not because its client ended it. The POST
/// was accepted, so the status is 200.
fn session_ended(id: Option<&Id>) -> HttpResponse {
    let text = "the session ended before the server answered";
    error_answering(id, 200, ErrorCode::SESSION_NOT_FOUND, text)
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;
    use mcp_proxy_core::{HoldOptions, LinkEnd, ProxyRun, RunOptions};
    use mcp_proxy_wire::Transport;

    use super::*;
    use crate::http::session::SessionKind;
    use crate::inbox::{InboxReader, inbox};

    fn parts() -> Parts {
        http::Request::post("/mcp").body(()).unwrap().into_parts().0
    }

    /// A session whose server never answers.
    fn session() -> (Arc<HttpSession>, InboxReader) {
        let run = ProxyRun::new(RunOptions {
            recorder: None,
            warn: Arc::new(|text| panic!("{text}")),
            pass_noise: false,
            hold: HoldOptions::default(),
        });
        let connection = run.connect(Transport::StreamableHttp, Transport::Stdio);
        let (sender, reader) = inbox();
        let kind = SessionKind::Legacy("s".to_owned());
        let session = HttpSession::new(kind, connection, sender, Arc::default(), None);
        (session, reader)
    }

    on_both_runtimes!(a_client_that_goes_before_its_message_is_taken_leaves_nothing_behind);
    /// A session with an open stream is never idle, so a stream that is forgotten keeps its server for ever.
    async fn a_client_that_goes_before_its_message_is_taken_leaves_nothing_behind() {
        let (session, _reader) = session();
        let leave_soon = async |exchange: u64, text: &'static str| {
            let message = Message::parse(text);
            let posting = legacy_post(&session, ExchangeId(exchange), parts(), message);
            timeout(Duration::from_millis(100), posting).await.is_err()
        };
        assert!(leave_soon(1, "{no json").await, "it waits for an error");
        while session
            .inbox
            .try_send(InboxItem::End(LinkEnd::Closed))
            .is_ok()
        {}
        assert!(
            leave_soon(2, r#"{"id":1,"method":"m"}"#).await,
            "the queue is full"
        );
        assert_ne!(session.idle(), Duration::ZERO);
    }

    fn parts_of(version: &'static str, accept: &'static str) -> Parts {
        let head = http::Request::post("/mcp").header("mcp-protocol-version", version);
        let request = head.header("accept", accept).body(()).unwrap();
        request.into_parts().0
    }

    on_both_runtimes!(an_answer_that_takes_long_begins_as_an_event_stream);
    async fn an_answer_that_takes_long_begins_as_an_event_stream() {
        let events = "application/json, text/event-stream";
        for (version, is_primed) in [("2025-11-25", true), ("2025-06-18", false)] {
            let (session, _reader) = session();
            let message = Message::parse(r#"{"jsonrpc":"2.0","id":7,"method":"m"}"#);
            let parts = parts_of(version, events);
            let answer = legacy_post(&session, ExchangeId(1), parts, message).await;
            assert_eq!(answer.status(), 200);
            let content = &answer.headers()[http::header::CONTENT_TYPE];
            assert_eq!(content, "text/event-stream");
            if is_primed {
                let resumed = session.resume("1-1").expect("its first event has an id");
                assert!(resumed.missed.is_empty() && resumed.live.is_some());
            }
            session.end();
            let body = answer.into_body().collect().await.unwrap().to_bytes();
            let body = std::str::from_utf8(&body).unwrap();
            let (first, last) = body.split_once("\n\n").unwrap();
            let begins = match is_primed {
                true => "id: 1-1\nretry: ",
                false => ": ",
            };
            assert!(first.starts_with(begins), "{body}");
            assert!(last.contains(r#""id":7,"error":{"code":-31002,"#), "{body}");
        }
    }

    on_both_runtimes!(a_client_that_takes_no_event_stream_waits_for_its_answer);
    async fn a_client_that_takes_no_event_stream_waits_for_its_answer() {
        let (session, _reader) = session();
        let message = Message::parse(r#"{"jsonrpc":"2.0","id":7,"method":"m"}"#);
        let parts = parts_of("2025-11-25", "application/json");
        let posting = legacy_post(&session, ExchangeId(1), parts, message);
        assert!(timeout(Duration::from_secs(3), posting).await.is_err());
    }

    on_both_runtimes!(requests_that_are_open_when_their_session_ends_are_answered);
    async fn requests_that_are_open_when_their_session_ends_are_answered() {
        let request = r#"{"jsonrpc":"2.0","id":7,"method":"m"}"#;
        let batch = r#"[{"jsonrpc":"2.0","id":7,"method":"m"}]"#;
        for (text, content) in [(request, "application/json"), (batch, "text/event-stream")] {
            let (session, _reader) = session();
            let message = Message::parse(text);
            let posting = legacy_post(&session, ExchangeId(1), parts(), message);
            let ending = async {
                while session.idle() != Duration::ZERO {
                    tokio::task::yield_now().await;
                }
                session.end();
            };
            let answer = tokio::join!(posting, ending).0;
            assert_eq!(answer.status(), 200, "{text}");
            assert_eq!(answer.headers()[http::header::CONTENT_TYPE], content);
            let late = Message::parse(text);
            let late = legacy_post(&session, ExchangeId(2), parts(), late).await;
            assert_eq!(late.status(), 404, "it came after the end");
        }
    }
}
