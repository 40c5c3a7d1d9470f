//! The proxy's side of the control protocol: how a viewer looks at a running proxy and decides about its messages.
//!
//! The protocol itself, its methods and their types, is [`mcp_proxy_control`]. A [`Viewer`] is a client of that
//! protocol, local or remote. Its [`ControlRequestHandler`] answers requests; its [`ViewerNotifications`] tell it that something
//! is new. Notifications are pulled by the task that serves the viewer, when its socket has room. So a slow viewer gets many
//! changes in one notification, and messages never wait for it.
//!
//! This module knows nothing about sockets: another transport for viewers needs only these two halves.

mod decisions;
mod holds;
mod notifications;
mod redacted_replay;
mod replay_request;
mod request_handler;
mod rows;
mod rules;
mod servers;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use mcp_proxy_control::{HubLoad, RelayPairRequest, RelayPairResult, RelayStats, ServerRow};
use mcp_proxy_session::{Redaction, SessionRecord};
use mcp_proxy_wire::Transport;
use tokio::sync::{Semaphore, watch};

use crate::connections::name_of;
use crate::intercept::ViewerId;
use crate::link::Dial;
use crate::peer::Peer;
use crate::proxy_run::ProxyRun;

pub use notifications::ViewerNotifications;
pub use request_handler::ControlRequestHandler;

/// Viewers at once.
pub const MAX_VIEWERS: usize = 32;

/// Messages that are sent again at once.
pub const MAX_REPLAYS: usize = 4;

/// Bytes of the temporary record that a run without a record keeps for its viewers.
pub const TEMPORARY_RECORD: u64 = 16 << 20;

/// Writes the record at the first path as `format` to the second; says how many bytes that were. The binary passes it
/// in, because it knows how an export is put in its place.
pub type ExportCallback =
    Arc<dyn Fn(&Path, &str, &Path, OverwritePolicy) -> Result<u64, String> + Send + Sync>;

/// What becomes of a file that stands where an export goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverwritePolicy {
    /// It stays, and there is no export.
    Keep,
    /// The export takes its place.
    Replace,
}

/// Copies a record.
pub type CopyRecordCallback = Arc<dyn Fn(&Path, &Path) -> Result<u64, String> + Send + Sync>;

/// What a run does for its viewers that this crate cannot: the binary passes it in.
#[derive(Clone)]
pub struct HostCallbacks {
    /// Writes exports.
    pub export: ExportCallback,
    /// Copies the record at the first path to the second; says how many bytes that were.
    pub save: CopyRecordCallback,
    /// The servers that the run was started with.
    pub servers: Vec<RunServer>,
    /// What can be done about the servers, if the run is a hub.
    pub management: Option<Arc<dyn ServerManagement>>,
    /// What a relay does for its viewers, if the run is one.
    pub relay: Option<Arc<dyn RelayManagement>>,
}

/// What a relay does for its viewers.
pub trait RelayManagement: Send + Sync {
    /// Makes a code that a browser exchanges for a token. An error says why it cannot be done.
    fn pair(&self, request: &RelayPairRequest) -> Result<RelayPairResult, String>;

    /// What was counted.
    fn stats(&self) -> RelayStats;
}

/// What a hub does about its servers. They may be others than at the start of the run.
pub trait ServerManagement: Send + Sync {
    /// All servers, and how they are doing.
    fn list(&self) -> Vec<ServerRow>;

    /// How the hub copes with its clients.
    fn load(&self) -> HubLoad;

    /// A server of the configuration as it is now, by its name, or by its command or URL as it is shown.
    fn find(&self, name: &str) -> Option<RunServer>;

    /// Changes one server, or all of them. An error says why it cannot be done.
    fn change(&self, change: ServerOrder<'_>) -> Result<(), String>;
}

/// What a viewer wants done about the servers of a hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerOrder<'a> {
    /// Restart this one.
    Restart(&'a str),
    /// Let clients use this one again.
    Enable(&'a str),
    /// Stop this one and offer nothing of it.
    Disable(&'a str),
    /// Read the configuration of all of them again.
    Reload,
}

/// A server that the run's clients are connected to.
#[derive(Clone)]
pub struct RunServer {
    /// Its name and how it is reached: the peer that the run's connections have.
    pub peer: Peer,
    /// Its command or URL as it may be shown: secrets masked. Rules know the server by it.
    pub target: String,
    /// Opens a new link to it, which gives whole messages only.
    pub dial: Dial,
    /// Whether nobody but the clients themselves can open a session with it. A relay's must show who they are.
    pub is_for_clients_only: bool,
}

impl RunServer {
    /// The name that requests use.
    pub fn name(&self) -> Arc<str> {
        name_of(&self.peer)
    }
}

/// What a run says about itself.
#[derive(Clone, Debug)]
pub struct RunSummary {
    /// Version of this program.
    pub version: &'static str,
    /// The session's id.
    pub session: String,
    /// The server, as it may be shown: secrets masked.
    pub target: String,
    /// How clients speak.
    pub client: Transport,
    /// How the server speaks.
    pub server: Transport,
    /// The file with the token that clients must send.
    pub token_file: Option<PathBuf>,
    /// The config files of a hub.
    pub config_files: Vec<PathBuf>,
    /// The record's file.
    pub record: Option<PathBuf>,
    /// When it started.
    pub started: SystemTime,
    /// Its process.
    pub pid: u32,
    /// What viewers may not see of messages that are held; rows come redacted out of the record.
    pub redaction: Option<Redaction>,
}

/// What all viewers of a run share.
pub struct ProxyControl {
    run: Arc<ProxyRun>,
    summary: RunSummary,
    callbacks: HostCallbacks,
    /// Messages that are sent again at once.
    replays: Arc<Semaphore>,
    viewers: AtomicUsize,
    /// Viewers since the run began.
    attached: AtomicU64,
    /// The record as readers see it: opened by the first who asks, dropped with the last viewer.
    record: Mutex<Option<SessionRecord>>,
    /// Who asked for the end.
    ended_by: watch::Sender<Option<String>>,
}

/// One who looks: the two halves of it.
pub struct Viewer {
    /// Answers its requests.
    pub requests: ControlRequestHandler,
    /// Says when something is new.
    pub notifications: ViewerNotifications,
}

/// As many viewers look as may.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("{MAX_VIEWERS} viewers are attached to this proxy, and that is the limit")]
pub struct TooManyViewers;

impl ProxyControl {
    /// Control over a run.
    pub fn new(run: Arc<ProxyRun>, facts: RunSummary, means: HostCallbacks) -> Arc<ProxyControl> {
        run.injection_queues().enable_replays();
        Arc::new(ProxyControl {
            run,
            summary: facts,
            callbacks: means,
            replays: Arc::new(Semaphore::new(MAX_REPLAYS)),
            viewers: AtomicUsize::new(0),
            attached: AtomicU64::new(0),
            record: Mutex::new(None),
            ended_by: watch::channel(None).0,
        })
    }

    /// A new viewer. `process` is its process, as far as that is known.
    pub fn attach(self: &Arc<Self>, process: Option<i32>) -> Result<Viewer, TooManyViewers> {
        let place = ViewerSlot::take(self)?;
        let (subscribe, subscribed) = watch::channel(false);
        Ok(Viewer {
            requests: ControlRequestHandler::new(place, process, subscribe),
            notifications: ViewerNotifications::new(Arc::clone(self), subscribed),
        })
    }

    /// Waits until a viewer asks for the end of the run; returns who it was.
    pub async fn wait_for_shutdown_request(&self) -> String {
        let mut asked = self.ended_by.subscribe();
        let by = asked.wait_for(Option::is_some).await;
        match by.ok().and_then(|by| by.clone()) {
            Some(by) => by,
            // The sender lives as long as this.
            None => std::future::pending().await,
        }
    }

    /// The file that the record is written to now; nothing if the run keeps none.
    fn record_path(&self) -> Option<PathBuf> {
        let first = self.summary.record.clone()?;
        Some(self.run.record_path().unwrap_or(first))
    }

    /// What the run says about itself.
    pub fn facts(&self) -> &RunSummary {
        &self.summary
    }
}

/// One of the [`MAX_VIEWERS`] places; free again when dropped.
struct ViewerSlot {
    control: Arc<ProxyControl>,
    viewer: ViewerId,
}

impl ViewerSlot {
    fn take(control: &Arc<ProxyControl>) -> Result<ViewerSlot, TooManyViewers> {
        let taken = control
            .viewers
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |viewers| {
                (viewers < MAX_VIEWERS).then_some(viewers + 1)
            });
        match taken {
            Ok(_) => Ok(ViewerSlot {
                control: Arc::clone(control),
                viewer: ViewerId(control.attached.fetch_add(1, Ordering::Relaxed)),
            }),
            Err(_) => Err(TooManyViewers),
        }
    }
}

impl Drop for ViewerSlot {
    fn drop(&mut self) {
        self.control.run.intercept().close_editors_of(self.viewer);
        let last = self.control.viewers.fetch_sub(1, Ordering::Relaxed) == 1;
        // Its index grows with the record, so it is not kept for nobody. Who reads in it now keeps it for the next time.
        if last && let Ok(mut record) = self.control.record.try_lock() {
            *record = None;
        }
    }
}
