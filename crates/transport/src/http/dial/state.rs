//! What a link to an HTTP server remembers: session, version, open requests.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::HeaderValue;
use mcp_proxy_wire::{Field, Id, IdKey, Message};
use rustc_hash::FxHashMap;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

/// Requests that wait for the GET stream and are remembered.
const PROMISED_MAX: usize = 256;

#[derive(Default)]
pub(super) struct HttpLinkState {
    inner: Mutex<HttpLinkInner>,
    open: Arc<OpenPostCount>,
}

#[derive(Default)]
struct HttpLinkInner {
    session: Option<HeaderValue>,
    version: Option<HeaderValue>,
    /// How often the session was opened again.
    generation: u64,
    requests: FxHashMap<IdKey, OpenPost>,
    /// Requests whose answers were promised for the GET stream.
    promised: Vec<Id>,
    get: Option<AbortHandle>,
}

/// A request on its way.
pub(super) struct OpenPost {
    pub(super) abort: AbortHandle,
    pub(super) modern: bool,
    /// The client does not wait for its answer any more.
    pub(super) cancelled: bool,
}

#[derive(Default)]
pub(super) struct OpenPostCount {
    /// How many there are, or [`ENDED`].
    number: AtomicUsize,
    zero: Notify,
}

/// No POST is open, and none will be.
const ENDED: usize = usize::MAX;

/// Counts a POST as open until it is dropped.
pub(super) struct OpenPostGuard(Arc<OpenPostCount>);

impl Drop for OpenPostGuard {
    fn drop(&mut self) {
        if self.0.number.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.zero.notify_waiters();
        }
    }
}

impl HttpLinkState {
    pub(super) fn session(&self) -> (Option<HeaderValue>, Option<HeaderValue>) {
        let inner = self.inner();
        (inner.session.clone(), inner.version.clone())
    }

    pub(super) fn set_session(&self, session: HeaderValue) {
        self.inner().session = Some(session);
    }

    /// Whether a session is open.
    pub(super) fn has_session(&self) -> bool {
        self.inner().session.is_some()
    }

    /// Which of the sessions is open, if there were several.
    pub(super) fn generation(&self) -> u64 {
        self.inner().generation
    }

    /// Another session is open now. Returns the requests whose answers the old one had promised.
    pub(super) fn replace_session(&self, session: Option<HeaderValue>) -> Vec<Id> {
        let mut inner = self.inner();
        inner.session = session;
        inner.generation += 1;
        std::mem::take(&mut inner.promised)
    }

    /// The answers to these come on the GET stream. The newest are remembered.
    pub(super) fn promise(&self, asked: &[Id]) {
        let mut inner = self.inner();
        inner.promised.extend_from_slice(asked);
        let excess = inner.promised.len().saturating_sub(PROMISED_MAX);
        inner.promised.drain(..excess);
    }

    /// The version that `initialize` agreed on goes with every later request.
    pub(super) fn note_version(&self, answer: &Message) {
        let version = answer.text(Field::ResultField("protocolVersion"));
        if let Some(version) = version.and_then(|version| HeaderValue::from_str(&version).ok()) {
            self.inner().version = Some(version);
        }
    }

    /// Counts a POST that is about to be sent. `None`: the link has ended, and nothing may be sent any more.
    pub(super) fn opened(&self) -> Option<OpenPostGuard> {
        let next = |number| (number != ENDED).then(|| number + 1);
        let number = &self.open.number;
        number
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, next)
            .ok()?;
        Some(OpenPostGuard(Arc::clone(&self.open)))
    }

    /// Resolves when no POST is open. From then on none can be.
    pub(super) async fn drained(&self) {
        loop {
            let notified = self.open.zero.notified();
            let number = &self.open.number;
            match number.compare_exchange(0, ENDED, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) | Err(ENDED) => return,
                Err(_) => notified.await,
            }
        }
    }

    pub(super) fn remember(&self, key: IdKey, open: OpenPost) {
        self.inner().requests.insert(key, open);
    }

    pub(super) fn forget(&self, key: &IdKey) {
        self.inner().requests.remove(key);
    }

    /// Notes that the client has cancelled a request. In the modern era closing the response stream is the cancel: the POST
    /// is dropped, and nothing is to be sent (`true`).
    pub(super) fn cancel(&self, message: &Message) -> bool {
        let Some(span) = message.span(Field::RequestId) else {
            return false;
        };
        let key = Id::from_token(message.slice(span)).key();
        let mut inner = self.inner();
        let Some(open) = inner.requests.get_mut(&key) else {
            return false;
        };
        open.cancelled = true;
        if !open.modern {
            return false;
        }
        if let Some(open) = inner.requests.remove(&key) {
            open.abort.abort();
        }
        true
    }

    /// Ends the POSTs whose answers nobody waits for: a server need not answer what was cancelled.
    pub(super) fn abort_cancelled(&self) {
        self.inner().requests.retain(|_, open| {
            if open.cancelled {
                open.abort.abort();
            }
            !open.cancelled
        });
    }

    pub(super) fn set_get(&self, task: AbortHandle) {
        if let Some(old) = self.inner().get.replace(task) {
            old.abort();
        }
    }

    pub(super) fn has_get(&self) -> bool {
        self.inner()
            .get
            .as_ref()
            .is_some_and(|task| !task.is_finished())
    }

    pub(super) fn abort_all(&self) {
        let mut inner = self.inner();
        for (_, open) in inner.requests.drain() {
            open.abort.abort();
        }
        if let Some(get) = inner.get.take() {
            get.abort();
        }
    }

    fn inner(&self) -> MutexGuard<'_, HttpLinkInner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
