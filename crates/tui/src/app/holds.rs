//! Held messages as they come and go: which one is selected then, and what the user is told.
//!
//! A key that decides must never reach another message than the one that the user was looking at. So the selection moves on by
//! itself only after a decision that was made here; what somebody else decided, or the time limit, stays selected.

use std::collections::BTreeSet;

use mcp_proxy_control::{HoldClockResult, HoldEditRequest, HoldExtendRequest};

use super::answers::RequestPurpose;
use super::{App, Overlay};
use crate::editor::EditPurpose;
use crate::proxy::{Held, ProxyStatus};

/// Said where a key is for held messages.
pub(super) const NOTHING_HELD: &str =
    "no message is held (i holds every message, b sets breakpoints)";

/// Verdicts that are decisions; others are what follows from them.
const DECISIONS: [&str; 4] = ["forward", "modify", "drop", "error"];

/// What is remembered between two lists of holds.
#[derive(Default)]
pub(super) struct HoldTracking {
    /// New messages were followed before some were held.
    pub(super) followed: bool,
    /// A message was held while a window or another session was in front of the list.
    has_unseen: bool,
    /// Messages that were decided from here, until the holds are told again.
    pub(super) decided_here: BTreeSet<u64>,
    /// The message that was decided elsewhere while the user looked at it, until the user does something.
    pub(super) external_decision: Option<u64>,
}

/// Whether a held message is in an editor.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EditorState {
    Open,
    Closed,
}

impl App {
    /// The selected message, if it is held. If it never was, the oldest that is gets selected, and nothing is decided about a
    /// message that the user may not see.
    pub(super) fn selected_hold(&mut self) -> Option<Held> {
        if let Some(why) = self.cannot_decide() {
            self.complain(why);
            return None;
        }
        let selected = self.tabs.get(self.tab).and_then(|tab| tab.selected);
        let selected = selected.filter(|_| self.tab == 0);
        let held = selected.and_then(|selected| self.proxy.hold_of(selected));
        if let Some(held) = held {
            return Some(held.clone());
        }
        let oldest = self.proxy.held.first().map(|held| held.row.sequence);
        if let Some(decided) = selected.and_then(|selected| self.describe_decision(selected)) {
            let next = oldest.map_or("", |_| " (w goes to the next held message)");
            self.complain(decided + next);
            return None;
        }
        match oldest {
            Some(oldest) => self.select_oldest(oldest),
            None => self.complain(NOTHING_HELD),
        }
        None
    }

    /// Why nothing can be decided here, if that is so.
    pub(super) fn cannot_decide(&self) -> Option<String> {
        match &self.proxy.link {
            ProxyStatus::Live => None,
            ProxyStatus::None => {
                Some("this is a record: no proxy runs that could do that".to_owned())
            }
            ProxyStatus::Gone(_) => {
                Some("the proxy has ended: nothing can be held or sent".to_owned())
            }
        }
    }

    pub(super) fn select_oldest(&mut self, oldest: u64) {
        self.tab = 0;
        let tab = self.tabs.first_mut();
        let hidden = tab.is_some_and(|tab| {
            let is_there = tab.select(oldest);
            if !is_there {
                tab.select_soon(oldest);
            }
            !is_there && !tab.view.filter().is_empty()
        });
        self.complain(match hidden {
            true => format!("the filter hides #{oldest}, which is held; Ctrl-L shows everything"),
            false => format!("#{oldest} is held and now selected: press the key again"),
        });
    }

    /// Takes a new list of holds: `before` are the numbers of those that were held.
    pub(super) fn holds_changed(&mut self, before: &[u64]) {
        let held = self.proxy.held_numbers();
        let selected = self.tabs.first().and_then(|tab| tab.selected);
        let edited = match &self.overlay {
            Overlay::Editor(editor) => match editor.purpose {
                EditPurpose::Hold { sequence, .. } => Some(sequence),
                EditPurpose::Replay { .. } => None,
            },
            _ => None,
        };
        let is_gone = |number: &u64| before.contains(number) && !held.contains(number);
        let gone = edited.or(selected).filter(is_gone);
        let lost = gone.filter(|number| !self.holds.decided_here.contains(number));
        // Whatever is still held was not decided by what was asked.
        self.holds.decided_here.clear();
        self.holds
            .external_decision
            .take_if(|sequence| held.contains(&*sequence));
        match lost {
            Some(sequence) => {
                // If the proxy has refused a decision, it has said why.
                let is_told = self.holds.external_decision.replace(sequence) == Some(sequence);
                let draft = self.close_decided_editor();
                if !is_told || !draft.is_empty() {
                    let decided = self.describe_decision(sequence).unwrap_or_default();
                    self.tell_decided(decided + &draft);
                }
            }
            None if self.holds.external_decision.is_none() => {
                self.select_next(&held, before, gone.is_some())
            }
            None => {}
        }
    }

    /// Takes the time of a hold. Gives it in words, if the message is held.
    pub(super) fn take_clock(&mut self, clock: &HoldClockResult) -> Option<String> {
        let now = self.now;
        let mut held = self.proxy.held.iter_mut();
        let held = held.find(|held| held.row.hold == clock.hold)?;
        held.take_clock(clock, now);
        Some(held.describe_clock(now))
    }

    /// Gives the held message more time.
    pub(super) fn extend(&mut self, seconds: &str) {
        let Ok(seconds) = Some(seconds)
            .filter(|text| !text.is_empty())
            .map(str::parse)
            .transpose()
        else {
            return self.complain(format!("`{seconds}` is not a number of seconds"));
        };
        if let Some(held) = self.selected_hold() {
            let request = HoldExtendRequest {
                hold: held.row.hold,
                seconds,
            };
            self.ask(&request, RequestPurpose::Extended(held.row.sequence));
        }
    }

    /// Tells the proxy that a held message is open in an editor here, or not any more, so that its clock stops.
    pub(super) fn tell_editing(&mut self, purpose: EditPurpose, state: EditorState) {
        let EditPurpose::Hold { hold, .. } = purpose else {
            return;
        };
        let is_held = self.proxy.is_held(hold);
        if is_held && self.proxy.link == ProxyStatus::Live {
            let open = state == EditorState::Open;
            let request = HoldEditRequest { hold, open };
            self.ask(&request, RequestPurpose::HoldEdited);
        }
    }

    /// The first that is held is shown when none was, and the next after a decision.
    fn select_next(&mut self, held: &[u64], before: &[u64], decided: bool) {
        let Some(tab) = self.tabs.first_mut() else {
            return;
        };
        if self.tab != 0 || !matches!(self.overlay, Overlay::None) {
            self.holds.has_unseen |= before.is_empty() && !held.is_empty();
            return;
        }
        let selected = tab.selected.unwrap_or(0);
        let next = held.iter().find(|number| **number > selected);
        match next.or(held.first()) {
            Some(next) if decided || before.is_empty() => {
                self.holds.followed |= tab.follows;
                tab.select_soon(*next);
            }
            // All is decided: on with what comes, if that was so before.
            None if decided && std::mem::take(&mut self.holds.followed) => {
                tab.follows = true;
                tab.select_place(usize::MAX);
            }
            _ => {}
        }
    }

    /// The window is closed, or the user is back: what was held meanwhile is selected as if it were held now.
    pub(super) fn select_unseen_hold(&mut self) {
        if self.tab != 0 || !matches!(self.overlay, Overlay::None) {
            return;
        }
        if std::mem::take(&mut self.holds.has_unseen) {
            let held = self.proxy.held_numbers();
            self.select_next(&held, &[], false);
        }
    }

    /// What became of a message that was held and is not any more.
    pub(super) fn describe_decision(&self, sequence: u64) -> Option<String> {
        let is_lost = self.holds.external_decision == Some(sequence);
        let unknown = || is_lost.then(|| format!("#{sequence} was decided already"));
        self.verdict(sequence).or_else(unknown)
    }

    /// `#10 was already forwarded by user (ctl, pid 9)`, if it was held and the record or the proxy tells.
    fn verdict(&self, sequence: u64) -> Option<String> {
        let recorded = self.recorded_verdict(sequence);
        let decided = || {
            let mut decided = self.proxy.decided.iter().rev();
            let decided = decided.find(|decided| decided.sequence == sequence)?;
            Some(in_words(&decided.action, &decided.by, &decided.why))
        };
        let words = recorded.or_else(decided)?;
        Some(format!("#{sequence} was already {words}"))
    }

    fn recorded_verdict(&self, sequence: u64) -> Option<String> {
        let view = &self.tabs.first()?.view;
        let told = view.message_with_context(sequence).ok()?;
        let mut verdicts = told.message.verdicts.iter();
        verdicts.find(|verdict| verdict.kind == "hold")?;
        let decision = verdicts.find(|verdict| DECISIONS.contains(&verdict.kind.as_str()))?;
        Some(in_words(&decision.kind, &decision.by, &decision.why))
    }

    /// Goes to the next held message after the selected one, else to the first.
    pub(super) fn next_held(&mut self) {
        let selected = self.tabs.first().and_then(|tab| tab.selected).unwrap_or(0);
        let mut numbers = self.proxy.held_numbers();
        numbers.sort_unstable();
        let next = numbers.iter().find(|number| **number > selected);
        let Some(next) = next.or(numbers.first()).copied() else {
            return self.complain(NOTHING_HELD);
        };
        self.tab = 0;
        self.go_to(next);
    }
}

/// `dropped by timeout: nobody decided within 55 s`.
fn in_words(action: &str, by: &str, why: &str) -> String {
    let done = match action {
        "forward" => "forwarded",
        "modify" => "forwarded with changes",
        "drop" => "dropped",
        "error" => "answered with an error",
        other => other,
    };
    match why.is_empty() {
        true => format!("{done} by {by}"),
        false => format!("{done} by {by}: {why}"),
    }
}
