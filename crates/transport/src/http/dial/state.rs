//! What a link to an HTTP server remembers: session, version, open requests.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::HeaderValue;
use mcp_proxy_wire::{Field, Id, IdKey, Message};
use rustc_hash::FxHashMap;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

#[derive(Default)]
pub(super) struct HttpLinkState {
    inner: Mutex<HttpLinkInner>,
    open: Arc<OpenPostCount>,
}

#[derive(Default)]
struct HttpLinkInner {
    session: Option<HeaderValue>,
    version: Option<HeaderValue>,
    requests: FxHashMap<IdKey, OpenPost>,
    get: Option<AbortHandle>,
}

/// A request on its way.
pub(super) struct OpenPost {
    pub(super) abort: AbortHandle,
    pub(super) modern: bool,
}

#[derive(Default)]
pub(super) struct OpenPostCount {
    number: AtomicUsize,
    zero: Notify,
}

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

    /// The version that `initialize` agreed on goes with every later request.
    pub(super) fn note_version(&self, answer: &Message) {
        let version = answer.text(Field::ResultField("protocolVersion"));
        if let Some(version) = version.and_then(|version| HeaderValue::from_str(&version).ok()) {
            self.inner().version = Some(version);
        }
    }

    pub(super) fn opened(&self) -> OpenPostGuard {
        self.open.number.fetch_add(1, Ordering::AcqRel);
        OpenPostGuard(Arc::clone(&self.open))
    }

    /// Resolves when no POST is open.
    pub(super) async fn drained(&self) {
        loop {
            let notified = self.open.zero.notified();
            if self.open.number.load(Ordering::Acquire) == 0 {
                return;
            }
            notified.await;
        }
    }

    pub(super) fn remember(&self, key: IdKey, open: OpenPost) {
        self.inner().requests.insert(key, open);
    }

    pub(super) fn forget(&self, key: &IdKey) {
        self.inner().requests.remove(key);
    }

    /// In the modern era closing the response stream is the cancel: the POST is dropped, nothing is sent.
    pub(super) fn cancel_modern(&self, message: &Message) -> bool {
        let Some(span) = message.span(Field::RequestId) else {
            return false;
        };
        let key = Id::from_token(message.slice(span)).key();
        let mut inner = self.inner();
        if !inner.requests.get(&key).is_some_and(|open| open.modern) {
            return false;
        }
        if let Some(open) = inner.requests.remove(&key) {
            open.abort.abort();
        }
        true
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
