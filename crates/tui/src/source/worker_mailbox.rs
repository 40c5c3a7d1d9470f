//! Between the screen and its worker: what the screen wants, and what the worker found.
//!
//! Both sides only put down and take away, so neither waits for the other. What is not taken away is merged, and is never more
//! than the rows themselves.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use mcp_proxy_session::{MarkOperation, MessageWithContext, SessionHeader};

use super::fetched_messages::MOST_ROWS;
use super::row_source::RowSource;
use super::search::RowSelection;
use super::session_events::{KEPT, SessionEvent};
use super::worker::ViewProgress;

/// The mailbox.
#[derive(Debug, Default)]
pub(super) struct WorkerMailbox {
    contents: Mutex<MailboxContents>,
    /// Something is wanted.
    wanted: Condvar,
    /// Something was found.
    found: Condvar,
    /// The number of the newest filter, so that a search sees at every row whether it is still wanted.
    newest: AtomicU64,
}

#[derive(Debug, Default)]
struct MailboxContents {
    commands: WorkerCommands,
    results: Option<WorkerResults>,
}

/// What the screen wants.
#[derive(Debug, Default)]
pub(super) struct WorkerCommands {
    /// Search for these rows; the search has this number.
    pub(super) selection: Option<(u64, RowSelection)>,
    /// Take in what was appended.
    pub(super) look: bool,
    /// Take these in.
    pub(super) pushed: Vec<MessageWithContext>,
    /// End.
    pub(super) stop: bool,
}

/// What the worker found since.
#[derive(Debug, Default)]
pub(super) struct WorkerResults {
    pub(super) opened: Option<OpenedView>,
    /// What happened before the record was opened is among the events.
    pub(super) has_earlier_events: bool,
    pub(super) failed: Option<String>,
    pub(super) progress: ViewProgress,
    /// New rows that match, in order.
    pub(super) found: Vec<u32>,
    /// Older rows that were tried again, because something about them changed.
    pub(super) rechecked: Vec<(u32, bool)>,
    /// Rows that are not what they were.
    pub(super) changed: Vec<u32>,
    pub(super) connections: Vec<u32>,
    pub(super) events: Vec<SessionEvent>,
    /// Messages that were marked since, in order.
    pub(super) marks: Vec<(u64, MarkOperation)>,
    /// Messages that were marked before, the newest mark first.
    pub(super) older_marks: Vec<(u64, MarkOperation)>,
}

/// Rows that can be read now.
#[derive(Debug)]
pub(super) struct OpenedView {
    pub(super) rows: Arc<RwLock<RowSource>>,
    pub(super) header: Option<SessionHeader>,
}

/// Held by the worker's thread: says so if that ends by a panic.
#[derive(Debug)]
pub(super) struct WorkerPanicGuard(pub(super) Arc<WorkerMailbox>);

impl WorkerMailbox {
    pub(super) fn look(&self) {
        self.send_command(|orders| orders.look = true);
    }

    pub(super) fn stop(&self) {
        self.newest.store(u64::MAX, Ordering::Relaxed);
        self.send_command(|orders| orders.stop = true);
    }

    pub(super) fn select(&self, number: u64, selection: RowSelection) {
        self.newest.store(number, Ordering::Relaxed);
        self.send_command(|orders| orders.selection = Some((number, selection)));
    }

    pub(super) fn push(&self, rows: Vec<MessageWithContext>) {
        self.send_command(|orders| {
            orders.pushed.extend(rows);
            // Older ones would be forgotten at once anyway.
            let most = orders.pushed.len().saturating_sub(MOST_ROWS);
            orders.pushed.drain(..most);
        });
    }

    /// What the worker found since the last time.
    pub(super) fn take_results(&self) -> Option<WorkerResults> {
        self.lock_contents().results.take()
    }

    /// Waits until there is mail.
    pub(super) fn wait(&self, longest: Duration) -> bool {
        let nothing = |papers: &mut MailboxContents| papers.results.is_none();
        let waited = self
            .found
            .wait_timeout_while(self.lock_contents(), longest, nothing);
        let (papers, _) = waited.unwrap_or_else(PoisonError::into_inner);
        papers.results.is_some()
    }

    /// What is wanted; waits until something is.
    pub(super) fn wait_for_commands(&self) -> WorkerCommands {
        let nothing = |papers: &mut MailboxContents| papers.commands.is_nothing();
        let waited = self.wanted.wait_while(self.lock_contents(), nothing);
        let mut papers = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut papers.commands)
    }

    /// What is wanted now, if anything.
    pub(super) fn take_commands(&self) -> WorkerCommands {
        std::mem::take(&mut self.lock_contents().commands)
    }

    /// Whether a search with this filter is still wanted.
    pub(super) fn is_current_filter(&self, number: u64) -> bool {
        self.newest.load(Ordering::Relaxed) == number
    }

    pub(super) fn post_results(&self, mail: WorkerResults) {
        let mut papers = self.lock_contents();
        match &mut papers.results {
            Some(earlier) => earlier.add(mail),
            none => *none = Some(mail),
        }
        self.found.notify_all();
    }

    fn send_command(&self, write: impl FnOnce(&mut WorkerCommands)) {
        write(&mut self.lock_contents().commands);
        self.wanted.notify_all();
    }

    /// A panic of the other side leaves nothing half done here.
    fn lock_contents(&self) -> MutexGuard<'_, MailboxContents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WorkerCommands {
    fn is_nothing(&self) -> bool {
        self.selection.is_none() && !self.look && self.pushed.is_empty() && !self.stop
    }
}

impl WorkerResults {
    fn add(&mut self, newer: WorkerResults) {
        if newer.progress.filter != self.progress.filter {
            self.found.clear();
            self.rechecked.clear();
        }
        self.opened = newer.opened.or(self.opened.take());
        self.has_earlier_events |= newer.has_earlier_events;
        self.failed = newer.failed.or(self.failed.take());
        self.progress = newer.progress;
        self.found.extend(newer.found);
        self.rechecked.extend(newer.rechecked);
        self.changed.extend(newer.changed);
        self.connections.extend(newer.connections);
        self.events.extend(newer.events);
        self.marks.extend(newer.marks);
        self.older_marks.extend(newer.older_marks);
        let most = self.events.len().saturating_sub(KEPT);
        self.events.drain(..most);
    }
}

impl Drop for WorkerPanicGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.post_results(WorkerResults {
                failed: Some("the thread that reads the record failed".to_owned()),
                ..WorkerResults::default()
            });
        }
    }
}
