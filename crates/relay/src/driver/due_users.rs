//! When each user has something to do, so that nobody has to look at all of them to find out.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::lock;

/// The users' next ticks, the earliest first. A [`SharedUser`](super::shared_user::SharedUser) keeps its own entry up to date.
#[derive(Debug, Default)]
pub(super) struct DueUsers(Mutex<BTreeSet<(Duration, Arc<str>)>>);

impl DueUsers {
    /// A user's next tick is at another time.
    pub(super) fn reschedule(&self, user: &Arc<str>, before: Option<Duration>, next: Duration) {
        let mut entries = lock(&self.0);
        if let Some(before) = before {
            entries.remove(&(before, Arc::clone(user)));
        }
        entries.insert((next, Arc::clone(user)));
    }

    /// A user has no next tick.
    pub(super) fn remove(&self, user: &Arc<str>, at: Duration) {
        lock(&self.0).remove(&(at, Arc::clone(user)));
    }

    /// Takes out the users that have something to do by now.
    pub(super) fn take(&self, now: Duration) -> Vec<Arc<str>> {
        let mut entries = lock(&self.0);
        let mut due = Vec::new();
        while let Some(first) = entries.first()
            && first.0 <= now
        {
            due.extend(entries.pop_first().map(|(_, user)| user));
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_due_once_at_the_time_that_was_named_last() {
        let due_users = DueUsers::default();
        let [ada, bob, eve] = ["ada", "bob", "eve"].map(Arc::<str>::from);
        let at = Duration::from_secs;
        for user in [&ada, &bob, &eve] {
            due_users.reschedule(user, None, at(10));
        }
        due_users.reschedule(&ada, Some(at(10)), at(30));
        due_users.reschedule(&eve, Some(at(10)), at(5));
        due_users.remove(&bob, at(10));
        assert_eq!(due_users.take(at(4)), []);
        assert_eq!(due_users.take(at(20)), [eve]);
        assert_eq!(due_users.take(at(30)), [ada]);
        assert_eq!(due_users.take(at(1000)), []);
    }
}
