//! Breakpoints: which single messages are held.

use mcp_proxy_session::{Facts, Filter};
use mcp_proxy_wire::Direction;

use super::modes::HoldScope;
use crate::connection::Connection;

/// A breakpoint to be set.
#[derive(Clone, Debug, Default)]
pub struct NewBreakpoint {
    /// Which messages.
    pub filter: Filter,
    /// Only those that go this way.
    pub direction: Option<Direction>,
    /// It goes after so many hits: 1 holds one message.
    pub hits: Option<u64>,
    /// Only messages of this part of the run.
    pub scope: HoldScope,
}

/// A breakpoint that is set.
#[derive(Clone, Debug)]
pub struct Breakpoint {
    /// Its number.
    pub number: u32,
    /// Which messages, in the filter language.
    pub filter: String,
    /// Only those that go this way.
    pub direction: Option<Direction>,
    /// Only messages of this part of the run.
    pub scope: HoldScope,
    /// Hits until it goes.
    pub left: Option<u64>,
    /// Hits so far.
    pub hits: u64,
}

/// The breakpoints of a run, in the order in which they were set.
#[derive(Default)]
pub struct Breakpoints {
    set: Vec<(Breakpoint, Filter)>,
    next: u32,
}

impl Breakpoints {
    /// Sets one.
    pub fn add(&mut self, new: NewBreakpoint) -> u32 {
        self.next += 1;
        let breakpoint = Breakpoint {
            number: self.next,
            filter: new.filter.text().to_owned(),
            direction: new.direction,
            scope: new.scope,
            left: new.hits.map(|hits| hits.max(1)),
            hits: 0,
        };
        self.set.push((breakpoint, new.filter));
        self.next
    }

    /// Removes one; `false`: there is none of that number.
    pub fn remove(&mut self, number: u32) -> bool {
        let before = self.set.len();
        self.set.retain(|(set, _)| set.number != number);
        self.set.len() < before
    }

    /// All of them.
    pub fn list(&self) -> Vec<Breakpoint> {
        self.set.iter().map(|(set, _)| set.clone()).collect()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty()
    }

    /// The first that a message hits; one that has had its last hit goes. A ping or a cancel is never hit by chance: only
    /// by a filter that has the word.
    pub(crate) fn hit(&mut self, facts: &Facts<'_>, connection: &Connection) -> Option<u32> {
        let urgent = urgent(facts);
        let place = self.set.iter().position(|(set, filter)| {
            set.direction.is_none_or(|way| way == facts.direction)
                && set.scope.has(connection)
                && urgent.is_none_or(|word| names(&set.filter, word))
                && filter.matches_facts(facts)
        })?;
        let (set, _) = &mut self.set[place];
        set.hits += 1;
        let number = set.number;
        if let Some(left) = &mut set.left {
            *left -= 1;
            if *left == 0 {
                self.set.remove(place);
            }
        }
        Some(number)
    }
}

/// The word for what must not wait: a ping, its answer, or a cancel.
fn urgent(facts: &Facts<'_>) -> Option<&'static str> {
    let own = facts.message.method();
    let asked = facts.asked.and_then(|asked| asked.method);
    match own.as_deref().or(asked)? {
        "ping" => Some("ping"),
        "notifications/cancelled" => Some("cancelled"),
        _ => None,
    }
}

/// Whether a filter has this word, as a word.
fn names(filter: &str, word: &str) -> bool {
    filter
        .split(|letter: char| !letter.is_alphanumeric())
        .any(|part| part.eq_ignore_ascii_case(word))
}
