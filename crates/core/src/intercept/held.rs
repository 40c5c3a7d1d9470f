//! What is held: found by number, counted, and given back in order.

use std::collections::{BTreeMap, VecDeque};

use mcp_proxy_wire::Direction;

use super::entry::Entry;
use super::hold::{HeldBy, HoldId};
use super::modes::Modes;
use super::{Breakpoints, HELD_BYTES_MAX, HELD_MAX, InterceptMode, REMEMBERED};
use crate::connections::server_name;

/// All that changes.
pub(super) struct Inner {
    pub(super) modes: Modes,
    pub(super) breakpoints: Breakpoints,
    pub(super) holds: BTreeMap<HoldId, Entry>,
    pub(super) bytes: usize,
    pub(super) next: u64,
    pub(super) viewers: usize,
    pub(super) had_viewer: bool,
    pub(super) resolved: VecDeque<(HoldId, String, &'static str)>,
}

impl Inner {
    pub(super) fn new(mode: InterceptMode) -> Inner {
        Inner {
            modes: Modes::new(mode),
            breakpoints: Breakpoints::default(),
            holds: BTreeMap::new(),
            bytes: 0,
            next: 0,
            viewers: 0,
            had_viewer: false,
            resolved: VecDeque::new(),
        }
    }

    pub(super) fn undecided(&self, which: impl Fn(&Entry) -> bool) -> Vec<HoldId> {
        let waiting = |(_, entry): &(&HoldId, &Entry)| entry.decided.is_none() && which(entry);
        let holds = self.holds.iter().filter(waiting);
        holds.map(|(hold, _)| *hold).collect()
    }

    /// Whether a message of this length can be held: its server has a share of the places, all share the bytes.
    pub(super) fn has_room(&self, length: usize, new: &Entry) -> bool {
        if self.bytes + length > HELD_BYTES_MAX {
            return false;
        }
        // Counted only where the share can be full.
        self.holds.len() < HELD_MAX || {
            let server = server_name(&new.connection);
            let is_of = |entry: &&Entry| server_name(&entry.connection) == server;
            self.holds.values().filter(is_of).count() < HELD_MAX
        }
    }

    /// The first that is undecided on the way of a message which keeps its order.
    pub(super) fn first_before(&self, new: &Entry) -> Option<HoldId> {
        let is_before = |entry: &Entry| entry.by == HeldBy::Intercept && entry.way() == new.way();
        let first = self.undecided(is_before).into_iter().next();
        first.filter(|_| new.by == HeldBy::Intercept)
    }

    pub(super) fn remember(&mut self, hold: HoldId, by: &str, action: &'static str) {
        if self.resolved.len() == REMEMBERED {
            self.resolved.pop_front();
        }
        self.resolved.push_back((hold, by.to_owned(), action));
    }

    /// Gives back what is decided and need not wait for another: for global intercept, all that is first in its way.
    pub(super) fn deliver(&mut self, decided: HoldId) {
        let Some(entry) = self.holds.get(&decided) else {
            return;
        };
        if entry.by != HeldBy::Intercept {
            self.give_back(decided);
            return;
        }
        let way: (u32, Direction) = entry.way();
        loop {
            let first = self
                .holds
                .iter()
                .find(|(_, entry)| entry.by == HeldBy::Intercept && entry.way() == way);
            match first {
                Some((hold, entry)) if entry.decided.is_some() => {
                    let hold = *hold;
                    self.give_back(hold);
                }
                _ => return,
            }
        }
    }

    fn give_back(&mut self, hold: HoldId) {
        if let Some(entry) = self.holds.remove(&hold) {
            self.bytes -= entry.message.len();
            let mailbox = entry.mailbox;
            mailbox.put(entry.decided.unwrap_or_default());
        }
    }
}
