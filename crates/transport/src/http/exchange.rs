//! HTTP on both sides: requests and answers pass as they are, through the lane.
//!
//! Status codes, headers, event ids, retry fields and comments pass; only what belongs to the hop is rewritten.
//! Nothing is kept between requests but which session belongs to which connection of the record.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use http::request::Parts;
use http::{HeaderMap, Method, Request, Response};
use hyper::body::Incoming;
use mcp_proxy_core::{Connection, Lane, LinkEnd, Pipeline};
use mcp_proxy_wire::headers::{self, MCP_METHOD, MCP_PROTOCOL_VERSION, MCP_SESSION_ID};
use mcp_proxy_wire::{
    Body, Carriage, Direction, ErrorCode, ExchangeId, Frame, Kind, Limits, Message, Transport,
    error_response,
};
use rustc_hash::FxHashMap;

use super::PATH;
use super::collect::{Collected, collect};
use super::inflow::Inflow;
use super::listener::{Answer, bare, error, is_path, json};
use super::payload::Payload;
use super::remote::Remote;
use super::through::Through;
use super::tool_headers::ToolHeaders;

/// Sessions whose connection is remembered; beyond that the oldest is forgotten and gets a new number.
const SESSIONS_MAX: usize = 4_096;

/// Streamable HTTP in, streamable HTTP out.
pub struct Exchange {
    pipeline: Arc<Pipeline>,
    remote: Arc<Remote>,
    limits: Limits,
    next: AtomicU64,
    connections: Mutex<Connections>,
    /// Which arguments the server wants in headers.
    tools: ToolHeaders,
}

#[derive(Default)]
struct Connections {
    sessionless: Option<Arc<Connection>>,
    by_session: FxHashMap<String, (u64, Arc<Connection>)>,
}

impl Exchange {
    /// Passes requests on to `remote`.
    pub fn new(pipeline: Arc<Pipeline>, remote: Arc<Remote>, limits: Limits) -> Arc<Exchange> {
        Arc::new(Exchange {
            pipeline,
            remote,
            limits,
            next: AtomicU64::new(0),
            connections: Mutex::default(),
            tools: ToolHeaders::default(),
        })
    }

    /// Answers one request.
    pub async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Answer {
        let own = self.remote.url().path();
        if !is_path(request.uri(), PATH) && !is_path(request.uri(), own) {
            return not_here(PATH);
        }
        let (parts, body) = request.into_parts();
        let body = collect(body, self.cut()).await;
        self.pass(parts, body).await
    }

    /// Passes one request on and its answer back.
    pub async fn pass(&self, parts: Parts, body: Collected) -> Answer {
        let exchange = ExchangeId(self.next.fetch_add(1, Ordering::Relaxed) + 1);
        let message = match &body {
            Collected::Whole(bytes) if !bytes.is_empty() => Some(Message::parse(bytes.clone())),
            _ => None,
        };
        let connection = self.connection_of(&parts.headers, message.as_ref());
        let mut lane = connection.lane(Direction::ClientToServer);
        let method = parts.method.clone();
        let url = self.remote.url_with_query(parts.uri.query());
        let asked = message.as_ref().and_then(Message::id);
        let (mut headers, payload) = match body {
            Collected::Whole(_) => {
                let before = message.clone();
                let body = message.map_or(Body::Empty, Body::Whole);
                let carriage = Carriage::Request(Box::new(parts));
                let frame = Frame {
                    exchange,
                    carriage,
                    body,
                };
                match one(&connection, &mut lane, frame).await {
                    // What comes out of the lane is what goes on.
                    Ok(Some(Frame {
                        carriage: Carriage::Request(mut parts),
                        body,
                        ..
                    })) => {
                        if let (Body::Whole(after), Some(before)) = (&body, &before)
                            && after.raw() != before.raw()
                        {
                            self.follow(after, &mut parts.headers);
                        }
                        (parts.headers, Payload::of(body))
                    }
                    Ok(frame) => return not_passed_on(frame),
                    Err(end) => return error(500, ErrorCode::INTERNAL, &end.to_string()),
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
                connection.close_exchange(exchange, &why);
                let text = format!("the request's body broke off: {why}");
                return error(400, ErrorCode::BAD_REQUEST, &text);
            }
        };
        headers::strip_hop_by_hop(&mut headers);
        match self
            .remote
            .send(method.clone(), url, headers, payload)
            .await
        {
            Ok(response) => {
                self.settle(&connection, &method, &response);
                self.back(response, &connection, exchange).await
            }
            Err(end) => unreachable_server(&connection, exchange, asked.as_ref(), &end),
        }
    }

    /// The answer on its way back.
    async fn back(
        &self,
        response: Response<Inflow>,
        connection: &Arc<Connection>,
        exchange: ExchangeId,
    ) -> Answer {
        let (mut parts, body) = response.into_parts();
        headers::strip_hop_by_hop(&mut parts.headers);
        let mut lane = connection.lane(Direction::ServerToClient);
        if headers::is_sse(&parts.headers) {
            let head = Frame {
                exchange,
                carriage: Carriage::Response(Box::new(parts.clone())),
                body: Body::Empty,
            };
            if let Err(end) = one(connection, &mut lane, head).await {
                return error(502, ErrorCode::INTERNAL, &end.to_string());
            }
            let through = (Arc::clone(connection), lane, exchange);
            let body = Through::events(body, through, self.limits, None);
            return Response::from_parts(parts, Payload::Through(Box::new(body)));
        }
        let length = content_length(&parts.headers);
        match collect(body, self.cut()).await {
            Collected::Whole(bytes) => {
                let body = match bytes.is_empty() {
                    true => Body::Empty,
                    false => Body::Whole(Message::parse(bytes)),
                };
                let carriage = Carriage::Response(Box::new(parts));
                let frame = Frame {
                    exchange,
                    carriage,
                    body,
                };
                match one(connection, &mut lane, frame).await {
                    Ok(Some(Frame {
                        carriage: Carriage::Response(parts),
                        body,
                        ..
                    })) => {
                        if let Body::Whole(answer) = &body
                            && self.pipeline.may_stop()
                        {
                            self.tools.note(answer);
                        }
                        Response::from_parts(*parts, Payload::of(body))
                    }
                    Ok(_) => bare(502),
                    Err(end) => error(502, ErrorCode::INTERNAL, &end.to_string()),
                }
            }
            Collected::More(first, rest) => {
                let carriage = Carriage::Response(Box::new(parts.clone()));
                let through = (Arc::clone(connection), lane, exchange);
                let body = Through::cut(rest, first, carriage, through, length, self.limits.max);
                Response::from_parts(parts, Payload::Through(Box::new(body)))
            }
            Collected::Broken(read, why) => {
                connection.close_exchange(exchange, &format!("the server's body broke off: {why}"));
                let text = format!(
                    "the server's answer broke off after {} bytes: {why}",
                    read.len()
                );
                error(502, ErrorCode::SERVER_HTTP, &text)
            }
        }
    }

    /// How large a message is passed on in pieces: none, while one may be held.
    fn cut(&self) -> usize {
        match self.pipeline.may_stop() {
            true => self.limits.max,
            false => self.limits.cut,
        }
    }

    /// The headers of a modern request repeat its body: they follow a change of it.
    fn follow(&self, message: &Message, headers: &mut HeaderMap) {
        let known = headers.contains_key(MCP_METHOD) || headers.contains_key(MCP_PROTOCOL_VERSION);
        if !known {
            return;
        }
        let params = self.tools.of(message);
        for (name, value) in headers::modern_request_headers(message, &params) {
            headers.insert(name, value);
        }
    }

    /// A legacy session is a connection of its own, from its `initialize` on; requests without a session share one.
    fn connection_of(&self, headers: &HeaderMap, message: Option<&Message>) -> Arc<Connection> {
        let http = Transport::StreamableHttp;
        let mut connections = self.connections();
        if let Some(session) = headers
            .get(MCP_SESSION_ID)
            .and_then(|value| value.to_str().ok())
            && let Some((_, connection)) = connections.by_session.get(session)
        {
            return Arc::clone(connection);
        }
        if message.is_some_and(|message| message.method().as_deref() == Some("initialize")) {
            return self.pipeline.connect(http, http);
        }
        let shared = connections
            .sessionless
            .get_or_insert_with(|| self.pipeline.connect(http, http));
        Arc::clone(shared)
    }

    /// Remembers whose a new session id is; DELETE ends it.
    fn settle(&self, connection: &Arc<Connection>, method: &Method, response: &Response<Inflow>) {
        let session = response.headers().get(MCP_SESSION_ID);
        let Some(session) = session.and_then(|session| session.to_str().ok()) else {
            return;
        };
        let mut connections = self.connections();
        if *method == Method::DELETE {
            connections.by_session.remove(session);
            return;
        }
        if connections.by_session.contains_key(session) {
            return;
        }
        if connections.by_session.len() >= SESSIONS_MAX {
            let oldest = connections
                .by_session
                .iter()
                .min_by_key(|(_, (age, _))| *age);
            if let Some(oldest) = oldest.map(|(session, _)| session.clone()) {
                connections.by_session.remove(&oldest);
            }
        }
        let age = self.next.load(Ordering::Relaxed);
        connections
            .by_session
            .insert(session.to_owned(), (age, Arc::clone(connection)));
    }

    fn connections(&self) -> std::sync::MutexGuard<'_, Connections> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// The answer to a request that somebody did not let go on: an error of ours, or nothing at all.
pub(crate) fn not_passed_on(frame: Option<Frame>) -> Answer {
    match frame.map(|frame| frame.body) {
        Some(Body::Whole(answer)) => json(200, answer),
        Some(Body::Withheld(message)) if message.kind() != Kind::Request => bare(202),
        _ => bare(502),
    }
}

/// The answer for a path that is not served.
pub fn not_here(path: &str) -> Answer {
    error(
        404,
        ErrorCode::BAD_REQUEST,
        &format!("MCP is served at {path} on this listener"),
    )
}

/// Passes one frame through a lane, and gives back what comes out for the peer ahead.
pub async fn one(
    connection: &Connection,
    lane: &mut Lane,
    frame: Frame,
) -> Result<Option<Frame>, LinkEnd> {
    lane.pass_one(frame, connection.pipeline.now()).await
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers
        .get(http::header::CONTENT_LENGTH)?
        .to_str()
        .ok()?
        .parse()
        .ok()
}

/// 502 with a JSON-RPC error that answers the request, if it was one.
pub(crate) fn unreachable_server(
    connection: &Connection,
    exchange: ExchangeId,
    id: Option<&mcp_proxy_wire::Id>,
    end: &LinkEnd,
) -> Answer {
    let text = end.to_string();
    let code = match end {
        LinkEnd::Failed(failure) => failure.code,
        LinkEnd::Closed => ErrorCode::SERVER_UNAVAILABLE,
    };
    let message = error_response(id, code, &text, None);
    let now = connection.pipeline.now();
    drop(connection.author(Direction::ServerToClient, exchange, message.clone(), now));
    json(502, message)
}
