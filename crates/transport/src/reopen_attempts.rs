//! How often, and for how long, the proxy tries to open a lost session again.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// A server has this long to come back. Clients give up on what waits meanwhile after about a minute.
const REOPEN_DEADLINE: Duration = Duration::from_secs(30);
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// A session that is lost sooner counts as another failed attempt.
const LASTING: Duration = Duration::from_secs(5);

/// Why a session could not be opened again.
pub(crate) enum ReopenError {
    /// The server may be on its way.
    Later(String),
    /// It refuses, or it is another server now.
    Never(String),
}

impl ReopenError {
    pub(crate) fn text(&self) -> &str {
        let (ReopenError::Later(text) | ReopenError::Never(text)) = self;
        text
    }
}

/// The attempts since the last session that lasted.
pub(crate) struct ReopenAttempts {
    pause: Duration,
    deadline: Option<Instant>,
}

impl Default for ReopenAttempts {
    fn default() -> ReopenAttempts {
        ReopenAttempts {
            pause: PAUSE_FIRST,
            deadline: None,
        }
    }
}

impl ReopenAttempts {
    /// A session that lived for this long is lost.
    pub(crate) fn lost_after(&mut self, lived: Duration) {
        if lived >= LASTING {
            *self = ReopenAttempts::default();
        }
    }

    /// When the session must be open. The time runs from the first call.
    pub(crate) fn deadline(&mut self) -> Instant {
        let start = || Instant::now() + REOPEN_DEADLINE;
        *self.deadline.get_or_insert_with(start)
    }

    /// Waits until the next attempt is due, each time longer; `false`: no time is left for one.
    pub(crate) async fn wait(&mut self) -> bool {
        if Instant::now() + self.pause >= self.deadline() {
            return false;
        }
        sleep(self.pause).await;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many attempts there are, and how long they take.
    async fn count(attempts: &mut ReopenAttempts, lived: Duration) -> (usize, Duration) {
        let (start, mut count) = (Instant::now(), 0);
        while count < 100 && attempts.wait().await {
            sleep(lived).await;
            attempts.lost_after(lived);
            count += 1;
        }
        (count, start.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_loses_each_session_at_once_is_given_up() {
        let mut attempts = ReopenAttempts::default();
        let (count, took) = count(&mut attempts, Duration::ZERO).await;
        assert!((15..25).contains(&count), "{count}");
        assert!(took <= REOPEN_DEADLINE, "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_that_lasted_is_opened_again_without_delay() {
        let mut attempts = ReopenAttempts::default();
        let (count, took) = count(&mut attempts, LASTING).await;
        assert_eq!((count, took), (100, (LASTING + PAUSE_FIRST) * 100));
    }
}
