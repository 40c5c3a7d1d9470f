//! The servers, and how they are doing.

use std::collections::VecDeque;
use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::time::Instant;

use mcp_proxy_wire::Era;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use super::Hub;
use super::catalog_build::WARNINGS_SHOWN;
use super::sign_in_pages::PendingSignIn;
use crate::catalog::{ChangedKinds, ItemKind, ServerIndex, ServerListing};
use crate::config::{SharingScope, StartMode};
use crate::server_link::{ClientId, LinkId, ServerDescription};
use crate::settings::{KnownEras, ServerSettings};
use crate::sign_in_need::SignInNeed;

/// Who uses a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum LinkOwner {
    /// All clients.
    Everyone,
    /// One client session.
    Client(ClientId),
}

/// What is known about a server's support of an era.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum EraSupport {
    #[default]
    Unknown,
    Yes,
    No,
}

/// How long requests wait for the first start of a server.
#[derive(Clone, Copy, Debug)]
pub(super) struct SettleDeadlines {
    /// The answer to a client's opening: some clients give up early.
    pub(super) opening: Instant,
    /// Lists, and requests for something that nobody has listed.
    pub(super) lists: Instant,
}

/// Why a server cannot be used that an operator has disabled.
pub(super) const DISABLED_BY_OPERATOR: &str =
    "it is disabled (with `servers.disable`; `servers.enable` lets clients use it again)";
/// Lines of a server's stderr in the reason why it failed.
const STDERR_LINES: usize = 5;
/// Lines of failed starts that are not shown again.
const SEEN_LINES: usize = 4_096;
/// Characters of each.
const STDERR_LINE_MAX: usize = 200;

/// How a server is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerState {
    /// It cannot be used, for this reason.
    Disabled(String),
    /// It runs when it is needed.
    Stopped,
    /// It is being started.
    Starting,
    /// It wants to know who asks, and nobody has signed in. The text says what to do.
    NeedsSignIn(String),
    /// It answers, and its lists are known.
    Ready,
    /// It failed and is tried again later.
    Failed(String),
}

/// A server as `status` shows it.
#[derive(Clone, Debug)]
pub struct ServerStatus {
    /// Its configured name.
    pub name: String,
    /// How it is doing.
    pub state: ServerState,
    /// What clients can use of it: tools, resources, templates, prompts.
    pub counts: [usize; 4],
    /// The lists are those of an earlier time.
    pub stale: bool,
    /// How often it was started again.
    pub restarts: u32,
    /// What went wrong last, even if it works again.
    pub last_error: Option<String>,
    /// Clients with a conversation of their own.
    pub own_sessions: usize,
    /// What is wrong with its lists, or was changed in them, such as names that it could not have. The first few.
    pub warnings: Vec<String>,
}

/// One configured server.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) settings: ServerSettings,
    /// Disabled by an operator.
    pub(super) is_switched_off: bool,
    pub(super) listing: Option<Arc<ServerListing>>,
    pub(super) stale: bool,
    /// When it last listed what it offers, in this run.
    pub(super) listed_at: Option<Instant>,
    pub(super) description: ServerDescription,
    /// Conversations that all clients share, legacy and modern.
    pub(super) shared: [Option<LinkId>; 2],
    pub(super) support: [EraSupport; 2],
    pub(super) own: FxHashMap<ClientId, LinkId>,
    /// A request could not be attributed to one client: new sessions get conversations of their own.
    pub(super) needs_own: bool,
    pub(super) failures: u32,
    pub(super) restarts: u32,
    pub(super) last_error: Option<String>,
    /// What a person has to do before it answers.
    pub(super) sign_in_need: Option<SignInNeed>,
    /// The sign-in that clients wait for.
    pub(super) pending_sign_in: Option<PendingSignIn>,
    /// What it printed on stderr last, the oldest line first.
    pub(super) last_stderr: VecDeque<String>,
    /// Lines that it printed while it failed to start, as hashes.
    pub(super) seen_stderr: FxHashSet<u64>,
    pub(super) retry_at: Option<Instant>,
    pub(super) ready_since: Option<Instant>,
    /// It has been ready, or has failed, once.
    pub(super) settled: bool,
    /// How long requests for what all servers offer wait for its first start.
    pub(super) settle_by: Option<SettleDeadlines>,
    /// It ended by itself, and has not been started since.
    pub(super) has_failed: bool,
    /// It answers, but could not say all that it offers.
    pub(super) lists_failed: bool,
    /// The operator has not been told yet that it is ready.
    pub(super) is_unannounced: bool,
    /// The lists that it says have changed, while they are read again.
    pub(super) announced: ChangedKinds,
    /// When a call to it was last sent or answered.
    pub(super) used_at: Option<Instant>,
}

impl Server {
    pub(super) fn new(settings: ServerSettings) -> Server {
        Server {
            is_switched_off: false,
            listing: settings.last_listing.clone(),
            stale: settings.last_listing.is_some(),
            listed_at: None,
            description: ServerDescription::default(),
            shared: [None; 2],
            support: match settings.eras {
                KnownEras::None => [EraSupport::Unknown; 2],
                KnownEras::Both => [EraSupport::Yes; 2],
            },
            own: FxHashMap::default(),
            needs_own: settings.scope == SharingScope::Session,
            failures: 0,
            restarts: 0,
            last_error: None,
            sign_in_need: None,
            pending_sign_in: None,
            last_stderr: VecDeque::new(),
            seen_stderr: FxHashSet::default(),
            retry_at: None,
            ready_since: None,
            settled: settings.disabled.is_some() || settings.start == StartMode::Lazy,
            settle_by: None,
            has_failed: false,
            lists_failed: false,
            is_unannounced: false,
            announced: ChangedKinds::default(),
            used_at: None,
            settings,
        }
    }

    /// Why it must not be used, if so.
    pub(super) fn disabled_reason(&self) -> Option<&str> {
        let by_operator = self.is_switched_off.then_some(DISABLED_BY_OPERATOR);
        self.settings.disabled.as_deref().or(by_operator)
    }

    /// Whether a person wants it not to run.
    pub(super) fn is_turned_off(&self) -> bool {
        self.is_switched_off || self.settings.is_turned_off
    }

    /// Whether it is started without being called.
    pub(super) fn starts_by_itself(&self) -> bool {
        self.disabled_reason().is_none() && self.settings.start == StartMode::Eager
    }

    /// Whether it waits to be used, or is started for its first use, and nothing is known about what it offers.
    pub(super) fn is_never_listed(&self) -> bool {
        self.settings.start == StartMode::Lazy
            && self.disabled_reason().is_none()
            && self.listing.is_none()
            && self.last_error.is_none()
            && self.sign_in_need.is_none()
    }

    /// Remembers a line of stderr. `false`: it printed the same in an earlier start that failed too.
    pub(super) fn printed(&mut self, line: &str) -> bool {
        let is_starting = self.ready_since.is_none();
        let is_news = match is_starting && self.seen_stderr.len() < SEEN_LINES {
            true => self.seen_stderr.insert(FxBuildHasher.hash_one(line)),
            false => true,
        };
        if self.last_stderr.len() == STDERR_LINES {
            self.last_stderr.pop_front();
        }
        let line = line.chars().take(STDERR_LINE_MAX).collect();
        self.last_stderr.push_back(line);
        is_news || self.failures == 0
    }

    /// A reason with the last lines of stderr, unless it tells them already.
    pub(super) fn with_stderr(&self, reason: &str) -> String {
        let lines = self.last_stderr.iter();
        let lines: Vec<&str> = lines.map(String::as_str).collect();
        match lines.last() {
            Some(last) if !reason.contains(last) => {
                format!("{reason}; its last stderr lines: {}", lines.join(" | "))
            }
            _ => reason.to_owned(),
        }
    }

    /// A reason with the last line of stderr.
    pub(super) fn with_last_stderr(&self, reason: &str) -> String {
        match self.last_stderr.back() {
            Some(line) => format!("{reason}; its last stderr line: {line}"),
            None => reason.to_owned(),
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        [self.retry_at, self.idle_deadline()]
            .into_iter()
            .flatten()
            .min()
    }

    /// When it is stopped, if nobody uses it until then.
    pub(super) fn idle_deadline(&self) -> Option<Instant> {
        let used_at = self.used_at.or(self.ready_since);
        let used_at = used_at.filter(|_| self.is_running())?;
        Some(used_at + self.settings.idle_stop?)
    }

    /// Whether there is a conversation with it.
    pub(super) fn is_running(&self) -> bool {
        self.shared.iter().any(Option::is_some) || !self.own.is_empty()
    }

    /// Whether nothing has happened with it yet.
    pub(super) fn is_new(&self) -> bool {
        self.shared == [None; 2] && self.last_error.is_none() && self.restarts == 0
    }

    /// It is started, again if it has failed.
    pub(super) fn note_start(&mut self) {
        if std::mem::take(&mut self.has_failed) {
            self.note_restart();
        }
    }

    pub(super) fn note_restart(&mut self) {
        self.restarts += 1;
    }

    /// It did not fail by itself, so nothing is tried again.
    pub(super) fn forget_failure(&mut self) {
        self.retry_at = None;
        self.last_error = None;
        self.sign_in_need = None;
        self.failures = 0;
        self.has_failed = false;
    }

    pub(super) fn name(&self) -> &str {
        &self.settings.naming.name
    }

    /// The era to speak for a client of this era.
    pub(super) fn era_for(&self, client: Era) -> Era {
        match self.support[slot(client)] {
            EraSupport::No => other(client),
            EraSupport::Yes | EraSupport::Unknown => client,
        }
    }

    /// The era that the lists are read in.
    pub(super) fn main_era(&self) -> Era {
        self.era_for(Era::Legacy)
    }

    /// Whether it speaks this era. One that has not been asked in it may or may not.
    pub(super) fn speaks(&self, era: Era) -> bool {
        self.support[slot(era)] == EraSupport::Yes
    }

    /// Whether this client has a conversation of its own with it.
    pub(super) fn has_own(&self, client: ClientId) -> bool {
        self.own.contains_key(&client)
    }

    /// The conversation of this era that clients share.
    pub(super) fn shared_link(&self, era: Era) -> Option<LinkId> {
        self.shared[slot(era)]
    }

    /// Whether it has said that it offers no resources.
    pub(super) fn has_no_resources(&self) -> bool {
        self.ready_since.is_some() && !self.description.offers.resources
    }

    /// Why a call to it fails now.
    pub(super) fn unavailable_reason(&self) -> Option<&str> {
        let is_starting = self
            .shared
            .iter()
            .any(Option::is_some)
            .then_some("it is starting");
        let is_lazy = self.settings.start == StartMode::Lazy;
        let is_stopped = is_lazy.then_some("it is started by the first call to it");
        let sign_in = self.sign_in_need.as_ref().map(SignInNeed::text);
        let reason = self.disabled_reason().or(sign_in);
        let reason = reason.or(self.last_error.as_deref());
        reason.or(is_starting).or(is_stopped)
    }
}

impl Hub {
    /// How all servers are doing, in the order of the configuration.
    pub fn status(&self) -> Vec<ServerStatus> {
        let mut status: Vec<_> = self
            .server_indices()
            .map(|index| self.status_of(index))
            .collect();
        for warning in self.catalog.warnings() {
            let mut servers = status.iter_mut();
            let about = servers.find(|server| warning.server() == Some(&server.name));
            if let Some(server) = about.filter(|server| server.warnings.len() < WARNINGS_SHOWN) {
                server.warnings.push(warning.to_string());
            }
        }
        status
    }

    /// Whether clients see all that servers have listed so far.
    pub fn is_catalog_current(&self) -> bool {
        !self.build.is_building()
    }

    /// The server of the tool that clients of the first profile call by this name.
    pub fn server_of_tool(&self, tool: &str) -> Option<String> {
        let view = self.views.first()?;
        let found = view.resolve(ItemKind::Tool, None, tool).ok()?;
        Some(self.server(found.server()).name().to_owned())
    }

    pub(super) fn status_of(&self, index: ServerIndex) -> ServerStatus {
        let server = self.server(index);
        let is_ready = |id: &LinkId| self.links.get(id).is_some_and(|link| link.state.is_ready());
        // A server that asked for roots is a client's own, and there may be no other.
        let links = || server.shared.iter().flatten().chain(server.own.values());
        let is_listed = server.listing.is_some() && !server.stale;
        let state = if let Some(reason) = server.disabled_reason() {
            ServerState::Disabled(reason.to_owned())
        } else if let Some(need) = &server.sign_in_need {
            ServerState::NeedsSignIn(need.text().to_owned())
        } else if links().any(is_ready) && (is_listed || server.lists_failed) {
            ServerState::Ready
        } else if server.shared.iter().any(Option::is_some) {
            ServerState::Starting
        } else if let (Some(error), Some(_)) = (&server.last_error, server.retry_at) {
            ServerState::Failed(error.clone())
        } else if links().next().is_some() {
            ServerState::Starting
        } else {
            ServerState::Stopped
        };
        ServerStatus {
            name: server.name().to_owned(),
            state,
            counts: self.catalog.counts(index),
            stale: server.stale,
            restarts: server.restarts,
            last_error: server.last_error.clone(),
            own_sessions: server.own.len(),
            warnings: Vec::new(),
        }
    }

    pub(super) fn server(&self, index: ServerIndex) -> &Server {
        &self.servers[usize::from(index.0)]
    }

    pub(super) fn server_mut(&mut self, index: ServerIndex) -> &mut Server {
        &mut self.servers[usize::from(index.0)]
    }

    pub(super) fn server_indices(&self) -> impl Iterator<Item = ServerIndex> + use<> {
        (0..self.servers.len()).filter_map(|index| u16::try_from(index).ok().map(ServerIndex))
    }
}

pub(super) fn slot(era: Era) -> usize {
    match era {
        Era::Legacy => 0,
        Era::Modern => 1,
    }
}

pub(super) fn other(era: Era) -> Era {
    match era {
        Era::Legacy => Era::Modern,
        Era::Modern => Era::Legacy,
    }
}
