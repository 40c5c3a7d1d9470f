//! Carries out what the state machine decides: the one part of this crate that waits.
//!
//! A socket comes as a [`Link`]. Until its user is known, [`opening_socket`] speaks with it. An extension is then served by
//! [`extension_socket`]. A client's link is carried as a [`Connection`](mcp_proxy_core::Connection) of the run, with the relay as
//! its server ([`client_socket`]), so that it is recorded, watched, held and replayed like every other conversation.

mod admission;
mod client_socket;
mod due_users;
mod extension_socket;
mod known_tokens;
mod opening_socket;
mod shared_user;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mcp_proxy_core::{BoxFuture, Caller, CarryOptions, Link, MemoryBudget, ProxyRun};
use rustc_hash::FxHashMap;
use tokio::time::Instant;

use self::admission::AuthenticationRate;
use self::due_users::DueUsers;
use self::shared_user::SharedUser;
use crate::audit::{AuditSink, AuditedAction, RelayAuditEvent};
use crate::counters::RelayCounters;
use crate::ids::SocketId;
use crate::opening::{SocketPath, SocketRole, TokenRefusal};
use crate::outbox::RelayClose;
use crate::settings::RelaySettings;
use crate::time::RelayTime;

/// How often the driver looks for deadlines that have passed.
const TICK: Duration = Duration::from_millis(250);

/// A WebSocket that the relay serves.
pub struct RelaySocket {
    /// Its frames.
    pub link: Link,
    /// What else can be done with it.
    pub handle: Arc<dyn RelaySocketHandle>,
    /// Where it was opened.
    pub path: SocketPath,
    /// The request that opened it.
    pub caller: Option<Arc<Caller>>,
}

/// What a link cannot say: how its socket is closed, and how long its messages may be.
pub trait RelaySocketHandle: Send + Sync {
    /// With what the socket is closed when its writer is.
    fn set_close(&self, code: u16, reason: &str);
    /// How long messages of the peer may be from now on.
    fn set_max_message(&self, bytes: usize);
    /// Of how many messages at least one byte was written, so far, also if writing has failed meanwhile.
    fn messages_begun(&self) -> u64;
    /// What the peer did to end the socket, if that is to be counted.
    fn peer_failure(&self) -> Option<PeerFailure>;
}

/// What a peer did that ended its socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerFailure {
    /// It sent a message that was too long to be read.
    TooLarge,
    /// It sent nothing, not even the answer to a ping.
    Silent,
}

/// What a token says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedToken {
    /// Whose it is.
    pub user: String,
    /// When it expires, in seconds since 1970.
    pub expires_at: i64,
    /// When it was made, in seconds since 1970, if it says so.
    pub issued_at: Option<i64>,
    /// The id by which it can be revoked.
    pub token_id: Option<String>,
}

/// Checks a token.
pub type TokenCheck = Arc<dyn Fn(&str) -> Result<CheckedToken, TokenRefusal> + Send + Sync>;

/// Gets the keys that a token needs, if it may be that there are newer ones. It takes what time it takes.
pub type KeyRefresh = Arc<dyn Fn(&str) -> BoxFuture<'static, ()> + Send + Sync>;

/// What a driver is made with.
pub struct RelayOptions {
    /// The run that clients' conversations belong to.
    pub run: Arc<ProxyRun>,
    /// How conversations are carried.
    pub carry: CarryOptions,
    /// Limits, times and policy, the same for every user.
    pub settings: RelaySettings,
    /// Decides which tokens are valid.
    pub check: TokenCheck,
    /// Called before a token is checked.
    pub refresh_keys: Option<KeyRefresh>,
    /// How long a socket may take to show its token.
    pub authentication_deadline: Duration,
    /// How many tokens are checked in a second.
    pub authentications_per_second: u32,
    /// The audit log. It is told what [`RelaySettings::is_audited`] asks for, and who comes.
    pub audit: Option<AuditSink>,
}

/// All users.
pub struct RelayDriver {
    options: RelayOptions,
    started: Instant,
    users: Mutex<FxHashMap<Arc<str>, Arc<SharedUser>>>,
    due_users: Arc<DueUsers>,
    next_socket: AtomicU64,
    admission: AuthenticationRate,
    /// The counters of users who have left, and of sockets that never had one.
    gone: Mutex<RelayCounters>,
    is_stopping: AtomicBool,
}

impl RelayDriver {
    /// A relay without users. Its deadlines are kept by a task that ends with it.
    pub fn start(options: RelayOptions) -> Arc<RelayDriver> {
        let driver = Arc::new(RelayDriver {
            admission: AuthenticationRate::new(options.authentications_per_second),
            options,
            started: Instant::now(),
            users: Mutex::default(),
            due_users: Arc::default(),
            next_socket: AtomicU64::new(1),
            gone: Mutex::default(),
            is_stopping: AtomicBool::new(false),
        });
        let weak = Arc::downgrade(&driver);
        tokio::spawn(async move {
            let mut ticks = tokio::time::interval(TICK);
            ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                match weak.upgrade() {
                    Some(driver) => driver.tick(),
                    None => return,
                }
            }
        });
        driver
    }

    /// What messages count in while they are read.
    pub fn memory(&self) -> &MemoryBudget {
        &self.options.settings.memory
    }

    /// Serves a socket until it ends.
    pub async fn serve(self: &Arc<Self>, socket: RelaySocket) {
        self.count(|counters| counters.sockets_opened += 1);
        let handle = Arc::clone(&socket.handle);
        self.serve_to_end(socket).await;
        self.count(|counters| match handle.peer_failure() {
            Some(PeerFailure::TooLarge) => counters.oversized += 1,
            Some(PeerFailure::Silent) => counters.silent_peers += 1,
            None => {}
        });
    }

    async fn serve_to_end(self: &Arc<Self>, mut socket: RelaySocket) {
        if self.is_stopping.load(Ordering::SeqCst) {
            let close = RelayClose::Restart;
            return opening_socket::turn_away(&mut socket, close).await;
        }
        let id = SocketId(self.next_socket.fetch_add(1, Ordering::Relaxed));
        let Some(socket) = opening_socket::open(self, id, socket).await else {
            return;
        };
        let _leaves = LeaveOnDrop {
            driver: Arc::clone(self),
            user: Arc::clone(&socket.user),
            id,
        };
        // It may have joined while the others were told.
        if self.is_stopping.load(Ordering::SeqCst) {
            socket
                .user
                .change(self.now(), |relay, now| relay.shut_down(now));
        }
        match socket.role {
            SocketRole::Client => client_socket::serve(self, id, socket).await,
            SocketRole::Extension => extension_socket::serve(self, id, socket).await,
        }
    }

    /// Tells everybody that the relay stops, and closes their sockets. Those that come back at once are refused.
    pub fn shut_down(&self) {
        self.is_stopping.store(true, Ordering::SeqCst);
        for user in self.all_users() {
            user.change(self.now(), |relay, now| relay.shut_down(now));
        }
    }

    /// Checks the tokens of all open sockets again, for example because some were revoked.
    pub fn recheck(&self, is_good: impl Fn(&CheckedToken) -> bool) {
        for user in self.all_users() {
            for (socket, token) in user.tokens() {
                if !is_good(&token) {
                    let close = RelayClose::Unauthorized("Token revoked");
                    user.change(self.now(), |relay, now| relay.close(socket, close, now));
                }
            }
        }
    }

    /// What all users have counted.
    pub fn counters(&self) -> RelayCounters {
        // Held over both, so that a user who is forgotten meanwhile counts once.
        let users = lock(&self.users);
        let gone = *lock(&self.gone);
        let counted = users.values().map(|user| user.counters());
        counted.fold(gone, RelayCounters::plus)
    }

    /// How many users have sockets, and how many sockets there are.
    pub fn counts(&self) -> (usize, usize) {
        let users = self.all_users();
        let sockets = users.iter().map(|user| user.socket_count()).sum();
        (users.len(), sockets)
    }

    /// How many clients and how many extensions there are.
    pub fn peer_counts(&self) -> (usize, usize) {
        let users = self.all_users();
        let counts = users.iter().map(|user| user.peer_counts());
        counts.fold((0, 0), |(clients, extensions), (more, others)| {
            (clients + more, extensions + others)
        })
    }

    /// Counts a request to exchange a pairing code that was refused.
    pub fn count_refused_pairing(&self) {
        self.count(|counters| counters.refused_pairings += 1);
    }

    /// Counts what only the driver knows.
    fn count(&self, count: impl FnOnce(&mut RelayCounters)) {
        count(&mut lock(&self.gone));
    }

    /// Tells the audit log what only the driver knows.
    fn audit(&self, user: Option<&str>, what: impl FnOnce() -> AuditedAction) {
        if let Some(audit) = &self.options.audit {
            let event = RelayAuditEvent {
                wall_ms: self.now().wall_ms,
                user: user.map(Arc::from),
                what: what(),
            };
            audit(&[event]);
        }
    }

    fn now(&self) -> RelayTime {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH);
        RelayTime {
            elapsed: self.started.elapsed(),
            wall_ms: i64::try_from(wall.unwrap_or_default().as_millis()).unwrap_or(i64::MAX),
        }
    }

    fn all_users(&self) -> Vec<Arc<SharedUser>> {
        lock(&self.users).values().cloned().collect()
    }

    fn tick(&self) {
        let now = self.now();
        for name in self.due_users.take(now.elapsed) {
            let user = lock(&self.users).get(&name).cloned();
            if let Some(user) = user {
                user.tick(now);
                if user.is_empty() {
                    self.forget(&user);
                }
            }
        }
    }

    fn forget(&self, user: &SharedUser) {
        // Under the lock under which sockets join, so that none joins a user who is forgotten.
        let mut users = lock(&self.users);
        if user.is_empty() {
            users.remove(user.name());
            user.retire();
            let mut gone = lock(&self.gone);
            *gone = gone.plus(user.counters());
        }
    }
}

/// Takes a socket out of the relay, also if its task is dropped because its listener has stopped.
struct LeaveOnDrop {
    driver: Arc<RelayDriver>,
    user: Arc<SharedUser>,
    id: SocketId,
}

impl Drop for LeaveOnDrop {
    fn drop(&mut self) {
        let (user, id) = (&self.user, self.id);
        user.change(self.driver.now(), |relay, now| relay.socket_closed(id, now));
        user.forget(id);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
