//! The answer to a request that is held, for a client that asked for progress: an event stream that begins with that.
//!
//! Its head cannot wait for the server's, so it is 200 and an event stream, whatever comes. What the server streams follows
//! as it is; an answer that is JSON becomes an event; a failure, which has no status any more, becomes a JSON-RPC error.
//! Without `--hold-progress`, and for all other requests, answers are passed through as they are.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http_body::{Body as _, Frame as BodyFrame};
use mcp_proxy_core::Connection;
use mcp_proxy_wire::{
    Body, Direction, ErrorCode, ExchangeId, Frame, Id, Message, encode_event, error_response,
    headers,
};
use tokio::sync::mpsc;

use super::dial::{first_line, is_rpc};
use super::listener::{HttpResponse, events};
use super::outgoing_body::{BodyError, OutgoingBody};

/// Messages that wait for a client that does not read; what is told beyond that is not.
const TOLD_MAX: usize = 8;

/// An exchange that continues while its answer is already being read.
pub(crate) type AnswerFuture = Pin<Box<dyn Future<Output = HttpResponse> + Send>>;

/// A stream that begins before there is an answer.
pub struct ProgressThenAnswer {
    first: Option<Bytes>,
    told: mpsc::Receiver<Bytes>,
    asked: WaitingRequest,
    state: ProgressStreamState,
}

/// The request that waits.
#[derive(Clone)]
pub struct WaitingRequest {
    /// Its connection.
    pub connection: Arc<Connection>,
    /// Its exchange.
    pub exchange: ExchangeId,
    /// Its id.
    pub id: Option<Id>,
}

/// Where a client is told something before its answer.
pub(crate) struct ProgressSender(mpsc::Sender<Bytes>);

/// An answer that was dropped, as an extension of the response: its stream ends without an event.
#[derive(Clone, Copy)]
pub(crate) struct DroppedMarker;

enum ProgressStreamState {
    /// There is no answer yet.
    Waiting(AnswerFuture),
    /// The server streams.
    Streaming(OutgoingBody),
    /// The answer is one body.
    Collecting(StatusCode, OutgoingBody, BytesMut),
    /// All of it is here.
    Last(Option<Bytes>),
}

/// Where progress is told, and where it is read.
pub(crate) fn progress_channel() -> (ProgressSender, mpsc::Receiver<Bytes>) {
    let (sender, receiver) = mpsc::channel(TOLD_MAX);
    (ProgressSender(sender), receiver)
}

impl ProgressSender {
    /// Tells it, if the client reads.
    pub(crate) fn try_send(&self, frame: &Frame) {
        if let Body::Message(message) = &frame.body {
            drop(self.0.try_send(event_of(message)));
        }
    }
}

/// A message as an event of ours.
pub(crate) fn event_of(message: &Message) -> Bytes {
    encode_event(None, Some("message"), message.raw())
}

impl ProgressThenAnswer {
    /// The answer: as it is, unless something is told before it comes.
    pub async fn respond(
        asked: WaitingRequest,
        mut told: mpsc::Receiver<Bytes>,
        mut rest: AnswerFuture,
    ) -> HttpResponse {
        let first = tokio::select! {
            biased;
            Some(first) = told.recv() => first,
            answer = &mut rest => return answer,
        };
        let why = "its answer is an event stream, because progress was sent while it was held";
        asked.connection.close_exchange(asked.exchange, why);
        events(OutgoingBody::ProgressThenAnswer(Box::new(
            ProgressThenAnswer {
                first: Some(first),
                told,
                asked,
                state: ProgressStreamState::Waiting(rest),
            },
        )))
    }

    /// The next piece.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<BodyFrame<Bytes>, BodyError>>> {
        loop {
            let data = |bytes| Poll::Ready(Some(Ok(BodyFrame::data(bytes))));
            if let Some(first) = self.first.take() {
                return data(first);
            }
            if let Poll::Ready(Some(told)) = self.told.poll_recv(cx) {
                return data(told);
            }
            match &mut self.state {
                ProgressStreamState::Waiting(rest) => {
                    let answer = ready!(rest.as_mut().poll(cx));
                    self.state = ProgressStreamState::from_response(answer);
                }
                ProgressStreamState::Streaming(payload) => return Pin::new(payload).poll_frame(cx),
                ProgressStreamState::Collecting(status, payload, read) => {
                    match ready!(Pin::new(payload).poll_frame(cx)) {
                        Some(Ok(piece)) => read.extend(piece.into_data().ok()),
                        Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                        None => {
                            let event = self.asked.event(*status, std::mem::take(read).freeze());
                            self.state = ProgressStreamState::Last(Some(event));
                        }
                    }
                }
                ProgressStreamState::Last(event) => match event.take() {
                    Some(event) => return data(event),
                    None => return Poll::Ready(None),
                },
            }
        }
    }
}

impl ProgressStreamState {
    /// What is to be done with an answer.
    fn from_response(answer: HttpResponse) -> ProgressStreamState {
        let (parts, payload) = answer.into_parts();
        if parts.extensions.get::<DroppedMarker>().is_some() {
            return ProgressStreamState::Last(None);
        }
        match parts.status.is_success() && headers::is_sse(&parts.headers) {
            true => ProgressStreamState::Streaming(payload),
            false => ProgressStreamState::Collecting(parts.status, payload, BytesMut::new()),
        }
    }
}

impl WaitingRequest {
    /// An answer as an event. What answers nothing, as the refusal of a gateway, becomes an error: its status has no
    /// place any more.
    pub fn event(&self, status: StatusCode, body: Bytes) -> Bytes {
        let message = Message::parse(body);
        let fits = is_rpc(&message) && (status.is_success() || message.id() == self.id);
        if fits {
            return event_of(&message);
        }
        let line = first_line(message.raw());
        let text = format!("the server answered HTTP {}{line}", status.as_u16());
        let error = error_response(self.id.as_ref(), ErrorCode::SERVER_HTTP, &text, None);
        let now = self.connection.run.now();
        let direction = Direction::ServerToClient;
        // If the record cannot be written, the client still learns what happened.
        drop(
            self.connection
                .author(direction, self.exchange, error.clone(), now),
        );
        event_of(&error)
    }
}
