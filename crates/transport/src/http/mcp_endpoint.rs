//! An MCP endpoint for streamable HTTP: HTTP ends here, and messages go to whatever server `dial` opens.
//!
//! A legacy client has a session and with it a server of its own. Requests without a session (2026-07-28) share one server
//! per bearer token, or each get a server of their own if that is cheap ([`ModernClients`]). Which stream a server's
//! message goes to is [`super::stream_router`]'s decision. The connection that `dial` gets names the caller.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderValue, Method, Request};
use hyper::body::Incoming;
use mcp_proxy_core::{BoxFuture, CarryOptions, Dial, Peer, ProxyRun};
use mcp_proxy_wire::headers::{self, LAST_EVENT_ID, MCP_SESSION_ID};
use mcp_proxy_wire::{ErrorCode, ExchangeId, Id, Kind, Message};

use super::event_stream::{EventStream, encode};
use super::handler::{Handler, RequestSource};
use super::legacy::{GetStreamGuard, PostStreamGuard, legacy_post, session_not_found};
use super::listener::{HttpResponse, bare, error, error_answering};
use super::modern;
use super::request_body::{unreadable, whole_body};
use super::session::{HttpSession, ResumedStream, SessionKind};
use super::session_memory::{SavedOpening, SessionMemory};
use super::session_places::SessionPlaces;
use super::tool_headers::ToolHeaders;

mod opening;
mod restoring;
mod stateless;
mod table;

use opening::{adopt, sweep};
use table::SessionTable;

/// What a listener allows.
#[derive(Clone, Copy, Debug)]
pub struct SessionLimits {
    /// Requests of modern clients at once, `subscriptions/listen` included, where each has a server of its own.
    pub requests: usize,
    /// A session that nobody uses ends after this.
    pub idle: Duration,
    /// Bytes of one message.
    pub message: usize,
}

/// How modern clients, which have no sessions, reach a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModernClients {
    /// Those with the same bearer token share one server: right where a server is a process.
    Shared,
    /// Each request has a server of its own, which sees who called: right for a server in this process.
    OneByOne,
}

/// How legacy clients reach a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LegacyClients {
    /// Each opens a session, which has a server until it ends. Requests without one are carried only if servers are cheap
    /// ([`ModernClients::OneByOne`]).
    Sessions,
    /// Each request has a server of its own; there are no sessions.
    Stateless,
}

/// What an endpoint is made with.
pub struct EndpointOptions {
    /// The server, for the record.
    pub server: Peer,
    /// How modern clients reach it.
    pub modern: ModernClients,
    /// How legacy clients reach it.
    pub legacy: LegacyClients,
    /// What is allowed.
    pub limits: SessionLimits,
    /// How many sessions, and so server processes, there may be.
    pub places: Arc<SessionPlaces>,
    /// The sessions of earlier runs of the program, and those that the next run should know. A server behind a remembered
    /// session is told anew what its client said in `initialize`; it must need no more than that.
    pub memory: Option<Arc<SessionMemory>>,
    /// Deadlines of each conversation.
    pub carry: CarryOptions,
}

/// The endpoint for streamable HTTP clients, in both eras.
pub struct McpEndpoint {
    run: Arc<ProxyRun>,
    dial: Dial,
    options: EndpointOptions,
    /// Which arguments tools want in headers, where requests have servers of their own.
    tools: Arc<ToolHeaders>,
    next: AtomicU64,
    table: Mutex<SessionTable>,
    own: Weak<McpEndpoint>,
    /// A session has made room for another, and the user was told so.
    has_made_room: AtomicBool,
}

impl McpEndpoint {
    /// An endpoint for servers that `dial` opens.
    pub fn new(run: Arc<ProxyRun>, dial: Dial, options: EndpointOptions) -> Arc<McpEndpoint> {
        let sessions = Arc::new_cyclic(|own| McpEndpoint {
            run,
            dial,
            options,
            tools: Arc::default(),
            next: AtomicU64::new(0),
            table: Mutex::default(),
            own: Weak::clone(own),
            has_made_room: AtomicBool::new(false),
        });
        let own = Arc::downgrade(&sessions);
        let end_idle = move || own.upgrade().is_some_and(|sessions| sessions.end_idle());
        sessions.options.places.set_end_idle(end_idle);
        tokio::spawn(sweep(Arc::downgrade(&sessions)));
        sessions
    }

    /// Answers one request.
    async fn answer(
        self: Arc<Self>,
        source: RequestSource,
        request: Request<Incoming>,
    ) -> HttpResponse {
        let (parts, body) = request.into_parts();
        match parts.method {
            Method::POST => {
                let max = self.options.limits.message;
                match whole_body(body, max, self.run.memory()).await {
                    Ok(bytes) => self.post(source, parts, Message::parse(bytes)).await,
                    Err(answer) => *answer,
                }
            }
            Method::GET if modern::is_modern_head(&parts.headers) => not_allowed("POST"),
            Method::DELETE if modern::is_modern_head(&parts.headers) => not_allowed("POST"),
            Method::GET | Method::DELETE if self.options.legacy == LegacyClients::Stateless => {
                not_allowed("POST")
            }
            Method::GET => self.get(&source, &parts),
            Method::DELETE => self.delete(&source, &parts),
            _ => not_allowed("GET, POST, DELETE"),
        }
    }

    /// A client's message, in either era.
    pub async fn post(
        self: Arc<Self>,
        source: RequestSource,
        parts: Parts,
        message: Message,
    ) -> HttpResponse {
        let id = message.id();
        if !headers::is_json(&parts.headers) {
            let text = "Content-Type must be application/json";
            return error_answering(id.as_ref(), 415, ErrorCode::BAD_REQUEST, text);
        }
        let exchange = self.next_exchange();
        if modern::is_modern(&parts.headers, &message) {
            let session = match self.options.modern {
                ModernClients::Shared => self.shared(&source, &parts, id.as_ref()),
                ModernClients::OneByOne => self.own(&source, &parts, exchange, id.as_ref()),
            };
            return match session {
                Ok(session) => modern::post(session, exchange, parts, message).await,
                Err(answer) => *answer,
            };
        }
        if self.needs_no_session(&parts, &message) {
            return self.stateless_post(source, parts, message, exchange).await;
        }
        let session = match self.legacy_session(&source, &parts, &message) {
            Ok(session) => session,
            Err(answer) => return *answer,
        };
        if let Err((code, text)) = self.tell_restored(&session).await {
            return error_answering(id.as_ref(), 200, code, &text);
        }
        let is_new = !parts.headers.contains_key(MCP_SESSION_ID);
        let opening = SavedOpening::of(&message).filter(|_| is_new);
        let mut answer = legacy_post(&session, exchange, parts, message).await;
        if let (true, Some(id)) = (is_new, session.legacy_id())
            && let Ok(id) = HeaderValue::from_str(id)
        {
            answer.headers_mut().insert(MCP_SESSION_ID, id);
        }
        if let Some(opening) = opening {
            self.remember(&session, opening);
        }
        answer
    }

    /// Whether a legacy message is carried without a session. Where a server is a process that is so only on request: it
    /// does not say whether it needs what earlier calls left behind, and a new one for each call would not have it.
    fn needs_no_session(&self, parts: &Parts, message: &Message) -> bool {
        match (self.options.legacy, self.options.modern) {
            (LegacyClients::Stateless, _) => true,
            (LegacyClients::Sessions, ModernClients::Shared) => false,
            (LegacyClients::Sessions, ModernClients::OneByOne) => {
                !parts.headers.contains_key(MCP_SESSION_ID) && !opens_session(message)
            }
        }
    }

    fn get(&self, source: &RequestSource, parts: &Parts) -> HttpResponse {
        if !headers::accepts_sse(&parts.headers) {
            return error(
                406,
                ErrorCode::BAD_REQUEST,
                "Accept must name text/event-stream",
            );
        }
        let session = match self.known(source, parts) {
            Ok(session) => session,
            Err(answer) => return *answer,
        };
        let resumed = parts
            .headers
            .get(LAST_EVENT_ID)
            .and_then(|value| value.to_str().ok())
            .and_then(|id| session.resume(id));
        let mut first = Vec::new();
        if let Some(ResumedStream { missed, live }) = resumed {
            let finished = missed.iter().any(|message| message.last);
            first = missed.iter().map(encode).collect();
            if let Some((exchange, number, messages)) = live {
                let guard = Box::new(PostStreamGuard {
                    session,
                    exchange,
                    number,
                });
                return EventStream::new(first, messages, Some(guard)).into_response();
            }
            if finished {
                return EventStream::finished(first).into_response();
            }
        }
        let Some((number, messages)) = session.open_get() else {
            return session_not_found(None);
        };
        let guard = Box::new(GetStreamGuard { session, number });
        EventStream::new(first, messages, Some(guard)).into_response()
    }

    fn delete(&self, source: &RequestSource, parts: &Parts) -> HttpResponse {
        match self.known(source, parts) {
            Ok(session) => {
                session.end_posts();
                self.forget(&session);
                self.table().end(&session);
                bare(200)
            }
            Err(answer) => *answer,
        }
    }

    fn legacy_session(
        &self,
        source: &RequestSource,
        parts: &Parts,
        message: &Message,
    ) -> Result<Arc<HttpSession>, Box<HttpResponse>> {
        if parts.headers.contains_key(MCP_SESSION_ID) {
            return self.known(source, parts).map_err(|mut answer| {
                if let (404, Some(id)) = (answer.status().as_u16(), message.id()) {
                    *answer = session_not_found(Some(&id));
                }
                answer
            });
        }
        if opens_session(message) {
            let id = uuid::Uuid::new_v4().to_string();
            let mut table = self.table();
            if let Some(session) = adopt(&mut table, source, parts, &id) {
                table.legacy.insert(id, Arc::clone(&session));
                return Ok(session);
            }
            let (kind, caller) = (SessionKind::Legacy(id.clone()), source.caller(parts));
            let session = self.open(&mut table, kind, caller, message.id().as_ref())?;
            table.legacy.insert(id, Arc::clone(&session));
            return Ok(session);
        }
        if message.kind() == Kind::Malformed {
            let text = unreadable(message);
            return Err(Box::new(error(400, ErrorCode::PARSE_ERROR, text)));
        }
        let text = "no session: send initialize first, then its Mcp-Session-Id with every request; for clients that do not, start the proxy with --stateless";
        let answer = error_answering(message.id().as_ref(), 400, ErrorCode::BAD_REQUEST, text);
        Err(Box::new(answer))
    }

    fn known(
        &self,
        source: &RequestSource,
        parts: &Parts,
    ) -> Result<Arc<HttpSession>, Box<HttpResponse>> {
        let Some(id) = parts.headers.get(MCP_SESSION_ID) else {
            let text = "the Mcp-Session-Id header is missing";
            return Err(Box::new(error(400, ErrorCode::BAD_REQUEST, text)));
        };
        let Ok(id) = id.to_str() else {
            return Err(Box::new(session_not_found(None)));
        };
        let mut table = self.table();
        match table.legacy.get(id) {
            Some(session) => Ok(Arc::clone(session)),
            None => self.restore(&mut table, source.caller(parts), id),
        }
    }

    fn shared(
        &self,
        source: &RequestSource,
        parts: &Parts,
        asked: Option<&Id>,
    ) -> Result<Arc<HttpSession>, Box<HttpResponse>> {
        let token = parts.headers.get(AUTHORIZATION).cloned();
        // Looked up and inserted under one lock: two requests that come at once must not open two servers, of which only
        // one would be in the table.
        let mut table = self.table();
        if let Some(session) = table.shared.get(&token)
            && !session.is_over()
        {
            return Ok(Arc::clone(session));
        }
        if let Some(over) = table.shared.get(&token).cloned() {
            table.end(&over);
        }
        let session = self.open(&mut table, SessionKind::Shared, source.caller(parts), asked)?;
        table.shared.insert(token, Arc::clone(&session));
        Ok(session)
    }

    /// A server for this request alone.
    fn own(
        &self,
        source: &RequestSource,
        parts: &Parts,
        exchange: ExchangeId,
        asked: Option<&Id>,
    ) -> Result<Arc<HttpSession>, Box<HttpResponse>> {
        let mut table = self.table();
        let session = self.open(
            &mut table,
            SessionKind::Request(exchange),
            source.caller(parts),
            asked,
        )?;
        table.requests.insert(exchange, Arc::clone(&session));
        Ok(session)
    }

    fn remove(&self, session: &Arc<HttpSession>) {
        self.forget(session);
        self.table().remove(session);
    }

    fn next_exchange(&self) -> ExchangeId {
        ExchangeId(self.next.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn table(&self) -> MutexGuard<'_, SessionTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Handler for McpEndpoint {
    fn handle(
        self: Arc<Self>,
        source: RequestSource,
        request: Request<Incoming>,
    ) -> BoxFuture<'static, HttpResponse> {
        Box::pin(self.answer(source, request))
    }

    fn stop_all(&self) {
        let table = self.table();
        for session in table.all() {
            session.stop.notify_one();
        }
    }

    fn open_count(&self) -> usize {
        self.table().all().count()
    }
}

/// Whether a message, or a part of a batch, is `initialize`.
fn opens_session(message: &Message) -> bool {
    let opens = |message: &Message| message.method().as_deref() == Some("initialize");
    let batch_opens = || message.parts().unwrap_or_default().iter().any(opens);
    opens(message) || (message.kind() == Kind::Batch && batch_opens())
}

fn not_allowed(allowed: &'static str) -> HttpResponse {
    let text = format!("this method is not allowed here; use {allowed}");
    let mut answer = error(405, ErrorCode::BAD_REQUEST, &text);
    answer
        .headers_mut()
        .insert(http::header::ALLOW, HeaderValue::from_static(allowed));
    answer
}

#[cfg(test)]
mod tests;
