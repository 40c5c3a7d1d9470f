//! Where rows come from: a record and its index.
//!
//! A [`SessionView`] is one session that is looked at. Each has a worker thread that opens the record, takes in what is appended and
//! runs the filter; the view itself is asked once a frame and never waits for a disk longer than the lines on the screen take.
//! It knows nothing of terminals, and writes nothing.

mod event_reader;
mod message_row;
mod places;
mod rows;
mod search;
mod session_events;
mod stray_lines;
mod worker;

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::mpsc::TryRecvError;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use mcp_proxy_session::{Filter, FilterError, MarkOperation, SessionHeader, SessionRecord};

use search::RowSelection;
use stray_lines::StrayPlaces;
use worker::{UpdateResult, ViewProgress, ViewUpdate, WorkerHandle};

pub(crate) use message_row::MessageRow;
pub(crate) use session_events::{SessionEvent, SessionEventKind, SessionEvents};
pub(crate) use stray_lines::StrayLines;

/// One session that is looked at: a record that grows, or a finished one.
#[derive(Debug, Default)]
pub struct SessionView {
    path: Option<PathBuf>,
    state: ViewState,
    header: Option<SessionHeader>,
    worker: Option<WorkerHandle>,
    /// What came while somebody waited for it.
    received: Option<UpdateResult>,
    rows: Option<Arc<RwLock<SessionRecord>>>,
    progress: ViewProgress,
    selection: RowSelection,
    /// Unless everything is shown: the rows that are, in order.
    shown: Vec<u32>,
    cached: HashMap<u32, MessageRow>,
    connections: BTreeSet<u32>,
    events: SessionEvents,
    strays: StrayPlaces,
    /// Messages that the record says are marked.
    marks: BTreeSet<u64>,
    /// What the user has marked before all marks of the record were read: older marks do not count for these.
    early_marks: Vec<(u64, MarkOperation)>,
}

/// What a row of the list is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RowGrouping {
    /// One message.
    #[default]
    Messages,
    /// A request and its answer, or a message that is neither.
    Calls,
}

/// How far a view is.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub enum ViewState {
    /// The record is being opened. A large one without an index takes seconds.
    #[default]
    Opening,
    /// Rows can be had.
    Ready,
    /// It cannot be read, and why.
    Failed(String),
}

impl SessionView {
    /// Opens a record. Returns at once; [`SessionView::state`] tells how it went.
    pub fn open(path: PathBuf) -> SessionView {
        let (worker, state) = match WorkerHandle::start(&path) {
            Ok(worker) => (Some(worker), ViewState::Opening),
            Err(error) => {
                let why = format!("cannot start a thread: {error}");
                (None, ViewState::Failed(why))
            }
        };
        SessionView {
            path: Some(path),
            state,
            worker,
            ..SessionView::default()
        }
    }

    /// A view of a proxy that names no record.
    pub fn without_record() -> SessionView {
        SessionView {
            state: ViewState::Failed("the proxy names no record".to_owned()),
            ..SessionView::default()
        }
    }

    /// How far it is.
    pub fn state(&self) -> &ViewState {
        &self.state
    }

    /// Asks for what was appended to the record. Never waits; asking often costs nothing.
    pub fn request_refresh(&self) {
        if let Some(worker) = &self.worker {
            worker.wake();
        }
    }

    /// Takes what the worker found since the last time. Says whether anything is new. To be called once a frame.
    pub fn poll(&mut self) -> bool {
        let mut is_new = false;
        while let Some(update) = self.received.take().or_else(|| self.receive()) {
            is_new = true;
            match update {
                Ok(update) => self.take(update),
                Err(why) => {
                    // The rows that are here stay readable.
                    self.state = ViewState::Failed(why);
                    self.worker = None;
                }
            }
        }
        is_new
    }

    fn receive(&self) -> Option<UpdateResult> {
        match self.worker.as_ref()?.updates.try_recv() {
            Ok(update) => Some(update),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                Some(Err("the thread that reads the record failed".to_owned()))
            }
        }
    }

    /// Waits until [`SessionView::poll`] has something to take, at most this long. For tests, and where there is no screen to draw.
    pub fn wait(&mut self, longest: Duration) -> bool {
        if let (None, Some(worker)) = (&self.received, &self.worker) {
            self.received = worker.updates.recv_timeout(longest).ok();
        }
        self.received.is_some()
    }

    /// Shows only what this filter chooses; an empty text shows everything at once. A search that runs is given up.
    pub fn set_filter(&mut self, text: &str) -> Result<(), FilterError> {
        let filter = Filter::parse(text)?;
        if filter != self.selection.filter {
            self.selection.filter = filter;
            self.search_again();
        }
        Ok(())
    }

    /// Shows one row for each message, or for each call.
    pub fn set_grouping(&mut self, grouping: RowGrouping) {
        if grouping != self.selection.grouping {
            self.selection.grouping = grouping;
            self.cached.clear();
            self.search_again();
        }
    }

    /// What a row is.
    pub fn grouping(&self) -> RowGrouping {
        self.selection.grouping
    }

    fn search_again(&mut self) {
        self.selection.number += 1;
        self.shown = Vec::new();
        self.progress.searched = 0;
        self.progress.trouble = None;
        if let Some(worker) = &self.worker {
            worker.select(self.selection.clone());
        }
    }

    /// Whether every message has its row, so that nothing has to be searched for.
    fn shows_all(&self) -> bool {
        self.selection.is_all()
    }

    /// The filter's text.
    pub fn filter(&self) -> &str {
        self.selection.filter.text()
    }

    /// While a search runs: how many rows it has tried, and of how many.
    pub fn searching(&self) -> Option<(u64, u64)> {
        let at = &self.progress;
        let runs = !self.shows_all()
            && at.trouble.is_none()
            && self.state == ViewState::Ready
            && at.searched < at.rows;
        runs.then(|| (at.searched as u64, self.total() as u64))
    }

    /// Why the search was given up, or why nothing new can be read.
    pub fn trouble(&self) -> Option<&str> {
        self.progress.trouble.as_deref()
    }

    /// The numbers of all connections that messages came over.
    pub fn connections(&self) -> Vec<u32> {
        self.connections.iter().copied().collect()
    }

    /// Whether messages came over more than one connection.
    pub fn has_several_connections(&self) -> bool {
        self.connections.len() > 1
    }

    /// What happened besides messages: stderr, notes, exits, connections.
    pub fn events(&self) -> &SessionEvents {
        &self.events
    }

    /// Whether all that happened between the messages was read: it comes after the first rows are on the screen.
    pub fn has_read_events(&self) -> bool {
        self.progress.has_read_events
    }

    /// The messages that are marked, by the record or since.
    pub fn marks(&self) -> &BTreeSet<u64> {
        &self.marks
    }

    /// Marks a message on the screen, or takes the mark away; the record is for others to write.
    pub fn mark(&mut self, sequence: u64, mark: MarkOperation) {
        if !self.has_read_events() {
            self.early_marks.push((sequence, mark));
        }
        self.note_mark(sequence, mark);
    }

    fn note_mark(&mut self, sequence: u64, mark: MarkOperation) {
        match mark {
            MarkOperation::Set => self.marks.insert(sequence),
            MarkOperation::Removed => self.marks.remove(&sequence),
        };
    }

    /// What the record says about its session, once it is open.
    pub fn header(&self) -> Option<&SessionHeader> {
        self.header.as_ref()
    }

    /// The record's file.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    fn take(&mut self, update: ViewUpdate) {
        if let Some(opened) = update.opened {
            self.state = ViewState::Ready;
            self.header = Some(opened.header);
            self.rows = Some(opened.rows);
        }
        let mut at = update.progress;
        if at.selection != self.selection.number {
            // Sent before the worker knew of the filter that is wanted now.
            (at.searched, at.trouble) = (0, None);
        } else {
            self.shown.extend(update.found);
            for (row, matches) in update.rechecked {
                match (self.shown.binary_search(&row), matches) {
                    (Err(place), true) => self.shown.insert(place, row),
                    (Ok(place), false) => {
                        self.shown.remove(place);
                    }
                    _ => {}
                }
            }
        }
        self.progress = at;
        for row in update.changed {
            self.cached.remove(&row);
        }
        self.connections.extend(update.connections);
        for (sequence, mark) in update.marks {
            self.note_mark(sequence, mark);
        }
        if self.has_read_events() {
            for (sequence, mark) in std::mem::take(&mut self.early_marks) {
                self.note_mark(sequence, mark);
            }
        }
        for event in update.events {
            if event.kind == SessionEventKind::Stray {
                self.strays.push(event.row, &event.text);
            }
            self.events.push(event);
        }
    }
}

#[cfg(test)]
mod tests;
