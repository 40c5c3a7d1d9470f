//! Between the screen and its worker: what the screen wants, and what the worker found.
//!
//! Both sides only put down and take away, so neither waits for the other. What is not taken away is merged, and is never more
//! than the rows themselves.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use mcp_proxy_session::{Filter, Mark, SessionHeader, Told};

use super::happening::{Happening, KEPT};
use super::remembered::MOST_ROWS;
use super::rows::Rows;
use super::worker::Whereabouts;

/// The desk.
#[derive(Debug, Default)]
pub(super) struct Desk {
    papers: Mutex<Papers>,
    /// Something is wanted.
    wanted: Condvar,
    /// Something was found.
    found: Condvar,
    /// The number of the newest filter, so that a search sees at every row whether it is still wanted.
    newest: AtomicU64,
}

#[derive(Debug, Default)]
struct Papers {
    orders: Orders,
    mail: Option<Mail>,
}

/// What the screen wants.
#[derive(Debug, Default)]
pub(super) struct Orders {
    /// Search with this one, which has this number.
    pub(super) filter: Option<(u64, Filter)>,
    /// Take in what was appended.
    pub(super) look: bool,
    /// Take these in.
    pub(super) pushed: Vec<Told>,
    /// End.
    pub(super) stop: bool,
}

/// What the worker found since.
#[derive(Debug, Default)]
pub(super) struct Mail {
    pub(super) opened: Option<Opened>,
    pub(super) failed: Option<String>,
    pub(super) at: Whereabouts,
    /// New rows that match, in order.
    pub(super) found: Vec<u32>,
    /// Older rows that were tried again, because something about them changed.
    pub(super) again: Vec<(u32, bool)>,
    /// Rows that are not what they were.
    pub(super) changed: Vec<u32>,
    pub(super) connections: Vec<u32>,
    pub(super) happenings: Vec<Happening>,
    /// Messages that were marked since, in order.
    pub(super) marks: Vec<(u64, Mark)>,
    /// Messages that were marked before, the newest mark first.
    pub(super) older_marks: Vec<(u64, Mark)>,
}

/// Rows that can be read now.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) rows: Arc<RwLock<Rows>>,
    pub(super) header: Option<SessionHeader>,
}

/// Held by the worker's thread: says so if that ends by a panic.
#[derive(Debug)]
pub(super) struct Leaving(pub(super) Arc<Desk>);

impl Desk {
    pub(super) fn look(&self) {
        self.order(|orders| orders.look = true);
    }

    pub(super) fn stop(&self) {
        self.newest.store(u64::MAX, Ordering::Relaxed);
        self.order(|orders| orders.stop = true);
    }

    pub(super) fn filter(&self, number: u64, filter: Filter) {
        self.newest.store(number, Ordering::Relaxed);
        self.order(|orders| orders.filter = Some((number, filter)));
    }

    pub(super) fn push(&self, rows: Vec<Told>) {
        self.order(|orders| {
            orders.pushed.extend(rows);
            // Older ones would be let go at once anyway.
            let most = orders.pushed.len().saturating_sub(MOST_ROWS);
            orders.pushed.drain(..most);
        });
    }

    /// What the worker found since the last time.
    pub(super) fn mail(&self) -> Option<Mail> {
        self.papers().mail.take()
    }

    /// Waits until there is mail.
    pub(super) fn wait(&self, longest: Duration) -> bool {
        let nothing = |papers: &mut Papers| papers.mail.is_none();
        let waited = self
            .found
            .wait_timeout_while(self.papers(), longest, nothing);
        let (papers, _) = waited.unwrap_or_else(PoisonError::into_inner);
        papers.mail.is_some()
    }

    /// What is wanted; waits until something is.
    pub(super) fn next_orders(&self) -> Orders {
        let nothing = |papers: &mut Papers| papers.orders.is_nothing();
        let waited = self.wanted.wait_while(self.papers(), nothing);
        let mut papers = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut papers.orders)
    }

    /// What is wanted now, if anything.
    pub(super) fn orders(&self) -> Orders {
        std::mem::take(&mut self.papers().orders)
    }

    /// Whether a search with this filter is still wanted.
    pub(super) fn wants(&self, number: u64) -> bool {
        self.newest.load(Ordering::Relaxed) == number
    }

    pub(super) fn post(&self, mail: Mail) {
        let mut papers = self.papers();
        match &mut papers.mail {
            Some(earlier) => earlier.add(mail),
            none => *none = Some(mail),
        }
        self.found.notify_all();
    }

    fn order(&self, write: impl FnOnce(&mut Orders)) {
        write(&mut self.papers().orders);
        self.wanted.notify_all();
    }

    /// A panic of the other side leaves nothing half done here.
    fn papers(&self) -> MutexGuard<'_, Papers> {
        self.papers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Orders {
    fn is_nothing(&self) -> bool {
        self.filter.is_none() && !self.look && self.pushed.is_empty() && !self.stop
    }
}

impl Mail {
    fn add(&mut self, newer: Mail) {
        if newer.at.filter != self.at.filter {
            self.found.clear();
            self.again.clear();
        }
        self.opened = newer.opened.or(self.opened.take());
        self.failed = newer.failed.or(self.failed.take());
        self.at = newer.at;
        self.found.extend(newer.found);
        self.again.extend(newer.again);
        self.changed.extend(newer.changed);
        self.connections.extend(newer.connections);
        self.happenings.extend(newer.happenings);
        self.marks.extend(newer.marks);
        self.older_marks.extend(newer.older_marks);
        let most = self.happenings.len().saturating_sub(KEPT);
        self.happenings.drain(..most);
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.post(Mail {
                failed: Some("the thread that reads the record failed".to_owned()),
                ..Mail::default()
            });
        }
    }
}
