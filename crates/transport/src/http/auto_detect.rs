//! A URL whose kind nobody named: the client's first message is the try.
//!
//! It is POSTed as streamable HTTP. 404, 405 or another 4xx without a JSON-RPC body means HTTP+SSE (the spec's own
//! rule for clients); 401, 403, 407 and 429 speak about the client, not about the transport.

use std::sync::{Arc, OnceLock};

use http::{Method, Request};
use hyper::body::Incoming;
use mcp_proxy_core::{
    BoxFuture, Connection, FrameWriter, Link, LinkEnd, OutgoingFrame, Peer, ProxyRun,
};
use mcp_proxy_wire::headers::{self, MCP_SESSION_ID};
use mcp_proxy_wire::{Message, Transport};

use super::collect::collect;
use super::dial::{HttpLink, HttpWriter, PostedMessage, is_rpc};
use super::handler::{Handler, RequestSource};
use super::listener::HttpResponse;
use super::mcp_endpoint::McpEndpoint;
use super::outgoing_body::OutgoingBody;
use super::pass_through::HttpPassThrough;
use super::remote::RemoteServer;
use super::request_body::whole_body;
use crate::inbox::{InboxItem, InboxSender, inbox};
use crate::session_opening::{RemoteLinkOptions, SessionLoss};
use crate::sse::SseEndpoint;
use crate::sse::dial::{SseWriter, connect};

/// Whether an answer to the first POST says that this is no streamable HTTP server.
fn is_other_kind(status: u16, body: &[u8]) -> bool {
    match status {
        401 | 403 | 407 | 429 => false,
        404 | 405 => true,
        400..=499 => !is_rpc(&Message::parse(body.to_vec())),
        _ => false,
    }
}

/// Whether a request begins an HTTP+SSE session: a streamable HTTP client begins with a POST, and has an id afterwards. `/mcp` is for
/// the latter only, because some of them ask for a stream without an id too.
fn opens_stream(request: &Request<Incoming>) -> bool {
    *request.method() == Method::GET
        && request.uri().path().trim_end_matches('/') != super::PATH
        && headers::accepts_sse(request.headers())
        && !request.headers().contains_key(MCP_SESSION_ID)
}

fn not_sse(end: &LinkEnd) -> String {
    format!("the server does not speak HTTP+SSE either: {end}")
}

/// The link for a stdio or SSE client.
pub fn auto_detect_link(
    remote: Arc<RemoteServer>,
    connection: Arc<Connection>,
    options: RemoteLinkOptions,
) -> Link {
    let (sender, reader) = inbox();
    let http = HttpLink::new(
        Arc::clone(&remote),
        Arc::clone(&connection),
        sender.clone(),
        options,
    );
    let finish = Arc::clone(&http);
    let writer = AutoDetectWriter {
        mode: DetectedMode::Unknown(http),
        remote,
        connection,
        inbox: sender,
        options,
    };
    Link::new(reader, writer).with_finish(Box::pin(async move { finish.finish().await }))
}

struct AutoDetectWriter {
    mode: DetectedMode,
    remote: Arc<RemoteServer>,
    connection: Arc<Connection>,
    inbox: InboxSender,
    options: RemoteLinkOptions,
}

enum DetectedMode {
    Unknown(Arc<HttpLink>),
    Http(HttpWriter),
    Sse(SseWriter),
}

impl AutoDetectWriter {
    async fn put_all(&mut self, frames: &mut Vec<OutgoingFrame>) -> Result<(), LinkEnd> {
        loop {
            let http = match &mut self.mode {
                DetectedMode::Unknown(http) => Arc::clone(http),
                DetectedMode::Http(writer) => return writer.put_all(frames).await,
                DetectedMode::Sse(writer) => return writer.put_all(frames).await,
            };
            if frames.is_empty() {
                return Ok(());
            }
            let frame = frames.remove(0).into_written();
            if let Some((message, posted)) = frame.and_then(PostedMessage::new) {
                self.first(http, message, posted).await?;
            }
        }
    }

    async fn first(
        &mut self,
        http: Arc<HttpLink>,
        message: Message,
        posted: PostedMessage,
    ) -> Result<(), LinkEnd> {
        let response = http.send(&message, &posted).await?;
        if !response.status().is_client_error() {
            let opens = posted.method.as_deref() == Some("initialize");
            let reading = http.receive_in_task(response, posted);
            self.mode = DetectedMode::Http(match opens {
                true => HttpWriter::opening(http, reading),
                false => HttpWriter::new(http),
            });
            return Ok(());
        }
        let (parts, body) = response.into_parts();
        let memory = self.connection.run.memory();
        let bytes = collect(body, self.options.max, memory).await.into_bytes();
        if is_other_kind(parts.status.as_u16(), &bytes) {
            let (remote, connection) = (Arc::clone(&self.remote), Arc::clone(&self.connection));
            match connect(remote, connection, self.inbox.clone(), self.options).await {
                Ok(mut writer) => {
                    self.connection.set_server_transport(Transport::Sse);
                    writer.put(message, posted).await;
                    self.mode = DetectedMode::Sse(writer);
                    return Ok(());
                }
                Err(end) => {
                    self.connection.note(&not_sse(&end));
                    self.mode = DetectedMode::Http(HttpWriter::new(Arc::clone(&http)));
                    let answer = Message::parse(bytes.clone());
                    if !is_rpc(&answer) {
                        let addition = format!("; and as HTTP+SSE: {end}");
                        http.fail_whole(parts, answer, &posted, &addition).await;
                        return Ok(());
                    }
                }
            }
        }
        http.receive_whole(parts, bytes, &posted).await;
        self.mode = DetectedMode::Http(HttpWriter::new(http));
        Ok(())
    }
}

impl FrameWriter for AutoDetectWriter {
    fn write<'a>(
        &'a mut self,
        frames: &'a mut Vec<OutgoingFrame>,
    ) -> BoxFuture<'a, Result<(), LinkEnd>> {
        Box::pin(self.put_all(frames))
    }

    fn close(&mut self) -> BoxFuture<'_, ()> {
        match &mut self.mode {
            DetectedMode::Unknown(_) => {
                let inbox = self.inbox.clone();
                Box::pin(async move { drop(inbox.send(InboxItem::End(LinkEnd::Closed)).await) })
            }
            DetectedMode::Http(writer) => writer.close(),
            DetectedMode::Sse(writer) => writer.close(),
        }
    }
}

/// The front of an HTTP listener: passes through, or ends HTTP here, as the first answer shows.
pub struct AutoDetectEndpoint {
    run: Arc<ProxyRun>,
    remote: Arc<RemoteServer>,
    exchange: Arc<HttpPassThrough>,
    sessions: Arc<McpEndpoint>,
    streams: Arc<SseEndpoint>,
    kind: OnceLock<Transport>,
    max: usize,
}

impl AutoDetectEndpoint {
    /// `exchange` if the server speaks streamable HTTP, `sessions` (which must dial HTTP+SSE) if not. `streams` is for
    /// HTTP+SSE clients that come to the server's own path.
    pub fn new(
        run: Arc<ProxyRun>,
        remote: Arc<RemoteServer>,
        exchange: Arc<HttpPassThrough>,
        (sessions, streams): (Arc<McpEndpoint>, Arc<SseEndpoint>),
        max: usize,
    ) -> Arc<AutoDetectEndpoint> {
        Arc::new(AutoDetectEndpoint {
            run,
            remote,
            exchange,
            sessions,
            streams,
            kind: OnceLock::new(),
            max,
        })
    }

    /// Answers one request whose first answer is not known yet.
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
        let (again, message) = (parts.clone(), Message::parse(body.clone()));
        let mut answer = self.exchange.pass(&source, parts, body).await;
        let status = answer.status().as_u16();
        let other = answer
            .body()
            .all_bytes()
            .is_some_and(|bytes| is_other_kind(status, bytes));
        if other && self.speaks_sse().await {
            if let OutgoingBody::Recorded(_, unsent) = answer.body_mut() {
                unsent.give_up("the server speaks HTTP+SSE: the request is sent once more");
            }
            let _ = self.kind.set(Transport::Sse);
            let sessions = Arc::clone(&self.sessions);
            return sessions.post(source, again, message).await;
        }
        // 502 is our own word for a server that is not there: nothing is decided yet.
        if status != 502 && !other {
            let _ = self.kind.set(Transport::StreamableHttp);
        }
        answer
    }

    /// Opens an event stream and closes it again.
    async fn speaks_sse(&self) -> bool {
        let connection = self.run.connect(Peer::in_process("proxy"), Transport::Sse);
        let (sender, _reader) = inbox();
        let probe = connect(
            Arc::clone(&self.remote),
            Arc::clone(&connection),
            sender,
            RemoteLinkOptions {
                max: self.max,
                on_loss: SessionLoss::EndLink,
            },
        )
        .await;
        connection.close("looked whether the server speaks HTTP+SSE");
        probe
            .inspect_err(|end| connection.note(&not_sse(end)))
            .is_ok()
    }
}

impl Handler for AutoDetectEndpoint {
    fn handle(
        self: Arc<Self>,
        source: RequestSource,
        request: Request<Incoming>,
    ) -> BoxFuture<'static, HttpResponse> {
        let kind = self.kind.get();
        if kind != Some(&Transport::StreamableHttp) && opens_stream(&request) {
            return Arc::clone(&self.streams).handle(source, request);
        }
        match kind {
            Some(Transport::Sse) => Arc::clone(&self.sessions).handle(source, request),
            Some(_) => Arc::clone(&self.exchange).handle(source, request),
            None if *request.method() != Method::POST => {
                Arc::clone(&self.exchange).handle(source, request)
            }
            None => Box::pin(self.answer(source, request)),
        }
    }

    fn stop_all(&self) {
        self.sessions.stop_all();
    }

    fn open_count(&self) -> usize {
        self.sessions.open_count()
    }
}
