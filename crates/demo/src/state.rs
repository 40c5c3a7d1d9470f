//! What the server keeps: what all its connections share, and what each of them has for itself.

#![expect(
    deprecated,
    reason = "rmcp marks logging as deprecated by 2026-07-28; legacy sessions set a level"
)]

use std::{
    collections::HashSet,
    sync::{Mutex, MutexGuard, PoisonError, atomic::AtomicU64},
};

use rmcp::{handler::server::router::tool::ToolRouter, model::LoggingLevel};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use crate::server::DemoServer;

/// Something that clients may have asked to hear about.
#[derive(Clone, Copy, Debug)]
pub enum ContentChange {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The contents behind this URI.
    Resource(&'static str),
}

/// What all connections to one server share.
pub(crate) struct ServerState {
    pub(crate) tools: ToolRouter<DemoServer>,
    /// What open `subscriptions/listen` streams hear of.
    pub(crate) changes: broadcast::Sender<ContentChange>,
    /// How many tool calls have been answered.
    pub(crate) calls: AtomicU64,
}

/// What one connection keeps. Only legacy sessions have a level and a list of watched resources; a 2026-07-28
/// request brings both along.
pub(crate) struct ClientSession {
    log_level: Mutex<LoggingLevel>,
    watched: Mutex<HashSet<String>>,
    /// Taken out before a subscription is acknowledged, so that it misses nothing that happens from then on.
    next_listener: Mutex<Option<broadcast::Receiver<ContentChange>>>,
    ended: CancellationToken,
}

impl ServerState {
    pub(crate) fn new() -> ServerState {
        ServerState {
            tools: DemoServer::demo_tools(),
            changes: broadcast::channel(64).0,
            calls: AtomicU64::new(0),
        }
    }
}

impl ClientSession {
    /// A session without any settings yet; `ended` is cancelled when its client is gone.
    pub(crate) fn new(ended: CancellationToken) -> ClientSession {
        ClientSession {
            log_level: Mutex::new(LoggingLevel::Info),
            watched: Mutex::default(),
            next_listener: Mutex::default(),
            ended,
        }
    }

    pub(crate) fn log_level(&self) -> LoggingLevel {
        *lock(&self.log_level)
    }

    pub(crate) fn set_log_level(&self, level: LoggingLevel) {
        *lock(&self.log_level) = level;
    }

    pub(crate) fn watches(&self, uri: &str) -> bool {
        lock(&self.watched).contains(uri)
    }

    pub(crate) fn watch(&self, uri: String) {
        lock(&self.watched).insert(uri);
    }

    pub(crate) fn unwatch(&self, uri: &str) {
        lock(&self.watched).remove(uri);
    }

    pub(crate) fn prepare_listener(&self, changes: broadcast::Receiver<ContentChange>) {
        *lock(&self.next_listener) = Some(changes);
    }

    pub(crate) fn take_listener(&self) -> Option<broadcast::Receiver<ContentChange>> {
        lock(&self.next_listener).take()
    }

    /// Completes when the client is gone.
    pub(crate) async fn ended(&self) {
        self.ended.cancelled().await;
    }
}

/// A poisoned lock only means that another request panicked; what is behind it stays usable.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
