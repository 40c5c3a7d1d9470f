//! The hub's state: clients on one side, servers on the other, calls in between.
//!
//! Events come in through the methods, together with the time; [`HubAction`]s come out. Nothing here waits, opens or
//! writes anything. The driver holds one hub behind a lock and carries out its actions.

mod answers;
mod asks;
mod batches;
mod call_gate;
mod calls;
mod catalog_build;
mod changes;
mod clients;
pub(crate) mod dispatch_answers;
mod dispatch_calls;
mod eras;
mod expected_arguments;
mod hidden_paths;
mod known_clients;
mod links;
mod listed;
mod listening;
mod lists;
mod log_levels;
mod lost_calls;
mod parking;
mod proxy_calls;
mod refresh;
mod rendering;
mod requests;
mod result_cache;
mod result_references;
mod roots;
mod server_listening;
mod servers;
mod sign_in;
mod sign_in_pages;
mod spilling;
mod stopping;
mod subscriptions;
mod task_table;
mod tasks;
mod unlisted_names;
mod work;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp_proxy_spill::SpillOwner;
use mcp_proxy_wire::Message;
use rustc_hash::FxHashMap;

use crate::catalog::{Catalog, CatalogView, ServerIndex, ServerListing};
use crate::proxy_tool::ProxyToolOptions;
use crate::server_link::{CallId, ClientId, LinkId, ServerLink};
use crate::settings::{HubSettings, ServerSettings};
use crate::sign_in_need::SignInNeed;
use batches::{Batch, BatchId};
use call_gate::CallGate;
use calls::Call;
use catalog_build::BuildState;
pub use catalog_build::{BuiltCatalog, BuiltConfiguration, CatalogBuild, NewConfiguration};
pub use changes::{NewServer, ServerChange, ServerChangeError};
pub use clients::CallerKey;
use clients::Client;
#[cfg(test)]
pub(crate) use lists::search_result;
use log_levels::LogLevel;
use refresh::RefreshWait;
pub use rendering::{AnswerRendering, RenderedAnswer};
use result_cache::ResultCache;
use roots::RootsQuestion;
use servers::{LinkOwner, Server};
pub use servers::{ServerState, ServerStatus};
pub use sign_in::SignInChange;
pub use sign_in_pages::SignInId;
use subscriptions::Subscriptions;
use task_table::TaskTable;
pub(crate) use work::WorkClient;
pub use work::{FinishedWork, HubWork};
use work::{PendingWork, WorkId};

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
    /// Do something that takes a while, and hand its outcome to [`Hub::work_finished`].
    Work(Box<HubWork>),
    /// Remove the results in files that this client had.
    ForgetFiles(SpillOwner),
    /// Begin a sign-in to a server, and report its page to [`Hub::sign_in_begun`] and its end to [`Hub::sign_in_ended`].
    BeginSignIn {
        /// What it is called from now on.
        sign_in: SignInId,
        /// The server.
        server: ServerIndex,
    },
    /// Nobody waits for this sign-in any more.
    EndSignIn(SignInId),
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
    /// The server that it went to. None: nothing has that name, so it was refused.
    pub server: Option<String>,
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
    /// Without an answer: its client cancelled it, or left.
    Cancelled,
    /// With an error of the hub itself: the name or URI means nothing to this client, or more than one thing.
    Refused,
}

/// Why a link ended, in words for a client: no inner paths, no secrets.
#[derive(Clone, Debug)]
pub struct LinkClosed {
    /// What happened.
    pub reason: String,
    /// The server has ended by itself without a failure: a process with status 0.
    pub is_orderly: bool,
    /// It has ended because the server wants a sign-in.
    pub sign_in: Option<SignInNeed>,
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
    works: FxHashMap<WorkId, PendingWork>,
    refreshes: Vec<RefreshWait>,
    /// Why the last result that should be in a file is not.
    spill_failure: Option<String>,
    catalog: Arc<Catalog>,
    views: Vec<Arc<CatalogView>>,
    build: BuildState,
    subscriptions: Subscriptions,
    tasks: TaskTable,
    cache: ResultCache,
    /// No deadline is earlier than this.
    alarm: Option<Instant>,
    next: u64,
    actions: Vec<HubAction>,
    /// Finished calls are told.
    audits: bool,
    /// New requests are refused.
    is_stopping: bool,
}

#[derive(Debug)]
struct OpenLink {
    server: ServerIndex,
    owner: LinkOwner,
    /// The log level that the server was told.
    level: Option<LogLevel>,
    state: ServerLink,
    /// It was opened for everyone, even if it is one client's by now.
    is_for_everyone: bool,
    /// How far the requests on it have been written, once that is known.
    written: Option<WrittenUpTo>,
    roots: RootsQuestion,
    gate: CallGate,
    users: LinkUsers,
}

/// The clients whose calls a link has carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LinkUsers {
    #[default]
    Nobody,
    One(ClientId),
    Several,
}

impl LinkUsers {
    fn add(&mut self, client: ClientId) {
        *self = match *self {
            LinkUsers::Nobody => LinkUsers::One(client),
            LinkUsers::One(known) if known == client => return,
            LinkUsers::One(_) | LinkUsers::Several => LinkUsers::Several,
        };
    }
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
            works: FxHashMap::default(),
            refreshes: Vec::new(),
            spill_failure: None,
            catalog: Arc::new(Catalog::build(&[])),
            views: Vec::new(),
            build: BuildState::default(),
            subscriptions: Subscriptions::default(),
            tasks: TaskTable::default(),
            cache: ResultCache::default(),
            alarm: None,
            next: 0,
            actions: Vec::new(),
            audits: true,
            is_stopping: false,
        };
        hub.report_disabled_servers();
        hub.rebuild_catalog_now();
        hub.start_eager_servers(now);
        hub
    }

    /// What there is to do since the last call.
    pub fn take_actions(&mut self) -> Vec<HubAction> {
        let mut actions = Vec::new();
        self.swap_actions(&mut actions);
        actions
    }

    /// The same, in exchange for an empty vector. The driver gives the same one back after each message.
    pub fn swap_actions(&mut self, empty: &mut Vec<HubAction>) {
        self.update_all_listening();
        std::mem::swap(&mut self.actions, empty);
    }

    /// Makes no [`HubAction::Audit`] from now on: nobody reads them.
    pub fn stop_audit(&mut self) {
        self.audits = false;
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
        self.wake_sign_ins(now);
        self.wake_clients(now);
        self.wake_roots(now);
        self.wake_gates(now);
        self.run_refreshed(now);
        let links = self
            .links
            .values()
            .flat_map(|link| {
                let (roots, gate) = (link.roots.deadline(), link.gate.deadline());
                [link.state.deadline(), roots, gate]
            })
            .flatten();
        let servers = self.servers.iter().filter_map(Server::deadline);
        let clients = self.clients.values().filter_map(Client::deadline);
        let calls = self.calls.values().filter_map(Call::deadline);
        let refreshes = self.refreshes.iter().map(RefreshWait::deadline);
        let others = clients.chain(calls).chain(refreshes);
        let others = others.chain(self.sign_in_deadline());
        self.alarm = links.chain(servers).chain(others).min();
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
