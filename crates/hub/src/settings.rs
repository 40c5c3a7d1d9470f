//! What a hub is made with.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mcp_proxy_spill::{SpillFormat, SpillStore};

use crate::catalog::{ServerListing, ViewFilter};
use crate::config::{EraOffer, RestartPolicy, SharingScope, StartMode};
use crate::dispatch_tool::DispatchToolOptions;
use crate::names::ServerNaming;
use crate::proxy_tool::ProxyToolOptions;

/// Settings of the whole hub.
#[derive(Clone, Debug)]
pub struct HubSettings {
    /// The `proxy` tool.
    pub proxy_tool: ProxyToolOptions,
    /// The `proxy-dispatch` tool.
    pub dispatch_tool: DispatchToolOptions,
    /// Results in files.
    pub spill: SpillSettings,
    /// What each kind of client sees. The first is what clients without a profile see.
    pub profiles: Vec<ProfileSettings>,
    /// `serverInfo` towards clients, as JSON.
    pub server_info: Bytes,
    /// `clientInfo` towards servers, as JSON.
    pub client_info: Bytes,
    /// What clients are told about 2026-07-28.
    pub era: EraOffer,
    /// How long after the start of a server the answers to clients wait for it.
    pub settle: Duration,
    /// How long after the start of a server that has never been listed lists wait for it. Many clients ask only once.
    pub first_list: Duration,
    /// How long a call may wait for a server that is starting.
    pub start_patience: Duration,
}

/// What a client sees.
#[derive(Clone, Debug)]
pub struct ProfileSettings {
    /// The name in `/mcp/p/NAME`; empty for the one without a name.
    pub name: String,
    /// The servers and tools in it.
    pub filter: ViewFilter,
    /// Whether the `proxy` tool is offered.
    pub proxy_tool: OwnToolUse,
    /// Whether the `proxy-dispatch` tool is offered.
    pub dispatch_tool: OwnToolUse,
    /// Whether the `proxy-read` tool is offered.
    pub read_tool: OwnToolUse,
}

/// When results are kept in files, and where.
#[derive(Clone, Debug)]
pub struct SpillSettings {
    /// Where they are kept. Without it, every result is in its answer.
    pub store: Option<Arc<SpillStore>>,
    /// Which results are kept in a file although no call asks for it.
    pub threshold: SpillThreshold,
    /// What objects and arrays are written as.
    pub format: SpillFormat,
}

/// From which size on results are kept in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpillThreshold {
    /// Results of `proxy-dispatch` that do not fit what its client shows a model. Others never.
    ByClient,
    /// None.
    Never,
    /// All results of tools that have more bytes.
    Above(u64),
}

impl Default for SpillSettings {
    fn default() -> SpillSettings {
        SpillSettings {
            store: None,
            threshold: SpillThreshold::ByClient,
            format: SpillFormat::Json,
        }
    }
}

/// Whether a profile has one of the hub's own tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnToolUse {
    /// It is listed and can be called.
    Offered,
    /// There is no such tool.
    Absent,
}

/// Settings of one server.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// Its name, and how its tools and resources are called.
    pub naming: Arc<ServerNaming>,
    /// Why it cannot be used, if so.
    pub disabled: Option<String>,
    /// Its entry turns it off, so it is not missed.
    pub is_turned_off: bool,
    /// It runs elsewhere, so the hub connects to it and does not start it.
    pub is_remote: bool,
    /// When it is started.
    pub start: StartMode,
    /// What is known of the eras that it speaks, before it is asked.
    pub eras: KnownEras,
    /// Who shares a conversation with it.
    pub scope: SharingScope,
    /// How long it may take to answer the opening.
    pub start_timeout: Duration,
    /// How long each page of a list may take.
    pub list_timeout: Duration,
    /// How long a call may take; for ever if there is no limit.
    pub call_timeout: Option<Duration>,
    /// It is stopped when nobody has used it for this long.
    pub idle_stop: Option<Duration>,
    /// Whether it is started again after it has ended by itself.
    pub restart: RestartPolicy,
    /// How often it is started again before it is left alone; a call starts it all the same.
    pub restart_limit: Option<u32>,
    /// How long results of tools that only read are kept; not at all if there is none.
    pub cache_ttl: Option<Duration>,
    /// The answer to `roots/list`, as JSON, if it is fixed.
    pub roots: Option<Bytes>,
    /// What it offered when it was last seen.
    pub last_listing: Option<Arc<ServerListing>>,
}

/// What is known of the eras that a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownEras {
    /// Nothing: it may speak one or both.
    None,
    /// It speaks both.
    Both,
}
