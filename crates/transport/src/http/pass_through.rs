//! HTTP on both sides: requests and answers pass as they are, through the pipeline.
//!
//! Status codes, headers, event ids, retry fields and comments pass; only what belongs to the hop is rewritten.
//! Nothing is kept between requests but which session belongs to which connection of the record, and, where the proxy may
//! have to speak for a client, how the client spoke last.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Request};
use hyper::body::Incoming;
use mcp_proxy_core::{
    BoxFuture, Connection, LinkEnd, MessagePipeline, OutgoingFrame, PassResult, ProgressSupport,
    ProxyRun,
};
use mcp_proxy_wire::headers::{self, MCP_SESSION_ID};
use mcp_proxy_wire::{
    Body, Direction, ExchangeId, Field, Frame, Id, Kind, Message, Origin, TransportEnvelope,
};

use super::failed_exchange::{dropped_response, record_failed_response, unreachable_server};
use super::handler::{Handler, RequestSource};
use super::listener::HttpResponse;
use super::outgoing_body::OutgoingBody;
use super::progress_stream::{
    ProgressSender, ProgressThenAnswer, WaitingRequest, progress_channel,
};
use super::remote::{RemoteServer, note_resent};
use super::request_body::whole_body;
use super::session_connections::SessionConnections;

mod answer;
mod injection;

use answer::{AnswerInspection, AnsweredExchange};

/// Streamable HTTP in, streamable HTTP out.
pub struct HttpPassThrough {
    run: Arc<ProxyRun>,
    remote: Arc<RemoteServer>,
    max: usize,
    next: AtomicU64,
    sessions: SessionConnections,
}

/// A request on its way in.
struct PassThroughRequest {
    connection: Arc<Connection>,
    exchange: ExchangeId,
    parts: Parts,
    message: Option<Message>,
}

impl PassThroughRequest {
    /// Whether its sender can be told progress before it has its answer. The head of an `initialize` answer names the
    /// session, so that one has to wait.
    fn accepts_progress(&self) -> bool {
        let asks = |message: &Message| {
            message.kind() == Kind::Request
                && message.span(Field::Meta("progressToken")).is_some()
                && message.method().as_deref() != Some("initialize")
        };
        self.connection.run.intercept().sends_progress()
            && headers::accepts_sse(&self.parts.headers)
            && self.message.as_ref().is_some_and(asks)
    }

    fn asked(&self) -> WaitingRequest {
        WaitingRequest {
            connection: Arc::clone(&self.connection),
            exchange: self.exchange,
            id: self.message.as_ref().and_then(Message::id),
        }
    }
}

impl HttpPassThrough {
    /// Passes requests on to `remote`. A message may have `max` bytes.
    pub fn new(run: Arc<ProxyRun>, remote: Arc<RemoteServer>, max: usize) -> Arc<HttpPassThrough> {
        let exchange = Arc::new(HttpPassThrough {
            run,
            remote,
            max,
            next: AtomicU64::new(0),
            sessions: SessionConnections::default(),
        });
        let injector: Weak<HttpPassThrough> = Arc::downgrade(&exchange);
        exchange.run.set_injector(injector);
        exchange
    }

    /// Answers one request.
    async fn answer(
        self: Arc<Self>,
        source: RequestSource,
        request: Request<Incoming>,
    ) -> HttpResponse {
        let (parts, body) = request.into_parts();
        let body = match whole_body(body, self.max, self.run.memory()).await {
            Ok(body) => body,
            Err(answer) => return *answer,
        };
        let entered = self.receive_request(&source, parts, body);
        if !entered.accepts_progress() {
            return self.forward_request(entered, None).await;
        }
        let asked = entered.asked();
        let (progress_sender, told) = progress_channel();
        let rest =
            Box::pin(async move { self.forward_request(entered, Some(progress_sender)).await });
        ProgressThenAnswer::respond(asked, told, rest).await
    }

    /// Passes one request on and its answer back.
    pub async fn pass(&self, source: &RequestSource, parts: Parts, body: Bytes) -> HttpResponse {
        self.forward_request(self.receive_request(source, parts, body), None)
            .await
    }

    fn receive_request(
        &self,
        source: &RequestSource,
        parts: Parts,
        body: Bytes,
    ) -> PassThroughRequest {
        let exchange = self.next_exchange();
        let message = (!body.is_empty()).then(|| Message::parse(body));
        let head = (source, &parts);
        let connection = self
            .sessions
            .connection_of(&self.run, exchange, head, message.as_ref());
        PassThroughRequest {
            connection,
            exchange,
            parts,
            message,
        }
    }

    async fn forward_request(
        &self,
        entered: PassThroughRequest,
        progress_sender: Option<ProgressSender>,
    ) -> HttpResponse {
        let connection = Arc::clone(&entered.connection);
        let asked = entered.message.as_ref().and_then(Message::id);
        let mut leaving = AbortNote(Some((&connection, entered.exchange)));
        let answer = self
            .exchange(entered, asked.as_ref(), progress_sender)
            .await;
        leaving.0 = None;
        answer.unwrap_or_else(|end| record_failed_response(500, asked.as_ref(), &end))
    }

    /// Passes a request on and its answer back. Fails if the record does.
    async fn exchange(
        &self,
        entered: PassThroughRequest,
        asked: Option<&Id>,
        progress_sender: Option<ProgressSender>,
    ) -> Result<HttpResponse, LinkEnd> {
        let PassThroughRequest {
            connection,
            exchange,
            parts,
            message,
        } = entered;
        let mut pipeline = connection
            .message_pipeline(Direction::ClientToServer)
            .with_progress_support(match &progress_sender {
                Some(_) => ProgressSupport::Yes,
                None => ProgressSupport::No,
            });
        let method = parts.method.clone();
        let ends = match method == Method::DELETE {
            true => parts.headers.get(MCP_SESSION_ID).cloned(),
            false => None,
        };
        let url = self.remote.url_with_query(parts.uri.query());
        let lists_tools = self.run.may_inject()
            && message.as_ref().is_some_and(|message| {
                self.remote.tools().note_call(&parts.headers, message);
                message.method().as_deref() == Some("tools/list")
            });
        let before = message.clone();
        let body = message.map_or(Body::Empty, Body::Message);
        let envelope = TransportEnvelope::Request(Box::new(parts));
        let frame = Frame::new(exchange, Origin::Client, envelope, body);
        let passed = pass_request(&connection, &mut pipeline, frame, progress_sender).await?;
        let (mut headers, body, sequence) = match passed {
            // What comes out of the pipeline is what is sent.
            Some(OutgoingFrame::Frame(Frame {
                envelope: TransportEnvelope::Request(mut parts),
                body,
                sequence,
                ..
            })) => {
                if let (Body::Message(after), Some(before)) = (&body, &before)
                    && after.raw() != before.raw()
                {
                    let params = self.remote.tools().of(after);
                    headers::update_headers_for_edit(&mut parts.headers, before, after, &params);
                }
                (parts.headers, body, sequence)
            }
            frame => return Ok(dropped_response(frame)),
        };
        headers::strip_hop_by_hop(&mut headers);
        connection.run.durable().await?;
        let sent = self
            .remote
            .send(method.clone(), url, headers, OutgoingBody::of(body))
            .await;
        Ok(match sent {
            Ok(response) => {
                note_resent(&connection, &response);
                match ends {
                    Some(session) if response.status().is_success() => self.sessions.end(&session),
                    Some(_) => {}
                    None => self.sessions.remember_session(&connection, &response),
                }
                let answered = AnsweredExchange {
                    connection: &connection,
                    id: exchange,
                    method: &method,
                    asked,
                    inspection: match lists_tools {
                        true => AnswerInspection::Tools,
                        false => AnswerInspection::Nothing,
                    },
                };
                self.forward_response(response, answered).await
            }
            Err(end) => {
                connection.undelivered(sequence.as_slice(), &end.to_string());
                unreachable_server(&connection, exchange, asked, &end)
            }
        })
    }

    fn next_exchange(&self) -> ExchangeId {
        ExchangeId(self.next.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

impl Handler for HttpPassThrough {
    fn handle(
        self: Arc<Self>,
        source: RequestSource,
        request: Request<Incoming>,
    ) -> BoxFuture<'static, HttpResponse> {
        Box::pin(self.answer(source, request))
    }
}

/// Dropped while it holds an exchange: the client has gone before its answer came.
struct AbortNote<'a>(Option<(&'a Connection, ExchangeId)>);

impl Drop for AbortNote<'_> {
    fn drop(&mut self) {
        if let Some((connection, exchange)) = self.0 {
            connection.close_exchange(exchange, "the client went away before its answer came");
        }
    }
}

/// Passes a client's request through a pipeline. While it is held, its client is told so.
async fn pass_request(
    connection: &Connection,
    pipeline: &mut MessagePipeline,
    frame: Frame,
    progress_sender: Option<ProgressSender>,
) -> Result<Option<OutgoingFrame>, LinkEnd> {
    match pipeline.try_pass(frame, connection.run.now())? {
        PassResult::Passed(frame) => Ok(frame),
        PassResult::Held => {
            let tell = |told| {
                progress_sender
                    .iter()
                    .for_each(|progress_sender| progress_sender.try_send(&told))
            };
            pipeline.wait_released(tell).await
        }
    }
}
