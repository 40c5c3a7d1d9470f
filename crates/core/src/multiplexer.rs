//! Several clients on one server connection.
//!
//! Clients choose their ids without knowing each other, so a shared connection needs numbers of ours: a request goes to
//! the server under a number, and its answer goes back under the client's own id. Progress tokens,
//! `cancelled.requestId` and `subscriptionId` (the id of the listen request) change with it. Requests of the server to
//! one of the clients are numbered in the same way. Only these spans change; every other byte stays.
//!
//! A [`RequestMultiplexer`] is pure state: messages in, messages out. It knows a client by whatever key its caller
//! chooses, and leaves transport, record and the choice of recipients to that caller. A batch is passed to it part by
//! part.

mod references;
mod table;
mod to_client;
mod to_server;

use std::collections::VecDeque;
use std::hash::Hash;

use mcp_proxy_wire::{Id, IdKey, Kind, Message};

use references::AskedIds;
use table::RequestTable;

pub use to_client::answer_under;

/// The requests between several clients and one server.
///
/// `K` is how the caller tells its clients apart. A client may have any number of open requests, up to the
/// [limits](MultiplexerLimits).
#[derive(Debug)]
pub struct RequestMultiplexer<K> {
    /// Requests of clients, under the numbers that the server knows them by.
    open: RequestTable<K>,
    /// Requests of the server, under the numbers that clients know them by.
    asked: RequestTable<K>,
    asked_ids: AskedIds,
    /// Ids that closed clients had open. Real HTTP clients close their stream and then also POST a cancel, which must
    /// not reach the request of another client.
    closed: VecDeque<IdKey>,
    /// The requests that closed clients had open, whose answers may still come.
    gone: VecDeque<GoneRequest<K>>,
}

/// A request whose client has gone.
#[derive(Debug)]
struct GoneRequest<K> {
    number: u64,
    client: K,
    id: Id,
}

/// How many requests may be unanswered at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MultiplexerLimits {
    /// Requests of all clients together.
    pub open: usize,
    /// Requests of one client.
    pub open_per_client: usize,
    /// Requests of the server to all clients together.
    pub asked: usize,
    /// Requests of the server to one client.
    pub asked_per_client: usize,
}

/// Where a server's message goes, with the client's ids in it.
#[derive(Clone, Debug)]
pub enum Delivery<K> {
    /// To the client whose request it answers or names.
    To(K, Message),
    /// A request: to one client, which the caller chooses and passes to [`RequestMultiplexer::ask_client`].
    ToAny(Message),
    /// A notification that names no request, such as `list_changed`. The caller decides which clients get it.
    Everyone(Message),
    /// It answers or names nothing that is open, or is not a single message.
    Nobody,
}

/// The clients that a server's message is for, found without delivering it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recipient<K> {
    /// This client, which knows the request that the message is about by this id.
    Client(K, Id),
    /// One client, which the caller chooses.
    AnyClient,
    /// No client in particular.
    Everyone,
    /// No client.
    Nobody,
}

/// Why a message cannot be passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MultiplexerError {
    /// One client has as many unanswered requests as it may have.
    #[error("{0} requests of this client are unanswered, which is the limit")]
    ClientLimit(usize),
    /// All clients together have.
    #[error("{0} requests on this connection are unanswered, which is the limit")]
    TotalLimit(usize),
    /// It answers, cancels or reports on a request that is not open, or it is not clear which one is meant.
    #[error("it belongs to no open request, or not clearly to one")]
    UnknownRequest,
    /// It is not the kind of message that can be sent this way.
    #[error("it is not a single request, notification or answer")]
    WrongKind(Kind),
}

impl Default for MultiplexerLimits {
    fn default() -> MultiplexerLimits {
        MultiplexerLimits {
            open: 16_384,
            open_per_client: 1_024,
            asked: 1_024,
            asked_per_client: 64,
        }
    }
}

impl<K: Clone + Eq + Hash> Default for RequestMultiplexer<K> {
    fn default() -> RequestMultiplexer<K> {
        RequestMultiplexer::new(MultiplexerLimits::default())
    }
}

impl<K: Clone + Eq + Hash> RequestMultiplexer<K> {
    /// A multiplexer without open requests.
    pub fn new(limits: MultiplexerLimits) -> RequestMultiplexer<K> {
        RequestMultiplexer {
            open: RequestTable::new(limits.open, limits.open_per_client),
            asked: RequestTable::new(limits.asked, limits.asked_per_client),
            asked_ids: AskedIds::default(),
            closed: VecDeque::new(),
            gone: VecDeque::new(),
        }
    }

    /// Lets the server's requests reach clients under the ids `"PREFIX-1"`, `"PREFIX-2"` and so on, instead of numbers. Where
    /// several servers ask the same clients, each server's multiplexer needs a prefix of its own.
    #[must_use]
    pub fn with_asked_prefix(mut self, prefix: &str) -> RequestMultiplexer<K> {
        self.asked_ids = AskedIds::prefixed(prefix);
        self
    }

    /// Whether a request of this client waits for its answer. One that was cancelled does: its answer may be on its way.
    pub fn is_open(&self, client: &K) -> bool {
        self.open.has_client(client)
    }

    /// The id of the oldest request of this client that waits for its answer.
    pub fn open_id(&self, client: &K) -> Option<Id> {
        self.open.first_of(client).map(|request| request.id.clone())
    }

    /// How many requests of clients wait for their answers.
    pub fn open_count(&self) -> usize {
        self.open.len()
    }

    /// The client of the oldest open request that asked for log messages, else of the oldest open request. For callers that
    /// have no other way to deliver what is for [everyone](Delivery::Everyone).
    pub fn oldest_open(&self) -> Option<K> {
        let logs = self.open.iter().find(|request| request.wants_logs);
        let oldest = logs.or_else(|| self.open.iter().next());
        oldest.map(|request| request.client.clone())
    }
}
