//! What the relay counts: what nobody is told about when it happens, and what an operator wants to see.

/// Counts since a user's first socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RelayCounters {
    /// Commands that were forwarded.
    pub commands: u64,
    /// Answers that reached a client.
    pub answers: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Commands that were refused because too many came.
    pub rate_limited: u64,
    /// Commands whose time ran out.
    pub timeouts: u64,
    /// Commands that failed because a socket was lost or replaced.
    pub lost: u64,
    /// Answers that came when nobody waited for them.
    pub late_answers: u64,
    /// Messages for an extension that was already forgotten.
    pub unroutable: u64,
    /// Messages that mean nothing here.
    pub ignored: u64,
    /// Sockets that were cut because they did not read.
    pub slow_readers: u64,
    /// Answers that ended in the middle, and their client's socket with them.
    pub cut_answers: u64,
}

impl RelayCounters {
    /// The sum of two.
    #[must_use]
    pub fn plus(self, other: RelayCounters) -> RelayCounters {
        RelayCounters {
            commands: self.commands + other.commands,
            answers: self.answers + other.answers,
            refused: self.refused + other.refused,
            rate_limited: self.rate_limited + other.rate_limited,
            timeouts: self.timeouts + other.timeouts,
            lost: self.lost + other.lost,
            late_answers: self.late_answers + other.late_answers,
            unroutable: self.unroutable + other.unroutable,
            ignored: self.ignored + other.ignored,
            slow_readers: self.slow_readers + other.slow_readers,
            cut_answers: self.cut_answers + other.cut_answers,
        }
    }
}
