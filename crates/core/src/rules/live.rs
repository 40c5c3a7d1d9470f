//! The rules of a run, which can be replaced while it runs.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use mcp_proxy_wire::Transport;

use super::{RuleAction, Rules, RulesFile};
use crate::link::Dial;

/// A message that a rule sends to another server is answered within this time: clients give up after a minute.
pub(crate) const REDIRECT_TIME: Duration = Duration::from_secs(55);

/// Finds the server that a rule names: how it speaks, and what opens links to it. The binary passes it in.
pub type OpenServerCallback = Arc<dyn Fn(&str) -> Result<(Transport, Dial), String> + Send + Sync>;

/// How many messages, and how many bytes of them, may wait for the end of a delay. Beyond that, messages are not delayed.
const DELAYED_MAX: usize = 1000;
const DELAYED_BYTES_MAX: usize = 64 << 20;

/// What a run obeys now.
#[derive(Debug, Default)]
pub struct LiveRules {
    active: AtomicBool,
    /// Counts the exchanges.
    version: AtomicU64,
    rules: RwLock<Arc<Rules>>,
    file: OnceLock<RulesFile>,
    delayed: Arc<DelayUsage>,
}

#[derive(Debug, Default)]
struct DelayUsage {
    count: AtomicUsize,
    bytes: AtomicUsize,
}

/// A message's place among those that wait; given back when dropped.
#[derive(Debug)]
pub(crate) struct DelayPermit {
    delayed: Arc<DelayUsage>,
    bytes: usize,
}

impl LiveRules {
    /// Whether there are any. Asked for every message, so it takes no lock.
    pub fn is_active(&self) -> bool {
        self.active.load(Ordering::Acquire)
    }

    /// The rules of this moment.
    pub fn current(&self) -> Arc<Rules> {
        Arc::clone(&self.rules.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes whenever the rules do.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// From now on these. What was judged before stays as it was judged.
    pub fn set(&self, rules: Rules) {
        let active = !rules.is_empty();
        // All three change under the lock: of two threads that set rules, the last one has set all of it.
        let mut current = self.rules.write().unwrap_or_else(PoisonError::into_inner);
        *current = Arc::new(rules);
        self.version.fetch_add(1, Ordering::Release);
        self.active.store(active, Ordering::Release);
    }

    /// From now on the rules of this file, which were read from it just now.
    pub fn follow(&self, file: RulesFile, rules: Rules) {
        self.set(rules);
        // A run has one rules file, which is given at its start.
        let _ = self.file.set(file);
    }

    /// The file, if the run has one.
    pub fn file(&self) -> Option<&RulesFile> {
        self.file.get()
    }

    /// Reads the file again: the number of its rules, or why the old ones stay. `None`: there is no file.
    pub fn reload(&self) -> Option<Result<usize, String>> {
        self.file().map(|file| file.reload(self))
    }

    /// The same, but only if the file has changed.
    pub fn reload_if_changed(&self) -> Option<Result<usize, String>> {
        self.file().and_then(|file| file.reload_if_changed(self))
    }

    /// How long a message may wait now.
    pub fn longest_delay(&self) -> Duration {
        if !self.is_active() {
            return Duration::ZERO;
        }
        let rules = self.current();
        let (mut delays, mut redirect) = (Duration::ZERO, Duration::ZERO);
        for rule in rules.list() {
            match rule.action {
                RuleAction::Delay(delay) => delays = delays.saturating_add(delay),
                RuleAction::Redirect(_) => redirect = REDIRECT_TIME,
                _ => {}
            }
        }
        delays.saturating_add(redirect)
    }

    /// The server that a rule names.
    pub(crate) fn server(&self, name: &str) -> Result<(Transport, Dial), String> {
        match self.file() {
            Some(file) => file.server(name),
            None => Err("no rules file is in use".to_owned()),
        }
    }

    /// A place for one more message that waits; `None` if there is none left.
    pub(crate) fn take_delay_permit(&self, bytes: usize) -> Option<DelayPermit> {
        let count = self.delayed.count.fetch_add(1, Ordering::Relaxed);
        let waiting = self.delayed.bytes.fetch_add(bytes, Ordering::Relaxed);
        let place = DelayPermit {
            delayed: Arc::clone(&self.delayed),
            bytes,
        };
        let fits = count < DELAYED_MAX && waiting.saturating_add(bytes) <= DELAYED_BYTES_MAX;
        fits.then_some(place)
    }
}

impl Drop for DelayPermit {
    fn drop(&mut self) {
        self.delayed.count.fetch_sub(1, Ordering::Relaxed);
        self.delayed.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn rules_are_exchanged_whole() {
        let live = LiveRules::default();
        assert!(!live.is_active());
        let rules =
            Rules::parse("[[rule]]\nmethod = \"ping\"\ndrop = true\n", Path::new(".")).unwrap();
        live.set(rules);
        assert!(live.is_active());
        assert_eq!(live.current().list().len(), 1);
        live.set(Rules::default());
        assert!(!live.is_active());
    }

    #[test]
    fn of_two_threads_that_set_rules_one_has_set_all() {
        let rules = || Rules::parse("[[rule]]\ndrop = true\n", Path::new(".")).unwrap();
        for _ in 0..200 {
            let live = Arc::new(LiveRules::default());
            let setting = [Rules::default(), rules()].map(|rules| {
                let live = Arc::clone(&live);
                std::thread::spawn(move || live.set(rules))
            });
            for thread in setting {
                thread.join().unwrap();
            }
            assert_eq!(live.is_active(), !live.current().is_empty());
        }
    }

    #[test]
    fn places_of_delayed_messages_are_bounded_and_given_back() {
        let live = LiveRules::default();
        let places: Vec<_> = (0..DELAYED_MAX)
            .map(|_| live.take_delay_permit(1).unwrap())
            .collect();
        assert!(live.take_delay_permit(1).is_none());
        drop(places);
        assert!(live.take_delay_permit(DELAYED_BYTES_MAX + 1).is_none());
        assert!(live.take_delay_permit(DELAYED_BYTES_MAX).is_some());
    }
}
