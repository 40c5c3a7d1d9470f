//! HTTP+SSE on both sides: the stream and the POSTs pass as they are; only the endpoint is rewritten to our origin.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use http::request::Parts;
use http::{Method, Request, Response, Uri};
use hyper::body::Incoming;
use mcp_proxy_core::replay::{Posted, Poster, Sending};
use mcp_proxy_core::{Connection, LinkEnd, Pipeline};
use mcp_proxy_wire::{
    Body, Carriage, Direction, ErrorCode, ExchangeId, Frame, Id, Limits, Message, Side, Transport,
    encode_event, headers,
};

use super::PATH;
use super::dial::endpoint_of;
use crate::http::collect::{Collected, collect};
use crate::http::exchange::{internal, not_here, not_passed_on, one, unreachable_server};
use crate::http::inflow::Inflow;
use crate::http::listener::{Answer, error, is_path};
use crate::http::payload::Payload;
use crate::http::posting::{LastHead, Posting};
use crate::http::remote::Remote;
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
    head: LastHead,
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

    /// Answers one request.
    pub async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Answer {
        let (parts, body) = request.into_parts();
        let exchange = self.next_exchange();
        if let Some((url, connection)) = self.endpoint(&parts) {
            return self.post(parts, body, url, &connection, exchange).await;
        }
        if is_path(&parts.uri, PATH) || is_path(&parts.uri, self.remote.url().path()) {
            let connection = self.pipeline.connect(Transport::Sse, Transport::Sse);
            let url = self.remote.url_with_query(parts.uri.query());
            return self.post(parts, body, url, &connection, exchange).await;
        }
        not_here(PATH)
    }

    /// Sends a request on, whatever its method, and its answer back.
    async fn post(
        &self,
        parts: Parts,
        body: Incoming,
        url: Uri,
        connection: &Arc<Connection>,
        exchange: ExchangeId,
    ) -> Answer {
        let bytes = match collect(body, self.limits.max).await {
            Collected::Whole(bytes) => bytes,
            Collected::More(..) => {
                let text = format!(
                    "a message may have {} bytes at most (--max-message)",
                    self.limits.max
                );
                return error(413, ErrorCode::TOO_LARGE, &text);
            }
            Collected::Broken(_, why) => {
                let text = format!("the request's body broke off: {why}");
                return error(400, ErrorCode::BAD_REQUEST, &text);
            }
        };
        let method = parts.method.clone();
        let mut out_headers = parts.headers.clone();
        headers::strip_hop_by_hop(&mut out_headers);
        let body = match bytes.is_empty() {
            true => Body::Empty,
            false => Body::Whole(Message::parse(bytes)),
        };
        let asked = match &body {
            Body::Whole(message) => message.id(),
            _ => None,
        };
        let mut lane = connection.lane(Direction::ClientToServer);
        let frame = Frame {
            exchange,
            carriage: Carriage::Request(Box::new(parts)),
            body,
        };
        let payload = match one(connection, &mut lane, frame).await {
            Ok(Some(Frame {
                carriage: Carriage::Request(_),
                body,
                ..
            })) => Payload::of(body),
            Ok(frame) => return not_passed_on(frame),
            Err(end) => return internal(500, asked.as_ref(), &end),
        };
        let sent = self
            .remote
            .send(method.clone(), url, out_headers, payload)
            .await;
        match sent {
            Ok(response) => {
                let asked = asked.as_ref();
                self.back(response, &method, connection, exchange, asked)
                    .await
            }
            Err(end) => unreachable_server(connection, exchange, asked.as_ref(), &end),
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
        let head = |body| Frame {
            exchange,
            carriage: Carriage::Response(Box::new(parts.clone())),
            body,
        };
        if *method == Method::GET && headers::is_sse(&parts.headers) {
            if let Err(end) = one(connection, &mut lane, head(Body::Empty)).await {
                return internal(502, asked, &end);
            }
            let through = (Arc::clone(connection), lane, exchange);
            let body = Through::events(body, through, self.limits, self.rewrite(connection));
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
    fn rewrite(&self, connection: &Arc<Connection>) -> Rewrite {
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
                head: LastHead::default(),
            });
            if known.len() > ENDPOINTS_MAX {
                known.pop_front();
            }
            event.wire = encode_event(event.id.as_deref(), Some("endpoint"), path.as_bytes());
            Ok::<_, LinkEnd>(frame)
        }))
    }

    fn endpoint(&self, parts: &Parts) -> Option<(Uri, Arc<Connection>)> {
        if parts.method != Method::POST {
            return None;
        }
        let asked = parts.uri.path_and_query()?.as_str();
        let mut endpoints = self.endpoints();
        let mut newest = endpoints.iter_mut().rev();
        let endpoint = newest.find(|endpoint| endpoint.path == asked)?;
        if self.pipeline.may_speak() {
            endpoint.head.see(parts);
        }
        Some((endpoint.url.clone(), Arc::clone(&endpoint.connection)))
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
    fn posting(&self, connection: u32) -> Option<Posting> {
        let endpoints = self.endpoints();
        let endpoint = known(&endpoints, connection)?;
        Some(Posting {
            remote: Arc::clone(&self.remote),
            url: endpoint.url.clone(),
            connection: Arc::clone(&endpoint.connection),
            head: endpoint.head.clone(),
            exchange: self.next_exchange(),
            max: self.limits.max,
        })
    }
}

/// The endpoint of a connection whose client has spoken.
fn known(endpoints: &Endpoints, connection: u32) -> Option<&Endpoint> {
    let mut newest = endpoints.iter().rev();
    newest.find(|endpoint| endpoint.connection.id == connection && endpoint.head.is_known())
}

impl Poster for SseExchange {
    fn connection(&self, id: u32) -> Option<Arc<Connection>> {
        let endpoints = self.endpoints();
        known(&endpoints, id).map(|endpoint| Arc::clone(&endpoint.connection))
    }

    fn post(&self, connection: &Arc<Connection>, message: Message) -> Result<Posted, LinkEnd> {
        let posting = self.posting(connection.id).ok_or(LinkEnd::Closed)?;
        posting.post(message, &[])
    }

    fn deliver(&self, connection: &Connection, answer: Message) -> Option<Sending> {
        let posting = self.posting(connection.id)?;
        Some(Box::pin(posting.deliver(answer)))
    }
}
