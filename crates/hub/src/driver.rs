//! Carries out what the [`Hub`] decides: opens links, moves messages, keeps time.
//!
//! The hub is behind one lock, which is held while a message is looked at and never across a wait. A message of a client is
//! handed to the hub by the task that received it, and what comes of it is put into the queues of others, so a call
//! crosses two queues: one to the server and one back.

mod client_queue;
mod conversation;
mod sending;
mod signing_in;
mod tracking_writer;
mod work_turns;
mod writers;

use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use mcp_proxy_core::{
    Caller, CarryOptions, Dial, Link, LinkEnd, LostNotifications, MemoryBudget, Peer, ProxyRun,
};
use mcp_proxy_spill::{SpillOwner, SpillStore};
use mcp_proxy_wire::{ErrorCode, Frame, Message, Origin, Side};
use rustc_hash::FxHashMap;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::AbortHandle;

use crate::catalog::{ServerIndex, ServerListing};
use crate::hub::{
    AnswerRendering, AuditRecord, CallerKey, CatalogBuild, Hub, HubAction, HubWork, NewServer,
    ServerChange, ServerChangeError, ServerStatus, SignInId,
};
use crate::server_link::{ClientId, LinkId};
use crate::settings::{HubSettings, ServerSettings};
use client_queue::{ClientQueue, client_queue};
use sending::RefusedBy;
pub use signing_in::{BeginSignIn, SignInPage};
use work_turns::WorkTurns;
use writers::ClientWriter;

pub(crate) use work_turns::WorkLength;

/// Messages that may wait for a server. The multiplexer allows as many open requests.
const SERVER_QUEUE: usize = 16_384;

/// After the last answer, before clients are disconnected: their connections write what they have.
const LAST_ANSWERS: Duration = Duration::from_millis(200);
/// How often results in files are looked at whose time may be over. One that is read too late is refused in any case.
const EXPIRY_CHECK: Duration = Duration::from_secs(20);

/// A server and how to reach it.
pub struct HubServer {
    /// How it is used.
    pub settings: ServerSettings,
    /// How it is reached.
    pub route: ServerRoute,
}

/// How a server is reached.
#[derive(Clone)]
pub struct ServerRoute {
    /// What it is to the record.
    pub peer: Peer,
    /// Opens a link to it.
    pub dial: Dial,
    /// Begins a sign-in to it, if a person can sign in.
    pub sign_in: Option<BeginSignIn>,
}

/// Keeps what the server of this name offers.
pub(crate) type SaveListingCallback = Arc<dyn Fn(&str, &Arc<ServerListing>) + Send + Sync>;

/// Told a call that is over.
pub(crate) type AuditCallback = Arc<dyn Fn(&AuditRecord) + Send + Sync>;

/// Where the hub reports to.
#[derive(Clone)]
pub struct HubReports {
    /// Told what the operator should know.
    pub log: Arc<dyn Fn(&str) + Send + Sync>,
    /// Given what a server offers, to keep it for the next start.
    pub save: SaveListingCallback,
    /// Told each call that is over, if somebody wants to know.
    pub audit: Option<AuditCallback>,
}

/// How many notifications slow clients have lost, and how much memory waits.
#[derive(Clone, Copy, Debug, Default)]
pub struct HubBacklog {
    /// Notifications that were not delivered since the hub started.
    pub lost_notifications: u64,
    /// Clients that have lost some and have not caught up yet.
    pub clients_behind: usize,
    /// How full the memory for messages is.
    pub memory: MemoryLoad,
}

/// How full the memory for messages that wait is.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryLoad {
    /// Bytes that wait.
    pub used: usize,
    /// Bytes that may wait.
    pub budget: usize,
    /// Messages that there was no room for.
    pub refused: u64,
}

/// A running hub.
pub struct HubDriver {
    run: Arc<ProxyRun>,
    carry: CarryOptions,
    reports: HubReports,
    state: Mutex<DriverState>,
    /// Held while a new configuration is taken on.
    reconfiguring: Mutex<()>,
    /// The next deadline has come nearer.
    alarm: Notify,
    /// How many conversations with servers there are.
    conversations: watch::Sender<usize>,
    /// Conversations with servers are ended.
    ending: watch::Sender<bool>,
    /// The hub is stopping, and every request is answered.
    drained: Notify,
    /// Results in files.
    spill_store: Option<Arc<SpillStore>>,
    caller_hash: RandomState,
    work_turns: Arc<WorkTurns>,
    own: Weak<HubDriver>,
}

struct DriverState {
    hub: Hub,
    /// How each server is reached, in the hub's order.
    routes: Vec<ServerRoute>,
    /// Sign-ins that clients wait for.
    sign_ins: FxHashMap<SignInId, AbortHandle>,
    clients: FxHashMap<ClientId, ClientQueue>,
    links: FxHashMap<LinkId, mpsc::Sender<Box<Frame>>>,
    /// How much may wait in the queues of clients and servers.
    memory: MemoryBudget,
    /// Empty; what the hub wants done is put into it.
    actions: Vec<HubAction>,
    /// No server is started any more.
    is_closing: bool,
}

impl HubDriver {
    /// Starts the hub, and the servers that start with it.
    pub fn start(
        run: Arc<ProxyRun>,
        settings: HubSettings,
        servers: Vec<HubServer>,
        carry: CarryOptions,
        reports: HubReports,
    ) -> Arc<HubDriver> {
        let (server_settings, routes) = servers
            .into_iter()
            .map(|server| (server.settings, server.route))
            .unzip();
        let spill_store = settings.spill.store.clone();
        let mut hub = Hub::new(settings, server_settings, Instant::now());
        if reports.audit.is_none() {
            hub.stop_audit();
        }
        let memory = run.memory().clone();
        let driver = Arc::new_cyclic(|own| HubDriver {
            run,
            carry,
            reports,
            state: Mutex::new(DriverState {
                hub,
                routes,
                sign_ins: FxHashMap::default(),
                clients: FxHashMap::default(),
                memory,
                links: FxHashMap::default(),
                actions: Vec::new(),
                is_closing: false,
            }),
            reconfiguring: Mutex::default(),
            alarm: Notify::new(),
            conversations: watch::Sender::default(),
            ending: watch::Sender::default(),
            drained: Notify::new(),
            spill_store,
            caller_hash: RandomState::new(),
            work_turns: Arc::new(WorkTurns::new()),
            own: Weak::clone(own),
        });
        driver.with_hub(|_| ());
        tokio::spawn(keep_time(Arc::downgrade(&driver)));
        if let Some(store) = &driver.spill_store {
            tokio::spawn(remove_expired(Arc::downgrade(store)));
        }
        driver
    }

    /// Opens client sessions of this profile: what a listener uses in place of a server.
    pub fn dial(self: &Arc<Self>, profile: &str) -> Dial {
        let (driver, profile) = (Arc::clone(self), profile.to_owned());
        Arc::new(move |connection| {
            let caller = connection.client.caller.as_deref();
            let caller = caller.map(|caller| driver.caller_key(caller, &profile));
            let lost = Arc::clone(connection.lost_notifications());
            let link = driver.open_client(&profile, caller, lost);
            Box::pin(std::future::ready(link))
        })
    }

    /// How the servers are doing.
    pub fn status(&self) -> Vec<ServerStatus> {
        self.lock().hub.status()
    }

    /// The server of the tool that clients call by this name.
    pub fn server_of_tool(&self, tool: &str) -> Option<String> {
        self.lock().hub.server_of_tool(tool)
    }

    /// Whether clients see all that servers have listed so far.
    pub fn is_catalog_current(&self) -> bool {
        self.lock().hub.is_catalog_current()
    }

    /// How many clients are connected.
    pub fn client_count(&self) -> usize {
        self.lock().hub.client_count()
    }

    /// How the hub copes with clients that do not keep up.
    pub fn backlog(&self) -> HubBacklog {
        let state = self.lock();
        HubBacklog {
            lost_notifications: self.run.lost_notifications(),
            memory: MemoryLoad {
                used: state.memory.used(),
                budget: state.memory.limit(),
                refused: state.memory.refused(),
            },
            clients_behind: state
                .clients
                .values()
                .filter(|queue| queue.is_behind())
                .count(),
        }
    }

    /// Refuses new requests, and gives open ones this long to be answered, unless `hurry` resolves before. Then they fail, and
    /// clients are disconnected.
    pub async fn drain(&self, deadline: Duration, hurry: impl Future<Output = ()>) {
        self.with_hub(Hub::stop_taking_requests);
        if !self.lock().hub.is_drained() {
            tokio::select! {
                () = self.drained.notified() => {}
                () = tokio::time::sleep(deadline) => {}
                () = hurry => {}
            }
            self.with_hub(|hub| hub.fail_open_requests(Instant::now()));
        }
        // The last answer may have been given just before the signal.
        if self.client_count() > 0 {
            tokio::time::sleep(LAST_ANSWERS).await;
        }
        self.lock().clients.clear();
    }

    /// Ends all conversations with servers, and waits until they have ended. Servers that take longer than this are killed
    /// with the program.
    pub async fn shut_down(&self, deadline: Duration) {
        {
            let mut state = self.lock();
            state.is_closing = true;
            state.links.clear();
            state.sign_ins.drain().for_each(|(_, task)| task.abort());
        }
        self.ending.send_replace(true);
        let mut conversations = self.conversations.subscribe();
        let ended = conversations.wait_for(|count| *count == 0);
        let _ = tokio::time::timeout(deadline, ended).await;
        if let Some(store) = &self.spill_store {
            away_from_io(|| store.close());
        }
    }

    /// A server printed a line on stderr. It has no secrets in it. Whether the operator has not seen it yet.
    pub fn server_printed(&self, name: &str, line: &str) -> bool {
        self.lock().hub.server_printed(name, line)
    }

    /// Changes the state of one server.
    pub fn change_server(&self, name: &str, change: ServerChange) -> Result<(), ServerChangeError> {
        let mut outcome = Ok(());
        self.with_hub(|hub| outcome = hub.change_server(name, change, Instant::now()));
        outcome
    }

    /// Takes on a new configuration, with all its servers in order.
    pub fn reconfigure(&self, settings: HubSettings, servers: Vec<(NewServer, ServerRoute)>) {
        let (servers, routes): (Vec<NewServer>, Vec<ServerRoute>) = servers.into_iter().unzip();
        // Only one at a time: what is prepared here must fit the hub that it is given to.
        let turn = self.reconfiguring.lock();
        let new = self.lock().hub.prepare(settings, servers);
        let new = away_from_io(|| new.run());
        self.with_state(|state| {
            state.routes = routes;
            state.hub.reconfigure(new, Instant::now());
        });
        drop(turn);
    }

    fn open_client(
        &self,
        profile: &str,
        caller: Option<CallerKey>,
        lost: Arc<LostNotifications>,
    ) -> Result<Link, LinkEnd> {
        let mut state = self.lock();
        let Some(client) = state.hub.client_opened(profile, caller) else {
            let text = format!("the hub has no profile {profile:?}");
            return Err(LinkEnd::failed(
                Side::Server,
                ErrorCode::SERVER_UNAVAILABLE,
                text,
            ));
        };
        let (queue, reader) = client_queue(self.own.clone(), client, lost);
        state.clients.insert(client, queue);
        drop(state);
        let writer = ClientWriter {
            driver: self.own.clone(),
            client,
        };
        Ok(Link::new(reader, writer))
    }

    fn lock(&self) -> MutexGuard<'_, DriverState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the hub handle something, and does what it wants done.
    fn with_hub(&self, handle: impl FnOnce(&mut Hub)) {
        self.with_state(|state| handle(&mut state.hub));
    }

    fn with_state(&self, handle: impl FnOnce(&mut DriverState)) {
        let mut state = self.lock();
        let before = state.hub.next_deadline();
        handle(&mut state);
        let mut reports = Vec::new();
        let mut renderings = Vec::new();
        let mut forgotten = Vec::new();
        let mut refusals = Vec::new();
        let mut actions = std::mem::take(&mut state.actions);
        state.hub.swap_actions(&mut actions);
        for action in actions.drain(..) {
            match action {
                HubAction::ToServer {
                    link,
                    message,
                    parent,
                } => {
                    let refusal = state.send_to_server(link, message, parent);
                    refusals.extend(refusal.map(|refusal| (RefusedBy::Server(link), refusal)));
                }
                HubAction::ToClient(client, message) => {
                    let sent = state.send_to_client(client, message);
                    reports.extend(sent.report.map(HubAction::Log));
                    let refusal = sent.refusal;
                    refusals.extend(refusal.map(|refusal| (RefusedBy::Client(client), refusal)));
                }
                HubAction::Dial { link, server } => self.open_link(&mut state, link, server),
                HubAction::BeginSignIn { sign_in, server } => {
                    self.begin_sign_in(&mut state, sign_in, server);
                }
                HubAction::EndSignIn(sign_in) => state.end_sign_in(sign_in),
                HubAction::BuildCatalog(build) => self.build_catalog(build),
                HubAction::Work(work) => self.work(*work),
                HubAction::ForgetFiles(owner) => forgotten.push(owner),
                HubAction::Render(rendering) => renderings.push(*rendering),
                // The reader of the queue ends with it, and so does the conversation.
                HubAction::Close(link) => drop(state.links.remove(&link)),
                HubAction::CloseClient(client) => drop(state.clients.remove(&client)),
                report @ (HubAction::Log(_)
                | HubAction::Audit(_)
                | HubAction::SaveListing { .. }) => reports.push(report),
            }
        }
        state.actions = actions;
        let after = state.hub.next_deadline();
        if state.hub.is_drained() {
            self.drained.notify_one();
        }
        drop(state);
        if after.is_some_and(|after| before.is_none_or(|before| after < before)) {
            self.alarm.notify_one();
        }
        self.render(renderings);
        self.forget_files(forgotten);
        self.refuse(refusals);
        for report in reports {
            match report {
                HubAction::Log(text) => (self.reports.log)(&text),
                HubAction::Audit(record) => {
                    if let Some(audit) = &self.reports.audit {
                        audit(&record);
                    }
                }
                HubAction::SaveListing { server, listing } => {
                    (self.reports.save)(&server, &listing);
                }
                _ => {}
            }
        }
    }

    /// Answers requests that there was no room for.
    fn refuse(&self, refusals: Vec<(RefusedBy, Message)>) {
        for (by, refusal) in refusals {
            self.with_hub(|hub| match by {
                RefusedBy::Client(client) => {
                    hub.client_message(client, &refusal, None, Instant::now());
                }
                RefusedBy::Server(link) => {
                    hub.link_message(link, &refusal, Origin::Proxy, Instant::now())
                }
            });
        }
    }

    /// Makes answers ready that are large or go to files. The server that they come from waits, so its messages stay in order.
    fn render(&self, renderings: Vec<AnswerRendering>) {
        for rendering in renderings {
            let rendered = away_from_io(|| rendering.run());
            self.with_hub(|hub| hub.answer_rendered(rendered, Instant::now()));
        }
    }

    fn forget_files(&self, owners: Vec<SpillOwner>) {
        let Some(store) = self.spill_store.as_ref().filter(|_| !owners.is_empty()) else {
            return;
        };
        let store = Arc::clone(store);
        tokio::task::spawn_blocking(move || {
            owners
                .into_iter()
                .for_each(|owner| store.forget_owner(owner));
        });
    }

    /// Does a piece of work on a thread that serves nobody.
    fn work(&self, work: HubWork) {
        let driver = self.own.clone();
        let failure = work.failure();
        let turns = Arc::clone(&self.work_turns);
        tokio::spawn(async move {
            let _turn = turns.take(work.client(), work.length()).await;
            // Its client may have left, or changed its mind, while it waited for its turn.
            if !work.is_wanted() {
                return;
            }
            let done = tokio::task::spawn_blocking(move || work.run(Instant::now())).await;
            if let Some(driver) = driver.upgrade() {
                let finished = done.unwrap_or(failure);
                driver.with_hub(|hub| hub.work_finished(finished, Instant::now()));
            }
        });
    }

    /// Who sends a request, for clients that have no sessions.
    fn caller_key(&self, caller: &Caller, profile: &str) -> CallerKey {
        CallerKey(self.caller_hash.hash_one((&caller.token, profile)))
    }

    /// Makes a catalog on a thread that serves nobody.
    fn build_catalog(&self, build: CatalogBuild) {
        let driver = self.own.clone();
        tokio::task::spawn_blocking(move || {
            let built = build.run();
            if let Some(driver) = driver.upgrade() {
                driver.with_hub(|hub| hub.catalog_built(built, Instant::now()));
                let searched = driver.lock().hub.searched_catalog();
                if let Some(catalog) = searched {
                    catalog.prepare_search();
                }
            }
        });
    }

    fn open_link(&self, state: &mut DriverState, link: LinkId, server: ServerIndex) {
        if state.is_closing {
            return;
        }
        let (sender, receiver) = mpsc::channel(SERVER_QUEUE);
        state.links.insert(link, sender);
        let route = state.routes.get(usize::from(server.0)).cloned();
        if let (Some(driver), Some(ServerRoute { peer, dial, .. })) = (self.own.upgrade(), route) {
            self.conversations.send_modify(|count| *count += 1);
            tokio::spawn(async move {
                Arc::clone(&driver)
                    .converse(link, peer, dial, receiver)
                    .await;
                driver.conversations.send_modify(|count| *count -= 1);
            });
        }
    }
}

/// Does something that takes milliseconds, on a runtime of several threads without keeping its other tasks waiting.
fn away_from_io<T>(work: impl FnOnce() -> T) -> T {
    match Handle::current().runtime_flavor() {
        RuntimeFlavor::MultiThread => tokio::task::block_in_place(work),
        _ => work(),
    }
}

/// Removes results whose time is over.
async fn remove_expired(store: Weak<SpillStore>) {
    loop {
        tokio::time::sleep(EXPIRY_CHECK).await;
        let Some(store) = store.upgrade() else {
            return;
        };
        let _ = tokio::task::spawn_blocking(move || store.sweep_expired(Instant::now())).await;
    }
}

async fn keep_time(driver: Weak<HubDriver>) {
    loop {
        let Some(strong) = driver.upgrade() else {
            return;
        };
        let deadline = strong.lock().hub.next_deadline();
        let alarm = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
                None => std::future::pending().await,
            }
        };
        let is_due = tokio::select! {
            () = alarm => true,
            () = strong.alarm.notified() => false,
            // Looks now and then whether the hub is still there.
            () = tokio::time::sleep(Duration::from_secs(5)) => false,
        };
        if is_due {
            strong.with_hub(|hub| hub.wake(Instant::now()));
        }
    }
}
