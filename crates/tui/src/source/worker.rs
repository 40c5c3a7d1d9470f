//! The worker thread of a view: it opens the record, takes in what is appended, and runs the filter.
//!
//! The view wakes it through one channel and gets what it found through another. It is the only one that writes rows, so its
//! long reads never keep the screen waiting: only taking in new lines does, and that is done in small portions.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use mcp_proxy_session::{MarkOperation, Row, SessionHeader, SessionRecord};

use super::event_reader::EventReader;
use super::rows;
use super::search::{FilterSearch, RowSelection};
use super::session_events::SessionEvent;

/// Lines taken in at once, while the screen cannot read.
const PORTION: usize = 1_000;
/// Updates that may wait for the view. The worker waits while a user is in an editor.
const WAITING_UPDATES: usize = 16;

/// What a view wants of its worker. The newest wish counts.
#[derive(Debug, Default)]
pub(super) struct WantedRows {
    selection: Mutex<RowSelection>,
    /// The number of the newest selection, so that a search sees at every row whether it is still wanted.
    newest: AtomicU64,
}

/// What the worker found since its last update, or why it gave up.
pub(super) type UpdateResult = Result<ViewUpdate, String>;

/// What the worker found since its last update.
#[derive(Debug, Default)]
pub(super) struct ViewUpdate {
    pub(super) opened: Option<OpenedView>,
    pub(super) progress: ViewProgress,
    /// New rows that match, in order.
    pub(super) found: Vec<u32>,
    /// Older rows that were tried again, because something about them changed.
    pub(super) rechecked: Vec<(u32, bool)>,
    /// Rows that are not what they were.
    pub(super) changed: Vec<u32>,
    pub(super) connections: Vec<u32>,
    pub(super) events: Vec<SessionEvent>,
    /// Messages that were marked, in order.
    pub(super) marks: Vec<(u64, MarkOperation)>,
}

/// Rows that can be read now.
#[derive(Debug)]
pub(super) struct OpenedView {
    pub(super) rows: Arc<RwLock<SessionRecord>>,
    pub(super) header: SessionHeader,
}

/// How far everything is.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct ViewProgress {
    /// How many rows there are.
    pub(super) rows: usize,
    /// The number of the selection that is searched with.
    pub(super) selection: u64,
    /// Rows before this one were tried.
    pub(super) searched: usize,
    /// The lines between these rows were read.
    pub(super) has_read_events: bool,
    /// Why the search or the reading was given up.
    pub(super) trouble: Option<String>,
}

/// The view's end of the channels.
#[derive(Debug)]
pub(super) struct WorkerHandle {
    wake: SyncSender<()>,
    pub(super) updates: Receiver<UpdateResult>,
    wanted: Arc<WantedRows>,
}

/// The worker of one view.
#[derive(Debug)]
struct ViewWorker {
    woken: Receiver<()>,
    updates: SyncSender<UpdateResult>,
    wanted: Arc<WantedRows>,
    rows: Arc<RwLock<SessionRecord>>,
    event_reader: EventReader,
    search: FilterSearch,
    /// There may be more to take in.
    has_more: bool,
    /// Why nothing new can be read.
    trouble: Option<String>,
    connections: HashSet<u32>,
    last_progress: ViewProgress,
}

impl WorkerHandle {
    /// Starts a worker that reads a record.
    pub(super) fn start(record: &Path) -> std::io::Result<WorkerHandle> {
        let (wake, woken) = sync_channel(1);
        let (updates, received) = sync_channel(WAITING_UPDATES);
        let wanted: Arc<WantedRows> = Arc::default();
        let handle = WorkerHandle {
            wake,
            updates: received,
            wanted: Arc::clone(&wanted),
        };
        let record = record.to_owned();
        let work = move || match SessionRecord::open(&record) {
            Ok(session) => ViewWorker::new(woken, updates, wanted, session).run(),
            // The view may be gone already.
            Err(error) => drop(updates.send(Err(chain(&error)))),
        };
        let thread = std::thread::Builder::new().name("rows".to_owned());
        thread.spawn(work)?;
        Ok(handle)
    }

    /// Has the worker look at the record again. If it has been woken and did not look yet, that is enough.
    pub(super) fn wake(&self) {
        let _ = self.wake.try_send(());
    }

    pub(super) fn select(&self, selection: RowSelection) {
        self.wanted
            .newest
            .store(selection.number, Ordering::Relaxed);
        *locked(&self.wanted.selection) = selection;
        self.wake();
    }
}

/// The search that runs is of no use to a view that is gone.
impl Drop for WorkerHandle {
    fn drop(&mut self) {
        self.wanted.newest.store(u64::MAX, Ordering::Relaxed);
    }
}

impl WantedRows {
    /// Whether a search for this selection is still wanted.
    pub(super) fn is_current(&self, selection: u64) -> bool {
        self.newest.load(Ordering::Relaxed) == selection
    }
}

/// What went wrong, with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

impl ViewWorker {
    fn new(
        woken: Receiver<()>,
        updates: SyncSender<UpdateResult>,
        wanted: Arc<WantedRows>,
        session: SessionRecord,
    ) -> ViewWorker {
        ViewWorker {
            woken,
            updates,
            wanted,
            rows: Arc::new(RwLock::new(session)),
            event_reader: EventReader::default(),
            search: FilterSearch::default(),
            has_more: false,
            trouble: None,
            connections: HashSet::new(),
            last_progress: ViewProgress::default(),
        }
    }

    /// Works until the view is gone. Rows come first, so that a screen is there at once; then what happened between them.
    fn run(mut self) {
        let mut update = ViewUpdate {
            opened: Some(OpenedView {
                rows: Arc::clone(&self.rows),
                header: read(&self.rows).header().clone(),
            }),
            ..ViewUpdate::default()
        };
        self.note_new_rows(0, &mut update);
        while self.post(update).is_some() {
            let is_busy = self.has_more
                || !self.event_reader.has_caught_up()
                || self.search.next < read(&self.rows).len();
            let woken = match is_busy {
                true => self.woken.try_recv(),
                false => self.woken.recv().map_err(|_| TryRecvError::Disconnected),
            };
            if woken == Err(TryRecvError::Disconnected) {
                return;
            }
            update = ViewUpdate::default();
            let known = read(&self.rows).len();
            if woken.is_ok() || self.has_more {
                self.take_in();
            }
            self.read_events(&mut update);
            self.search(&mut update);
            self.note_new_rows(known, &mut update);
        }
    }

    /// Takes in a portion of what was appended to the record.
    fn take_in(&mut self) {
        let mut session = self.rows.write().unwrap_or_else(PoisonError::into_inner);
        let bytes = session.bytes();
        let taken = session.refresh_some(PORTION);
        self.has_more = taken.is_ok() && session.bytes() > bytes;
        self.trouble = taken.err().map(|error| chain(&error));
    }

    /// Reads a portion of the lines between messages.
    fn read_events(&mut self, update: &mut ViewUpdate) {
        let read = self.event_reader.read_some(&read(&self.rows), update);
        if let Err(error) = read {
            self.trouble = Some(error.to_string());
        }
    }

    /// Tries rows for a while, and those again that have changed.
    fn search(&mut self, update: &mut ViewUpdate) {
        let rows = read(&self.rows);
        if !self.wanted.is_current(self.search.number()) {
            let selection = locked(&self.wanted.selection).clone();
            self.search = FilterSearch::new(selection);
        }
        self.search.retry(&rows, update);
        self.search.scan_slice(&rows, &self.wanted, update);
    }

    /// Notes the connections of rows from `from` on, and the calls that they answer: the row of a call shows its answer.
    fn note_new_rows(&mut self, from: usize, update: &mut ViewUpdate) {
        let rows = read(&self.rows);
        let calls = (from..rows.len()).filter_map(|row| rows::call_of(&rows, row));
        update.changed.extend(calls.map(|row| row as u32));
        for connection in rows.rows()[from..].iter().map(Row::connection) {
            if self.connections.insert(connection) {
                update.connections.push(connection);
            }
        }
    }

    /// Sends the update, if there is anything new in it. `None`: the view is gone.
    fn post(&mut self, mut update: ViewUpdate) -> Option<()> {
        update.progress = ViewProgress {
            rows: read(&self.rows).len(),
            selection: self.search.number(),
            searched: self.search.next,
            has_read_events: self.event_reader.has_caught_up(),
            trouble: self.search.trouble.clone().or(self.trouble.clone()),
        };
        let is_quiet = update.opened.is_none()
            && update.events.is_empty()
            && update.changed.is_empty()
            && update.connections.is_empty();
        if is_quiet && update.progress == self.last_progress {
            return Some(());
        }
        self.last_progress = update.progress.clone();
        self.updates.send(Ok(update)).ok()
    }
}

fn read(rows: &RwLock<SessionRecord>) -> RwLockReadGuard<'_, SessionRecord> {
    rows.read().unwrap_or_else(PoisonError::into_inner)
}

/// A panic of the other side leaves nothing half done here.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
