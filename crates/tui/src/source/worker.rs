//! The worker thread of a screen: it opens the record, takes in what is appended, and runs the filter.
//!
//! It is the only one that writes rows, so its long reads never keep the screen waiting: only taking in new lines does, and
//! that is done in small portions.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use mcp_proxy_session::{Error, MessageWithContext, SessionParts, SessionRecord};

use super::event_reader::{AppendedEvents, PartEventReader, SessionEventReader};
use super::fetched_messages::FetchedMessages;
use super::row_source::RowSource;
use super::search::FilterSearch;
use super::worker_mailbox::{OpenedView, WorkerCommands, WorkerMailbox, WorkerResults};

/// Lines taken in at once, while the screen cannot read.
const PORTION: usize = 1_000;
/// The worker of one view.
#[derive(Debug)]
pub(super) struct ViewWorker {
    mailbox: Arc<WorkerMailbox>,
    rows: Arc<RwLock<RowSource>>,
    event_reader: Option<SessionEventReader>,
    search: FilterSearch,
    /// There may be more to take in.
    more: bool,
    /// Why nothing new can be read.
    trouble: Option<String>,
    connections: HashSet<u32>,
    /// What was last told.
    last_posted: ViewProgress,
}

/// How much was known of a record before something was taken in.
struct KnownPart {
    /// Rows and bytes of the last part.
    rows: usize,
    bytes: u64,
    /// Rows of all parts.
    all_rows: usize,
}

/// How far everything is.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct ViewProgress {
    /// The rows there are.
    pub(super) first: usize,
    pub(super) end: usize,
    /// The number of the filter that is searched with.
    pub(super) filter: u64,
    /// Rows before this one were tried.
    pub(super) searched: usize,
    /// Why the search or the reading was given up.
    pub(super) trouble: Option<String>,
}

/// Opens a record and works until the view is gone.
pub(super) fn read_record(mailbox: &Arc<WorkerMailbox>, path: &Path) {
    let opened = open_parts(path)
        .map_err(|error| chain(&error))
        .and_then(|session| {
            let appended = SessionEventReader::open(&session)?;
            Ok((session, appended))
        });
    match opened {
        Ok((session, appended)) => {
            let rows = RowSource::Record(Box::new(session));
            ViewWorker::new(mailbox, rows, Some(appended)).run();
        }
        Err(why) => mailbox.post_results(WorkerResults {
            failed: Some(why),
            ..WorkerResults::default()
        }),
    }
}

/// The whole session: all parts that are there.
fn open_parts(path: &Path) -> Result<SessionParts, Error> {
    let mut session = SessionParts::open(path)?;
    session.open_earlier(1)?;
    Ok(session)
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

/// Keeps what is pushed until the view is gone.
pub(super) fn remember(mailbox: &Arc<WorkerMailbox>) {
    let rows = RowSource::Fetched(FetchedMessages::default());
    ViewWorker::new(mailbox, rows, None).run();
}

impl ViewWorker {
    fn new(
        mailbox: &Arc<WorkerMailbox>,
        rows: RowSource,
        event_reader: Option<SessionEventReader>,
    ) -> ViewWorker {
        ViewWorker {
            mailbox: Arc::clone(mailbox),
            rows: Arc::new(RwLock::new(rows)),
            event_reader,
            search: FilterSearch::default(),
            more: false,
            trouble: None,
            connections: HashSet::new(),
            last_posted: ViewProgress::default(),
        }
    }

    fn run(mut self) {
        self.begin();
        loop {
            let has_older = self
                .event_reader
                .as_ref()
                .is_some_and(SessionEventReader::has_older);
            let busy = self.more || has_older || self.search.next < read(&self.rows).end();
            let orders = if busy {
                self.mailbox.take_commands()
            } else {
                self.mailbox.wait_for_commands()
            };
            if orders.stop {
                return;
            }
            let mut mail = WorkerResults::default();
            self.apply_commands(orders, &mut mail);
            self.search
                .scan_slice(&read(&self.rows), &self.mailbox, &mut mail);
            if let (Some(appended), RowSource::Record(session)) =
                (&mut self.event_reader, &*read(&self.rows))
            {
                mail.older_marks = appended.older_marks(session).unwrap_or_default();
            }
            self.post_results_if_new(mail);
        }
    }

    /// Rows first, so that a screen is there at once; then what happened before.
    fn begin(&mut self) {
        let mut mail = WorkerResults::default();
        let header = match &*read(&self.rows) {
            RowSource::Record(session) => Some(session.last_part().header().clone()),
            RowSource::Fetched(_) => None,
        };
        mail.opened = Some(OpenedView {
            rows: Arc::clone(&self.rows),
            header,
        });
        self.note_connections(0, &mut mail);
        self.search
            .scan_slice(&read(&self.rows), &self.mailbox, &mut mail);
        self.post_results_if_new(mail);
        let mut mail = WorkerResults::default();
        if let (Some(appended), RowSource::Record(session)) =
            (&mut self.event_reader, &*read(&self.rows))
        {
            // Events are optional: without them the messages can still be read.
            let newest = appended.newest(session).unwrap_or_default();
            (mail.events, mail.older_marks) = (newest.events, newest.marks);
        }
        mail.has_earlier_events = true;
        self.post_results_if_new(mail);
    }

    fn apply_commands(&mut self, orders: WorkerCommands, mail: &mut WorkerResults) {
        if let Some((number, selection)) = orders.selection {
            self.search = FilterSearch::new(number, selection, read(&self.rows).first());
        }
        if orders.look || self.more {
            self.take_in(mail);
        }
        if !orders.pushed.is_empty() {
            self.remember(orders.pushed, mail);
        }
    }

    /// Takes in what was appended to the record: a portion of the last part, or the next one.
    fn take_in(&mut self, mail: &mut WorkerResults) {
        let (known, taken) = match &mut *self.rows.write().unwrap_or_else(PoisonError::into_inner) {
            RowSource::Record(session) => {
                let part = session.last_part();
                let known = KnownPart {
                    rows: part.len(),
                    bytes: part.bytes(),
                    all_rows: session.len(),
                };
                (known, session.refresh_some(PORTION))
            }
            RowSource::Fetched(_) => return,
        };
        let mut rest = AppendedEvents::default();
        if let (Some(appended), RowSource::Record(session)) =
            (&mut self.event_reader, &*read(&self.rows))
        {
            self.more = taken.is_ok() && session.last_part().bytes() > known.bytes;
            let read = appended.since(session, known.bytes, known.rows);
            let failed = taken.err().map(|error| chain(&error));
            let unread = read.as_ref().err().map(ToString::to_string);
            self.trouble = failed.or(unread);
            rest = read.unwrap_or_default();
        }
        if !self.more && self.trouble.is_none() {
            self.continue_in_next_part(&mut rest);
        }
        let known = known.all_rows;
        (mail.events, mail.marks) = (rest.events, rest.marks);
        self.note_connections(known, mail);
        self.search.again(&read(&self.rows), &rest.changed, mail);
        mail.changed = rest.changed;
        // The row of a call shows its answer.
        let rows = read(&self.rows);
        let calls = (known..rows.end()).filter_map(|row| rows.call_of(row));
        mail.changed.extend(calls.map(|row| row as u32));
    }

    /// Opens the part that follows the last one, if there is one, and takes in what it says besides messages.
    fn continue_in_next_part(&mut self, rest: &mut AppendedEvents) {
        let (path, end) = match &*read(&self.rows) {
            RowSource::Record(session) => (session.next_part(), session.len()),
            RowSource::Fetched(_) => return,
        };
        let Some(path) = path else { return };
        // Reading it may take a while, so the screen can use the rows meanwhile.
        let opened = SessionRecord::open(&path).map_err(|error| chain(&error));
        let opened = opened.and_then(|part| Ok((part, PartEventReader::open(&path, end)?)));
        let (part, reader) = match opened {
            Ok(opened) => opened,
            Err(why) => {
                self.trouble = Some(why);
                return;
            }
        };
        if let RowSource::Record(session) =
            &mut *self.rows.write().unwrap_or_else(PoisonError::into_inner)
        {
            session.push(part);
        }
        if let (Some(appended), RowSource::Record(session)) =
            (&mut self.event_reader, &*read(&self.rows))
        {
            appended.push(reader);
            match appended.since(session, 0, 0) {
                Ok(events) => rest.append(events),
                Err(error) => self.trouble = Some(error.to_string()),
            }
        }
        // It may have been written to since, and there may be another one.
        self.more = true;
    }

    /// Takes in what the screen fetched.
    fn remember(&mut self, pushed: Vec<MessageWithContext>, mail: &mut WorkerResults) {
        let mut changed = Vec::new();
        let known = read(&self.rows).end();
        if let RowSource::Fetched(remembered) =
            &mut *self.rows.write().unwrap_or_else(PoisonError::into_inner)
        {
            for told in pushed {
                changed.extend(remembered.take(told).map(|row| row as u32));
            }
            self.search.next = self.search.next.max(remembered.first());
        }
        self.note_connections(known, mail);
        self.search.again(&read(&self.rows), &changed, mail);
        let rows = read(&self.rows);
        let calls = (known..rows.end()).filter_map(|row| rows.call_of(row));
        changed.extend(calls.map(|row| row as u32));
        mail.changed = changed;
    }

    /// Notes the connections of rows from `from` on.
    fn note_connections(&mut self, from: usize, mail: &mut WorkerResults) {
        let rows = read(&self.rows);
        let mut last = None;
        for connection in (from..rows.end()).filter_map(|row| rows.connection(row)) {
            if last != Some(connection) && self.connections.insert(connection) {
                mail.connections.push(connection);
            }
            last = Some(connection);
        }
    }

    /// Puts the mail down, if there is anything new in it.
    fn post_results_if_new(&mut self, mut mail: WorkerResults) {
        let rows = read(&self.rows);
        mail.progress = ViewProgress {
            first: rows.first(),
            end: rows.end(),
            filter: self.search.number,
            searched: self.search.next,
            trouble: self
                .search
                .trouble
                .as_ref()
                .or(self.trouble.as_ref())
                .cloned(),
        };
        drop(rows);
        let quiet = mail.opened.is_none()
            && !mail.has_earlier_events
            && mail.events.is_empty()
            && mail.older_marks.is_empty()
            && mail.changed.is_empty()
            && mail.connections.is_empty();
        if !quiet || mail.progress != self.last_posted {
            self.last_posted = mail.progress.clone();
            self.mailbox.post_results(mail);
        }
    }
}

fn read(rows: &RwLock<RowSource>) -> RwLockReadGuard<'_, RowSource> {
    rows.read().unwrap_or_else(PoisonError::into_inner)
}
