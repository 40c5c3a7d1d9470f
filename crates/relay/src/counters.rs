//! What the relay counts: what nobody is told about when it happens, and what an operator wants to see.

use crate::fault::RelayFault;

/// How many counters there are.
const COUNT: usize = 20;

/// Counts since a user's first socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RelayCounters {
    /// Sockets that were opened, those that never showed a token included.
    pub sockets_opened: u64,
    /// Commands that were accepted for an extension.
    pub commands: u64,
    /// Answers that reached a client.
    pub answers: u64,
    /// Requests that were refused for a reason that has no counter of its own.
    pub refused: u64,
    /// Commands that the policy does not allow.
    pub denied: u64,
    /// Requests that were refused because too many came.
    pub rate_limited: u64,
    /// Commands that were refused because too many, or too long ones, were waiting.
    pub queue_full: u64,
    /// Commands and answers that were over their limit.
    pub too_large: u64,
    /// Connections over the limit of their user.
    pub connection_limit: u64,
    /// Sockets over the limit of their user.
    pub socket_limit: u64,
    /// Sockets that were turned away because too many came at once.
    pub admission_limit: u64,
    /// Tokens that were refused, and sockets that showed none in time.
    pub refused_tokens: u64,
    /// Requests to exchange a pairing code that were refused.
    pub refused_pairings: u64,
    /// Commands whose time ran out.
    pub timeouts: u64,
    /// Commands that failed because a socket was lost or replaced, or their client disconnected.
    pub lost: u64,
    /// Answers that came when nobody waited for them.
    pub late_answers: u64,
    /// Messages that mean nothing here.
    pub ignored: u64,
    /// Sockets that were cut because they did not read, or because there was no memory for an event.
    pub slow_readers: u64,
    /// Sockets that were cut because their peer sent nothing, not even the answer to a ping.
    pub silent_peers: u64,
    /// Sockets that were closed with 1009, for a message that is too long to be read.
    pub oversized: u64,
}

impl RelayCounters {
    /// All of them with their names, as `stats` and `/healthz` show them.
    #[must_use]
    pub fn named(mut self) -> [(&'static str, u64); COUNT] {
        self.all().map(|(name, count)| (name, *count))
    }

    /// The sum of two.
    #[must_use]
    pub fn plus(mut self, other: RelayCounters) -> RelayCounters {
        for ((_, sum), (_, more)) in self.all().into_iter().zip(other.named()) {
            *sum += more;
        }
        self
    }

    /// Counts a request that has no result because of the relay or a lost socket.
    pub(crate) fn count_fault(&mut self, fault: &RelayFault) {
        *match fault {
            RelayFault::Denied { .. } => &mut self.denied,
            RelayFault::RateLimited { .. } => &mut self.rate_limited,
            RelayFault::QueueFull => &mut self.queue_full,
            RelayFault::TooLarge(_) => &mut self.too_large,
            RelayFault::ConnectionLimit => &mut self.connection_limit,
            RelayFault::SocketLimit => &mut self.socket_limit,
            RelayFault::AdmissionLimit => &mut self.admission_limit,
            RelayFault::Timeout(_) => &mut self.timeouts,
            RelayFault::ExtensionGone(_)
            | RelayFault::Superseded(..)
            | RelayFault::Disconnected(_)
            | RelayFault::Closed(..) => &mut self.lost,
            _ => &mut self.refused,
        } += 1;
    }

    /// The one list. A counter that is missing here is found by the compiler.
    fn all(&mut self) -> [(&'static str, &mut u64); COUNT] {
        let RelayCounters {
            sockets_opened,
            commands,
            answers,
            refused,
            denied,
            rate_limited,
            queue_full,
            too_large,
            connection_limit,
            socket_limit,
            admission_limit,
            refused_tokens,
            refused_pairings,
            timeouts,
            lost,
            late_answers,
            ignored,
            slow_readers,
            silent_peers,
            oversized,
        } = self;
        [
            ("sockets_opened", sockets_opened),
            ("commands", commands),
            ("answers", answers),
            ("refused", refused),
            ("denied", denied),
            ("rate_limited", rate_limited),
            ("queue_full", queue_full),
            ("too_large", too_large),
            ("connection_limit", connection_limit),
            ("socket_limit", socket_limit),
            ("admission_limit", admission_limit),
            ("refused_tokens", refused_tokens),
            ("refused_pairings", refused_pairings),
            ("timeouts", timeouts),
            ("lost", lost),
            ("late_answers", late_answers),
            ("ignored", ignored),
            ("slow_readers", slow_readers),
            ("silent_peers", silent_peers),
            ("oversized", oversized),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_every_counter() {
        let page = include_str!("../../../docs/relay.md");
        let section = page.split("\n### Counters\n").nth(1).unwrap();
        let rows = section.split("\n#").next().unwrap().lines();
        let named: Vec<&str> = rows
            .filter_map(|row| row.strip_prefix("| `")?.split('`').next())
            .collect();
        let known = RelayCounters::default().named().map(|(name, _)| name);
        assert_eq!(named, known);
    }
}
