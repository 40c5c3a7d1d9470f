//! The ways into conversations: where messages can be added that no client sent.
//!
//! Each [`carry`](crate::carry()) has an [`InjectionQueue`]: others leave messages there, and the pump towards the server takes them
//! between two of the client's. Where HTTP is passed through there is no pump; there a [`MessageInjector`] sends them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use mcp_proxy_session::new_salt;
use mcp_proxy_wire::{ExchangeId, Frame, IdKey, Message, StreamId};
use rustc_hash::FxHashMap;

use super::single_replay::ReplayError;
use crate::connection::Connection;
use crate::link::BoxFuture;

/// What the ids of replays begin with.
const MARK: &str = "mcp-proxy-replay-";

/// Sends messages of the proxy's own on sessions that are passed through.
pub trait MessageInjector: Send + Sync {
    /// The connection of that number, if its session is open and the client's way of speaking is known.
    fn connection(&self, id: u32) -> Option<Arc<Connection>>;

    /// Records a message and prepares to send it, in the place of the client that sent what came by `like`; `None`: that
    /// is not known, and any client of the session will do.
    fn inject(
        &self,
        connection: &Arc<Connection>,
        like: Option<ExchangeId>,
        message: Message,
    ) -> Result<PendingInjection, ReplayError>;

    /// Sends what was recorded already: an answer in the client's place.
    fn deliver_answer(
        &self,
        connection: &Arc<Connection>,
        like: ExchangeId,
        answer: Message,
    ) -> Result<SendFuture, ReplayError>;
}

/// Ends when nothing more is to be done, or with why the message could not be sent or has no answer.
pub type SendFuture = BoxFuture<'static, Result<(), String>>;

/// A message that is recorded and about to be sent.
pub struct PendingInjection {
    /// Its number in the record.
    pub request: u64,
    /// Sends it, and reads what is answered there and then.
    pub sending: SendFuture,
}

/// All ways into the conversations of a run.
pub(crate) struct InjectionQueues {
    by_connection: Mutex<FxHashMap<u32, Arc<InjectionQueue>>>,
    injector: OnceLock<Weak<dyn MessageInjector>>,
    /// Somebody may ask for replays.
    replays_enabled: AtomicBool,
    /// Counts the replays; with the salt its number makes an id that no client and no other proxy has.
    next: AtomicU64,
    salt: u32,
}

impl Default for InjectionQueues {
    fn default() -> Self {
        InjectionQueues {
            by_connection: Mutex::default(),
            injector: OnceLock::new(),
            replays_enabled: AtomicBool::new(false),
            next: AtomicU64::new(1),
            salt: new_salt() as u32,
        }
    }
}

impl InjectionQueues {
    /// The injections of a connection that is carried.
    pub(crate) fn get(&self, connection: u32) -> Option<Arc<InjectionQueue>> {
        self.lock().get(&connection).cloned()
    }

    /// Who sends on sessions that are passed through.
    pub(crate) fn injector(&self) -> Option<Arc<dyn MessageInjector>> {
        self.injector.get()?.upgrade()
    }

    /// A run has one.
    pub(crate) fn set_injector(&self, injector: Weak<dyn MessageInjector>) {
        let _ = self.injector.set(injector);
    }

    /// Somebody may ask for replays from now on.
    pub(crate) fn enable_replays(&self) {
        self.replays_enabled.store(true, Ordering::Relaxed);
    }

    /// Whether somebody may.
    pub(crate) fn replays_enabled(&self) -> bool {
        self.replays_enabled.load(Ordering::Relaxed)
    }

    /// An id for the next replay.
    pub(crate) fn new_id(&self) -> String {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        format!("{MARK}{number}-{:08x}", self.salt)
    }

    /// Whether an id or a progress token is that of a replay of this run.
    pub(crate) fn is_ours(&self, token: &[u8]) -> bool {
        if !token.starts_with(b"\"") {
            return false;
        }
        let IdKey::String(text) = IdKey::of_token(token) else {
            return false;
        };
        let salt = format!("-{:08x}", self.salt);
        text.starts_with(MARK.as_bytes()) && text.ends_with(salt.as_bytes())
    }

    fn lock(&self) -> MutexGuard<'_, FxHashMap<u32, Arc<InjectionQueue>>> {
        self.by_connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where others leave messages for the server of a connection that is carried.
pub(crate) struct InjectionQueue {
    pub(super) connection: Arc<Connection>,
    state: Mutex<State>,
    came: tokio::sync::Notify,
    /// Something is in the queue. Read for every message, so it needs no lock; a pump that sees it too late is woken by
    /// `came`.
    queued: AtomicBool,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Frame>,
    /// No more is taken: the client has ended, or the server.
    closed: bool,
}

/// An injections while its conversation is carried.
pub(crate) struct OpenInjectionQueue(Arc<InjectionQueue>);

impl OpenInjectionQueue {
    /// Opens one.
    pub(crate) fn new(connection: &Arc<Connection>) -> OpenInjectionQueue {
        let injections = Arc::new(InjectionQueue {
            connection: Arc::clone(connection),
            state: Mutex::default(),
            came: tokio::sync::Notify::new(),
            queued: AtomicBool::new(false),
        });
        let injection_queues = connection.run.injection_queues();
        injection_queues
            .lock()
            .insert(connection.id, Arc::clone(&injections));
        OpenInjectionQueue(injections)
    }

    /// For a pump.
    pub(crate) fn injections(&self) -> Arc<InjectionQueue> {
        Arc::clone(&self.0)
    }
}

impl Drop for OpenInjectionQueue {
    fn drop(&mut self) {
        let connection = &self.0.connection;
        connection
            .run
            .injection_queues()
            .lock()
            .remove(&connection.id);
        self.0.close();
        connection.replay_waiters().close();
    }
}

impl InjectionQueue {
    /// Records a message and leaves it for the pump; its number.
    pub(super) fn enqueue(&self, message: Message) -> Result<u64, ReplayError> {
        let mut state = self.lock();
        if state.closed {
            return Err(ReplayError::NotLive("its session is about to end"));
        }
        let now = self.connection.run.now();
        let frame = self.connection.replay(StreamId::Only, message, now);
        let frame = frame.map_err(ReplayError::Gone)?;
        let request = frame.sequence.unwrap_or_default();
        state.queue.push_back(frame);
        self.queued.store(true, Ordering::Relaxed);
        self.came.notify_one();
        Ok(request)
    }

    /// The next message that was left. Safe to cancel.
    pub(crate) async fn next(&self) -> Frame {
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
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let unsent: Vec<u64> = state
            .queue
            .drain(..)
            .filter_map(|frame| frame.sequence)
            .collect();
        drop(state);
        let why = "the session ended before it was sent";
        self.connection.undelivered(&unsent, why);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
