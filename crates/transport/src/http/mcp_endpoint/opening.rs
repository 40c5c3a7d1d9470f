//! How the sessions of an endpoint begin and end: who gets a place, what runs for it, and what makes room.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use http::header::AUTHORIZATION;
use http::request::Parts;
use mcp_proxy_core::{
    Caller, CarryOptions, ClientStreams, Connection, Dial, Link, NewConnection, Peer, carry,
};
use mcp_proxy_session::RecordEvent;
use mcp_proxy_wire::{ErrorCode, Id, Transport};

use super::table::SessionTable;
use super::{McpEndpoint, ModernClients};
use crate::http::handler::RequestSource;
use crate::http::listener::{HttpResponse, error_answering};
use crate::http::session::{HttpSession, SessionKind, SessionWriter};
use crate::http::session_places::SessionPlaces;
use crate::inbox::inbox;

const MADE_ROOM: &str = "it was idle and made room for a new session (--max-sessions)";
const UNUSED: &str = "nobody used it for as long as --idle-timeout allows";

impl McpEndpoint {
    /// Opens a session: a connection in the record, a link to a server, and the pumps between. `asked` is the request
    /// that needs it. The table is locked until the session has been inserted, so that its task, which removes it when
    /// it ends, cannot come first.
    pub(super) fn open(
        &self,
        table: &mut SessionTable,
        kind: SessionKind,
        caller: Arc<Caller>,
        asked: Option<&Id>,
    ) -> Result<Arc<HttpSession>, Box<HttpResponse>> {
        let full = |text: String| {
            let answer = error_answering(asked, 503, ErrorCode::SESSION_LIMIT, &text);
            Err(Box::new(answer))
        };
        let (most, places) = (self.options.limits.requests, &self.options.places);
        let is_for_one = match kind {
            SessionKind::Request(_) => true,
            SessionKind::Stateless(_) => self.options.modern == ModernClients::OneByOne,
            SessionKind::Legacy(_) | SessionKind::Shared => false,
        };
        let place = match is_for_one {
            true if table.requests.len() >= most => {
                let text = format!("{most} requests without a session are open (--max-requests)");
                return full(text);
            }
            true => None,
            false => {
                let place = places.enter().or_else(|| {
                    let made = self.make_room(table);
                    made.then(|| places.enter()).flatten()
                });
                match place {
                    Some(place) => Some(place),
                    None => {
                        let most = places.max();
                        let text =
                            format!("{most} sessions are open (--max-sessions), and none is idle");
                        return full(text);
                    }
                }
            }
        };
        let client = Peer::new(Transport::StreamableHttp).called_by(caller);
        let (streams, tools) = match kind {
            SessionKind::Shared => (ClientStreams::Shared, Arc::default()),
            SessionKind::Legacy(_) | SessionKind::Stateless(_) => {
                (ClientStreams::FoundById, Arc::default())
            }
            SessionKind::Request(_) => (ClientStreams::FoundById, Arc::clone(&self.tools)),
        };
        let server = self.options.server.clone();
        let connection = self
            .run
            .open(NewConnection::between(client, server).with_streams(streams));
        let (sender, reader) = inbox();
        let is_counted = place.is_some();
        let session = HttpSession::new(kind, Arc::clone(&connection), sender, tools, place);
        let link = Link::new(reader, SessionWriter::new(Arc::clone(&session)));
        let (dial, options, own) = (
            Arc::clone(&self.dial),
            self.options.carry,
            Weak::clone(&self.own),
        );
        let running = Arc::clone(&session);
        let places = is_counted.then(|| Arc::clone(&self.options.places));
        tokio::spawn(async move {
            run(&running, &connection, link, (dial, places), options).await;
            if let Some(sessions) = own.upgrade() {
                sessions.remove(&running);
            }
        });
        Ok(session)
    }

    /// Ends the session that has been idle for longest, if one is idle.
    pub(super) fn end_idle(&self) -> bool {
        self.make_room(&mut self.table())
    }

    fn make_room(&self, table: &mut SessionTable) -> bool {
        let Some(session) = table.longest_idle() else {
            return false;
        };
        let _ = session.end_reason.set(MADE_ROOM);
        self.forget(&session);
        table.end(&session);
        let text = format!(
            "connection c{}, idle for longest, was ended to make room for a new session: --max-sessions is {}",
            session.connection.id,
            self.options.places.max()
        );
        match self.has_made_room.swap(true, Ordering::Relaxed) {
            false => self
                .run
                .report(&format!("{text} (later ones are only recorded)")),
            true => self.run.record_event(&RecordEvent::Note { text: &text }),
        }
        true
    }
}

/// The session of a probed server for a legacy client: the one that its `server/discover` opened, from the same address and
/// with the same token.
pub(super) fn adopt(
    table: &mut SessionTable,
    source: &RequestSource,
    parts: &Parts,
    id: &str,
) -> Option<Arc<HttpSession>> {
    let token = parts.headers.get(AUTHORIZATION).cloned();
    let session = table.shared.get(&token)?;
    let caller = session.connection.client.caller.as_ref()?;
    let is_same = caller.address.map(|address| address.ip()) == Some(source.address.ip());
    if !is_same || session.is_over() || !session.adopt(id) {
        return None;
    }
    table.shared.remove(&token)
}

/// Runs a session to its end. Its server starts when one of `places` is free, if it needs one.
async fn run(
    session: &Arc<HttpSession>,
    connection: &Arc<Connection>,
    client: Link,
    (dial, places): (Dial, Option<Arc<SessionPlaces>>),
    options: CarryOptions,
) {
    let _server_place = match places {
        None => None,
        Some(places) => tokio::select! {
            // A session that was told to end before it had a server needs none.
            biased;
            () = session.stop.notified() => {
                session.end();
                connection.close(session.end_reason.get().unwrap_or(&"stopped"));
                return;
            }
            place = places.server() => place,
        },
    };
    let server = match dial(Arc::clone(connection)).await {
        Ok(link) => link,
        Err(end) => Link::dead(end),
    };
    let end = carry(connection, client, server, options, session.stop.notified()).await;
    session.end();
    connection.close(
        session
            .end_reason
            .get()
            .copied()
            .unwrap_or_else(|| end.text()),
    );
}

/// Ends idle sessions.
pub(super) async fn sweep(sessions: Weak<McpEndpoint>) {
    loop {
        let Some(pause) = sessions
            .upgrade()
            .map(|s| (s.options.limits.idle / 4).min(Duration::from_secs(30)))
        else {
            return;
        };
        tokio::time::sleep(pause.max(Duration::from_millis(10))).await;
        let Some(sessions) = sessions.upgrade() else {
            return;
        };
        let mut table = sessions.table();
        let limit = sessions.options.limits.idle;
        let idle = table.open().filter(|session| session.idle() >= limit);
        let idle: Vec<_> = idle.cloned().collect();
        for session in &idle {
            let _ = session.end_reason.set(UNUSED);
            sessions.forget(session);
            table.end(session);
        }
        sessions.note_idle(&table);
    }
}
