//! HTTP+SSE on both sides: the stream and the POSTs pass as they are; only the endpoint is rewritten to our origin.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, Uri};
use hyper::body::Incoming;
use mcp_proxy_core::replay::{Posted, Poster, ReplayError, Sending};
use mcp_proxy_core::{
    BoxFuture, Connection, Lane, LinkEnd, Offered, Outgoing, Peer, Pipeline, Telling,
};
use mcp_proxy_wire::{
    Body, Carriage, Direction, ErrorCode, ExchangeId, Frame, Id, Limits, Message, Origin, Side,
    Transport, encode_event, headers,
};

use super::PATH;
use super::dial::endpoint_of;
use crate::http::collect::{Collected, collect};
use crate::http::exchange::{internal, not_passed_on, one, unreachable_server};
use crate::http::handler::{Handler, RequestSource};
use crate::http::heads::Heads;
use crate::http::inflow::Inflow;
use crate::http::listener::{Answer, bare};
use crate::http::meanwhile::{Asked, Teller, Withheld, event_of, told};
use crate::http::payload::Payload;
use crate::http::posting::Posting;
use crate::http::remote::Remote;
use crate::http::request_body::whole_body;
use crate::http::routes::not_found;
use crate::http::through::{Rewrite, Through};

/// Endpoints that are remembered; the oldest go first.
const ENDPOINTS_MAX: usize = 1_024;

/// HTTP+SSE in, HTTP+SSE out.
pub struct SseExchange {
    pipeline: Arc<Pipeline>,
    remote: Arc<Remote>,
    limits: Limits,
    next: AtomicU64,
    endpoints: Arc<Mutex<Endpoints>>,
}

/// What servers named, oldest first.
type Endpoints = VecDeque<Endpoint>;

struct Endpoint {
    /// The path and query that clients POST to.
    path: String,
    /// The real URL.
    url: Uri,
    /// Whose it is.
    connection: Arc<Connection>,
    /// How its client speaks.
    heads: Heads,
    /// Events of ours for its stream.
    stream: Teller,
}

/// A request on its way to the server.
struct Going {
    method: Method,
    url: Uri,
    headers: HeaderMap,
    asked: Asked,
    /// The stream of who sent it, if it has one.
    stream: Option<Teller>,
}

/// Dropped with a client's stream: nothing that is answered can reach anybody after that.
struct StreamGuard(Arc<Connection>);

impl Drop for StreamGuard {
    fn drop(&mut self) {
        self.0.end_replays();
    }
}

impl SseExchange {
    /// Passes streams and POSTs on to `remote`.
    pub fn new(pipeline: Arc<Pipeline>, remote: Arc<Remote>, limits: Limits) -> Arc<SseExchange> {
        let exchange = Arc::new(SseExchange {
            pipeline,
            remote,
            limits,
            next: AtomicU64::new(0),
            endpoints: Arc::default(),
        });
        let poster: Weak<SseExchange> = Arc::downgrade(&exchange);
        exchange.pipeline.post_by(poster);
        exchange
    }

    /// The handler of the endpoints that servers name, which may have any path. The exchange itself handles the streams.
    pub fn endpoints_handler(self: &Arc<Self>) -> Arc<dyn Handler> {
        Arc::new(MessageEndpoints(Arc::clone(self)))
    }

    /// Answers one request to the path of the streams, which may be that of an endpoint as well.
    async fn answer(self: Arc<Self>, source: RequestSource, request: Request<Incoming>) -> Answer {
        let (parts, body) = request.into_parts();
        let exchange = self.next_exchange();
        let to = self.endpoint(exchange, &parts).unwrap_or_else(|| {
            let client = Peer::new(Transport::Sse).called_by(source.caller(&parts));
            let connection = self.pipeline.connect(client, Transport::Sse);
            let url = self.remote.url_with_query(parts.uri.query());
            (url, connection, None)
        });
        self.post(parts, body, to, exchange).await
    }

    /// Answers one request to any other path: an endpoint, or nothing that is known here.
    async fn answer_endpoint(self: Arc<Self>, request: Request<Incoming>) -> Answer {
        let (parts, body) = request.into_parts();
        let exchange = self.next_exchange();
        match self.endpoint(exchange, &parts) {
            Some(to) => self.post(parts, body, to, exchange).await,
            None => not_found(PATH),
        }
    }

    /// Sends a request on, whatever its method, and its answer back.
    async fn post(
        self: Arc<Self>,
        parts: Parts,
        body: Incoming,
        (url, connection, stream): (Uri, Arc<Connection>, Option<Teller>),
        exchange: ExchangeId,
    ) -> Answer {
        let bytes = match whole_body(body, self.limits.max).await {
            Ok(bytes) => bytes,
            Err(answer) => return *answer,
        };
        let mut headers = parts.headers.clone();
        headers::strip_hop_by_hop(&mut headers);
        let body = match bytes.is_empty() {
            true => Body::Empty,
            false => Body::Whole(Message::parse(bytes)),
        };
        let id = match &body {
            Body::Whole(message) => message.id(),
            _ => None,
        };
        let telling = match &stream {
            Some(_) => Telling::Yes,
            None => Telling::No,
        };
        let mut lane = connection.lane(Direction::ClientToServer).telling(telling);
        let going = Going {
            method: parts.method.clone(),
            url,
            headers,
            asked: Asked {
                connection,
                exchange,
                id,
            },
            stream,
        };
        let carriage = Carriage::Request(Box::new(parts));
        let frame = Frame::new(exchange, Origin::Client, carriage, body);
        let now = self.pipeline.now();
        match lane.offer(frame, now).await {
            Ok(Offered::Passed(frame)) => self.go_on(going, frame).await,
            Ok(Offered::Held) => match going.stream.clone() {
                Some(stream) => {
                    tokio::spawn(self.when_released(going, lane, stream));
                    bare(202)
                }
                None => match lane.released(|_| {}).await {
                    Ok(frame) => self.go_on(going, frame).await,
                    Err(end) => internal(500, going.asked.id.as_ref(), &end),
                },
            },
            Err(end) => internal(500, going.asked.id.as_ref(), &end),
        }
    }

    /// Sends a request on that was held. Its client has its 202 already, because some wait only seconds for that: whatever
    /// is to be said is said on its stream.
    async fn when_released(self: Arc<Self>, going: Going, mut lane: Lane, stream: Teller) {
        let released = tokio::select! {
            released = lane.released(|told| stream.tell(&told)) => released,
            // What is held of a client that is gone can go nowhere: dropping the lane says so.
            () = stream.closed() => return,
        };
        let Ok(frame) = released else {
            return;
        };
        let asked = going.asked.clone();
        let answer = self.go_on(going, frame).await;
        let (parts, payload) = answer.into_parts();
        let is_lost = !parts.status.is_success() && parts.extensions.get::<Withheld>().is_none();
        if let (true, Some(_), Payload::Whole(body)) = (is_lost, &asked.id, payload) {
            let event = asked.event(parts.status, body.unwrap_or_default());
            stream.say(event).await;
        }
    }

    /// What came out of the lane: for the server, or for the client.
    async fn go_on(&self, going: Going, outgoing: Option<Outgoing>) -> Answer {
        let asked = going.asked;
        let (body, request) = match (outgoing, &going.stream) {
            (
                Some(Outgoing::Frame(Frame {
                    carriage: Carriage::Request(_),
                    body,
                    sequence,
                    ..
                })),
                _,
            ) => (body, sequence),
            (
                Some(Outgoing::Frame(Frame {
                    body: Body::Whole(answer),
                    ..
                })),
                Some(stream),
            ) => {
                return match stream.say(event_of(&answer)).await {
                    true => bare(202),
                    false => bare(503),
                };
            }
            // Over HTTP+SSE a POST is only taken; nothing comes.
            (Some(Outgoing::Dropped(_)), _) => return bare(202),
            (outgoing, _) => return not_passed_on(outgoing),
        };
        if let Err(end) = asked.connection.pipeline.durable().await {
            return internal(500, asked.id.as_ref(), &end);
        }
        let method = going.method;
        let sent = self
            .remote
            .send(method.clone(), going.url, going.headers, Payload::of(body))
            .await;
        let (connection, exchange) = (&asked.connection, asked.exchange);
        match sent {
            Ok(response) => {
                let id = asked.id.as_ref();
                self.back(response, &method, connection, exchange, id).await
            }
            Err(end) => {
                connection.undelivered(request.as_slice(), &end.to_string());
                unreachable_server(connection, exchange, asked.id.as_ref(), &end)
            }
        }
    }

    async fn back(
        &self,
        response: Response<Inflow>,
        method: &Method,
        connection: &Arc<Connection>,
        exchange: ExchangeId,
        asked: Option<&Id>,
    ) -> Answer {
        let (mut parts, body) = response.into_parts();
        headers::strip_hop_by_hop(&mut parts.headers);
        let mut lane = connection.lane(Direction::ServerToClient);
        let head = |body| {
            let carriage = Carriage::Response(Box::new(parts.clone()));
            Frame::new(exchange, Origin::Server, carriage, body)
        };
        if *method == Method::GET && headers::is_sse(&parts.headers) {
            if let Err(end) = one(connection, &mut lane, head(Body::Empty)).await {
                return internal(502, asked, &end);
            }
            let through = (Arc::clone(connection), lane, exchange);
            let (stream, said) = told();
            let rewrite = self.rewrite(connection, stream);
            parts.headers.remove(http::header::CONTENT_LENGTH);
            let body = Through::events(body, through, self.limits, rewrite).with(said);
            return Response::from_parts(parts, Payload::Through(Box::new(body)));
        }
        let bytes = match collect(body, self.limits.max).await {
            Collected::Whole(bytes) => bytes,
            Collected::More(read, _) => {
                let end = crate::lines::too_large(Side::Server, read.len(), self.limits.max);
                return unreachable_server(connection, exchange, asked, &end);
            }
            Collected::Broken(read, why) => {
                let (read, code) = (read.len(), ErrorCode::SERVER_HTTP);
                let text = format!("the server's answer broke off after {read} bytes: {why}");
                let end = LinkEnd::failed(Side::Server, code, text);
                return unreachable_server(connection, exchange, asked, &end);
            }
        };
        // The body of an answer to a POST is a courtesy ("Accepted"), a message only when it is JSON-RPC.
        let message = Message::parse(bytes.clone());
        let frame = match crate::http::dial::is_rpc(&message) {
            true => head(Body::Whole(message)),
            false => head(Body::Empty),
        };
        if let Err(end) = one(connection, &mut lane, frame).await {
            return internal(502, asked, &end);
        }
        Response::from_parts(parts, Payload::whole(bytes))
    }

    /// The endpoint event names a place on the server's origin; clients get the same path on ours.
    fn rewrite(&self, connection: &Arc<Connection>, stream: Teller) -> Rewrite {
        let (remote, endpoints) = (Arc::clone(&self.remote), Arc::clone(&self.endpoints));
        let guard = StreamGuard(Arc::clone(connection));
        Some(Box::new(move |mut frame: Frame| {
            let Carriage::Event(event) = &mut frame.carriage else {
                return Ok(frame);
            };
            if event.event.as_deref() != Some("endpoint") {
                return Ok(frame);
            }
            let url = endpoint_of(event, &remote)?;
            let path = url
                .path_and_query()
                .map_or("/", |path| path.as_str())
                .to_owned();
            let mut known = endpoints.lock().unwrap_or_else(PoisonError::into_inner);
            known.push_back(Endpoint {
                path: path.clone(),
                url,
                connection: Arc::clone(&guard.0),
                heads: Heads::of_one(),
                stream: stream.clone(),
            });
            if known.len() > ENDPOINTS_MAX {
                known.pop_front();
            }
            event.wire = encode_event(event.id.as_deref(), Some("endpoint"), path.as_bytes());
            Ok::<_, LinkEnd>(frame)
        }))
    }

    fn endpoint(
        &self,
        exchange: ExchangeId,
        parts: &Parts,
    ) -> Option<(Uri, Arc<Connection>, Option<Teller>)> {
        if parts.method != Method::POST {
            return None;
        }
        let asked = parts.uri.path_and_query()?.as_str();
        let mut endpoints = self.endpoints();
        let mut newest = endpoints.iter_mut().rev();
        let endpoint = newest.find(|endpoint| endpoint.path == asked)?;
        if self.pipeline.may_speak() {
            endpoint.heads.see(exchange, parts);
        }
        let connection = Arc::clone(&endpoint.connection);
        let stream = Some(endpoint.stream.clone());
        Some((endpoint.url.clone(), connection, stream))
    }

    fn endpoints(&self) -> MutexGuard<'_, Endpoints> {
        self.endpoints
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn next_exchange(&self) -> ExchangeId {
        ExchangeId(self.next.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// How messages of ours get to the server of a connection. What is answered comes on the client's stream.
    fn posting(&self, connection: u32, like: Option<ExchangeId>) -> Result<Posting, ReplayError> {
        let endpoints = self.endpoints();
        let endpoint = known(&endpoints, connection).ok_or(ReplayError::Gone(LinkEnd::Closed))?;
        Ok(Posting {
            remote: Arc::clone(&self.remote),
            url: endpoint.url.clone(),
            connection: Arc::clone(&endpoint.connection),
            head: endpoint.heads.like(like)?,
            exchange: self.next_exchange(),
            max: self.limits.max,
        })
    }
}

impl Handler for SseExchange {
    fn handle(
        self: Arc<Self>,
        source: RequestSource,
        request: Request<Incoming>,
    ) -> BoxFuture<'static, Answer> {
        Box::pin(self.answer(source, request))
    }
}

/// The endpoints of an [`SseExchange`].
struct MessageEndpoints(Arc<SseExchange>);

impl Handler for MessageEndpoints {
    fn handle(
        self: Arc<Self>,
        _: RequestSource,
        request: Request<Incoming>,
    ) -> BoxFuture<'static, Answer> {
        Box::pin(Arc::clone(&self.0).answer_endpoint(request))
    }
}

/// The endpoint of a connection whose client has spoken.
fn known(endpoints: &Endpoints, connection: u32) -> Option<&Endpoint> {
    let mut newest = endpoints.iter().rev();
    newest.find(|endpoint| endpoint.connection.id == connection && endpoint.heads.is_known())
}

impl Poster for SseExchange {
    fn connection(&self, id: u32) -> Option<Arc<Connection>> {
        let endpoints = self.endpoints();
        known(&endpoints, id).map(|endpoint| Arc::clone(&endpoint.connection))
    }

    fn post(
        &self,
        connection: &Arc<Connection>,
        like: Option<ExchangeId>,
        message: Message,
    ) -> Result<Posted, ReplayError> {
        let posting = self.posting(connection.id, like)?;
        posting.post(message, &[]).map_err(ReplayError::Gone)
    }

    fn deliver(
        &self,
        connection: &Arc<Connection>,
        like: ExchangeId,
        answer: Message,
    ) -> Result<Sending, ReplayError> {
        let posting = self.posting(connection.id, Some(like))?;
        Ok(Box::pin(posting.deliver(answer)))
    }
}
