//! Breakpoints: which single messages are held.

use mcp_proxy_session::{Filter, JqError, MessageFacts};
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
    /// It is removed after this many hits: 1 holds one message.
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
    /// How many messages its filter was too slow for. They were not held.
    pub too_slow: u64,
}

/// The breakpoints of a run, in the order in which they were set.
#[derive(Default)]
pub struct Breakpoints {
    set: Vec<(Breakpoint, Filter)>,
    next: u32,
}

/// What breakpoints say about a message.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct BreakpointHit {
    /// The one that holds it.
    pub number: Option<u32>,
    /// Those that were too slow for it, and are switched off.
    pub too_slow: Vec<u32>,
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
            too_slow: 0,
        };
        self.set.push((breakpoint, new.filter));
        self.next
    }

    /// Removes one; `false`: there is none of that number.
    pub fn remove(&mut self, number: u32) -> bool {
        let before = self.set.len();
        self.set.retain(|(set, ..)| set.number != number);
        self.set.len() < before
    }

    /// All of them.
    pub fn list(&self) -> Vec<Breakpoint> {
        self.set.iter().map(|(set, _)| set.clone()).collect()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.set.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty()
    }

    /// The first that a message hits; one that has had its last hit goes. A ping or a cancel is never hit by chance: only
    /// by a filter that has the word.
    pub(crate) fn hit(
        &mut self,
        facts: &MessageFacts<'_>,
        connection: &Connection,
    ) -> BreakpointHit {
        let urgent = urgent(facts);
        let mut too_slow = Vec::new();
        let place = self.set.iter_mut().position(|(set, filter)| {
            let is_for = set.direction.is_none_or(|way| way == facts.direction)
                && set.scope.has(connection)
                && urgent.is_none_or(|word| names(&set.filter, word));
            if !is_for {
                return false;
            }
            let judged = filter.judge(facts);
            if let Err(error @ (JqError::TooSlow | JqError::SwitchedOff)) = &judged {
                set.too_slow += 1;
                if *error == JqError::TooSlow {
                    too_slow.push(set.number);
                }
            }
            judged.unwrap_or(false)
        });
        BreakpointHit {
            number: place.map(|place| self.count(place)),
            too_slow,
        }
    }

    /// Counts a hit.
    fn count(&mut self, place: usize) -> u32 {
        let (set, ..) = &mut self.set[place];
        set.hits += 1;
        let number = set.number;
        if let Some(left) = &mut set.left {
            *left -= 1;
            if *left == 0 {
                self.set.remove(place);
            }
        }
        number
    }
}

/// The word for what must not wait: a ping, its answer, or a cancel.
fn urgent(facts: &MessageFacts<'_>) -> Option<&'static str> {
    let own = facts.message.method();
    let asked = facts.request.and_then(|asked| asked.method);
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

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_proxy_session::{EnvelopeFacts, MessageFlags};
    use mcp_proxy_wire::{Message, Transport};
    use std::sync::Arc;

    use crate::intercept::HoldOptions;
    use crate::proxy_run::{ProxyRun, RunOptions};

    #[test]
    fn one_that_is_too_slow_holds_nothing_and_says_so_once() {
        let mut breakpoints = Breakpoints::default();
        for filter in ["jq:last(range(1e12))", "tools/call"] {
            breakpoints.add(NewBreakpoint {
                filter: Filter::parse(filter).unwrap(),
                ..NewBreakpoint::default()
            });
        }
        let message = Message::parse(r#"{"id":1,"method":"tools/call"}"#);
        let facts = MessageFacts {
            sequence: 1,
            time: std::time::SystemTime::UNIX_EPOCH,
            direction: Direction::ClientToServer,
            transport: Transport::Stdio,
            connection: 1,
            server: None,
            exchange: 0,
            origin: mcp_proxy_wire::Origin::Client,
            parent: None,
            message: &message,
            partial_head: None,
            request: None,
            envelope: EnvelopeFacts::Plain,
            flags: MessageFlags::default(),
        };
        let run = ProxyRun::new(RunOptions {
            recorder: None,
            warn: Arc::new(|text| panic!("{text}")),
            pass_noise: false,
            hold: HoldOptions::default(),
        });
        let connection = run.connect(Transport::Stdio, Transport::Stdio);
        let hit = |_| breakpoints.hit(&facts, &connection);
        let hits: Vec<_> = (0..5).map(hit).collect();
        assert!(hits.iter().all(|hit| hit.number == Some(2)), "{hits:?}");
        let noted: Vec<_> = hits.iter().map(|hit| hit.too_slow.len()).collect();
        assert_eq!(noted, [1, 0, 0, 0, 0]);
        let list = breakpoints.list();
        assert_eq!((list[0].too_slow, list[0].hits), (5, 0));
        assert_eq!((list[1].too_slow, list[1].hits), (0, 5));
    }
}
