//! The ways into conversations: where messages can be added that no client sent.
//!
//! Each [`carry`](crate::carry()) has an [`InjectionQueue`]: others leave messages there, and the pump towards the server takes them
//! between two of the client's. Where HTTP is passed through there is no pump; there a [`MessageInjector`] sends them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use mcp_proxy_session::new_salt;
use mcp_proxy_wire::{ExchangeId, Frame, IdKey, Message, StreamId};
use rustc_hash::FxHashMap;
use tokio::sync::mpsc;

use super::single_replay::ReplayError;
use crate::connection::Connection;
use crate::link::BoxFuture;

/// What the ids of replays begin with.
const MARK: &str = "mcp-proxy-replay-";

/// Messages that may wait for the pump of a connection.
const QUEUED_MAX: usize = 64;

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
    by_connection: Mutex<FxHashMap<u32, InjectionSender>>,
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
    /// The way into the conversation of a connection that is carried.
    pub(super) fn get(&self, connection: u32) -> Option<InjectionSender> {
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

    fn lock(&self) -> MutexGuard<'_, FxHashMap<u32, InjectionSender>> {
        self.by_connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where others leave messages for the server of a connection that is carried.
#[derive(Clone)]
pub(super) struct InjectionSender {
    pub(super) connection: Arc<Connection>,
    frames: mpsc::Sender<Box<Frame>>,
}

/// The messages that others have left for a server, while its conversation is carried.
pub(crate) struct InjectionQueue {
    connection: Arc<Connection>,
    frames: mpsc::Receiver<Box<Frame>>,
}

impl InjectionSender {
    /// Records a message and leaves it for the pump; its number.
    pub(super) fn enqueue(&self, message: Message) -> Result<u64, ReplayError> {
        let now = self.connection.run.now();
        let place = self.frames.try_reserve().map_err(|_| {
            ReplayError::NotLive("its session is about to end, or its server takes no more")
        })?;
        let frame = self.connection.replay(StreamId::Only, message, now);
        let frame = frame.map_err(ReplayError::Gone)?;
        let request = frame.sequence.unwrap_or_default();
        place.send(Box::new(frame));
        Ok(request)
    }
}

impl InjectionQueue {
    /// Opens the queue of a connection.
    pub(crate) fn open(connection: &Arc<Connection>) -> InjectionQueue {
        let (sender, frames) = mpsc::channel(QUEUED_MAX);
        let sender = InjectionSender {
            connection: Arc::clone(connection),
            frames: sender,
        };
        let queues = connection.run.injection_queues();
        queues.lock().insert(connection.id, sender);
        InjectionQueue {
            connection: Arc::clone(connection),
            frames,
        }
    }

    /// The next message that was left. Safe to cancel.
    pub(crate) async fn next(&mut self) -> Frame {
        match self.frames.recv().await {
            Some(frame) => *frame,
            None => std::future::pending().await,
        }
    }

    /// No more is taken; answers still are.
    pub(crate) fn close(&mut self) {
        self.frames.close();
        let mut unsent = Vec::new();
        while let Ok(frame) = self.frames.try_recv() {
            unsent.extend(frame.sequence);
        }
        let why = "the session ended before it was sent";
        self.connection.undelivered(&unsent, why);
    }
}

impl Drop for InjectionQueue {
    fn drop(&mut self) {
        let queues = self.connection.run.injection_queues();
        queues.lock().remove(&self.connection.id);
        self.close();
        self.connection.replay_waiters().close();
    }
}
