//! One client session that ends here: its streams, and the link the pumps see.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use mcp_proxy_core::{BoxFuture, Connection, FrameWriter, LinkEnd, Passed};
use mcp_proxy_wire::{
    Body, Carriage, Direction, ErrorCode, ExchangeId, Frame, Kind, Message, error_response,
};
use rustc_hash::FxHashMap;
use tokio::sync::Notify;

use super::outlet::{Messages, Outlet, outlet};
use super::replay::{GET_STREAM, Replay};
use super::router::{Awaits, Router, Way};
use super::stream::Out;
use super::tool_headers::ToolHeaders;
use crate::inbox::Inbox;

/// A client that takes nothing from a stream for this long loses it; its session goes on.
const STREAM_STALL: Duration = Duration::from_secs(60);

/// A session: a legacy one of one client, or the shared one of the clients without a session.
pub struct Session {
    /// The `Mcp-Session-Id`; empty for a shared one.
    pub id: String,
    /// The connection in the record.
    pub connection: Arc<Connection>,
    /// Frames on their way to the server.
    pub inbox: Inbox,
    /// Told to end it.
    pub stop: Notify,
    /// Which arguments its server wants in headers (modern clients).
    pub tools: ToolHeaders,
    state: Mutex<State>,
}

struct State {
    router: Router,
    replay: Replay,
    streams: FxHashMap<ExchangeId, Outlet>,
    /// Which GET holds [`GET_STREAM`], so that a replaced one does not close its successor.
    get: u64,
    last_used: Instant,
    ended: bool,
}

/// A POST as the session sees it.
pub struct Opened {
    /// Its messages.
    pub messages: Messages,
    /// What is awaited.
    pub awaits: Awaits,
}

impl Session {
    /// A session whose frames go to `inbox`.
    pub fn new(id: String, connection: Arc<Connection>, inbox: Inbox) -> Arc<Session> {
        Arc::new(Session {
            id,
            connection,
            inbox,
            stop: Notify::new(),
            tools: ToolHeaders::default(),
            state: Mutex::new(State {
                router: Router::default(),
                replay: Replay::default(),
                streams: FxHashMap::default(),
                get: 0,
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
        let (sender, messages) = self.stream(&mut state, exchange, waiting);
        if awaits != Awaits::Nothing {
            state.streams.insert(exchange, sender);
        }
        Some(Opened { messages, awaits })
    }

    /// Opens the GET stream; an older one ends.
    pub fn open_get(&self) -> Option<(u64, Messages)> {
        let mut state = self.state();
        if state.ended {
            return None;
        }
        state.last_used = Instant::now();
        state.get += 1;
        let waiting = state.router.get_opened();
        let (sender, messages) = self.stream(&mut state, GET_STREAM, waiting);
        state.streams.insert(GET_STREAM, sender);
        Some((state.get, messages))
    }

    /// A client is back with `Last-Event-ID`: what it missed, and the stream goes on here. `None`: unknown id.
    pub fn resume(&self, last_event_id: &str) -> Option<(Vec<Out>, Option<Messages>, ExchangeId)> {
        let mut state = self.state();
        let (stream, missed) = state.replay.after(last_event_id)?;
        let finished = missed.iter().any(|sent| sent.last);
        let outs = missed
            .into_iter()
            .map(|sent| Out {
                event_id: Some(super::replay::event_id(sent.stream, sent.number)),
                data: sent.data,
                last: sent.last,
            })
            .collect();
        if finished || stream == GET_STREAM {
            return Some((outs, None, stream));
        }
        let (sender, messages) = outlet([]);
        state.streams.insert(stream, sender);
        Some((outs, Some(messages), stream))
    }

    /// A stream's client went away.
    pub fn stream_closed(&self, exchange: ExchangeId) {
        let mut state = self.state();
        state.last_used = Instant::now();
        state.streams.remove(&exchange);
    }

    /// A GET stream's client went away, unless a newer one has replaced it.
    pub fn get_closed(&self, which: u64) {
        let mut state = self.state();
        if state.get == which {
            state.streams.remove(&GET_STREAM);
            state.router.get_closed();
        }
    }

    /// A POST that awaited something doubtful is over.
    pub fn forget_post(&self, exchange: ExchangeId) {
        let mut state = self.state();
        state.router.post_closed(exchange);
        state.streams.remove(&exchange);
    }

    /// The server side is over: every stream ends, no new one opens.
    pub fn end(&self) {
        let mut state = self.state();
        state.ended = true;
        state.streams.clear();
    }

    /// Records a message that is turned away by a rule of the transport, and the answer to it.
    pub fn refuse(&self, frame: Frame, code: ErrorCode, text: &str) {
        let (exchange, id) = match &frame.body {
            Body::Whole(message) => (frame.exchange, message.id()),
            _ => return,
        };
        let now = self.connection.pipeline.now();
        let mut passed = Passed::default();
        // The lane records; what it would pass on is not passed on.
        let mut lane = self.connection.record_lane(Direction::ClientToServer);
        if lane.pass(&mut vec![frame], now, &mut passed).is_err() {
            return;
        }
        self.connection
            .act(passed.sequences.first().copied().flatten(), "refuse", text);
        let answer = error_response(id.as_ref(), code, text, None);
        drop(
            self.connection
                .author(Direction::ServerToClient, exchange, answer, now),
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

    /// Whether it is the one for requests without a session.
    pub fn is_shared(&self) -> bool {
        self.id.is_empty()
    }

    /// Finds the stream for a frame from the server, and what to put on it.
    fn place(&self, frame: Frame) -> Option<(ExchangeId, Option<Outlet>, Out)> {
        let message = match frame.body {
            Body::Whole(message) => message,
            Body::Withheld(message) => return self.withhold(frame.exchange, &message),
            _ => return None,
        };
        let mut state = self.state();
        if self.is_shared() {
            let last = matches!(message.kind(), Kind::Response | Kind::Error);
            let sender = match last {
                true => state.streams.remove(&frame.exchange),
                false => state.streams.get(&frame.exchange).cloned(),
            };
            let out = Out {
                data: message.into_raw(),
                event_id: None,
                last,
            };
            return Some((frame.exchange, sender, out));
        }
        let own = match frame.carriage {
            Carriage::Message => state.router.refuse(frame.exchange),
            _ => None,
        };
        let (stream, last) = match own.unwrap_or_else(|| state.router.route(&message)) {
            Way::Post { exchange, last } => (exchange, last),
            Way::Get => (GET_STREAM, false),
            Way::Waiting => return None,
            Way::Lost => {
                drop(state);
                self.note("a server message was lost: no stream is open and 1 MiB waits already");
                return None;
            }
        };
        let sender = match last {
            true => state.streams.remove(&stream),
            false => state.streams.get(&stream).cloned(),
        };
        let out = self.stored(&mut state, stream, message.into_raw(), last);
        Some((stream, sender, out))
    }

    /// A message that is not let go on ends the exchange of the client that waits for it.
    fn withhold(
        &self,
        exchange: ExchangeId,
        message: &Message,
    ) -> Option<(ExchangeId, Option<Outlet>, Out)> {
        let mut state = self.state();
        let exchange = match message.kind() {
            Kind::Request if exchange != GET_STREAM => exchange,
            Kind::Response | Kind::Error if self.is_shared() => exchange,
            Kind::Response | Kind::Error => match state.router.route(message) {
                Way::Post { exchange, .. } => exchange,
                _ => return None,
            },
            _ => return None,
        };
        state.router.post_closed(exchange);
        let outlet = state.streams.remove(&exchange);
        Some((exchange, outlet, Out::nothing()))
    }

    /// A stream that begins with what waited for one.
    fn stream(
        &self,
        state: &mut State,
        stream: ExchangeId,
        waiting: Vec<Message>,
    ) -> (Outlet, Messages) {
        let waiting = waiting.into_iter();
        outlet(waiting.map(|message| self.stored(state, stream, message.into_raw(), false)))
    }

    fn stored(&self, state: &mut State, stream: ExchangeId, data: Bytes, last: bool) -> Out {
        let event_id = Some(state.replay.keep(stream, data.clone(), last));
        Out {
            data,
            event_id,
            last,
        }
    }

    fn note(&self, text: &str) {
        self.connection.note(text);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The writing half of the client link: finds each message's stream.
pub struct SessionWriter(pub Arc<Session>);

impl SessionWriter {
    async fn put(&mut self, frames: &mut Vec<Frame>) -> Result<(), LinkEnd> {
        for frame in frames.drain(..) {
            let Some((stream, sender, out)) = self.0.place(frame) else {
                continue;
            };
            let Some(sender) = sender else {
                // Its client is away; on a legacy session it can come back for it.
                if self.0.is_shared() {
                    self.0.note("an answer came after its client had gone");
                }
                continue;
            };
            if sender.send(out, STREAM_STALL).await.is_err() {
                self.0
                    .note("a client did not take a message within 60 s; its stream is closed");
                self.0.stream_closed(stream);
            }
        }
        Ok(())
    }
}

impl FrameWriter for SessionWriter {
    fn write<'a>(&'a mut self, frames: &'a mut Vec<Frame>) -> BoxFuture<'a, Result<(), LinkEnd>> {
        Box::pin(self.put(frames))
    }

    fn close(&mut self) -> BoxFuture<'_, ()> {
        self.0.end();
        Box::pin(std::future::ready(()))
    }
}

/// A frame for the server with its HTTP head.
pub fn frame(exchange: ExchangeId, parts: http::request::Parts, message: Message) -> Frame {
    Frame {
        exchange,
        carriage: Carriage::Request(Box::new(parts)),
        body: Body::Whole(message),
    }
}

#[cfg(test)]
mod tests;
