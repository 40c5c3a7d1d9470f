//! The hub's state: clients on one side, servers on the other, calls in between.
//!
//! Events come in through the methods, together with the time; [`HubAction`]s come out. Nothing here waits, opens or
//! writes anything. The driver holds one hub behind a lock and carries out its actions.

mod answers;
mod asks;
mod calls;
mod catalog_build;
mod changes;
mod clients;
mod eras;
mod links;
mod listening;
mod lists;
mod log_levels;
mod lost_calls;
mod proxy_calls;
mod rendering;
mod requests;
mod result_cache;
mod servers;
mod subscriptions;
mod tasks;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp_proxy_wire::Message;
use rustc_hash::FxHashMap;

use crate::catalog::{Catalog, CatalogView, ServerIndex, ServerListing};
use crate::proxy_tool::ProxyToolOptions;
use crate::server_link::{CallId, ClientId, LinkId, ServerLink};
use crate::settings::{HubSettings, ServerSettings};
use calls::{Batch, BatchId, Call};
use catalog_build::BuildState;
pub use catalog_build::{BuiltCatalog, CatalogBuild};
pub use changes::{NewServer, ServerChange, UnknownServer};
use clients::Client;
use log_levels::LogLevel;
pub use rendering::{AnswerRendering, RenderedAnswer};
use result_cache::ResultCache;
use servers::{LinkOwner, Server};
pub use servers::{ServerState, ServerStatus};
use subscriptions::Subscriptions;
use tasks::Tasks;

/// What the driver has to do.
#[derive(Debug)]
pub enum HubAction {
    /// Open a link to this server, and report how that went.
    Dial {
        /// What the link is called from now on.
        link: LinkId,
        /// Where it leads.
        server: ServerIndex,
    },
    /// End a link. Its end is reported as for any other.
    Close(LinkId),
    /// Send a message to a server.
    ToServer {
        /// By which link.
        link: LinkId,
        /// The message.
        message: Message,
        /// The record's number of the client's request that caused it.
        parent: Option<u64>,
    },
    /// Send a message to a client.
    ToClient(ClientId, Message),
    /// Disconnect a client.
    CloseClient(ClientId),
    /// Make a new catalog, and hand it to [`Hub::catalog_built`].
    BuildCatalog(CatalogBuild),
    /// Make an answer ready, and hand it to [`Hub::answer_rendered`] before anything else of the same server.
    Render(Box<AnswerRendering>),
    /// Keep what a server offers for the next start.
    SaveListing {
        /// The server's name.
        server: String,
        /// What it offers.
        listing: Arc<ServerListing>,
    },
    /// Tell the operator something.
    Log(String),
    /// One line for the audit log: a call is over.
    Audit(AuditRecord),
}

/// A finished call, without its arguments.
#[derive(Clone, Debug)]
pub struct AuditRecord {
    /// Who called: the name that the client gave itself.
    pub client: String,
    /// The method and the public name or URI.
    pub what: String,
    /// The server that it went to.
    pub server: String,
    /// How it ended.
    pub outcome: CallOutcome,
    /// From the request to the answer.
    pub latency: Duration,
    /// Bytes of the request and of the answer.
    pub sizes: (usize, usize),
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// With a result.
    Succeeded,
    /// With a result that says `isError`.
    ToolFailed,
    /// With a JSON-RPC error.
    Failed,
    /// With the result of an earlier call, without asking the server.
    Cached,
}

/// Why a link ended, in words for a client: no inner paths, no secrets.
#[derive(Clone, Debug)]
pub struct LinkClosed {
    /// What happened.
    pub reason: String,
}

/// Requests of a link with numbers up to this one may have reached the server. Later ones have certainly not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct WrittenUpTo(pub u64);

/// The hub.
#[derive(Debug)]
pub struct Hub {
    settings: HubSettings,
    proxy_tool: ProxyToolOptions,
    servers: Vec<Server>,
    links: FxHashMap<LinkId, OpenLink>,
    clients: BTreeMap<ClientId, Client>,
    calls: FxHashMap<CallId, Call>,
    batches: FxHashMap<BatchId, Batch>,
    catalog: Arc<Catalog>,
    views: Vec<Arc<CatalogView>>,
    build: BuildState,
    subscriptions: Subscriptions,
    tasks: Tasks,
    cache: ResultCache,
    /// No deadline is earlier than this.
    alarm: Option<Instant>,
    next: u64,
    actions: Vec<HubAction>,
}

#[derive(Debug)]
struct OpenLink {
    server: ServerIndex,
    owner: LinkOwner,
    /// The log level that the server was told.
    level: Option<LogLevel>,
    state: ServerLink,
    /// How far the requests on it have been written, once that is known.
    written: Option<WrittenUpTo>,
}

impl Hub {
    /// A hub in front of these servers. Eager ones are started at once.
    pub fn new(settings: HubSettings, servers: Vec<ServerSettings>, now: Instant) -> Hub {
        let mut hub = Hub {
            proxy_tool: settings.proxy_tool.clone(),
            settings,
            servers: servers.into_iter().map(Server::new).collect(),
            links: FxHashMap::default(),
            clients: BTreeMap::new(),
            calls: FxHashMap::default(),
            batches: FxHashMap::default(),
            catalog: Arc::new(Catalog::build(&[])),
            views: Vec::new(),
            build: BuildState::default(),
            subscriptions: Subscriptions::default(),
            tasks: Tasks::default(),
            cache: ResultCache::default(),
            alarm: None,
            next: 0,
            actions: Vec::new(),
        };
        hub.report_disabled_servers();
        hub.rebuild_catalog_now();
        hub.start_eager_servers(now);
        hub
    }

    /// What there is to do since the last call.
    pub fn take_actions(&mut self) -> Vec<HubAction> {
        self.update_all_listening();
        std::mem::take(&mut self.actions)
    }

    /// When [`Hub::wake`] wants to be called, if nothing else happens.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.alarm
    }

    /// Something has to happen at `at`.
    fn schedule(&mut self, at: Instant) {
        self.alarm = Some(self.alarm.map_or(at, |alarm| alarm.min(at)));
    }

    /// Time has passed.
    pub fn wake(&mut self, now: Instant) {
        self.wake_links(now);
        self.wake_servers(now);
        self.wake_calls(now);
        self.wake_clients(now);
        let links = self.links.values().filter_map(|link| link.state.deadline());
        let servers = self.servers.iter().filter_map(Server::deadline);
        let clients = self.clients.values().filter_map(Client::deadline);
        let calls = self.calls.values().filter_map(|call| call.deadline);
        self.alarm = links.chain(servers).chain(clients).chain(calls).min();
    }

    fn next_id(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn send_to_client(&mut self, client: ClientId, message: Message) {
        self.actions.push(HubAction::ToClient(client, message));
    }

    /// Hands over what a link wants to send.
    fn flush_link(&mut self, id: LinkId, parent: Option<u64>) {
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        let actions = link.state.take_output().map(|message| HubAction::ToServer {
            link: id,
            message,
            parent,
        });
        self.actions.extend(actions);
        if let Some(deadline) = link.state.deadline() {
            self.schedule(deadline);
        }
    }
}
