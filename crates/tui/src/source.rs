//! Where rows come from: a record and its index, or what a proxy without a record still remembers.
//!
//! A [`SessionView`] is one session that is looked at. Each has a worker thread that opens the record, takes in what is appended and
//! runs the filter; the view itself is asked once a frame and never waits for a disk longer than the lines on the screen take.
//! It knows nothing of terminals, and writes nothing.

mod cache;
mod event_reader;
mod fetched_messages;
mod message_row;
mod places;
mod row_source;
mod search;
mod session_events;
mod stray_lines;
mod worker;
mod worker_mailbox;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use mcp_proxy_session::{Filter, FilterError, MarkOperation, MessageWithContext, SessionHeader};

use cache::RowCache;
use row_source::RowSource;
use search::RowSelection;
use stray_lines::StrayPlaces;
use worker::ViewProgress;
use worker_mailbox::{WorkerMailbox, WorkerPanicGuard, WorkerResults};

pub(crate) use message_row::MessageRow;
pub(crate) use session_events::{SessionEvent, SessionEventKind, SessionEvents};
pub(crate) use stray_lines::StrayLines;

/// One session that is looked at: a record that grows, a finished one, or the remembered rows of a proxy without a record.
#[derive(Debug)]
pub struct SessionView {
    path: Option<PathBuf>,
    state: ViewState,
    header: Option<SessionHeader>,
    mailbox: Arc<WorkerMailbox>,
    rows: Option<Arc<RwLock<RowSource>>>,
    progress: ViewProgress,
    filter: Filter,
    grouping: RowGrouping,
    /// The number of the filter and the grouping, from 1 for the first that was set.
    number: u64,
    /// Unless everything is shown: the rows that are, in order.
    shown: Vec<u32>,
    cache: RowCache,
    connections: BTreeSet<u32>,
    events: SessionEvents,
    has_earlier_events: bool,
    strays: StrayPlaces,
    /// Messages that the record says are marked.
    marks: BTreeSet<u64>,
    /// Messages of which is known whether they are marked: older marks, which are read later, do not count for them.
    judged: BTreeSet<u64>,
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ViewState {
    /// The record is being opened. A large one without an index takes seconds.
    Opening,
    /// Rows can be had.
    Ready,
    /// It cannot be read, and why.
    Failed(String),
}

impl SessionView {
    /// Opens a record. Returns at once; [`SessionView::state`] tells how it went.
    pub fn open(path: PathBuf) -> SessionView {
        let read = path.clone();
        SessionView::start(Some(path), move |mailbox| {
            worker::read_record(mailbox, &read)
        })
    }

    /// A view of a proxy that keeps no record. Rows come by [`SessionView::push`].
    pub fn without_record() -> SessionView {
        SessionView::start(None, worker::remember)
    }

    fn start(
        path: Option<PathBuf>,
        work: impl FnOnce(&Arc<WorkerMailbox>) + Send + 'static,
    ) -> SessionView {
        let mailbox = Arc::new(WorkerMailbox::default());
        let leaving = WorkerPanicGuard(Arc::clone(&mailbox));
        let thread = std::thread::Builder::new().name("rows".to_owned());
        let worker = thread.spawn(move || work(&leaving.0));
        let state = match &worker {
            Ok(_) => ViewState::Opening,
            Err(error) => ViewState::Failed(format!("cannot start a thread: {error}")),
        };
        SessionView {
            path,
            state,
            header: None,
            mailbox,
            rows: None,
            progress: ViewProgress::default(),
            filter: Filter::default(),
            grouping: RowGrouping::default(),
            number: 0,
            shown: Vec::new(),
            cache: RowCache::default(),
            connections: BTreeSet::new(),
            events: SessionEvents::default(),
            has_earlier_events: false,
            strays: StrayPlaces::default(),
            marks: BTreeSet::new(),
            judged: BTreeSet::new(),
        }
    }

    /// Hands over rows of a proxy without a record, ascending. What is told anew about a known message replaces it. The newest
    /// 50,000 messages and 64 MiB of bodies are kept. They show up at a later [`SessionView::poll`].
    pub fn push(&mut self, rows: Vec<MessageWithContext>) {
        if self.path.is_none() {
            self.mailbox.push(rows);
        }
    }

    /// How far it is.
    pub fn state(&self) -> &ViewState {
        &self.state
    }

    /// Asks for what was appended to the record. Never waits; asking often costs nothing.
    pub fn request_refresh(&self) {
        self.mailbox.look();
    }

    /// Takes what the worker found since the last time. Says whether anything is new. To be called once a frame.
    pub fn poll(&mut self) -> bool {
        let mail = self.mailbox.take_results();
        let news = mail.is_some();
        if let Some(mail) = mail {
            self.take(mail);
        }
        news
    }

    /// Waits until [`SessionView::poll`] has something to take, at most this long. For tests, and where there is no screen to draw.
    pub fn wait(&self, longest: Duration) -> bool {
        self.mailbox.wait(longest)
    }

    /// Shows only what this filter chooses; an empty text shows everything at once. A search that runs is given up.
    pub fn set_filter(&mut self, text: &str) -> Result<(), FilterError> {
        let filter = Filter::parse(text)?;
        if filter != self.filter {
            self.filter = filter;
            self.search_again();
        }
        Ok(())
    }

    /// Shows one row for each message, or for each call.
    pub fn set_grouping(&mut self, grouping: RowGrouping) {
        if grouping != self.grouping {
            self.grouping = grouping;
            self.cache = RowCache::default();
            self.search_again();
        }
    }

    /// What a row is.
    pub fn grouping(&self) -> RowGrouping {
        self.grouping
    }

    fn search_again(&mut self) {
        self.number += 1;
        self.shown = Vec::new();
        self.progress.searched = self.progress.first;
        self.progress.trouble = None;
        let selection = RowSelection {
            filter: self.filter.clone(),
            grouping: self.grouping,
        };
        self.mailbox.select(self.number, selection);
    }

    /// Whether every message has its row, so that nothing has to be searched for.
    fn shows_all(&self) -> bool {
        self.filter.is_empty() && self.grouping == RowGrouping::Messages
    }

    /// The filter's text.
    pub fn filter(&self) -> &str {
        self.filter.text()
    }

    /// While a search runs: how many rows it has tried, and of how many.
    pub fn searching(&self) -> Option<(u64, u64)> {
        let at = &self.progress;
        let runs = !self.shows_all()
            && at.trouble.is_none()
            && self.state == ViewState::Ready
            && at.searched < at.end;
        let done = at.searched.saturating_sub(at.first);
        runs.then(|| (done as u64, self.total() as u64))
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

    /// Whether what happened before the record was opened is known: it is read after the first rows are on the screen.
    pub fn has_earlier_events(&self) -> bool {
        self.has_earlier_events
    }

    /// The messages that are marked, by the record or since.
    pub fn marks(&self) -> &BTreeSet<u64> {
        &self.marks
    }

    /// Marks a message on the screen, or takes the mark away; the record is for others to write.
    pub fn mark(&mut self, sequence: u64, mark: MarkOperation) {
        self.judged.insert(sequence);
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

    fn take(&mut self, mail: WorkerResults) {
        if let Some(opened) = mail.opened {
            self.state = ViewState::Ready;
            self.header = opened.header;
            self.rows = Some(opened.rows);
        }
        if let Some(why) = mail.failed {
            self.state = ViewState::Failed(why);
            // The rows that are here stay readable.
            return;
        }
        let mut at = mail.progress;
        if at.filter != self.number {
            // Told before the worker knew of the filter that is wanted now.
            (at.searched, at.trouble) = (at.first, None);
        } else {
            self.shown.extend(mail.found);
            for (row, matches) in mail.rechecked {
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
        let gone = self
            .shown
            .partition_point(|row| (*row as usize) < self.progress.first);
        self.shown.drain(..gone);
        for row in mail.changed {
            self.cache.forget(row);
        }
        self.connections.extend(mail.connections);
        for (sequence, mark) in mail.marks {
            self.mark(sequence, mark);
        }
        for (sequence, mark) in mail.older_marks {
            // What was said last about a message counts.
            if !self.judged.contains(&sequence) {
                self.mark(sequence, mark);
            }
        }
        self.has_earlier_events |= mail.has_earlier_events;
        for event in mail.events {
            if event.kind == SessionEventKind::Stray {
                self.strays.push(event.row, &event.text);
            }
            self.events.push(event);
        }
    }
}

/// The worker ends by itself; nobody waits for it, since it may be opening a large record.
impl Drop for SessionView {
    fn drop(&mut self) {
        self.mailbox.stop();
    }
}

#[cfg(test)]
mod tests;
