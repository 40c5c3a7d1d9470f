//! What the UI knows of the proxy: who it is, what it holds, its breakpoints and rules, the servers of a hub.

use std::time::{Duration, Instant};

use mcp_proxy_control::{
    BreakpointRow, ConnectionRow, DecidedHold, HeldRow, HelloResult, HoldClock, HoldClockResult,
    HoldListResult, HoldPolicy, InterceptMode, InterceptResult, RulesListResult, ServerRow,
};

/// What the target of a hub begins with.
const HUB_TARGET: &str = "mcp-proxy serve";
/// What the clients of a hub are connected to.
const HUB_PEER: &str = "hub";

/// How it stands with the proxy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ProxyStatus {
    /// There is none: a record is looked at.
    #[default]
    None,
    /// It answers.
    Live,
    /// It has ended, or the connection to it.
    Gone(String),
}

/// The proxy as it was last heard of.
#[derive(Clone, Debug, Default)]
pub struct ProxyState {
    /// Whether it is there.
    pub link: ProxyStatus,
    /// What it says about itself.
    pub hello: HelloResult,
    /// Whether all messages are held.
    pub mode: InterceptMode,
    /// What is held, the oldest first.
    pub held: Vec<Held>,
    /// What was decided last, the newest last.
    pub decided: Vec<DecidedHold>,
    /// Its breakpoints.
    pub breakpoints: Vec<BreakpointRow>,
    /// Its rules.
    pub rules: RulesListResult,
    /// Its servers, as they were when the window that shows them last asked.
    pub servers: Vec<ServerRow>,
    /// Its newest connections, from the same time.
    pub connections: Vec<ConnectionRow>,
}

/// A message that waits for a decision.
#[derive(Clone, Debug)]
pub struct Held {
    /// What the proxy says about it.
    pub row: HeldRow,
    /// When it said how much time is left.
    pub since: Instant,
}

impl ProxyState {
    /// Before anything is known.
    pub fn unknown(link: ProxyStatus) -> ProxyState {
        ProxyState {
            link,
            ..ProxyState::default()
        }
    }

    /// Takes a notice about holds. True: the rules have changed too.
    pub fn take_present(&mut self, present: &InterceptResult) -> bool {
        self.mode = present.mode;
        self.decided.clone_from(&present.decided);
        present.rules != self.rules.rules.len()
    }

    /// Takes an answer to `hold.list`.
    pub fn take_holds(&mut self, list: HoldListResult, now: Instant) {
        self.mode = list.mode;
        let holds = list.holds.into_iter();
        self.held = holds.map(|row| Held { row, since: now }).collect();
    }

    /// Whether it holds messages, or would hold some of the next.
    pub fn holds(&self) -> bool {
        let holds = self.mode == InterceptMode::Intercept
            || !self.held.is_empty()
            || !self.breakpoints.is_empty();
        self.link == ProxyStatus::Live && holds
    }

    /// Whether it is a hub, whose servers can be looked after.
    pub fn is_hub(&self) -> bool {
        let mut servers = self.hello.servers.iter();
        // A hub may be without servers until its configuration is read again.
        servers.any(|server| server.health.is_some())
            || self.hello.servers.is_empty() && self.hello.target.starts_with(HUB_TARGET)
    }

    /// How many clients a hub has.
    pub fn clients(&self) -> usize {
        let is_client =
            |row: &&ConnectionRow| row.open && row.server.name.as_deref() == Some(HUB_PEER);
        self.connections.iter().filter(is_client).count()
    }

    /// The numbers of the messages that are held, the oldest first.
    pub fn held_numbers(&self) -> Vec<u64> {
        self.held.iter().map(|held| held.row.sequence).collect()
    }

    /// Whether this hold is not decided yet.
    pub fn is_held(&self, hold: u64) -> bool {
        self.held.iter().any(|held| held.row.hold == hold)
    }

    /// The hold of a message.
    pub fn hold_of(&self, sequence: u64) -> Option<&Held> {
        self.held.iter().find(|held| held.row.sequence == sequence)
    }
}

impl Held {
    /// `42 s left, then it is forwarded`, or why no clock runs.
    pub fn describe_clock(&self, now: Instant) -> String {
        let then = match self.row.on_timeout {
            HoldPolicy::Forward => "forwarded",
            HoldPolicy::Drop => "dropped",
            HoldPolicy::Error => "answered with an error",
        };
        match (self.row.clock, self.time_left(now)) {
            (HoldClock::Running, Some(_)) => {
                format!("{}, then it is {then}", self.clock_text(now))
            }
            (HoldClock::Stopped, Some(left)) => {
                format!(
                    "clock stopped while it is edited ({} s left)",
                    left.as_secs()
                )
            }
            _ => self.clock_text(now),
        }
    }

    /// `42 s left`, or why no clock runs.
    pub fn clock_text(&self, now: Instant) -> String {
        match (self.row.clock, self.time_left(now)) {
            (HoldClock::Stopped, _) => "clock stopped".to_owned(),
            (HoldClock::AwaitingViewer, _) => "waits for a viewer".to_owned(),
            (HoldClock::Running, Some(left)) => format!("{} s left", left.as_secs()),
            (HoldClock::Off, _) | (HoldClock::Running, None) => "no time limit".to_owned(),
        }
    }

    /// `42 s`, in as few columns as there can be.
    pub fn short_clock(&self, now: Instant) -> String {
        match (self.row.clock, self.time_left(now)) {
            (HoldClock::Running, Some(left)) => format!("{} s", left.as_secs()),
            _ => String::new(),
        }
    }

    /// Takes a newer time.
    pub fn take_clock(&mut self, clock: &HoldClockResult, now: Instant) {
        (self.row.clock, self.row.left_ms, self.since) = (clock.clock, clock.left_ms, now);
    }

    fn time_left(&self, now: Instant) -> Option<Duration> {
        let left = Duration::from_millis(self.row.left_ms?);
        match self.row.clock {
            HoldClock::Running => Some(left.saturating_sub(now.duration_since(self.since))),
            _ => Some(left),
        }
    }
}
