//! One client session that ends here: its streams, and the link the pumps see.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mcp_proxy_core::{Connection, LinkEnd, Passed};
use mcp_proxy_wire::{
    Body, Carriage, Direction, ErrorCode, ExchangeId, Frame, Id, Kind, Message, Origin, StreamId,
    error_response,
};
use rustc_hash::FxHashMap;
use tokio::sync::Notify;

use super::outlet::{Messages, Outlet, outlet};
use super::replay::Replay;
use super::router::{Awaits, Router};
use super::stream::StreamMessage;
use super::tool_headers::ToolHeaders;
use crate::inbox::{Arrival, Inbox};

/// A session of one or several clients with a server.
pub struct Session {
    /// Whose it is.
    pub kind: SessionKind,
    /// The connection in the record.
    pub connection: Arc<Connection>,
    /// Frames on their way to the server.
    pub inbox: Inbox,
    /// Told to end it.
    pub stop: Notify,
    /// Which arguments its server wants in headers (modern clients).
    pub tools: Arc<ToolHeaders>,
    state: Mutex<State>,
}

/// Whose a session is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionKind {
    /// A legacy client's, with its `Mcp-Session-Id`.
    Legacy(String),
    /// Shared by all modern clients that show the same token: each request is a stream of its own.
    Shared,
    /// One request of a modern client.
    Request(ExchangeId),
}

struct State {
    router: Router,
    replay: Replay,
    streams: FxHashMap<StreamId, OpenStream>,
    /// Counts the streams that were opened.
    opened: u64,
    last_used: Instant,
    ended: bool,
}

/// A stream that a client reads.
#[derive(Clone)]
struct OpenStream {
    /// Tells it from another under the same id: the client may come back for a stream before its old connection is found
    /// to be gone, and that must not close the new one.
    number: u64,
    outlet: Outlet,
}

impl State {
    /// The number of a new stream.
    fn next_number(&mut self) -> u64 {
        self.opened += 1;
        self.opened
    }

    /// Puts a stream in its place, where an older one ends; its number.
    fn insert(&mut self, stream: StreamId, outlet: Outlet) -> u64 {
        let number = self.next_number();
        self.streams.insert(stream, OpenStream { number, outlet });
        number
    }

    /// Removes a stream, unless another is in its place. Whether nobody reads it now.
    fn remove(&mut self, stream: StreamId, number: u64) -> bool {
        let is_other = |open: &OpenStream| open.number != number;
        if self.streams.get(&stream).is_some_and(is_other) {
            return false;
        }
        self.streams.remove(&stream);
        true
    }
}

/// A POST as the session sees it.
pub struct Opened {
    /// Its messages.
    pub messages: Messages,
    /// The number of its stream.
    pub number: u64,
    /// What is awaited.
    pub awaits: Awaits,
}

/// A stream that a client came back for.
pub struct Resumed {
    /// What it missed.
    pub missed: Vec<StreamMessage>,
    /// What is still to come, if the stream is that of a POST that is not over: its exchange, the stream's number, and its
    /// messages.
    pub live: Option<(ExchangeId, u64, Messages)>,
}

impl Session {
    /// A session whose frames go to `inbox`.
    pub fn new(
        kind: SessionKind,
        connection: Arc<Connection>,
        inbox: Inbox,
        tools: Arc<ToolHeaders>,
    ) -> Arc<Session> {
        Arc::new(Session {
            kind,
            connection,
            inbox,
            stop: Notify::new(),
            tools,
            state: Mutex::new(State {
                router: Router::default(),
                replay: Replay::default(),
                streams: FxHashMap::default(),
                opened: 0,
                last_used: Instant::now(),
                ended: false,
            }),
        })
    }

    /// Opens a POST's stream before its message goes on, so that no answer can come too early.
    pub fn open_post(&self, exchange: ExchangeId, message: &Message) -> Option<Opened> {
        let mut state = self.state();
        if state.ended {
            return None;
        }
        state.last_used = Instant::now();
        let awaits = if self.is_shared() {
            match message.kind() {
                Kind::Request => Awaits::Answers,
                _ => Awaits::Nothing,
            }
        } else {
            state.router.post(exchange, message)
        };
        let waiting = match awaits {
            Awaits::Answers => state.router.take_waiting(),
            Awaits::Blind | Awaits::Nothing => Vec::new(),
        };
        let (sender, messages) = self.stream(&mut state, exchange.into(), waiting);
        let number = match awaits {
            Awaits::Nothing => state.next_number(),
            Awaits::Answers | Awaits::Blind => state.insert(exchange.into(), sender),
        };
        Some(Opened {
            messages,
            number,
            awaits,
        })
    }

    /// Opens the GET stream; an older one ends.
    pub fn open_get(&self) -> Option<(u64, Messages)> {
        let mut state = self.state();
        if state.ended {
            return None;
        }
        state.last_used = Instant::now();
        let waiting = state.router.get_opened();
        let (sender, messages) = self.stream(&mut state, StreamId::Standing, waiting);
        Some((state.insert(StreamId::Standing, sender), messages))
    }

    /// A client is back with `Last-Event-ID`: what it missed, and the stream continues here. `None`: unknown id, or the
    /// session has ended.
    pub fn resume(&self, last_event_id: &str) -> Option<Resumed> {
        let mut state = self.state();
        if state.ended {
            return None;
        }
        let (stream, missed) = state.replay.after(last_event_id)?;
        let finished = missed.iter().any(|sent| sent.last);
        let missed = missed
            .into_iter()
            .map(|sent| StreamMessage {
                event_id: Some(super::replay::event_id(sent.stream, sent.number)),
                data: sent.data,
                last: sent.last,
                sequence: None,
            })
            .collect();
        let live = match stream {
            StreamId::Exchange(exchange) if !finished => {
                let (sender, messages) = outlet(Some(Arc::clone(&self.connection)), []);
                let number = state.insert(stream, sender);
                state.router.post_back(exchange);
                Some((exchange, number, messages))
            }
            _ => None,
        };
        Some(Resumed { missed, live })
    }

    /// The client of a POST's stream went away, unless it has come back for it.
    pub fn stream_closed(&self, exchange: ExchangeId, number: u64) {
        let mut state = self.state();
        state.last_used = Instant::now();
        if state.remove(exchange.into(), number) {
            state.router.post_left(exchange);
        }
    }

    /// It is used, although no stream is open.
    pub fn touch(&self) {
        self.state().last_used = Instant::now();
    }

    /// A GET stream's client went away, unless a newer one has replaced it.
    pub fn get_closed(&self, number: u64) {
        let mut state = self.state();
        if state.remove(StreamId::Standing, number) {
            state.router.get_closed();
        }
    }

    /// A POST that awaited something doubtful is over.
    pub fn forget_post(&self, exchange: ExchangeId) {
        let mut state = self.state();
        state.router.post_closed(exchange);
        state.streams.remove(&StreamId::Exchange(exchange));
    }

    /// The server side is over: every stream ends, no new one opens.
    pub fn end(&self) {
        let mut state = self.state();
        state.ended = true;
        state.streams.clear();
        let unread = state.router.take_waiting();
        drop(state);
        let unread: Vec<u64> = unread
            .iter()
            .filter_map(|waiting| waiting.sequence)
            .collect();
        self.connection.undelivered(
            &unread,
            "the session ended before its client opened a stream",
        );
    }

    /// Records a message that is turned away by a rule of the transport, and the answer to it.
    pub fn refuse(&self, frame: Frame, code: ErrorCode, text: &str) {
        let (stream, id) = match &frame.body {
            Body::Whole(message) => (frame.stream, message.id()),
            _ => return,
        };
        let now = self.connection.pipeline.now();
        let mut passed = Passed::default();
        // The lane records; what it would pass on is not passed on.
        let mut lane = self.connection.record_lane(Direction::ClientToServer);
        if lane.pass(&mut vec![frame], now, &mut passed).is_err() {
            return;
        }
        let recorded = passed.on.first().and_then(|out| out.frame().sequence);
        self.connection.act(recorded, "refuse", text);
        let answer = error_response(id.as_ref(), code, text, None);
        drop(
            self.connection
                .author(Direction::ServerToClient, stream, answer, now),
        );
    }

    /// How long nobody has used it; zero while a stream is open.
    pub fn idle(&self) -> Duration {
        let state = self.state();
        match state.streams.is_empty() {
            true => state.last_used.elapsed(),
            false => Duration::ZERO,
        }
    }

    /// Whether several clients share it.
    pub fn is_shared(&self) -> bool {
        self.kind == SessionKind::Shared
    }

    /// Whether a client can come back for what it missed. 2026-07-28 has no such thing.
    fn is_resumable(&self) -> bool {
        matches!(self.kind, SessionKind::Legacy(_))
    }

    /// A request of a modern client is over: it has its answer, or its client has gone. A server of its own ends with it.
    pub fn request_over(&self) {
        if let SessionKind::Request(_) = self.kind {
            // A full inbox means a server that reads nothing; it is stopped then.
            let end = Arrival::End(LinkEnd::Closed);
            if self.inbox.try_send(end).is_err() {
                self.stop.notify_one();
            }
        }
    }

    /// What tells the server that the client of this exchange has gone before it had its answer.
    pub fn cancel(&self, exchange: ExchangeId, id: &Id) -> Option<Message> {
        match self.kind {
            SessionKind::Shared => self.connection.cancel(exchange),
            SessionKind::Request(_) if self.connection.has_open(Direction::ClientToServer) => {
                Some(cancelled(id))
            }
            SessionKind::Request(_) | SessionKind::Legacy(_) => None,
        }
    }

    /// Notes that a server's message reached nobody.
    fn undelivered(&self, sequence: Option<u64>, why: &str) {
        match sequence {
            Some(sequence) => self.connection.undelivered(&[sequence], why),
            None => self.note(&format!("a message was not delivered: {why}")),
        }
    }

    fn note(&self, text: &str) {
        self.connection.note(text);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closing the stream is how a modern client cancels; a server that is not on HTTP is told in words.
fn cancelled(id: &Id) -> Message {
    let id = String::from_utf8_lossy(id.token());
    Message::parse(format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"the client closed its stream"}}}}"#
    ))
}

/// A frame for the server with its HTTP head.
pub fn frame(stream: impl Into<StreamId>, parts: http::request::Parts, message: Message) -> Frame {
    let carriage = Carriage::Request(Box::new(parts));
    Frame::new(stream, Origin::Client, carriage, Body::Whole(message))
}

mod placing;
mod writer;

pub use writer::SessionWriter;

#[cfg(test)]
mod tests;
