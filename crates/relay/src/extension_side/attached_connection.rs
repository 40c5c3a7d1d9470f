//! A connection as its extension's side sees it.

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hash};
use std::time::Duration;

use mcp_proxy_wire::Id;
use rustc_hash::{FxBuildHasher, FxHashSet};

use crate::command::{Command, id_text};
use crate::ids::{McpClientId, RelayConnectionId};
use crate::tabs::{CurrentTab, ListedTab, NamedTabs};

/// Ids that are remembered so that none is used twice. No answer is expected to be later than this many commands.
const REMEMBERED_IDS: usize = 4096;

/// The commands and the tab of one connection.
#[derive(Debug)]
pub(super) struct AttachedConnection {
    pub(super) client: McpClientId,
    pub(super) queue: VecDeque<QueuedCommand>,
    pub(super) queued_bytes: usize,
    /// Commands that are sent and may give it another tab.
    pub(super) acquiring: usize,
    /// The extension was asked for its tabs, because the next command names one by its index.
    pub(super) is_asking: bool,
    /// The tabs as they are now, for the next command.
    pub(super) listing: Option<Vec<Option<ListedTab>>>,
    pub(super) current: Option<CurrentTab>,
    used: UsedIds,
}

/// A command that waits for its turn.
#[derive(Debug)]
pub(super) struct QueuedCommand {
    pub(super) command: Command,
    pub(super) named: NamedTabs,
    /// When it fails.
    pub(super) deadline: Duration,
}

/// Ids that an extension was sent before.
#[derive(Debug, Default)]
pub(super) struct UsedIds {
    order: VecDeque<u64>,
    known: FxHashSet<u64>,
    /// How many had to be told apart.
    pub(super) repeated: u64,
}

impl AttachedConnection {
    pub(super) fn new(client: McpClientId) -> AttachedConnection {
        AttachedConnection {
            client,
            queue: VecDeque::new(),
            queued_bytes: 0,
            acquiring: 0,
            is_asking: false,
            listing: None,
            current: None,
            used: UsedIds::default(),
        }
    }

    /// The id under which the extension gets a command: the connection's and the command's own. If it was used before, it
    /// gets a suffix, so that a late answer never fits.
    pub(super) fn mapped_id(&mut self, connection: &RelayConnectionId, id: &Id) -> Id {
        let plain = format!("{connection}:{}", id_text(id));
        if self.used.is_new(&plain) {
            return Id::string(&plain);
        }
        loop {
            self.used.repeated += 1;
            let suffixed = format!("{plain}#{}", self.used.repeated);
            if self.used.is_new(&suffixed) {
                return Id::string(&suffixed);
            }
        }
    }

    /// Commands that may give it another tab will not be answered. Whether the extension has attached to that tab is not known,
    /// so the connection has to select its tab again.
    pub(super) fn forget_acquiring(&mut self) {
        if self.acquiring > 0 {
            self.current = None;
        }
        self.acquiring = 0;
    }
}

impl UsedIds {
    /// Notes an id, and says whether it was not there before.
    pub(super) fn is_new(&mut self, id: &str) -> bool {
        let hash = FxBuildHasher.hash_one(Hashed(id));
        if !self.known.insert(hash) {
            return false;
        }
        self.order.push_back(hash);
        if self.order.len() > REMEMBERED_IDS
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }
}

#[derive(Hash)]
struct Hashed<'a>(&'a str);
