//! HTTP on both sides: requests and answers pass as they are, through the lane.
//!
//! Status codes, headers, event ids, retry fields and comments pass; only what belongs to the hop is rewritten.
//! Nothing is kept between requests but which session belongs to which connection of the record, and, where the proxy may
//! have to speak for a client, how that one spoke last.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use http::header::CONTENT_LENGTH;
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response};
use hyper::body::Incoming;
use mcp_proxy_core::{BoxFuture, Connection, Lane, LinkEnd, Offered, Outgoing, Pipeline, Telling};
use mcp_proxy_wire::headers::{self, MCP_SESSION_ID};
use mcp_proxy_wire::{
    Body, Carriage, Direction, ErrorCode, ExchangeId, Field, Frame, Id, Kind, Limits, Message,
    Origin, Side, error_response,
};

use super::collect::{Collected, collect};
use super::handler::{Handler, RequestSource};
use super::inflow::Inflow;
use super::known::Known;
use super::listener::{Answer, bare, error, json};
use super::meanwhile::{Asked, Meanwhile, Teller, Withheld, told};
use super::payload::Payload;
use super::remote::Remote;
use super::request_body::{broke_off, too_large};
use super::through::{Rewrite, Through};

mod speaking;

/// Streamable HTTP in, streamable HTTP out.
pub struct Exchange {
    pipeline: Arc<Pipeline>,
    remote: Arc<Remote>,
    limits: Limits,
    next: AtomicU64,
    known: Known,
}

/// What an answer is read for, besides being passed on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Learning {
    Nothing,
    /// The arguments that tools want in headers.
    Tools,
}

impl Learning {
    /// A list of tools is read whole if it has no more bytes than this; then it is passed on in one piece.
    fn needs(self, limits: Limits) -> usize {
        match self {
            Learning::Nothing => 0,
            Learning::Tools => limits.max.min(4 << 20),
        }
    }
}

/// A request on its way in.
struct Entered {
    connection: Arc<Connection>,
    exchange: ExchangeId,
    parts: Parts,
    body: Collected,
    message: Option<Message>,
}

impl Entered {
    /// Whether its sender can be told progress before it has its answer. The head of an `initialize` answer names the
    /// session, so that one has to wait.
    fn may_be_told(&self) -> bool {
        let asks = |message: &Message| {
            message.kind() == Kind::Request
                && message.span(Field::Meta("progressToken")).is_some()
                && message.method().as_deref() != Some("initialize")
        };
        self.connection.pipeline.intercept().tells_progress()
            && headers::accepts_sse(&self.parts.headers)
            && self.message.as_ref().is_some_and(asks)
    }

    fn asked(&self) -> Asked {
        Asked {
            connection: Arc::clone(&self.connection),
            exchange: self.exchange,
            id: self.message.as_ref().and_then(Message::id),
        }
    }
}

impl Exchange {
    /// Passes requests on to `remote`.
    pub fn new(pipeline: Arc<Pipeline>, remote: Arc<Remote>, limits: Limits) -> Arc<Exchange> {
        let exchange = Arc::new(Exchange {
            pipeline,
            remote,
            limits,
            next: AtomicU64::new(0),
            known: Known::default(),
        });
        let poster: Weak<Exchange> = Arc::downgrade(&exchange);
        exchange.pipeline.post_by(poster);
        exchange
    }

    /// Answers one request.
    async fn answer(self: Arc<Self>, source: RequestSource, request: Request<Incoming>) -> Answer {
        let (parts, body) = request.into_parts();
        let body = collect(body, self.cut()).await;
        if self.is_too_large(&parts.headers, &body) {
            return too_large(self.limits.max);
        }
        let entered = self.enter(&source, parts, body);
        if !entered.may_be_told() {
            return self.go(entered, None).await;
        }
        let asked = entered.asked();
        let (teller, told) = told();
        let rest = Box::pin(async move { self.go(entered, Some(teller)).await });
        Meanwhile::of(asked, told, rest).await
    }

    /// Passes one request on and its answer back.
    pub async fn pass(&self, source: &RequestSource, parts: Parts, body: Collected) -> Answer {
        if self.is_too_large(&parts.headers, &body) {
            return too_large(self.limits.max);
        }
        self.go(self.enter(source, parts, body), None).await
    }

    fn enter(&self, source: &RequestSource, parts: Parts, body: Collected) -> Entered {
        let exchange = self.next_exchange();
        let message = match &body {
            Collected::Whole(bytes) if !bytes.is_empty() => Some(Message::parse(bytes.clone())),
            _ => None,
        };
        let head = (source, &parts);
        let connection = self
            .known
            .connection_of(&self.pipeline, exchange, head, message.as_ref());
        Entered {
            connection,
            exchange,
            parts,
            body,
            message,
        }
    }

    async fn go(&self, entered: Entered, teller: Option<Teller>) -> Answer {
        let Entered {
            connection,
            exchange,
            parts,
            body,
            message,
        } = entered;
        let mut lane = connection
            .lane(Direction::ClientToServer)
            .telling(match &teller {
                Some(_) => Telling::Yes,
                None => Telling::No,
            });
        let method = parts.method.clone();
        let ends = match method == Method::DELETE {
            true => parts.headers.get(MCP_SESSION_ID).cloned(),
            false => None,
        };
        let url = self.remote.url_with_query(parts.uri.query());
        let asked = message.as_ref().and_then(Message::id);
        let mut leaving = Leaving(Some((&connection, exchange)));
        let lists_tools = self.pipeline.may_speak()
            && message.as_ref().is_some_and(|message| {
                self.remote.tools().note_call(&parts.headers, message);
                message.method().as_deref() == Some("tools/list")
            });
        // The request's number in the record. One that is sent in pieces gets it with its last piece.
        let mut request = None;
        let (mut headers, payload) = match body {
            Collected::Whole(_) => {
                let before = message.clone();
                let body = message.map_or(Body::Empty, Body::Whole);
                let carriage = Carriage::Request(Box::new(parts));
                let frame = Frame::new(exchange, Origin::Client, carriage, body);
                match until_released(&connection, &mut lane, frame, teller).await {
                    // What comes out of the lane is what is sent.
                    Ok(Some(Outgoing::Frame(Frame {
                        carriage: Carriage::Request(mut parts),
                        body,
                        sequence,
                        ..
                    }))) => {
                        request = sequence;
                        if let (Body::Whole(after), Some(before)) = (&body, &before)
                            && after.raw() != before.raw()
                        {
                            let params = self.remote.tools().of(after);
                            headers::follow_edit(&mut parts.headers, before, after, &params);
                        }
                        (parts.headers, Payload::of(body))
                    }
                    Ok(frame) => {
                        leaving.0 = None;
                        return not_passed_on(frame);
                    }
                    Err(end) => {
                        leaving.0 = None;
                        return internal(500, asked.as_ref(), &end);
                    }
                }
            }
            Collected::More(first, rest) => {
                let through = (Arc::clone(&connection), lane, exchange);
                let (length, max) = (content_length(&parts.headers), self.limits.max);
                let headers = parts.headers.clone();
                let carriage = Carriage::Request(Box::new(parts));
                let body = Through::cut(rest, first, carriage, through, length, max);
                (headers, Payload::Through(Box::new(body)))
            }
            Collected::Broken(_, why) => {
                leaving.0 = None;
                connection.close_exchange(exchange, &why);
                return broke_off(&why);
            }
        };
        headers::strip_hop_by_hop(&mut headers);
        if let Err(end) = connection.pipeline.durable().await {
            leaving.0 = None;
            return internal(500, asked.as_ref(), &end);
        }
        let sent = self
            .remote
            .send(method.clone(), url, headers, payload)
            .await;
        let answer = match sent {
            Ok(response) => {
                match ends {
                    Some(session) if response.status().is_success() => self.known.end(&session),
                    Some(_) => {}
                    None => self.known.settle(&connection, &response),
                }
                let learning = match lists_tools {
                    true => Learning::Tools,
                    false => Learning::Nothing,
                };
                let asked = asked.as_ref();
                self.back(response, (&connection, exchange), asked, learning)
                    .await
            }
            // The request grew over the limit on its way.
            Err(LinkEnd::Failed(failure)) if failure.side == Side::Client => {
                match failure.code == ErrorCode::TOO_LARGE {
                    true => too_large(self.limits.max),
                    false => error(400, failure.code, &failure.text),
                }
            }
            Err(end) => {
                connection.undelivered(request.as_slice(), &end.to_string());
                unreachable_server(&connection, exchange, asked.as_ref(), &end)
            }
        };
        leaving.0 = None;
        answer
    }

    /// The answer on its way back.
    async fn back(
        &self,
        response: Response<Inflow>,
        (connection, exchange): (&Arc<Connection>, ExchangeId),
        asked: Option<&Id>,
        learning: Learning,
    ) -> Answer {
        let (mut parts, body) = response.into_parts();
        headers::strip_hop_by_hop(&mut parts.headers);
        let mut lane = connection.lane(Direction::ServerToClient);
        if headers::is_sse(&parts.headers) {
            let carriage = Carriage::Response(Box::new(parts.clone()));
            let head = Frame::new(exchange, Origin::Server, carriage, Body::Empty);
            if let Err(end) = one(connection, &mut lane, head).await {
                return internal(502, asked, &end);
            }
            let through = (Arc::clone(connection), lane, exchange);
            let limits = Limits {
                cut: self.limits.cut.max(learning.needs(self.limits)),
                ..self.limits
            };
            // A stream ends where it ends: events may be changed, dropped or added.
            parts.headers.remove(CONTENT_LENGTH);
            let body = Through::events(body, through, limits, self.learn(learning));
            return Response::from_parts(parts, Payload::Through(Box::new(body)));
        }
        let length = content_length(&parts.headers);
        let collected = collect(body, self.cut().max(learning.needs(self.limits))).await;
        if self.is_too_large(&parts.headers, &collected) {
            let seen = collected.bytes_read();
            let end = crate::lines::too_large(Side::Server, seen, self.limits.max);
            return unreachable_server(connection, exchange, asked, &end);
        }
        match collected {
            Collected::Whole(bytes) => {
                if learning == Learning::Tools {
                    self.remote.tools().note_raw(&bytes);
                }
                let body = match bytes.is_empty() {
                    true => Body::Empty,
                    false => Body::Whole(Message::parse(bytes)),
                };
                let carriage = Carriage::Response(Box::new(parts));
                let frame = Frame::new(exchange, Origin::Server, carriage, body);
                let passed = one(connection, &mut lane, frame).await;
                let durable = connection.pipeline.durable().await;
                match durable.and(passed) {
                    Ok(Some(Outgoing::Frame(Frame {
                        carriage: Carriage::Response(parts),
                        body,
                        ..
                    }))) => Response::from_parts(*parts, Payload::of(body)),
                    Ok(_) => withheld(502),
                    Err(end) => internal(502, asked, &end),
                }
            }
            Collected::More(first, rest) => {
                let carriage = Carriage::Response(Box::new(parts.clone()));
                let through = (Arc::clone(connection), lane, exchange);
                let body = Through::cut(rest, first, carriage, through, length, self.limits.max);
                Response::from_parts(parts, Payload::Through(Box::new(body)))
            }
            Collected::Broken(read, why) => {
                let text = format!(
                    "the server's answer broke off after {} bytes: {why}",
                    read.len()
                );
                let end = LinkEnd::failed(Side::Server, ErrorCode::SERVER_HTTP, text);
                unreachable_server(connection, exchange, asked, &end)
            }
        }
    }

    /// Reads the events of a stream in which the server lists its tools.
    fn learn(&self, learning: Learning) -> Rewrite {
        if learning == Learning::Nothing {
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
        match self.pipeline.may_stop() {
            true => self.limits.max,
            false => self.limits.cut.min(self.limits.max),
        }
    }

    /// Whether a body is over the limit, as far as its head or its beginning tells.
    fn is_too_large(&self, headers: &HeaderMap, body: &Collected) -> bool {
        let promised = match body {
            Collected::More(..) => content_length(headers),
            Collected::Whole(_) | Collected::Broken(..) => None,
        };
        body.bytes_read().max(promised.unwrap_or_default() as usize) > self.limits.max
    }
}

impl Handler for Exchange {
    fn handle(
        self: Arc<Self>,
        source: RequestSource,
        request: Request<Incoming>,
    ) -> BoxFuture<'static, Answer> {
        Box::pin(self.answer(source, request))
    }
}

/// Dropped while it holds an exchange: the client has gone before its answer came.
struct Leaving<'a>(Option<(&'a Connection, ExchangeId)>);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if let Some((connection, exchange)) = self.0 {
            connection.close_exchange(exchange, "the client went away before its answer came");
        }
    }
}

/// The answer to a request that somebody did not let go on: an error of ours, or nothing at all.
pub(crate) fn not_passed_on(outgoing: Option<Outgoing>) -> Answer {
    let is_dropped = matches!(outgoing, Some(Outgoing::Dropped(_)));
    match outgoing.map(|outgoing| outgoing.frame().body.clone()) {
        Some(Body::Whole(message)) if is_dropped && !message.asks_any() => withheld(202),
        Some(Body::Whole(answer)) if !is_dropped => json(200, answer),
        _ => withheld(502),
    }
}

fn withheld(status: u16) -> Answer {
    let mut answer = bare(status);
    answer.extensions_mut().insert(Withheld);
    answer
}

/// Passes one frame through a lane, and gives back what comes out for the peer ahead.
pub async fn one(
    connection: &Connection,
    lane: &mut Lane,
    frame: Frame,
) -> Result<Option<Outgoing>, LinkEnd> {
    lane.pass_one(frame, connection.pipeline.now()).await
}

/// The same for a client's request, which is told that it is held.
async fn until_released(
    connection: &Connection,
    lane: &mut Lane,
    frame: Frame,
    teller: Option<Teller>,
) -> Result<Option<Outgoing>, LinkEnd> {
    match lane.offer(frame, connection.pipeline.now()).await? {
        Offered::Passed(frame) => Ok(frame),
        Offered::Held => {
            let tell = |told| teller.iter().for_each(|teller| teller.tell(&told));
            lane.released(tell).await
        }
    }
}

/// The record cannot be written: nothing passes.
pub(crate) fn internal(status: u16, id: Option<&Id>, end: &LinkEnd) -> Answer {
    json(
        status,
        error_response(id, code_of(end), &end.to_string(), None),
    )
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn code_of(end: &LinkEnd) -> ErrorCode {
    match end {
        LinkEnd::Failed(failure) => failure.code,
        LinkEnd::Closed => ErrorCode::SERVER_UNAVAILABLE,
    }
}

/// 502 with a JSON-RPC error that answers the request, if it was one.
pub(crate) fn unreachable_server(
    connection: &Connection,
    exchange: ExchangeId,
    id: Option<&Id>,
    end: &LinkEnd,
) -> Answer {
    let message = error_response(id, code_of(end), &end.to_string(), None);
    let now = connection.pipeline.now();
    drop(connection.author(Direction::ServerToClient, exchange, message.clone(), now));
    json(502, message)
}
