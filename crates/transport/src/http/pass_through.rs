//! HTTP on both sides: requests and answers pass as they are, through the pipeline.
//!
//! Status codes, headers, event ids, retry fields and comments pass; only what belongs to the hop is rewritten.
//! Nothing is kept between requests but which session belongs to which connection of the record, and, where the proxy may
//! have to speak for a client, how that one spoke last.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use http::header::CONTENT_LENGTH;
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use mcp_proxy_core::{
    BoxFuture, Connection, LinkEnd, MessagePipeline, OutgoingFrame, PassResult, ProgressSupport,
    ProxyRun,
};
use mcp_proxy_wire::headers::{self, MCP_SESSION_ID};
use mcp_proxy_wire::{
    Body, Direction, ErrorCode, ExchangeId, Field, Frame, Id, Kind, Limits, Message, Origin, Side,
    TransportEnvelope, error_response,
};

use super::body_length::stated;
use super::collect::{CollectedBody, collect};
use super::handler::{Handler, RequestSource};
use super::incoming_body::IncomingBody;
use super::listener::{HttpResponse, bare, error, error_answering, json};
use super::outgoing_body::{OutgoingBody, UnsentMessage};
use super::progress_stream::{
    DroppedMarker, ProgressSender, ProgressThenAnswer, WaitingRequest, progress_channel,
};
use super::relayed_body::{EventRewrite, RelayedBody};
use super::remote::{RemoteServer, note_resent};
use super::request_body::{broke_off, too_large};
use super::session_connections::SessionConnections;

mod injection;

/// Streamable HTTP in, streamable HTTP out.
pub struct HttpPassThrough {
    run: Arc<ProxyRun>,
    remote: Arc<RemoteServer>,
    limits: Limits,
    next: AtomicU64,
    sessions: SessionConnections,
}

/// What an answer is read for, besides being passed on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AnswerInspection {
    Nothing,
    /// The arguments that tools want in headers.
    Tools,
}

impl AnswerInspection {
    /// A list of tools is read whole if it has no more bytes than this; then it is passed on in one piece.
    fn needs(self, limits: Limits) -> usize {
        match self {
            AnswerInspection::Nothing => 0,
            AnswerInspection::Tools => limits.max.min(4 << 20),
        }
    }
}

/// The request that an answer belongs to.
#[derive(Clone, Copy)]
struct AnsweredExchange<'a> {
    connection: &'a Arc<Connection>,
    id: ExchangeId,
    method: &'a Method,
    /// The id of its JSON-RPC request.
    asked: Option<&'a Id>,
    inspection: AnswerInspection,
}

/// A request on its way in.
struct PassThroughRequest {
    connection: Arc<Connection>,
    exchange: ExchangeId,
    parts: Parts,
    body: CollectedBody,
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
    /// Passes requests on to `remote`.
    pub fn new(
        run: Arc<ProxyRun>,
        remote: Arc<RemoteServer>,
        limits: Limits,
    ) -> Arc<HttpPassThrough> {
        let exchange = Arc::new(HttpPassThrough {
            run,
            remote,
            limits,
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
        let body = collect(body, self.cut()).await;
        if self.is_too_large(&parts.headers, &body) {
            return too_large(self.limits.max);
        }
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
    pub async fn pass(
        &self,
        source: &RequestSource,
        parts: Parts,
        body: CollectedBody,
    ) -> HttpResponse {
        if self.is_too_large(&parts.headers, &body) {
            return too_large(self.limits.max);
        }
        self.forward_request(self.receive_request(source, parts, body), None)
            .await
    }

    fn receive_request(
        &self,
        source: &RequestSource,
        parts: Parts,
        body: CollectedBody,
    ) -> PassThroughRequest {
        let exchange = self.next_exchange();
        let message = match &body {
            CollectedBody::Whole(bytes) if !bytes.is_empty() => Some(Message::parse(bytes.clone())),
            _ => None,
        };
        let head = (source, &parts);
        let connection = self
            .sessions
            .connection_of(&self.run, exchange, head, message.as_ref());
        PassThroughRequest {
            connection,
            exchange,
            parts,
            body,
            message,
        }
    }

    async fn forward_request(
        &self,
        entered: PassThroughRequest,
        progress_sender: Option<ProgressSender>,
    ) -> HttpResponse {
        let PassThroughRequest {
            connection,
            exchange,
            parts,
            body,
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
        let asked = message.as_ref().and_then(Message::id);
        let mut leaving = AbortNote(Some((&connection, exchange)));
        let lists_tools = self.run.may_inject()
            && message.as_ref().is_some_and(|message| {
                self.remote.tools().note_call(&parts.headers, message);
                message.method().as_deref() == Some("tools/list")
            });
        // The request has its number in the record now. One that is sent in pieces gets it with its last piece.
        let (mut headers, payload, request) = match body {
            CollectedBody::Whole(_) => {
                let before = message.clone();
                let body = message.map_or(Body::Empty, Body::Whole);
                let envelope = TransportEnvelope::Request(Box::new(parts));
                let frame = Frame::new(exchange, Origin::Client, envelope, body);
                match pass_request(&connection, &mut pipeline, frame, progress_sender).await {
                    // What comes out of the pipeline is what is sent.
                    Ok(Some(OutgoingFrame::Frame(Frame {
                        envelope: TransportEnvelope::Request(mut parts),
                        body,
                        sequence,
                        ..
                    }))) => {
                        let request = sequence.map_or_else(OnceLock::new, OnceLock::from);
                        if let (Body::Whole(after), Some(before)) = (&body, &before)
                            && after.raw() != before.raw()
                        {
                            let params = self.remote.tools().of(after);
                            headers::update_headers_for_edit(
                                &mut parts.headers,
                                before,
                                after,
                                &params,
                            );
                        }
                        (parts.headers, OutgoingBody::of(body), Arc::new(request))
                    }
                    Ok(frame) => {
                        leaving.0 = None;
                        return dropped_response(frame);
                    }
                    Err(end) => {
                        leaving.0 = None;
                        return record_failed_response(500, asked.as_ref(), &end);
                    }
                }
            }
            CollectedBody::Partial(first, rest) => {
                let through = (Arc::clone(&connection), pipeline, exchange);
                let (length, max) = (stated(&parts.headers), self.limits.max);
                let headers = parts.headers.clone();
                let envelope = TransportEnvelope::Request(Box::new(parts));
                let body = RelayedBody::cut(rest, first, envelope, through, length, max);
                let request = body.taken();
                (headers, OutgoingBody::Relayed(Box::new(body)), request)
            }
            CollectedBody::Broken(_, why) => {
                leaving.0 = None;
                connection.close_exchange(exchange, &why);
                return broke_off(&why);
            }
        };
        headers::strip_hop_by_hop(&mut headers);
        if let Err(end) = connection.run.durable().await {
            leaving.0 = None;
            return record_failed_response(500, asked.as_ref(), &end);
        }
        let sent = self
            .remote
            .send(method.clone(), url, headers, payload)
            .await;
        let answer = match sent {
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
                    asked: asked.as_ref(),
                    inspection: match lists_tools {
                        true => AnswerInspection::Tools,
                        false => AnswerInspection::Nothing,
                    },
                };
                self.forward_response(response, answered).await
            }
            // The request grew over the limit on its way.
            Err(LinkEnd::Failed(failure)) if failure.side == Side::Client => {
                match failure.code == ErrorCode::TOO_LARGE {
                    true => too_large(self.limits.max),
                    false => error(400, failure.code, &failure.text),
                }
            }
            Err(end) => {
                connection.undelivered(request.get().copied().as_slice(), &end.to_string());
                unreachable_server(&connection, exchange, asked.as_ref(), &end)
            }
        };
        leaving.0 = None;
        answer
    }

    /// The answer on its way back.
    async fn forward_response(
        &self,
        response: Response<IncomingBody>,
        answered: AnsweredExchange<'_>,
    ) -> HttpResponse {
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
            if let Err(end) = pipeline.pass_one(head, self.run.now()).await {
                return record_failed_response(502, asked, &end);
            }
            let through = (Arc::clone(connection), pipeline, exchange);
            let limits = Limits {
                cut: self.limits.cut.max(learning.needs(self.limits)),
                ..self.limits
            };
            // A stream ends where it ends: events may be changed, dropped or added.
            headers::remove_in_order(&mut parts.headers, |name| *name == CONTENT_LENGTH);
            let body = RelayedBody::events(body, through, limits, self.learn(learning));
            return Response::from_parts(parts, OutgoingBody::Relayed(Box::new(body)));
        }
        let collected = collect(body, self.cut().max(learning.needs(self.limits))).await;
        if self.is_too_large(&parts.headers, &collected) {
            let seen = collected.bytes_read();
            let end = crate::lines::too_large(Side::Server, seen, self.limits.max);
            return unreachable_server(connection, exchange, asked, &end);
        }
        match collected {
            CollectedBody::Whole(bytes) if is_no_stream(method, &parts) => {
                let envelope = TransportEnvelope::Response(Box::new(parts.clone()));
                let head = Frame::new(exchange, Origin::Server, envelope, Body::Empty);
                match pipeline.pass_one(head, self.run.now()).await {
                    Ok(_) => Response::from_parts(parts, OutgoingBody::whole(bytes)),
                    Err(end) => record_failed_response(502, asked, &end),
                }
            }
            CollectedBody::Whole(bytes) => {
                if learning == AnswerInspection::Tools {
                    self.remote.tools().note_raw(&bytes);
                }
                let body = match bytes.is_empty() {
                    true => Body::Empty,
                    false => Body::Whole(Message::parse(bytes)),
                };
                let envelope = TransportEnvelope::Response(Box::new(parts));
                let frame = Frame::new(exchange, Origin::Server, envelope, body);
                let answer = match pipeline.pass_one(frame, self.run.now()).await {
                    Ok(Some(OutgoingFrame::Frame(Frame {
                        envelope: TransportEnvelope::Response(parts),
                        body,
                        sequence,
                        ..
                    }))) => {
                        let unsent = UnsentMessage::new(connection, sequence);
                        Response::from_parts(*parts, OutgoingBody::recorded(body, unsent))
                    }
                    Ok(_) => withheld(502),
                    Err(end) => return record_failed_response(502, asked, &end),
                };
                match connection.run.durable().await {
                    Ok(()) => answer,
                    Err(end) => record_failed_response(502, asked, &end),
                }
            }
            CollectedBody::Partial(first, rest) => {
                let length = stated(&parts.headers);
                let envelope = TransportEnvelope::Response(Box::new(parts.clone()));
                let through = (Arc::clone(connection), pipeline, exchange);
                let body =
                    RelayedBody::cut(rest, first, envelope, through, length, self.limits.max);
                Response::from_parts(parts, OutgoingBody::Relayed(Box::new(body)))
            }
            CollectedBody::Broken(read, why) => {
                let end = answer_broke_off(read.len(), &why);
                unreachable_server(connection, exchange, asked, &end)
            }
        }
    }

    /// Reads the events of a stream in which the server lists its tools.
    fn learn(&self, learning: AnswerInspection) -> EventRewrite {
        if learning == AnswerInspection::Nothing {
            return None;
        }
        let tools = Arc::clone(self.remote.tools());
        Some(Box::new(move |frame: Frame| {
            if let Body::Whole(message) = &frame.body {
                tools.note(message);
            }
            Ok(frame)
        }))
    }

    fn next_exchange(&self) -> ExchangeId {
        ExchangeId(self.next.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// How large a message is passed on in pieces: none, while one may be held.
    fn cut(&self) -> usize {
        match self.run.may_hold_or_change() {
            true => self.limits.max,
            false => self.limits.cut.min(self.limits.max),
        }
    }

    /// Whether a body is over the limit, as far as its head or its beginning tells.
    fn is_too_large(&self, headers: &HeaderMap, body: &CollectedBody) -> bool {
        let promised = match body {
            CollectedBody::Partial(..) => stated(headers),
            CollectedBody::Whole(_) | CollectedBody::Broken(..) => None,
        };
        body.bytes_read().max(promised.unwrap_or_default() as usize) > self.limits.max
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

/// The answer to a request that somebody did not let go on: an error of ours, or nothing at all.
pub(crate) fn dropped_response(outgoing: Option<OutgoingFrame>) -> HttpResponse {
    let is_dropped = matches!(outgoing, Some(OutgoingFrame::Dropped(_)));
    match outgoing.map(|outgoing| outgoing.frame().body.clone()) {
        Some(Body::Whole(message)) if is_dropped && !message.expects_any_answer() => withheld(202),
        Some(Body::Whole(answer)) if !is_dropped => json(200, answer),
        _ => withheld(502),
    }
}

fn withheld(status: u16) -> HttpResponse {
    let mut answer = bare(status);
    answer.extensions_mut().insert(DroppedMarker);
    answer
}

/// Passes a client's request through a pipeline. While it is held, its client is told so.
async fn pass_request(
    connection: &Connection,
    pipeline: &mut MessagePipeline,
    frame: Frame,
    progress_sender: Option<ProgressSender>,
) -> Result<Option<OutgoingFrame>, LinkEnd> {
    match pipeline.try_pass(frame, connection.run.now()).await? {
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

/// Whether an answer says, in words and not in JSON, that the server has no stream for a GET. That is ordinary, and not a
/// message.
fn is_no_stream(method: &Method, parts: &http::response::Parts) -> bool {
    *method == Method::GET
        && parts.status == StatusCode::METHOD_NOT_ALLOWED
        && !headers::is_json(&parts.headers)
}

/// The record cannot be written: nothing passes.
pub(crate) fn record_failed_response(status: u16, id: Option<&Id>, end: &LinkEnd) -> HttpResponse {
    error_answering(id, status, code_of(end), &end.to_string())
}

fn code_of(end: &LinkEnd) -> ErrorCode {
    match end {
        LinkEnd::Failed(failure) => failure.code,
        LinkEnd::Closed => ErrorCode::SERVER_UNAVAILABLE,
    }
}

/// The server's answer ended too early.
pub(crate) fn answer_broke_off(read: usize, why: &str) -> LinkEnd {
    let text = format!("the server's answer broke off after {read} bytes: {why}");
    LinkEnd::failed(Side::Server, ErrorCode::SERVER_HTTP, text)
}

/// 502 with a JSON-RPC error that answers the request, if it was one.
pub(crate) fn unreachable_server(
    connection: &Connection,
    exchange: ExchangeId,
    id: Option<&Id>,
    end: &LinkEnd,
) -> HttpResponse {
    let message = error_response(id, code_of(end), &end.to_string(), None);
    let now = connection.run.now();
    drop(connection.author(Direction::ServerToClient, exchange, message.clone(), now));
    json(502, message)
}
