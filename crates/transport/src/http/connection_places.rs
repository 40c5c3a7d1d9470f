//! The places of a listener: how many connections it has at once, and which one makes room when all are taken.
//!
//! A connection without a request under way is idle. When a client waits for a place, the connection that has been idle
//! for longest ends. A connection that never brought a request ends after a deadline, whatever its protocol: TLS, HTTP/1.1
//! and h2 each have a phase in which a silent client could stay for ever.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame as BodyFrame, SizeHint};
use rustc_hash::FxHashMap;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::Instant;

use super::outgoing_body::{BodyError, OutgoingBody};

/// The connections of one listener.
pub(super) struct ConnectionPlaces {
    free: Arc<Semaphore>,
    open: Mutex<FxHashMap<u64, OpenConnection>>,
    next: AtomicU64,
    /// Idle times are counted from here.
    started: Instant,
    /// A client waits for a place.
    is_wanted: AtomicBool,
    /// Notified when a connection becomes idle while a client waits.
    became_idle: Notify,
}

struct OpenConnection {
    activity: Arc<ConnectionActivity>,
    task: AbortHandle,
}

/// What a connection is doing.
pub(super) struct ConnectionActivity {
    places: Arc<ConnectionPlaces>,
    number: u64,
    /// Requests whose answers are not complete.
    requests: AtomicUsize,
    /// It has brought a request.
    has_asked: AtomicBool,
    /// Microseconds since the places' start: when it came, or when its last answer was complete.
    idle_since: AtomicU64,
    /// The same: when the head of a request began that is not complete. 0: none has.
    head_since: AtomicU64,
}

impl ConnectionPlaces {
    /// Room for this many connections.
    pub(super) fn new(places: usize) -> Arc<ConnectionPlaces> {
        Arc::new(ConnectionPlaces {
            free: Arc::new(Semaphore::new(places)),
            open: Mutex::default(),
            next: AtomicU64::new(0),
            started: Instant::now(),
            is_wanted: AtomicBool::new(false),
            became_idle: Notify::new(),
        })
    }

    /// A place for a client that has connected. If all are taken, an idle connection makes room; if none is idle,
    /// this waits for one.
    pub(super) async fn take(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() {
            return Some(permit);
        }
        self.is_wanted.store(true, Ordering::SeqCst);
        let permit = loop {
            let freed = Arc::clone(&self.free).acquire_owned();
            if self.end_longest_idle() {
                break freed.await.ok();
            }
            tokio::select! {
                permit = freed => break permit.ok(),
                () = self.became_idle.notified() => {}
            }
        };
        self.is_wanted.store(false, Ordering::SeqCst);
        permit
    }

    /// Runs a connection in a task of its own, which `spawn` starts.
    pub(super) fn run(
        self: &Arc<Self>,
        spawn: impl FnOnce(Arc<ConnectionActivity>) -> JoinHandle<()>,
    ) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let activity = Arc::new(ConnectionActivity {
            places: Arc::clone(self),
            number,
            requests: AtomicUsize::new(0),
            has_asked: AtomicBool::new(false),
            idle_since: AtomicU64::new(self.now()),
            head_since: AtomicU64::new(0),
        });
        // Locked until it is in the table: a task that ends at once must not leave before it has entered.
        let mut open = self.open();
        let task = spawn(Arc::clone(&activity)).abort_handle();
        open.insert(number, OpenConnection { activity, task });
    }

    /// Ends the connections that have not brought a request within `deadline`, or have begun one and not completed its head.
    pub(super) fn end_silent(&self, deadline: Duration) {
        let now = self.now();
        let limit = u64::try_from(deadline.as_micros()).unwrap_or(u64::MAX);
        for connection in self.open().values() {
            let activity = &connection.activity;
            let since = match activity.has_asked.load(Ordering::Relaxed) {
                false => activity.idle_since.load(Ordering::Relaxed),
                true => match activity.head_since.load(Ordering::Relaxed) {
                    0 => continue,
                    since => since,
                },
            };
            if now.saturating_sub(since) >= limit {
                connection.task.abort();
            }
        }
    }

    /// Ends the connection that has been idle for longest. `false`: none is idle.
    pub(super) fn end_longest_idle(&self) -> bool {
        let mut open = self.open();
        let idle = open
            .iter()
            .filter(|(_, connection)| connection.activity.is_idle());
        let longest = idle
            .min_by_key(|(_, connection)| connection.activity.idle_since.load(Ordering::Relaxed));
        let Some(number) = longest.map(|(number, _)| *number) else {
            return false;
        };
        // Out of the table at once, so that the next client's place comes from another.
        let connection = open.remove(&number);
        connection.is_some_and(|connection| {
            connection.task.abort();
            true
        })
    }

    fn now(&self) -> u64 {
        self.micros(Instant::now())
    }

    fn micros(&self, at: Instant) -> u64 {
        u64::try_from(at.duration_since(self.started).as_micros()).unwrap_or(u64::MAX)
    }

    fn open(&self) -> MutexGuard<'_, FxHashMap<u64, OpenConnection>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionActivity {
    /// A request has come.
    pub(super) fn begin(self: &Arc<Self>) -> RequestUnderWay {
        self.requests.fetch_add(1, Ordering::SeqCst);
        self.has_asked.store(true, Ordering::Relaxed);
        self.head_since.store(0, Ordering::Relaxed);
        RequestUnderWay(Arc::clone(self))
    }

    /// Bytes have come. Without a request under way they are those of a head.
    pub(super) fn bytes_came(&self, now: Instant) {
        if self.is_idle() && self.head_since.load(Ordering::Relaxed) == 0 {
            let since = self.places.micros(now).max(1);
            self.head_since.store(since, Ordering::Relaxed);
        }
    }

    fn is_idle(&self) -> bool {
        self.requests.load(Ordering::SeqCst) == 0
    }
}

/// Dropped with the connection's task, it takes the connection out of the table.
pub(super) struct LeaveOnDrop(pub(super) Arc<ConnectionActivity>);

impl Drop for LeaveOnDrop {
    fn drop(&mut self) {
        drop(self.0.places.open().remove(&self.0.number));
    }
}

/// A request whose answer is not complete. Dropped with the answer's body.
pub(super) struct RequestUnderWay(Arc<ConnectionActivity>);

impl Drop for RequestUnderWay {
    fn drop(&mut self) {
        let places = &self.0.places;
        self.0.idle_since.store(places.now(), Ordering::Relaxed);
        let others = self.0.requests.fetch_sub(1, Ordering::SeqCst) - 1;
        if others == 0 && places.is_wanted.load(Ordering::SeqCst) {
            places.became_idle.notify_one();
        }
    }
}

/// The body of an answer, which keeps its connection from being idle.
pub(super) struct ServedBody {
    pub(super) body: OutgoingBody,
    pub(super) _request: RequestUnderWay,
}

impl HttpBody for ServedBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<BodyFrame<Bytes>, BodyError>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
