//! One client session that ends here: its streams, and the link the pumps see.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use mcp_proxy_core::{Connection, LaggingStream, LinkEnd, PipelineOutput};
use mcp_proxy_wire::{
    Body, Direction, ErrorCode, ExchangeId, Frame, Id, Kind, Message, Origin, StreamId,
    TransportEnvelope, error_response,
};
use rustc_hash::FxHashMap;
use tokio::sync::{Notify, OnceCell};

use super::event_stream::{StreamItem, StreamMessage};
use super::resume_buffer::ResumeBuffer;
use super::session_memory::SavedOpening;
use super::session_places::SessionPlace;
use super::stream_queue::{StreamReceiver, StreamSender, stream_channel};
use super::stream_router::{PostExpectation, StreamRouter};
use super::tool_headers::ToolHeaders;
use crate::inbox::{InboxItem, InboxSender};

/// A session of one or several clients with a server.
pub(crate) struct HttpSession {
    /// Whose it is.
    pub kind: SessionKind,
    /// The connection in the record.
    pub connection: Arc<Connection>,
    /// Frames on their way to the server.
    pub inbox: InboxSender,
    /// Told to end it.
    pub stop: Notify,
    /// Which arguments its server wants in headers (modern clients).
    pub tools: Arc<ToolHeaders>,
    /// Its `Mcp-Session-Id`, if it was [`SessionKind::Shared`] and a legacy client has it to itself now.
    adopted: OnceLock<String>,
    /// It was open in an earlier run of the program.
    pub restored: OnceLock<RestoredOpening>,
    /// Why it was told to end, where that is not plain.
    pub end_reason: OnceLock<&'static str>,
    state: Mutex<HttpSessionState>,
}

/// Whose a session is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SessionKind {
    /// A legacy client's, with its `Mcp-Session-Id`.
    Legacy(String),
    /// Shared by all modern clients that show the same token: each request is a stream of its own.
    Shared,
    /// One request of a modern client.
    Request(ExchangeId),
    /// One POST of a legacy client that has no session.
    Stateless(ExchangeId),
}

/// What the client of a restored session said when it opened it, in an earlier run of the program.
pub(crate) struct RestoredOpening {
    pub opening: SavedOpening,
    /// The server has been told.
    pub told: OnceCell<()>,
}

struct HttpSessionState {
    router: StreamRouter,
    replay: ResumeBuffer,
    /// Notifications were lost because there was no stream for them.
    behind: Option<LaggingStream>,
    streams: FxHashMap<StreamId, OpenStream>,
    /// Counts the streams that were opened.
    opened: u64,
    last_used: Instant,
    ended: bool,
    /// What is known of the server's era, on a shared session.
    probe: EraProbe,
    /// Counted until it is told to end.
    place: Option<SessionPlace>,
}

/// A stream that a client reads.
#[derive(Clone)]
struct OpenStream {
    /// Tells it from another under the same id: the client may come back for a stream before its old connection is found
    /// to be gone, and that must not close the new one.
    number: u64,
    sender: StreamSender,
}

impl HttpSessionState {
    /// The number of a new stream.
    fn next_number(&mut self) -> u64 {
        self.opened += 1;
        self.opened
    }

    /// Puts a stream in its place, where an older one ends; its number.
    fn insert(&mut self, stream: StreamId, sender: StreamSender) -> u64 {
        let number = self.next_number();
        self.streams.insert(stream, OpenStream { number, sender });
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
pub(crate) struct PostStream {
    /// Its messages.
    pub messages: StreamReceiver,
    /// The number of its stream.
    pub number: u64,
    /// What is awaited.
    pub expects: PostExpectation,
}

/// A stream that a client came back for.
pub(crate) struct ResumedStream {
    /// What it missed.
    pub missed: Vec<StreamMessage>,
    /// What is still to come, if the stream is that of a POST that is not over: its exchange, the stream's number, and its
    /// messages.
    pub live: Option<(ExchangeId, u64, StreamReceiver)>,
}

impl HttpSession {
    /// A session whose frames go to `inbox`.
    pub(crate) fn new(
        kind: SessionKind,
        connection: Arc<Connection>,
        inbox: InboxSender,
        tools: Arc<ToolHeaders>,
        place: Option<SessionPlace>,
    ) -> Arc<HttpSession> {
        Arc::new(HttpSession {
            kind,
            connection,
            inbox,
            stop: Notify::new(),
            tools,
            adopted: OnceLock::new(),
            restored: OnceLock::new(),
            end_reason: OnceLock::new(),
            state: Mutex::new(HttpSessionState {
                router: StreamRouter::default(),
                replay: ResumeBuffer::default(),
                behind: None,
                streams: FxHashMap::default(),
                opened: 0,
                last_used: Instant::now(),
                ended: false,
                probe: EraProbe::Asked,
                place,
            }),
        })
    }

    /// Opens a POST's stream before its message is forwarded, so that no answer can come too early.
    pub(crate) fn open_post(&self, exchange: ExchangeId, message: &Message) -> Option<PostStream> {
        self.open_post_in(&mut self.state(), exchange, message)
    }

    /// The same for a modern client, unless a legacy client has taken the session over in the meantime.
    pub(crate) fn open_modern_post(
        &self,
        exchange: ExchangeId,
        message: &Message,
    ) -> Option<PostStream> {
        let mut state = self.state();
        match self.legacy_id() {
            Some(_) => None,
            None => self.open_post_in(&mut state, exchange, message),
        }
    }

    fn open_post_in(
        &self,
        state: &mut HttpSessionState,
        exchange: ExchangeId,
        message: &Message,
    ) -> Option<PostStream> {
        if state.ended {
            return None;
        }
        state.last_used = Instant::now();
        let awaits = if self.is_shared() {
            if message.method().as_deref() != Some(DISCOVER) {
                state.probe = EraProbe::Used;
            }
            match message.kind() {
                Kind::Request => PostExpectation::Answers,
                _ => PostExpectation::Nothing,
            }
        } else {
            state.router.post(exchange, message)
        };
        let waiting = match awaits {
            PostExpectation::Answers => state.router.take_waiting(),
            PostExpectation::UnparsedBody | PostExpectation::Nothing => Vec::new(),
        };
        let (sender, messages) = self.stream(state, exchange.into(), waiting);
        let number = match awaits {
            PostExpectation::Nothing => state.next_number(),
            PostExpectation::Answers | PostExpectation::UnparsedBody => {
                state.insert(exchange.into(), sender)
            }
        };
        Some(PostStream {
            messages,
            number,
            expects: awaits,
        })
    }

    /// Opens the GET stream; an older one ends.
    pub(crate) fn open_get(&self) -> Option<(u64, StreamReceiver)> {
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
    pub(crate) fn resume(&self, last_event_id: &str) -> Option<ResumedStream> {
        let mut state = self.state();
        if state.ended {
            return None;
        }
        let (stream, missed) = state.replay.events_after(last_event_id)?;
        let finished = missed.iter().any(|sent| sent.last);
        let missed = missed
            .into_iter()
            .map(|sent| StreamMessage {
                event_id: Some(super::resume_buffer::event_id(sent.stream, sent.number)),
                data: sent.data,
                last: sent.last,
                sequence: None,
            })
            .collect();
        let live = match stream {
            StreamId::Exchange(exchange) if !finished => {
                let (sender, messages) = stream_channel(Some(Arc::clone(&self.connection)), []);
                let number = state.insert(stream, sender);
                state.router.post_back(exchange);
                Some((exchange, number, messages))
            }
            _ => None,
        };
        Some(ResumedStream { missed, live })
    }

    /// The answer to a POST takes long, and its stream begins without it. The id of its first event, with which its client
    /// can come back; `None` if the answer has come meanwhile.
    pub(crate) fn begin_stream(&self, exchange: ExchangeId) -> Option<String> {
        let mut state = self.state();
        let stream = StreamId::Exchange(exchange);
        let is_open = state.streams.contains_key(&stream);
        is_open.then(|| state.replay.begin(stream))
    }

    /// The client of a POST's stream went away, unless it has come back for it.
    pub(crate) fn stream_closed(&self, exchange: ExchangeId, number: u64) {
        let mut state = self.state();
        state.last_used = Instant::now();
        if state.remove(exchange.into(), number) {
            state.router.post_left(exchange);
        }
    }

    /// It is used, although no stream is open.
    pub(crate) fn touch(&self) {
        self.state().last_used = Instant::now();
    }

    /// A GET stream's client went away, unless a newer one has replaced it.
    pub(crate) fn get_closed(&self, number: u64) {
        let mut state = self.state();
        if state.remove(StreamId::Standing, number) {
            state.router.get_closed();
        }
    }

    /// A POST that awaited something doubtful is over.
    pub(crate) fn forget_post(&self, exchange: ExchangeId) {
        let mut state = self.state();
        state.router.post_closed(exchange);
        state.streams.remove(&StreamId::Exchange(exchange));
    }

    /// The client cancelled a request: its POST ends, if it awaits nothing else.
    pub(crate) fn cancelled(&self, request: &Id) {
        let mut state = self.state();
        if let Some(exchange) = state.router.cancel(request)
            && let Some(open) = state.streams.remove(&exchange.into())
        {
            open.sender.try_send(StreamItem::Ended);
        }
    }

    /// The client ended the session: it awaits nothing on its POSTs.
    pub(crate) fn end_posts(&self) {
        let mut state = self.state();
        state.streams.retain(|stream, open| {
            let is_post = stream.exchange().is_some();
            if is_post {
                open.sender.try_send(StreamItem::Ended);
            }
            !is_post
        });
    }

    /// Told to end: its place is free for another.
    pub(crate) fn leave(&self) {
        let place = self.state().place.take();
        drop(place);
        self.stop.notify_one();
    }

    /// The server side is over: every stream ends, no new one opens.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.ended = true;
        state.place = None;
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

    /// Whether it takes no more messages: its server is gone.
    pub(crate) fn is_over(&self) -> bool {
        self.inbox.is_closed() || self.state().ended
    }

    /// Records a message that is turned away by a rule of the transport, and the answer to it.
    pub(crate) fn refuse(&self, frame: Frame, code: ErrorCode, text: &str) {
        let (stream, id) = match &frame.body {
            Body::Message(message) => (frame.stream, message.id()),
            _ => return,
        };
        let now = self.connection.run.now();
        let mut passed = PipelineOutput::default();
        // The pipeline records; what it would pass on is not passed on.
        let mut pipeline = self
            .connection
            .record_only_pipeline(Direction::ClientToServer);
        if pipeline.pass(&mut vec![frame], now, &mut passed).is_err() {
            return;
        }
        let recorded = passed.forward.first().and_then(|out| out.frame().sequence);
        self.connection
            .record_proxy_verdict(recorded, "refuse", text);
        let answer = error_response(id.as_ref(), code, text, None);
        drop(
            self.connection
                .author(Direction::ServerToClient, stream, answer, now),
        );
    }

    /// How long nobody has used it; zero while a stream is open.
    pub(crate) fn idle(&self) -> Duration {
        let state = self.state();
        match state.streams.is_empty() {
            true => state.last_used.elapsed(),
            false => Duration::ZERO,
        }
    }

    /// Since when it could end without anybody missing it: no stream is open, and no request. `None` if it could not, or
    /// has not been used yet.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        let state = self.state();
        let is_idle =
            state.streams.is_empty() && !state.router.has_open_posts() && state.opened > 0;
        is_idle.then_some(state.last_used)
    }

    /// Whether several clients share it.
    pub(crate) fn is_shared(&self) -> bool {
        self.kind == SessionKind::Shared && self.adopted.get().is_none()
    }

    /// Its `Mcp-Session-Id`, if it has one.
    pub(crate) fn legacy_id(&self) -> Option<&str> {
        match &self.kind {
            SessionKind::Legacy(id) => Some(id),
            SessionKind::Shared => self.adopted.get().map(String::as_str),
            SessionKind::Request(_) | SessionKind::Stateless(_) => None,
        }
    }

    /// Whether a client can come back for what it missed. 2026-07-28 has no such thing.
    fn is_resumable(&self) -> bool {
        self.legacy_id().is_some()
    }

    /// A request of a modern client is over: it has its answer, or its client has gone. A server of its own ends with it.
    pub(crate) fn request_over(&self) {
        if let SessionKind::Request(_) = self.kind {
            // A full inbox means a server that reads nothing; it is stopped then.
            let end = InboxItem::End(LinkEnd::Closed);
            if self.inbox.try_send(end).is_err() {
                self.stop.notify_one();
            }
        }
    }

    /// What tells the server that the client of this exchange has gone before it had its answer.
    pub(crate) fn cancel(&self, exchange: ExchangeId, id: &Id) -> Option<Message> {
        match self.kind {
            SessionKind::Shared => self.connection.cancel(exchange),
            SessionKind::Request(_) if self.connection.has_open(Direction::ClientToServer) => {
                Some(cancelled(id))
            }
            SessionKind::Request(_) | SessionKind::Legacy(_) | SessionKind::Stateless(_) => None,
        }
    }

    /// Notes that a server's message reached nobody.
    fn undelivered(&self, sequence: Option<u64>, why: &str) {
        match sequence {
            Some(sequence) => self.connection.undelivered(&[sequence], why),
            None => self.note(&format!("a message was not delivered: {why}")),
        }
    }

    /// A notification is lost because the client does not read. The operator is told once.
    fn lose_notification(&self) {
        if self.connection.lost_notifications().add() {
            self.connection
                .warn("the client does not read fast enough, so it loses notifications");
        }
    }

    fn note(&self, text: &str) {
        self.connection.note(text);
    }

    fn state(&self) -> MutexGuard<'_, HttpSessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closing the stream is how a modern client cancels; a server that is not on HTTP gets a `notifications/cancelled`.
fn cancelled(id: &Id) -> Message {
    let id = String::from_utf8_lossy(id.token());
    Message::parse(format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"the client closed its stream"}}}}"#
    ))
}

/// A frame for the server with its HTTP head.
pub(crate) fn frame(
    stream: impl Into<StreamId>,
    parts: http::request::Parts,
    message: Message,
) -> Frame {
    let envelope = TransportEnvelope::Request(Box::new(parts));
    Frame::new(stream, Origin::Client, envelope, Body::Message(message))
}

mod era_probe;
mod routing;
mod writer;

use era_probe::{DISCOVER, EraProbe};
pub(crate) use writer::SessionWriter;

#[cfg(test)]
mod tests;
