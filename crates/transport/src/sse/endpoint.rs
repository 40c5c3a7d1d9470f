//! HTTP+SSE clients: `/sse` with the stream of each, and the endpoint of their messages. HTTP ends here.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Request, Response};
use hyper::body::Incoming;
use mcp_proxy_core::{
    BoxFuture, Caller, CarryOptions, Connection, Dial, FrameWriter, Link, LinkEnd, OutgoingFrame,
    Peer, ProxyRun, carry,
};
use mcp_proxy_wire::{Body, ErrorCode, Message, StreamId, Transport, encode_event, is_blank};
use rustc_hash::FxHashMap;
use tokio::sync::Notify;

use super::{MESSAGE_PATH, PATH};
use crate::http::event_stream::{EventStream, StreamItem, StreamMessage};
use crate::http::handler::{Handler, RequestSource};
use crate::http::listener::{HttpResponse, bare, error};
use crate::http::mcp_endpoint::SessionLimits;
use crate::http::outgoing_body::OutgoingBody;
use crate::http::request_body::whole_body;
use crate::http::routes::not_found;
use crate::http::session::frame;
use crate::http::session_places::{SessionPlace, SessionPlaces};
use crate::http::stream_queue::{StreamSender, stream_channel};
use crate::inbox::{InboxItem, InboxSender, SEND_DEADLINE, inbox};

/// The front for HTTP+SSE clients.
pub struct SseEndpoint {
    run: Arc<ProxyRun>,
    dial: Dial,
    server: Peer,
    limits: SessionLimits,
    places: Arc<SessionPlaces>,
    carry: CarryOptions,
    sessions: Mutex<FxHashMap<String, SseClientHandle>>,
    own: Weak<SseEndpoint>,
}

#[derive(Clone)]
struct SseClientHandle {
    inbox: InboxSender,
    stop: Arc<Notify>,
}

impl SseEndpoint {
    /// Sessions towards servers that `dial` opens.
    pub fn new(
        run: Arc<ProxyRun>,
        dial: Dial,
        server: impl Into<Peer>,
        (limits, places): (SessionLimits, Arc<SessionPlaces>),
        carry: CarryOptions,
    ) -> Arc<SseEndpoint> {
        let server = server.into();
        Arc::new_cyclic(|own| SseEndpoint {
            run,
            dial,
            server,
            limits,
            places,
            carry,
            sessions: Mutex::default(),
            own: Weak::clone(own),
        })
    }

    /// The handler of the message endpoint, to be served at [`MESSAGE_PATH`]. The front itself handles the streams.
    pub fn messages(self: &Arc<Self>) -> Arc<dyn Handler> {
        Arc::new(SseMessages(Arc::clone(self)))
    }

    fn open(&self, caller: Arc<Caller>) -> HttpResponse {
        let Some(place) = self.places.enter_or_make_room() else {
            let most = self.places.max();
            let text = format!("{most} sessions are open (--max-sessions), and none is idle");
            return error(503, ErrorCode::SESSION_LIMIT, &text);
        };
        let id = uuid::Uuid::new_v4().simple().to_string();
        let peer = Peer::new(Transport::Sse).called_by(caller);
        let connection = self.run.connect(peer, self.server.clone());
        let (sender, reader) = inbox();
        let (out, messages) = stream_channel(Some(Arc::clone(&connection)), []);
        let stop = Arc::new(Notify::new());
        let client = SseClientHandle {
            inbox: sender,
            stop: Arc::clone(&stop),
        };
        self.sessions().insert(id.clone(), client);
        let link = Link::new(reader, SseStreamWriter(Some(out)));
        let task = SseSession {
            connection,
            dial: Arc::clone(&self.dial),
            options: self.carry,
            stop: Arc::clone(&stop),
        };
        let (own, name) = (Weak::clone(&self.own), id.clone());
        let places = Arc::clone(&self.places);
        let guard = Box::new(EndOnDrop {
            stop,
            place: Arc::new(Mutex::new(Some(place))),
        });
        let place = Arc::clone(&guard.place);
        tokio::spawn(async move {
            task.run(link, &places).await;
            leave(&place);
            if let Some(front) = own.upgrade() {
                front.sessions().remove(&name);
            }
        });
        let endpoint = format!("{MESSAGE_PATH}?sessionId={id}");
        let first: Bytes = encode_event(None, Some("endpoint"), endpoint.as_bytes());
        EventStream::new(vec![first], messages, Some(guard)).into_response()
    }

    async fn post(&self, parts: Parts, body: Incoming) -> HttpResponse {
        let Some(client) = self.client_of(&parts) else {
            let text = "this session is not known here or has ended; open /sse again";
            return error(404, ErrorCode::SESSION_NOT_FOUND, text);
        };
        let message = match whole_body(body, self.limits.message, self.run.memory()).await {
            Ok(bytes) if is_blank(&bytes) => {
                let text = "the body contains no message";
                return error(400, ErrorCode::BAD_REQUEST, text);
            }
            Ok(bytes) => Message::parse(bytes),
            Err(answer) => return *answer,
        };
        let arrival = InboxItem::Frame(frame(StreamId::Only, parts, message));
        match client.inbox.send_timeout(arrival, SEND_DEADLINE).await {
            Ok(()) => accepted(),
            Err(_) => error(
                503,
                ErrorCode::PEER_STALLED,
                "the server takes no more messages",
            ),
        }
    }

    fn client_of(&self, parts: &Parts) -> Option<SseClientHandle> {
        let query = parts.uri.query()?;
        let id = query
            .split('&')
            .find_map(|pair| pair.strip_prefix("sessionId="))?;
        self.sessions().get(id).cloned()
    }

    fn sessions(&self) -> MutexGuard<'_, FxHashMap<String, SseClientHandle>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Handler for SseEndpoint {
    fn handle(
        self: Arc<Self>,
        source: RequestSource,
        request: Request<Incoming>,
    ) -> BoxFuture<'static, HttpResponse> {
        let (parts, _) = request.into_parts();
        let answer = match parts.method {
            Method::GET => self.open(source.caller(&parts)),
            // Clients that try streamable HTTP first go by this to HTTP+SSE.
            Method::POST => method_not_allowed(),
            _ => not_found(PATH),
        };
        Box::pin(std::future::ready(answer))
    }

    fn stop_all(&self) {
        for client in self.sessions().values() {
            client.stop.notify_one();
        }
    }

    fn open_count(&self) -> usize {
        self.sessions().len()
    }
}

/// The message endpoint of an [`SseEndpoint`].
struct SseMessages(Arc<SseEndpoint>);

impl Handler for SseMessages {
    fn handle(
        self: Arc<Self>,
        _: RequestSource,
        request: Request<Incoming>,
    ) -> BoxFuture<'static, HttpResponse> {
        let front = Arc::clone(&self.0);
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            match parts.method {
                Method::POST => front.post(parts, body).await,
                _ => not_found(PATH),
            }
        })
    }
}

struct SseSession {
    connection: Arc<Connection>,
    dial: Dial,
    options: CarryOptions,
    stop: Arc<Notify>,
}

impl SseSession {
    async fn run(self, client: Link, places: &SessionPlaces) {
        let _server_place = tokio::select! {
            place = places.server() => place,
            () = self.stop.notified() => return self.connection.close("stopped"),
        };
        let server = match (self.dial)(Arc::clone(&self.connection)).await {
            Ok(link) => link,
            Err(end) => Link::dead(end),
        };
        let stop = self.stop.notified();
        let end = carry(&self.connection, client, server, self.options, stop).await;
        self.connection.close(end.text());
    }
}

/// Everything for the client goes on its one stream.
struct SseStreamWriter(Option<StreamSender>);

impl SseStreamWriter {
    async fn put(&mut self, frames: &mut Vec<OutgoingFrame>) -> Result<(), LinkEnd> {
        let Some(stream) = &self.0 else {
            return Err(LinkEnd::Closed);
        };
        for frame in frames.drain(..).filter_map(OutgoingFrame::into_written) {
            let Body::Message(message) = frame.body else {
                continue;
            };
            let item = StreamItem::Message(StreamMessage {
                data: message.into_raw(),
                event_id: None,
                last: false,
                sequence: frame.sequence,
            });
            // The pump has a deadline for all of it.
            if stream.send(item, Duration::MAX).await.is_err() {
                return Err(LinkEnd::Closed);
            }
        }
        Ok(())
    }
}

impl FrameWriter for SseStreamWriter {
    fn write<'a>(
        &'a mut self,
        frames: &'a mut Vec<OutgoingFrame>,
    ) -> BoxFuture<'a, Result<(), LinkEnd>> {
        Box::pin(self.put(frames))
    }

    fn close(&mut self) -> BoxFuture<'_, ()> {
        self.0 = None;
        Box::pin(std::future::ready(()))
    }
}

/// The client closed its stream: that is the end of its session. Its place is free for another, whose server starts when
/// this one has ended.
struct EndOnDrop {
    stop: Arc<Notify>,
    place: Arc<Mutex<Option<SessionPlace>>>,
}

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        leave(&self.place);
        self.stop.notify_one();
    }
}

fn leave(place: &Mutex<Option<SessionPlace>>) {
    let place = place.lock().unwrap_or_else(PoisonError::into_inner).take();
    drop(place);
}

fn accepted() -> HttpResponse {
    let mut answer = Response::new(OutgoingBody::whole("Accepted"));
    *answer.status_mut() = http::StatusCode::ACCEPTED;
    answer
}

fn method_not_allowed() -> HttpResponse {
    let mut answer = bare(405);
    answer
        .headers_mut()
        .insert(http::header::ALLOW, http::HeaderValue::from_static("GET"));
    answer
}

#[cfg(test)]
mod tests {
    use mcp_proxy_core::{HoldOptions, RunOptions, in_process};

    use super::*;

    #[tokio::test]
    async fn a_session_that_its_client_has_ended_makes_room_while_its_server_is_stopped() {
        let stopping: Dial = Arc::new(|_| {
            let (link, server) = in_process();
            let finish = Box::pin(async move {
                let _server = server;
                std::future::pending().await
            });
            Box::pin(std::future::ready(Ok(link.with_finish(finish))))
        });
        let run = ProxyRun::new(RunOptions {
            recorder: None,
            warn: Arc::new(|text| panic!("{text}")),
            pass_noise: false,
            hold: HoldOptions::default(),
        });
        let wait = Duration::from_secs(60);
        let limits = SessionLimits {
            requests: 1,
            idle: wait,
            message: 1 << 20,
        };
        let carry = CarryOptions {
            stall: wait,
            drain_open: wait,
            drain_idle: wait,
            last_request: wait,
            stray_lines: 1,
            stray_wait: wait,
        };
        let places = SessionPlaces::new(1);
        let endpoint = SseEndpoint::new(run, stopping, Transport::Stdio, (limits, places), carry);
        let source = RequestSource {
            token: None,
            address: "127.0.0.1:1".parse().unwrap(),
        };
        let open = || {
            let (parts, ()) = Request::get("http://localhost/sse")
                .body(())
                .unwrap()
                .into_parts();
            endpoint.open(source.caller(&parts))
        };
        let first = open();
        assert_eq!(
            (first.status().as_u16(), open().status().as_u16()),
            (200, 503)
        );
        drop(first);
        assert_eq!(open().status(), 200);
    }
}
