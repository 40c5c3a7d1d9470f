//! What the server keeps: what all its connections share, and what each of them has for itself.

#![expect(
    deprecated,
    reason = "rmcp marks logging as deprecated by 2026-07-28; legacy sessions set a level"
)]

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicU64},
};

use rmcp::{
    handler::server::router::tool::ToolRouter,
    model::{LoggingLevel, RequestStateCodec},
    task_manager::TaskManager,
};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use crate::{conformance, server::DemoServer};

/// How much the server offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DemoContent {
    /// What a person should see: a handful of tools, resources and prompts.
    Demo,
    /// The same, and everything that the official conformance suite calls by name.
    WithFixtures,
}

/// Something that clients may have asked to hear about.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ContentChange {
    Tools,
    Prompts,
    Resource(&'static str),
}

/// What all connections to one server share.
pub(crate) struct ServerState {
    content: DemoContent,
    pub(crate) tools: ToolRouter<DemoServer>,
    /// Long-running calls, which outlive the request that started them.
    pub(crate) tasks: TaskManager,
    /// Seals what a client has to hand back unchanged. The key dies with the process.
    pub(crate) seal: RequestStateCodec,
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
    pub(crate) fn new(content: DemoContent) -> Arc<ServerState> {
        let tools = match content {
            DemoContent::Demo => DemoServer::demo_tools(),
            DemoContent::WithFixtures => DemoServer::demo_tools() + conformance::tools(),
        };
        let key = [uuid::Uuid::new_v4(), uuid::Uuid::new_v4()]
            .map(uuid::Uuid::into_bytes)
            .concat();
        Arc::new(ServerState {
            content,
            tools,
            tasks: TaskManager::new(),
            seal: RequestStateCodec::new(key),
            changes: broadcast::channel(64).0,
            calls: AtomicU64::new(0),
        })
    }

    pub(crate) fn has_fixtures(&self) -> bool {
        self.content == DemoContent::WithFixtures
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
