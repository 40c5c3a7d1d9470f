//! Which session belongs to which connection of the record, where HTTP is passed through, and how its client speaks.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::request::Parts;
use http::{HeaderValue, Response};
use mcp_proxy_core::{Connection, Pipeline};
use mcp_proxy_wire::headers::MCP_SESSION_ID;
use mcp_proxy_wire::{Message, Transport};
use rustc_hash::FxHashMap;

use super::posting::LastHead;

/// Sessions whose connection is remembered; beyond that the oldest is forgotten and gets a new number.
const SESSIONS_MAX: usize = 4_096;

/// The sessions of a listener.
#[derive(Default)]
pub struct Known(Mutex<Sessions>);

#[derive(Default)]
struct Sessions {
    sessionless: Option<Session>,
    by_session: FxHashMap<String, Session>,
    age: u64,
}

struct Session {
    age: u64,
    connection: Arc<Connection>,
    head: LastHead,
}

impl Session {
    fn new(connection: Arc<Connection>, age: u64) -> Session {
        Session {
            age,
            connection,
            head: LastHead::default(),
        }
    }

    fn see(&mut self, parts: &Parts) -> Arc<Connection> {
        if self.connection.pipeline.may_speak() {
            self.head.see(parts);
        }
        Arc::clone(&self.connection)
    }
}

impl Known {
    /// A legacy session is a connection of its own, from its `initialize` on; requests without a session share one.
    pub fn connection_of(
        &self,
        pipeline: &Arc<Pipeline>,
        parts: &Parts,
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
            return session.see(parts);
        }
        if message.is_some_and(|message| message.method().as_deref() == Some("initialize")) {
            return pipeline.connect(http, http);
        }
        let shared = sessions
            .sessionless
            .get_or_insert_with(|| Session::new(pipeline.connect(http, http), 0));
        shared.see(parts)
    }

    /// The client has ended a session.
    pub fn end(&self, session: &HeaderValue) {
        let ended = session
            .to_str()
            .ok()
            .and_then(|session| self.lock().by_session.remove(session));
        if let Some(ended) = ended {
            ended.connection.end_replays();
        }
    }

    /// Remembers whose a new session id is.
    pub fn settle<B>(&self, connection: &Arc<Connection>, response: &Response<B>) {
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
        let known = Session::new(Arc::clone(connection), sessions.age);
        sessions.by_session.insert(session.to_owned(), known);
    }

    /// A connection and how its client speaks, as soon as that is known.
    pub fn find(&self, id: u32) -> Option<(Arc<Connection>, LastHead)> {
        let sessions = self.lock();
        let mut all = sessions.by_session.values().chain(&sessions.sessionless);
        let found = all.find(|session| session.connection.id == id && session.head.is_known())?;
        Some((Arc::clone(&found.connection), found.head.clone()))
    }

    fn lock(&self) -> MutexGuard<'_, Sessions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
