//! Which session belongs to which connection of the record, where HTTP is passed through, and how its client speaks.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::request::Parts;
use http::{HeaderValue, Response};
use mcp_proxy_core::replay::ReplayError;
use mcp_proxy_core::{Connection, LinkEnd, Peer, ProxyRun};
use mcp_proxy_wire::headers::MCP_SESSION_ID;
use mcp_proxy_wire::{ExchangeId, Message, Transport};
use rustc_hash::FxHashMap;

use super::handler::RequestSource;
use super::request_heads::{RecentRequestHeads, RequestHead};

/// Sessions whose connection is remembered; beyond that the oldest is forgotten and gets a new number.
const SESSIONS_MAX: usize = 4_096;

/// The sessions of a listener.
#[derive(Default)]
pub(super) struct SessionConnections(Mutex<KnownSessions>);

#[derive(Default)]
struct KnownSessions {
    sessionless: Option<KnownSession>,
    by_session: FxHashMap<String, KnownSession>,
    age: u64,
}

struct KnownSession {
    age: u64,
    connection: Arc<Connection>,
    heads: RecentRequestHeads,
}

impl KnownSession {
    fn new(connection: Arc<Connection>, age: u64, heads: RecentRequestHeads) -> KnownSession {
        KnownSession {
            age,
            connection,
            heads,
        }
    }

    fn remember(&mut self, exchange: ExchangeId, parts: &Parts) -> Arc<Connection> {
        if self.connection.run.may_inject() {
            self.heads.remember(exchange, parts);
        }
        Arc::clone(&self.connection)
    }
}

impl SessionConnections {
    /// A legacy session is a connection of its own, from its `initialize` on; requests without a session share one.
    pub(super) fn connection_of(
        &self,
        run: &Arc<ProxyRun>,
        exchange: ExchangeId,
        (source, parts): (&RequestSource, &Parts),
        message: Option<&Message>,
    ) -> Arc<Connection> {
        let http = Transport::StreamableHttp;
        let mut sessions = self.lock();
        if let Some(session) = parts
            .headers
            .get(MCP_SESSION_ID)
            .and_then(|value| value.to_str().ok())
            && let Some(session) = sessions.by_session.get_mut(session)
        {
            return session.remember(exchange, parts);
        }
        if message.is_some_and(|message| message.method().as_deref() == Some("initialize")) {
            let client = Peer::new(http).called_by(source.caller(parts));
            return run.connect(client, http);
        }
        // Nobody in particular opened this one: its clients have nothing in common.
        let shared = sessions.sessionless.get_or_insert_with(|| {
            KnownSession::new(
                run.connect(http, http),
                0,
                RecentRequestHeads::Shared(VecDeque::new()),
            )
        });
        shared.remember(exchange, parts)
    }

    /// The client has ended a session.
    pub(super) fn end(&self, session: &HeaderValue) {
        let ended = session
            .to_str()
            .ok()
            .and_then(|session| self.lock().by_session.remove(session));
        if let Some(ended) = ended {
            ended.connection.end_replays();
        }
    }

    /// Remembers whose a new session id is.
    pub(super) fn remember_session<B>(&self, connection: &Arc<Connection>, response: &Response<B>) {
        let session = response.headers().get(MCP_SESSION_ID);
        let Some(session) = session.and_then(|session| session.to_str().ok()) else {
            return;
        };
        let mut sessions = self.lock();
        if sessions.by_session.contains_key(session) {
            return;
        }
        if sessions.by_session.len() >= SESSIONS_MAX {
            let oldest = sessions
                .by_session
                .iter()
                .min_by_key(|(_, session)| session.age);
            if let Some(oldest) = oldest.map(|(session, _)| session.clone()) {
                sessions.by_session.remove(&oldest);
            }
        }
        sessions.age += 1;
        let known = KnownSession::new(
            Arc::clone(connection),
            sessions.age,
            RecentRequestHeads::OneClient(None),
        );
        sessions.by_session.insert(session.to_owned(), known);
    }

    /// A connection whose session is open and on which a client has spoken.
    pub(super) fn find(&self, id: u32) -> Option<Arc<Connection>> {
        let sessions = self.lock();
        let found = sessions.by_connection(id)?;
        Some(Arc::clone(&found.connection))
    }

    /// How the client speaks that sent what came by an exchange of a connection.
    pub(super) fn head(
        &self,
        id: u32,
        like: Option<ExchangeId>,
    ) -> Result<Arc<RequestHead>, ReplayError> {
        let sessions = self.lock();
        let found = sessions.by_connection(id);
        found.map_or(Err(ReplayError::Gone(LinkEnd::Closed)), |found| {
            found.heads.head_for_exchange(like)
        })
    }

    fn lock(&self) -> MutexGuard<'_, KnownSessions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownSessions {
    fn by_connection(&self, id: u32) -> Option<&KnownSession> {
        let mut all = self.by_session.values().chain(&self.sessionless);
        all.find(|session| session.connection.id == id && session.heads.is_known())
    }
}
