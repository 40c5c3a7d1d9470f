//! HTTP+SSE on both sides: the stream and the POSTs pass as they are; only the endpoint is rewritten to our origin.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::request::Parts;
use http::{Method, Request, Response, Uri};
use hyper::body::Incoming;
use mcp_proxy_core::replay::{MessageInjector, PendingInjection, ReplayError, SendFuture};
use mcp_proxy_core::{
    BoxFuture, Connection, LinkEnd, MessagePipeline, OutgoingFrame, PassResult, Peer,
    ProgressSupport, ProxyRun,
};
use mcp_proxy_wire::{
    Body, Direction, ExchangeId, Frame, Id, Limits, Message, Origin, Transport, TransportEnvelope,
    encode_event, headers,
};

use super::PATH;
use super::dial::endpoint_of;
use crate::http::collect::collect;
use crate::http::dial::is_rpc;
use crate::http::failed_exchange::{dropped_response, record_failed_response, unreachable_server};
use crate::http::handler::{Handler, RequestSource};
use crate::http::incoming_body::IncomingBody;
use crate::http::injected_post::InjectedPost;
use crate::http::listener::{HttpResponse, bare};
use crate::http::outgoing_body::{OutgoingBody, UnsentMessage};
use crate::http::progress_stream::{
    DroppedMarker, ProgressSender, WaitingRequest, event_of, progress_channel,
};
use crate::http::relayed_body::{EventRewrite, RelayedBody};
use crate::http::remote::{RemoteServer, note_resent};
use crate::http::request_body::whole_body;
use crate::http::request_heads::RecentRequestHeads;
use crate::http::routes::not_found;

/// Endpoints that are remembered; the oldest go first.
const ENDPOINTS_MAX: usize = 1_024;

/// HTTP+SSE in, HTTP+SSE out.
pub struct SsePassThrough {
    run: Arc<ProxyRun>,
    remote: Arc<RemoteServer>,
    limits: Limits,
    next: AtomicU64,
    endpoints: Arc<Mutex<SseEndpoints>>,
}

/// What servers named, oldest first.
type SseEndpoints = VecDeque<AdvertisedEndpoint>;

struct AdvertisedEndpoint {
    /// The path and query that clients POST to.
    path: String,
    /// The real URL.
    url: Uri,
    /// Whose it is.
    connection: Arc<Connection>,
    /// How its client speaks.
    heads: RecentRequestHeads,
    /// Events of ours for its stream.
    stream: ProgressSender,
}

/// A request on its way to the server.
struct ForwardedPost {
    method: Method,
    url: Uri,
    asked: WaitingRequest,
    /// The stream of who sent it, if it has one.
    stream: Option<ProgressSender>,
}

/// Dropped with a client's stream: nothing that is answered can reach anybody after that.
struct EndReplaysOnDrop(Arc<Connection>);

impl Drop for EndReplaysOnDrop {
    fn drop(&mut self) {
        self.0.end_replays();
    }
}

impl SsePassThrough {
    /// Passes streams and POSTs on to `remote`.
    pub fn new(
        run: Arc<ProxyRun>,
        remote: Arc<RemoteServer>,
        limits: Limits,
    ) -> Arc<SsePassThrough> {
        let exchange = Arc::new(SsePassThrough {
            run,
            remote,
            limits,
            next: AtomicU64::new(0),
            endpoints: Arc::default(),
        });
        let injector: Weak<SsePassThrough> = Arc::downgrade(&exchange);
        exchange.run.set_injector(injector);
        exchange
    }

    /// The handler of the endpoints that servers name, which may have any path. The exchange itself handles the streams.
    pub fn endpoints_handler(self: &Arc<Self>) -> Arc<dyn Handler> {
        Arc::new(MessageEndpoints {
            exchange: Arc::clone(self),
            other: None,
        })
    }

    /// The same for a path with a handler of its own, which gets what is not for an endpoint.
    pub fn endpoints_before(self: &Arc<Self>, other: Arc<dyn Handler>) -> Arc<dyn Handler> {
        Arc::new(MessageEndpoints {
            exchange: Arc::clone(self),
            other: Some(other),
        })
    }

    /// Answers one request to the path of the streams, which may be that of an endpoint as well.
    async fn answer(
        self: Arc<Self>,
        source: RequestSource,
        request: Request<Incoming>,
    ) -> HttpResponse {
        let (parts, body) = request.into_parts();
        let exchange = self.next_exchange();
        let to = self.endpoint(exchange, &parts).unwrap_or_else(|| {
            let client = Peer::new(Transport::Sse).called_by(source.caller(&parts));
            let connection = self.run.connect(client, Transport::Sse);
            let url = self.remote.url_with_query(parts.uri.query());
            (url, connection, None)
        });
        self.post(parts, body, to, exchange).await
    }

    /// Sends a request on, whatever its method, and its answer back.
    async fn post(
        self: Arc<Self>,
        parts: Parts,
        body: Incoming,
        (url, connection, stream): (Uri, Arc<Connection>, Option<ProgressSender>),
        exchange: ExchangeId,
    ) -> HttpResponse {
        let bytes = match whole_body(body, self.limits.max, self.run.memory()).await {
            Ok(bytes) => bytes,
            Err(answer) => return *answer,
        };
        let body = match bytes.is_empty() {
            true => Body::Empty,
            false => Body::Whole(Message::parse(bytes)),
        };
        let id = match &body {
            Body::Whole(message) => message.id(),
            _ => None,
        };
        let telling = match &stream {
            Some(_) => ProgressSupport::Yes,
            None => ProgressSupport::No,
        };
        let mut pipeline = connection
            .message_pipeline(Direction::ClientToServer)
            .with_progress_support(telling);
        let going = ForwardedPost {
            method: parts.method.clone(),
            url,
            asked: WaitingRequest {
                connection,
                exchange,
                id,
            },
            stream,
        };
        let envelope = TransportEnvelope::Request(Box::new(parts));
        let frame = Frame::new(exchange, Origin::Client, envelope, body);
        let now = self.run.now();
        match pipeline.try_pass(frame, now).await {
            Ok(PassResult::Passed(frame)) => self.forward_output(going, frame).await,
            Ok(PassResult::Held) => match going.stream.clone() {
                Some(stream) => {
                    tokio::spawn(self.forward_when_released(going, pipeline, stream));
                    bare(202)
                }
                None => match pipeline.wait_released(|_| {}).await {
                    Ok(frame) => self.forward_output(going, frame).await,
                    Err(end) => record_failed_response(500, going.asked.id.as_ref(), &end),
                },
            },
            Err(end) => record_failed_response(500, going.asked.id.as_ref(), &end),
        }
    }

    /// Sends a request on that was held. Its client has its 202 already, because some wait only seconds for that: whatever
    /// is to be said is said on its stream.
    async fn forward_when_released(
        self: Arc<Self>,
        going: ForwardedPost,
        mut pipeline: MessagePipeline,
        stream: ProgressSender,
    ) {
        let released = tokio::select! {
            released = pipeline.wait_released(|told| stream.try_send(&told)) => released,
            // What is held of a client that is gone can go nowhere: dropping the pipeline says so.
            () = stream.closed() => return,
        };
        let Ok(frame) = released else {
            return;
        };
        let asked = going.asked.clone();
        let answer = self.forward_output(going, frame).await;
        let (parts, mut payload) = answer.into_parts();
        let is_lost =
            !parts.status.is_success() && parts.extensions.get::<DroppedMarker>().is_none();
        let Some(bytes) = payload.all_bytes() else {
            return;
        };
        if !is_lost || asked.id.is_none() {
            return;
        }
        let event = asked.event(parts.status, Bytes::copy_from_slice(bytes));
        if stream.send(event).await
            && let OutgoingBody::Recorded(_, unsent) = &mut payload
        {
            unsent.sent();
        }
    }

    /// What came out of the pipeline: for the server, or for the client.
    async fn forward_output(
        &self,
        going: ForwardedPost,
        outgoing: Option<OutgoingFrame>,
    ) -> HttpResponse {
        let asked = going.asked;
        let (mut headers, body, request) = match (outgoing, &going.stream) {
            // What comes out of the pipeline is what is sent.
            (
                Some(OutgoingFrame::Frame(Frame {
                    envelope: TransportEnvelope::Request(parts),
                    body,
                    sequence,
                    ..
                })),
                _,
            ) => (parts.headers, body, sequence),
            (
                Some(OutgoingFrame::Frame(Frame {
                    body: Body::Whole(answer),
                    ..
                })),
                Some(stream),
            ) => {
                return match stream.send(event_of(&answer)).await {
                    true => bare(202),
                    false => bare(503),
                };
            }
            // Over HTTP+SSE a POST is only taken; nothing comes.
            (Some(OutgoingFrame::Dropped(_) | OutgoingFrame::Cancelled(_)), _) => return bare(202),
            (outgoing, _) => return dropped_response(outgoing),
        };
        if let Err(end) = asked.connection.run.durable().await {
            return record_failed_response(500, asked.id.as_ref(), &end);
        }
        headers::strip_hop_by_hop(&mut headers);
        let method = going.method;
        let sent = self
            .remote
            .send(method.clone(), going.url, headers, OutgoingBody::of(body))
            .await;
        let (connection, exchange) = (&asked.connection, asked.exchange);
        match sent {
            Ok(response) => {
                note_resent(connection, &response);
                let id = asked.id.as_ref();
                self.forward_response(response, &method, connection, exchange, id)
                    .await
            }
            Err(end) => {
                connection.undelivered(request.as_slice(), &end.to_string());
                unreachable_server(connection, exchange, asked.id.as_ref(), &end)
            }
        }
    }

    async fn forward_response(
        &self,
        response: Response<IncomingBody>,
        method: &Method,
        connection: &Arc<Connection>,
        exchange: ExchangeId,
        asked: Option<&Id>,
    ) -> HttpResponse {
        let (mut parts, body) = response.into_parts();
        headers::strip_hop_by_hop(&mut parts.headers);
        let mut pipeline = connection.message_pipeline(Direction::ServerToClient);
        let head = |body| {
            let envelope = TransportEnvelope::Response(Box::new(parts.clone()));
            Frame::new(exchange, Origin::Server, envelope, body)
        };
        if *method == Method::GET && headers::is_sse(&parts.headers) {
            if let Err(end) = pipeline.pass_one(head(Body::Empty), self.run.now()).await {
                return record_failed_response(502, asked, &end);
            }
            let through = (Arc::clone(connection), pipeline, exchange);
            let (stream, said) = progress_channel();
            let rewrite = self.rewrite(connection, stream);
            headers::remove_in_order(&mut parts.headers, |name| *name == CONTENT_LENGTH);
            let body =
                RelayedBody::events(body, through, self.limits, rewrite).with_inserted_events(said);
            return Response::from_parts(parts, OutgoingBody::Relayed(Box::new(body)));
        }
        let collected = collect(body, self.limits.max, self.run.memory()).await;
        let bytes = match collected.into_answer(self.limits.max) {
            Ok(bytes) => bytes,
            Err(end) => return unreachable_server(connection, exchange, asked, &end),
        };
        // The body of an answer to a POST is a courtesy ("Accepted"), a message only when it is JSON-RPC.
        let message = Message::parse(bytes.clone());
        let is_rpc = is_rpc(&message);
        let frame = match is_rpc {
            true => head(Body::Whole(message)),
            false => head(Body::Empty),
        };
        let answer = match pipeline.pass_one(frame, self.run.now()).await {
            Ok(_) if !is_rpc => Response::from_parts(parts, OutgoingBody::whole(bytes)),
            Ok(Some(OutgoingFrame::Frame(Frame {
                envelope: TransportEnvelope::Response(parts),
                body,
                sequence,
                ..
            }))) => {
                let unsent = UnsentMessage::new(connection, sequence);
                Response::from_parts(*parts, OutgoingBody::recorded(body, unsent))
            }
            // The client's POST is taken, with nothing to read.
            Ok(_) => bare(202),
            Err(end) => return record_failed_response(502, asked, &end),
        };
        match connection.run.durable().await {
            Ok(()) => answer,
            Err(end) => record_failed_response(502, asked, &end),
        }
    }

    /// The endpoint event names a place on the server's origin; clients get the same path on ours.
    fn rewrite(&self, connection: &Arc<Connection>, stream: ProgressSender) -> EventRewrite {
        let (remote, endpoints) = (Arc::clone(&self.remote), Arc::clone(&self.endpoints));
        let guard = EndReplaysOnDrop(Arc::clone(connection));
        Some(Box::new(move |mut frame: Frame| {
            let TransportEnvelope::Event(event) = &mut frame.envelope else {
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
            known.push_back(AdvertisedEndpoint {
                path: path.clone(),
                url,
                connection: Arc::clone(&guard.0),
                heads: RecentRequestHeads::for_one_client(),
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
    ) -> Option<(Uri, Arc<Connection>, Option<ProgressSender>)> {
        if parts.method != Method::POST {
            return None;
        }
        let asked = parts.uri.path_and_query()?.as_str();
        let mut endpoints = self.endpoints();
        let mut newest = endpoints.iter_mut().rev();
        let endpoint = newest.find(|endpoint| endpoint.path == asked)?;
        if self.run.may_inject() {
            endpoint.heads.remember(exchange, parts);
        }
        let connection = Arc::clone(&endpoint.connection);
        let stream = Some(endpoint.stream.clone());
        Some((endpoint.url.clone(), connection, stream))
    }

    fn endpoints(&self) -> MutexGuard<'_, SseEndpoints> {
        self.endpoints
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn next_exchange(&self) -> ExchangeId {
        ExchangeId(self.next.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// How messages of ours get to the server of a connection. What is answered comes on the client's stream.
    fn injected_post(
        &self,
        connection: u32,
        like: Option<ExchangeId>,
    ) -> Result<InjectedPost, ReplayError> {
        let endpoints = self.endpoints();
        let endpoint = known(&endpoints, connection).ok_or(ReplayError::Gone(LinkEnd::Closed))?;
        Ok(InjectedPost {
            remote: Arc::clone(&self.remote),
            url: endpoint.url.clone(),
            connection: Arc::clone(&endpoint.connection),
            head: endpoint.heads.head_for_exchange(like)?,
            exchange: self.next_exchange(),
            max: self.limits.max,
        })
    }
}

impl Handler for SsePassThrough {
    fn handle(
        self: Arc<Self>,
        source: RequestSource,
        request: Request<Incoming>,
    ) -> BoxFuture<'static, HttpResponse> {
        Box::pin(self.answer(source, request))
    }
}

/// The endpoints of an [`SsePassThrough`].
struct MessageEndpoints {
    exchange: Arc<SsePassThrough>,
    other: Option<Arc<dyn Handler>>,
}

impl Handler for MessageEndpoints {
    fn handle(
        self: Arc<Self>,
        source: RequestSource,
        request: Request<Incoming>,
    ) -> BoxFuture<'static, HttpResponse> {
        let (parts, body) = request.into_parts();
        let exchange = Arc::clone(&self.exchange);
        let id = exchange.next_exchange();
        match (exchange.endpoint(id, &parts), &self.other) {
            (Some(to), _) => Box::pin(exchange.post(parts, body, to, id)),
            (None, Some(other)) => {
                Arc::clone(other).handle(source, Request::from_parts(parts, body))
            }
            (None, None) => Box::pin(std::future::ready(not_found(PATH))),
        }
    }

    fn stop_all(&self) {
        self.other.iter().for_each(|other| other.stop_all());
    }

    fn open_count(&self) -> usize {
        self.other.as_ref().map_or(0, |other| other.open_count())
    }
}

/// The endpoint of a connection whose client has spoken.
fn known(endpoints: &SseEndpoints, connection: u32) -> Option<&AdvertisedEndpoint> {
    let mut newest = endpoints.iter().rev();
    newest.find(|endpoint| endpoint.connection.id == connection && endpoint.heads.is_known())
}

impl MessageInjector for SsePassThrough {
    fn connection(&self, id: u32) -> Option<Arc<Connection>> {
        let endpoints = self.endpoints();
        known(&endpoints, id).map(|endpoint| Arc::clone(&endpoint.connection))
    }

    fn inject(
        &self,
        connection: &Arc<Connection>,
        like: Option<ExchangeId>,
        message: Message,
    ) -> Result<PendingInjection, ReplayError> {
        let posting = self.injected_post(connection.id, like)?;
        posting.post(message, &[]).map_err(ReplayError::Gone)
    }

    fn deliver_answer(
        &self,
        connection: &Arc<Connection>,
        like: ExchangeId,
        answer: Message,
    ) -> Result<SendFuture, ReplayError> {
        let posting = self.injected_post(connection.id, Some(like))?;
        Ok(Box::pin(posting.deliver(answer)))
    }
}
