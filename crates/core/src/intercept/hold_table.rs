//! What is held: found by number, counted, and given back in order.
//!
//! Everything here happens under the lock of the [`Interceptor`](super::Interceptor), so what one thread decides and what another
//! leaves or finds in a release_queue have one order.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use mcp_proxy_wire::Direction;
use mcp_proxy_wire::headers::HeaderEdits;
use tokio::time::Instant;

use super::active_hold::ActiveHold;
use super::hold::{HoldId, HoldReason, InterceptAction, ResolveError, ResolvedHold};
use super::modes::Modes;
use super::release_queue::{HoldOutcome, ReleaseQueue};
use super::{Breakpoints, HELD_BYTES_MAX, HELD_MAX, InterceptMode, REMEMBERED};

/// All that changes.
pub(super) struct HoldTable {
    pub(super) modes: Modes,
    pub(super) breakpoints: Breakpoints,
    pub(super) holds: BTreeMap<HoldId, ActiveHold>,
    /// What intercept mode holds, by the way that it goes: it keeps its order there.
    in_order: HashMap<(u32, Direction), BTreeSet<HoldId>>,
    /// How many messages of each server are held.
    by_server: HashMap<Arc<str>, usize>,
    pub(super) bytes: usize,
    pub(super) next: u64,
    pub(super) viewers: usize,
    pub(super) had_viewer: bool,
    pub(super) resolved: VecDeque<ResolvedHold>,
    /// When the task that keeps the time of all holds wakes; `None`: there is no such task.
    pub(super) wakes_at: Option<Instant>,
}

/// Why a message is not held.
pub(super) enum NotHeld {
    /// It is decided and in its release_queue, behind what was there before it.
    InReleaseQueue,
    /// It is decided.
    Released(Box<HoldOutcome>),
}

impl HoldTable {
    pub(super) fn new(mode: InterceptMode) -> HoldTable {
        HoldTable {
            modes: Modes::new(mode),
            breakpoints: Breakpoints::default(),
            holds: BTreeMap::new(),
            in_order: HashMap::new(),
            by_server: HashMap::new(),
            bytes: 0,
            next: 0,
            viewers: 0,
            had_viewer: false,
            resolved: VecDeque::new(),
            wakes_at: None,
        }
    }

    pub(super) fn undecided(&self, which: impl Fn(&ActiveHold) -> bool) -> Vec<HoldId> {
        let waiting = |(_, entry): &(&HoldId, &ActiveHold)| entry.decided.is_none() && which(entry);
        let holds = self.holds.iter().filter(waiting);
        holds.map(|(hold, _)| *hold).collect()
    }

    /// Holds a message, if there is room for it; `policy` decides about what has to make room, and about what finds none.
    pub(super) fn hold(
        &mut self,
        entry: ActiveHold,
        policy: &InterceptAction,
    ) -> Result<HoldId, NotHeld> {
        if entry.by == HoldReason::Intercept
            && self.modes.of_connection(&entry.connection) == InterceptMode::Passthrough
        {
            // It was switched off since the message was looked at. What was released then goes first.
            entry.release_queue.expect();
            entry.give_back(entry.resolve_forward(None, &HeaderEdits::default()));
            return Err(NotHeld::InReleaseQueue);
        }
        let length = entry.message.len();
        while !self.has_room(length, &entry) {
            let by = "limit";
            let why = "1,000 messages of this server or 64 MiB in all are held already";
            // Where order is kept, the oldest has to go first, and so do those before this one.
            if let Some(first) = self.first_before(&entry) {
                self.decide_all(&[first], policy, by, why);
                continue;
            }
            let released = entry.decide(policy.clone(), by, why);
            if entry.by != HoldReason::Intercept {
                return Err(NotHeld::Released(Box::new(released)));
            }
            // What was before it may be in the release_queue still.
            entry.release_queue.expect();
            entry.give_back(released);
            return Err(NotHeld::InReleaseQueue);
        }
        entry
            .connection
            .record_verdict(entry.verdict("hold", "proxy", &entry.by.to_string()));
        entry.release_queue.expect();
        self.next += 1;
        let (hold, came_too_late) = (HoldId(self.next), entry.came_too_late());
        let why = entry.abandoned_reason();
        self.insert(hold, entry);
        if came_too_late {
            // Its sender gave it up when it was not held yet, so nobody else will drop it.
            self.decide_all(&[hold], &InterceptAction::Drop, "proxy", why);
        }
        Ok(hold)
    }

    fn insert(&mut self, hold: HoldId, entry: ActiveHold) {
        self.bytes += entry.message.len();
        if entry.by == HoldReason::Intercept {
            let way = self.in_order.entry(entry.ordering_key()).or_default();
            way.insert(hold);
        }
        let server = Arc::clone(entry.connection.server_name());
        *self.by_server.entry(server).or_default() += 1;
        self.holds.insert(hold, entry);
    }

    fn remove(&mut self, hold: HoldId) -> Option<ActiveHold> {
        let entry = self.holds.remove(&hold)?;
        self.bytes -= entry.message.len();
        let key = entry.ordering_key();
        if let Some(way) = self.in_order.get_mut(&key) {
            way.remove(&hold);
            if way.is_empty() {
                self.in_order.remove(&key);
            }
        }
        let server = entry.connection.server_name();
        if let Some(count) = self.by_server.get_mut(server) {
            *count -= 1;
            if *count == 0 {
                self.by_server.remove(server);
            }
        }
        Some(entry)
    }

    /// A message that waits for its decision, or what became of it.
    pub(super) fn undecided_entry(
        &mut self,
        hold: HoldId,
    ) -> Result<&mut ActiveHold, ResolveError> {
        // One that is decided and waits for another may have been forgotten in `resolved`.
        let held = self.holds.get_mut(&hold);
        if let Some(entry) = held.filter(|entry| entry.decided.is_none()) {
            return Ok(entry);
        }
        let resolved = self.resolved.iter().find(|old| old.hold == hold);
        Err(match resolved {
            Some(resolved) => ResolveError::Resolved(resolved.clone()),
            None => ResolveError::Unknown(hold),
        })
    }

    /// Decides about a held message. The first decision counts.
    pub(super) fn decide(
        &mut self,
        hold: HoldId,
        action: InterceptAction,
        by: &str,
        why: &str,
    ) -> Result<(), ResolveError> {
        let entry = self.undecided_entry(hold)?;
        if let InterceptAction::Modify(edit) = &action
            && !edit.headers.is_empty()
            && !entry.takes_header_edits()
        {
            return Err(ResolveError::NoHead);
        }
        let (name, sequence) = (action.name(), entry.number());
        entry.decided = Some(entry.decide(action, by, why));
        self.remember(ResolvedHold {
            hold,
            sequence,
            by: by.to_owned(),
            action: name,
            why: why.to_owned(),
        });
        self.deliver(hold);
        Ok(())
    }

    /// The same decision about several that are undecided.
    pub(super) fn decide_all(
        &mut self,
        held: &[HoldId],
        action: &InterceptAction,
        by: &str,
        why: &str,
    ) {
        for hold in held {
            // Nobody else decides while the lock is held.
            drop(self.decide(*hold, action.clone(), by, why));
        }
    }

    /// A pipeline has ended: what it still has here can go nowhere.
    pub(super) fn abandon(&mut self, release_queue: &Arc<ReleaseQueue>) {
        let is_of_pipeline = |entry: &ActiveHold| Arc::ptr_eq(&entry.release_queue, release_queue);
        let holds = self.holds.iter();
        let lost: Vec<HoldId> = holds
            .filter(|(_, entry)| is_of_pipeline(entry))
            .map(|(hold, _)| *hold)
            .collect();
        for hold in lost {
            let Some(mut entry) = self.remove(hold) else {
                continue;
            };
            match entry.decided.take() {
                Some(released) => entry.give_back(released),
                None => {
                    let why = "the connection ended while the message was held";
                    entry
                        .connection
                        .record_verdict(entry.verdict("drop", "proxy", why));
                    self.remember(ResolvedHold {
                        hold,
                        sequence: entry.number(),
                        by: "proxy".to_owned(),
                        action: "drop",
                        why: why.to_owned(),
                    });
                }
            }
        }
    }

    /// Whether a message of this length can be held: its server has a share of the places, all share the bytes.
    fn has_room(&self, length: usize, new: &ActiveHold) -> bool {
        if self.bytes + length > HELD_BYTES_MAX {
            return false;
        }
        let held = self.by_server.get(new.connection.server_name());
        held.is_none_or(|held| *held < HELD_MAX)
    }

    /// The first that is undecided on the way of a message which keeps its order.
    fn first_before(&self, new: &ActiveHold) -> Option<HoldId> {
        let way = self.in_order.get(&new.ordering_key());
        let way = way.filter(|_| new.by == HoldReason::Intercept)?;
        let is_undecided = |hold: &&HoldId| {
            let entry = self.holds.get(*hold);
            entry.is_some_and(|entry| entry.decided.is_none())
        };
        way.iter().find(is_undecided).copied()
    }

    fn remember(&mut self, resolved: ResolvedHold) {
        if self.resolved.len() == REMEMBERED {
            self.resolved.pop_front();
        }
        self.resolved.push_back(resolved);
    }

    /// Gives back what is decided and need not wait for another: for global intercept, all that is first in its way.
    fn deliver(&mut self, decided: HoldId) {
        let Some(entry) = self.holds.get(&decided) else {
            return;
        };
        if entry.by != HoldReason::Intercept {
            self.give_back(decided);
            return;
        }
        let way = entry.ordering_key();
        while let Some(first) = self.in_order.get(&way).and_then(|way| way.first().copied()) {
            let entry = self.holds.get(&first);
            if entry.is_none_or(|entry| entry.decided.is_none()) {
                return;
            }
            self.give_back(first);
        }
    }

    fn give_back(&mut self, hold: HoldId) {
        if let Some(mut entry) = self.remove(hold) {
            let released = entry.decided.take().unwrap_or_default();
            entry.give_back(released);
        }
    }
}
