//! Streamable HTTP that ends here, because the server speaks something else.
//!
//! A legacy client has a session and with it a server of its own; requests without a session (2026-07-28) share
//! one server per bearer token. Which stream a server's message goes to is [`super::router`]'s decision.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderValue, Method, Request};
use hyper::body::Incoming;
use mcp_proxy_core::{
    BoxFuture, Caller, CarryOptions, Connection, Dial, Link, Peer, Pipeline, carry,
};
use mcp_proxy_wire::headers::{self, LAST_EVENT_ID, MCP_SESSION_ID};
use mcp_proxy_wire::{
    ErrorCode, ExchangeId, Id, Kind, Message, Transport, error_response, is_blank,
};
use rustc_hash::FxHashMap;

use super::collect::{Collected, collect};
use super::handler::{Handler, RequestSource};
use super::legacy::{GetGuard, StreamGuard, legacy_post, session_not_found};
use super::listener::{Answer, bare, error, events, json};
use super::modern;
use super::payload::Payload;
use super::session::{Session, SessionWriter};
use super::stream::{EventStream, encode};
use crate::inbox::inbox;

/// What a listener allows.
#[derive(Clone, Copy, Debug)]
pub struct SessionLimits {
    /// Sessions (and so server processes) at once.
    pub sessions: usize,
    /// A session that nobody uses ends after this.
    pub idle: Duration,
    /// Bytes of one message.
    pub message: usize,
}

/// The front for streamable HTTP clients of another kind of server.
pub struct Sessions {
    pipeline: Arc<Pipeline>,
    dial: Dial,
    server: Transport,
    limits: SessionLimits,
    carry: CarryOptions,
    next: AtomicU64,
    table: Mutex<Table>,
    own: Weak<Sessions>,
}

#[derive(Default)]
struct Table {
    legacy: FxHashMap<String, Arc<Session>>,
    shared: FxHashMap<Option<HeaderValue>, Arc<Session>>,
}

impl Sessions {
    /// Sessions towards servers that `dial` opens.
    pub fn new(
        pipeline: Arc<Pipeline>,
        dial: Dial,
        server: Transport,
        limits: SessionLimits,
        carry: CarryOptions,
    ) -> Arc<Sessions> {
        let sessions = Arc::new_cyclic(|own| Sessions {
            pipeline,
            dial,
            server,
            limits,
            carry,
            next: AtomicU64::new(0),
            table: Mutex::default(),
            own: Weak::clone(own),
        });
        tokio::spawn(sweep(Arc::downgrade(&sessions)));
        sessions
    }

    /// Answers one request.
    async fn answer(self: Arc<Self>, source: RequestSource, request: Request<Incoming>) -> Answer {
        let (parts, body) = request.into_parts();
        match parts.method {
            Method::POST => {
                let message = match collect(body, self.limits.message).await {
                    Collected::Whole(bytes) => Message::parse(bytes),
                    Collected::More(..) => return too_large(self.limits.message),
                    Collected::Broken(_, why) => {
                        let text = format!("the request's body broke off: {why}");
                        return error(400, ErrorCode::BAD_REQUEST, &text);
                    }
                };
                self.post(source, parts, message).await
            }
            Method::GET if modern::is_modern_head(&parts.headers) => not_allowed("POST"),
            Method::DELETE if modern::is_modern_head(&parts.headers) => not_allowed("POST"),
            Method::GET => self.get(&parts),
            Method::DELETE => self.delete(&parts),
            _ => not_allowed("GET, POST, DELETE"),
        }
    }

    /// A client's message, in either era.
    pub async fn post(
        self: Arc<Self>,
        source: RequestSource,
        parts: Parts,
        message: Message,
    ) -> Answer {
        let id = message.id();
        if !headers::is_json(&parts.headers) {
            let text = "Content-Type must be application/json";
            let answer = error_response(id.as_ref(), ErrorCode::BAD_REQUEST, text, None);
            return json(415, answer);
        }
        let exchange = ExchangeId(self.next.fetch_add(1, Ordering::Relaxed) + 1);
        if modern::is_modern(&parts.headers, &message) {
            return match self.shared(&source, &parts, id.as_ref()) {
                Ok(session) => modern::post(session, exchange, parts, message).await,
                Err(answer) => *answer,
            };
        }
        let session = match self.legacy_session(&source, &parts, &message) {
            Ok(session) => session,
            Err(answer) => return *answer,
        };
        let is_new = !parts.headers.contains_key(MCP_SESSION_ID);
        let mut answer = legacy_post(&session, exchange, parts, message).await;
        if is_new && let Ok(id) = HeaderValue::from_str(&session.id) {
            answer.headers_mut().insert(MCP_SESSION_ID, id);
        }
        answer
    }

    fn get(&self, parts: &Parts) -> Answer {
        if !headers::accepts_sse(&parts.headers) {
            return error(
                406,
                ErrorCode::BAD_REQUEST,
                "Accept must name text/event-stream",
            );
        }
        let session = match self.known(parts) {
            Ok(session) => session,
            Err(answer) => return *answer,
        };
        let resumed = parts
            .headers
            .get(LAST_EVENT_ID)
            .and_then(|value| value.to_str().ok())
            .and_then(|id| session.resume(id));
        let mut first = Vec::new();
        if let Some((missed, live, stream)) = resumed {
            let finished = missed.iter().any(|out| out.last);
            first = missed.iter().map(encode).collect();
            if let Some(messages) = live {
                let guard = Box::new(StreamGuard {
                    session,
                    exchange: stream,
                });
                return events(Payload::Events(Box::new(EventStream::new(
                    first,
                    messages,
                    Some(guard),
                ))));
            }
            if finished {
                return events(Payload::Events(Box::new(EventStream::finished(first))));
            }
        }
        let Some((which, messages)) = session.open_get() else {
            return session_not_found(None);
        };
        let guard = Box::new(GetGuard { session, which });
        events(Payload::Events(Box::new(EventStream::new(
            first,
            messages,
            Some(guard),
        ))))
    }

    fn delete(&self, parts: &Parts) -> Answer {
        match self.known(parts) {
            Ok(session) => {
                self.table().legacy.remove(&session.id);
                session.stop.notify_one();
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
    ) -> Result<Arc<Session>, Box<Answer>> {
        if parts.headers.contains_key(MCP_SESSION_ID) {
            return self.known(parts).map_err(|mut answer| {
                if let (404, Some(id)) = (answer.status().as_u16(), message.id()) {
                    *answer = session_not_found(Some(&id));
                }
                answer
            });
        }
        let opens = |message: &Message| message.method().as_deref() == Some("initialize");
        let batch_opens = || message.parts().unwrap_or_default().iter().any(opens);
        if opens(message) || (message.kind() == Kind::Batch && batch_opens()) {
            let (id, caller) = (uuid::Uuid::new_v4().to_string(), source.caller(parts));
            let mut table = self.table();
            let session = self.open(&table, id, caller, message.id().as_ref())?;
            let id = session.id.clone();
            table.legacy.insert(id, Arc::clone(&session));
            return Ok(session);
        }
        if message.kind() == Kind::Malformed {
            let text = unreadable(message);
            return Err(Box::new(error(400, ErrorCode::PARSE_ERROR, text)));
        }
        let text = "no session: send initialize first, then its Mcp-Session-Id with every request";
        let answer = error_response(message.id().as_ref(), ErrorCode::BAD_REQUEST, text, None);
        Err(Box::new(json(400, answer)))
    }

    fn known(&self, parts: &Parts) -> Result<Arc<Session>, Box<Answer>> {
        let Some(id) = parts.headers.get(MCP_SESSION_ID) else {
            let text = "the Mcp-Session-Id header is missing";
            return Err(Box::new(error(400, ErrorCode::BAD_REQUEST, text)));
        };
        let found = id
            .to_str()
            .ok()
            .and_then(|id| self.table().legacy.get(id).cloned());
        found.ok_or_else(|| Box::new(session_not_found(None)))
    }

    fn shared(
        &self,
        source: &RequestSource,
        parts: &Parts,
        asked: Option<&Id>,
    ) -> Result<Arc<Session>, Box<Answer>> {
        let token = parts.headers.get(AUTHORIZATION);
        // Looked up and inserted under one lock: two requests that come at once must not open two servers, of which only
        // one would be in the table.
        let mut table = self.table();
        if let Some(session) = table.shared.get(&token.cloned()) {
            return Ok(Arc::clone(session));
        }
        let session = self.open(&table, String::new(), source.caller(parts), asked)?;
        table.shared.insert(token.cloned(), Arc::clone(&session));
        Ok(session)
    }

    /// Opens a session: a connection in the record, a link to a server, and the pumps between. `asked` is the request
    /// that needs it. The table is locked until the session has been inserted, so that its task, which removes it when
    /// it ends, cannot come first.
    fn open(
        &self,
        table: &Table,
        id: String,
        caller: Arc<Caller>,
        asked: Option<&Id>,
    ) -> Result<Arc<Session>, Box<Answer>> {
        if table.len() >= self.limits.sessions {
            let text = format!(
                "{} sessions are open (--max-sessions)",
                self.limits.sessions
            );
            let answer = error_response(asked, ErrorCode::SESSION_LIMIT, &text, None);
            return Err(Box::new(json(503, answer)));
        }
        let client = Peer::new(Transport::StreamableHttp).called_by(caller);
        let connection = match id.is_empty() {
            true => self.pipeline.connect_shared(client.transport, self.server),
            false => self.pipeline.connect(client.transport, self.server),
        };
        let (sender, reader) = inbox();
        let session = Session::new(id, Arc::clone(&connection), sender);
        let link = Link::new(reader, SessionWriter(Arc::clone(&session)));
        let (dial, options, own) = (Arc::clone(&self.dial), self.carry, Weak::clone(&self.own));
        let running = Arc::clone(&session);
        tokio::spawn(async move {
            run(&running, &connection, link, dial, options).await;
            if let Some(sessions) = own.upgrade() {
                sessions.remove(&running);
            }
        });
        Ok(session)
    }

    fn remove(&self, session: &Arc<Session>) {
        let mut table = self.table();
        table.legacy.remove(&session.id);
        table
            .shared
            .retain(|_, shared| !Arc::ptr_eq(shared, session));
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Handler for Sessions {
    fn handle(
        self: Arc<Self>,
        source: RequestSource,
        request: Request<Incoming>,
    ) -> BoxFuture<'static, Answer> {
        Box::pin(self.answer(source, request))
    }

    fn stop_all(&self) {
        let table = self.table();
        for session in table.legacy.values().chain(table.shared.values()) {
            session.stop.notify_one();
        }
    }

    fn open_count(&self) -> usize {
        self.table().len()
    }
}

impl Table {
    fn len(&self) -> usize {
        self.legacy.len() + self.shared.len()
    }
}

async fn run(
    session: &Arc<Session>,
    connection: &Arc<Connection>,
    client: Link,
    dial: Dial,
    options: CarryOptions,
) {
    let server = match dial(Arc::clone(connection)).await {
        Ok(link) => link,
        Err(end) => Link::dead(end),
    };
    let end = carry(connection, client, server, options, session.stop.notified()).await;
    session.end();
    connection.close(end.text());
}

/// Ends idle sessions.
async fn sweep(sessions: Weak<Sessions>) {
    loop {
        let Some(pause) = sessions
            .upgrade()
            .map(|s| (s.limits.idle / 4).min(Duration::from_secs(30)))
        else {
            return;
        };
        tokio::time::sleep(pause.max(Duration::from_millis(10))).await;
        let Some(sessions) = sessions.upgrade() else {
            return;
        };
        let table = sessions.table();
        for session in table.legacy.values().chain(table.shared.values()) {
            if session.idle() >= sessions.limits.idle {
                session.stop.notify_one();
            }
        }
    }
}

/// What to say of a body that cannot be read.
pub(super) fn unreadable(message: &Message) -> &'static str {
    match is_blank(message.raw()) {
        true => "there is no message in the body",
        false => "the body is no JSON",
    }
}

/// The answer to a request that is larger than allowed.
pub(crate) fn too_large(max: usize) -> Answer {
    let text = format!("a message may have {max} bytes at most (--max-message)");
    error(413, ErrorCode::TOO_LARGE, &text)
}

fn not_allowed(allowed: &'static str) -> Answer {
    let text = format!("this method is not allowed here; use {allowed}");
    let mut answer = error(405, ErrorCode::BAD_REQUEST, &text);
    answer
        .headers_mut()
        .insert(http::header::ALLOW, HeaderValue::from_static(allowed));
    answer
}

#[cfg(test)]
mod tests;
