//! One message more on a conversation that is being carried.
//!
//! Each [`carry`](crate::carry()) has an [`Inlet`]: others leave messages there, the pump towards the server takes them between two of
//! the client's, and the pump towards the client takes the answers out again. What goes by our id or progress token is told
//! apart; whatever else the server says because of it is the client's.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::BytesMut;
use mcp_proxy_session::new_salt;
use mcp_proxy_wire::{Body, Direction, ExchangeId, Field, Frame, Id, Kind, Message, json_string};
use rustc_hash::FxHashMap;
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;

use super::once::{ReplayError, Replayed, own};
use crate::connection::Connection;
use crate::lane::Passed;
use crate::pipeline::Pipeline;

/// Answers that a conversation may owe to others than its client.
const OWED_MAX: usize = 64;
/// Counts the replays of this process; with a salt its number makes an id that no client and no other proxy has.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Sends a message on a connection that is being carried.
pub async fn live(
    pipeline: &Pipeline,
    connection: u32,
    message: &Message,
    limit: Duration,
) -> Result<Replayed, ReplayError> {
    let inlet = pipeline.inlets().of(connection).ok_or(ReplayError::NotLive(
        "its session has ended, or is passed through from HTTP to HTTP, where no message can be added; use a fresh one",
    ))?;
    inlet.ask(message, limit).await
}

/// The inlets of a run, by connection.
#[derive(Default)]
pub(crate) struct Inlets(Mutex<FxHashMap<u32, Arc<Inlet>>>);

impl Inlets {
    fn of(&self, connection: u32) -> Option<Arc<Inlet>> {
        self.lock().get(&connection).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, FxHashMap<u32, Arc<Inlet>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where others leave messages for a server, and wait for the answers.
pub(crate) struct Inlet {
    connection: Arc<Connection>,
    state: Mutex<State>,
    came: Notify,
    /// Something is in the queue. Looked at for every message, so it needs no lock.
    queued: AtomicBool,
    /// An answer is awaited, or a large message looked through for one.
    owes: AtomicBool,
}

#[derive(Default)]
struct State {
    queue: VecDeque<(Frame, u64)>,
    owed: Vec<Owed>,
    /// A large message that may be an answer, so far.
    gathered: Vec<(Frame, Option<u64>)>,
    /// No more is taken: the client has ended, or the server.
    closed: bool,
}

/// An answer that is not the client's. It stays so when nobody waits for it any more.
struct Owed {
    id: Id,
    told: oneshot::Sender<Result<u64, String>>,
}

/// A message that was left: its number, and where its answer will be told.
struct Left {
    request: u64,
    answer: Option<oneshot::Receiver<Result<u64, String>>>,
}

/// An inlet while its conversation is carried.
pub(crate) struct OpenInlet(Arc<Inlet>);

impl OpenInlet {
    /// Opens one.
    pub fn new(connection: &Arc<Connection>) -> OpenInlet {
        let inlet = Arc::new(Inlet {
            connection: Arc::clone(connection),
            state: Mutex::default(),
            came: Notify::new(),
            queued: AtomicBool::new(false),
            owes: AtomicBool::new(false),
        });
        let inlets = connection.pipeline.inlets();
        inlets.lock().insert(connection.id, Arc::clone(&inlet));
        OpenInlet(inlet)
    }

    /// For a pump.
    pub fn inlet(&self) -> Arc<Inlet> {
        Arc::clone(&self.0)
    }
}

impl Drop for OpenInlet {
    fn drop(&mut self) {
        let inlets = self.0.connection.pipeline.inlets();
        inlets.lock().remove(&self.0.connection.id);
        self.0.close();
        // Whoever waits is told by this.
        self.0.lock().owed.clear();
    }
}

impl Inlet {
    async fn ask(&self, message: &Message, limit: Duration) -> Result<Replayed, ReplayError> {
        if self.connection.share().is_some() {
            return Err(ReplayError::NotLive(
                "several clients share its session, so that no message can be added; use a fresh one",
            ));
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let ours = format!("mcp-proxy-replay-{number}-{:08x}", new_salt() as u32);
        let (message, id) = own(message, &json_string(&ours))?;
        let left = self.leave(message, id.clone())?;
        let replayed = Replayed {
            connection: self.connection.id,
            request: left.request,
            answer: None,
        };
        let (Some(id), Some(answer)) = (id, left.answer) else {
            return Ok(replayed);
        };
        let Ok(answer) = timeout(limit, answer).await else {
            self.cancel(&id);
            return Err(ReplayError::Late(limit));
        };
        match answer {
            Ok(Ok(answer)) => Ok(Replayed {
                answer: Some(answer),
                ..replayed
            }),
            Ok(Err(text)) => Err(ReplayError::Unanswered(text)),
            Err(_) => Err(ReplayError::Unanswered(
                "the session ended before the answer".to_owned(),
            )),
        }
    }

    /// Records a message and leaves it for the pump.
    fn leave(&self, message: Message, id: Option<Id>) -> Result<Left, ReplayError> {
        let mut state = self.lock();
        if state.closed {
            return Err(ReplayError::NotLive("its session is about to end"));
        }
        if state.owed.len() >= OWED_MAX {
            return Err(ReplayError::NotLive(
                "too many replays on its session were never answered; use a fresh one",
            ));
        }
        let now = self.connection.pipeline.now();
        let direction = Direction::ClientToServer;
        let authored = self
            .connection
            .author_numbered(direction, ExchangeId(0), message, now);
        let (frame, request) = authored.map_err(ReplayError::Gone)?;
        let answer = id.map(|id| {
            let (told, answer) = oneshot::channel();
            state.owed.push(Owed { id, told });
            self.owes.store(true, Ordering::Relaxed);
            answer
        });
        state.queue.push_back((frame, request));
        self.queued.store(true, Ordering::Relaxed);
        self.came.notify_one();
        Ok(Left { request, answer })
    }

    /// Nobody waits any more: the server is told, and the end of the session does not wait for the answer.
    fn cancel(&self, id: &Id) {
        let direction = Direction::ClientToServer;
        self.connection.give_up(direction, ExchangeId(0), id);
        let id = String::from_utf8_lossy(id.token());
        let cancel = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"no answer in time"}}}}"#
        );
        // A session that is about to end needs no cancel.
        drop(self.leave(Message::parse(cancel), None));
    }

    /// The next message that was left. Safe to cancel.
    pub async fn next(&self) -> (Frame, u64) {
        loop {
            if self.queued.load(Ordering::Relaxed) {
                let mut state = self.lock();
                let next = state.queue.pop_front();
                let more = !state.queue.is_empty();
                self.queued.store(more, Ordering::Relaxed);
                if let Some(next) = next {
                    return next;
                }
            }
            self.came.notified().await;
        }
    }

    /// No more is taken; answers still are.
    pub fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let unsent: Vec<u64> = state.queue.drain(..).map(|(_, number)| number).collect();
        drop(state);
        let why = "the session ended before it was sent";
        self.connection.undelivered(&unsent, why);
    }

    /// Whether what goes to the client must be looked through.
    pub fn owes(&self) -> bool {
        self.owes.load(Ordering::Relaxed)
    }

    /// Takes out what is not the client's.
    pub fn take_out(&self, passed: &mut Passed) {
        let mut state = self.lock();
        let frames = std::mem::take(&mut passed.on);
        let sequences = std::mem::take(&mut passed.sequences);
        for (frame, sequence) in frames.into_iter().zip(sequences) {
            match &frame.body {
                Body::Whole(message) => {
                    if !state.takes(message, sequence) {
                        passed.on.push(frame);
                        passed.sequences.push(sequence);
                    }
                }
                Body::Open(_) => state.gathered.push((frame, sequence)),
                Body::More(_) if !state.gathered.is_empty() => {
                    state.gathered.push((frame, sequence));
                }
                Body::Close(_) if !state.gathered.is_empty() => {
                    state.gathered.push((frame, sequence));
                    let gathered = std::mem::take(&mut state.gathered);
                    if !state.takes(&whole(&gathered), sequence) {
                        for (frame, sequence) in gathered {
                            passed.on.push(frame);
                            passed.sequences.push(sequence);
                        }
                    }
                }
                _ => {
                    passed.on.push(frame);
                    passed.sequences.push(sequence);
                }
            }
        }
        let owes = !(state.owed.is_empty() && state.gathered.is_empty());
        self.owes.store(owes, Ordering::Relaxed);
    }

    /// The same for answers that say that the server is gone.
    pub fn take_out_failures(&self, answers: &mut Vec<Frame>, why: &str) {
        let mut state = self.lock();
        answers.retain(|frame| {
            let Body::Whole(message) = &frame.body else {
                return true;
            };
            let owed = state.find(message).map(|place| state.owed.remove(place));
            let is_clients = owed.is_none();
            if let Some(owed) = owed {
                drop(owed.told.send(Err(why.to_owned())));
            }
            is_clients
        });
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Takes a message that is not the client's.
    fn takes(&mut self, message: &Message, sequence: Option<u64>) -> bool {
        if message.kind() == Kind::Notification {
            let token = message.span(Field::ProgressToken);
            let token = token.map(|span| Id::from_token(message.slice(span)).key());
            return token.is_some_and(|token| self.owed.iter().any(|owed| owed.id.key() == token));
        }
        let Some(place) = self.find(message) else {
            return false;
        };
        let owed = self.owed.remove(place);
        if let Some(sequence) = sequence {
            drop(owed.told.send(Ok(sequence)));
        }
        true
    }

    fn find(&self, message: &Message) -> Option<usize> {
        if !matches!(message.kind(), Kind::Response | Kind::Error) {
            return None;
        }
        let key = message.id()?.key();
        self.owed.iter().position(|owed| owed.id.key() == key)
    }
}

fn whole(gathered: &[(Frame, Option<u64>)]) -> Message {
    let mut bytes = BytesMut::new();
    for (frame, _) in gathered {
        if let Body::Open(chunk) | Body::More(chunk) | Body::Close(chunk) = &frame.body {
            bytes.extend_from_slice(&chunk.message);
        }
    }
    Message::parse(bytes.freeze())
}
