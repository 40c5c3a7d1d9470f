//! The thread beside a screen: it opens the record, takes in what is appended, and runs the filter.
//!
//! It is the only one that writes rows, so its long reads never keep the screen waiting: only taking in new lines does, and
//! that is done in small portions.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use mcp_proxy_session::{Session, Told};

use super::appended::{Appended, Rest};
use super::desk::{Desk, Mail, Opened, Orders};
use super::remembered::Remembered;
use super::rows::Rows;
use super::search::Search;

/// Lines taken in at once, while the screen cannot read.
const PORTION: usize = 1_000;
/// The worker of one view.
#[derive(Debug)]
pub(super) struct Worker {
    desk: Arc<Desk>,
    rows: Arc<RwLock<Rows>>,
    appended: Option<Appended>,
    search: Search,
    /// There may be more to take in.
    more: bool,
    /// Why nothing new can be read.
    trouble: Option<String>,
    connections: HashSet<u32>,
    /// What was last told.
    told: Whereabouts,
}

/// How far everything is.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Whereabouts {
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
pub(super) fn read_record(desk: &Arc<Desk>, path: &Path) {
    let opened = Session::open(path)
        .map_err(|error| chain(&error))
        .and_then(|session| {
            let appended = Appended::open(path);
            let appended =
                appended.map_err(|error| format!("cannot open {}: {error}", path.display()));
            appended.map(|appended| (session, appended))
        });
    match opened {
        Ok((session, appended)) => {
            let rows = Rows::Record(Box::new(session));
            Worker::new(desk, rows, Some(appended)).run();
        }
        Err(why) => desk.post(Mail {
            failed: Some(why),
            ..Mail::default()
        }),
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

/// Keeps what is pushed until the view is gone.
pub(super) fn remember(desk: &Arc<Desk>) {
    let rows = Rows::Remembered(Remembered::default());
    Worker::new(desk, rows, None).run();
}

impl Worker {
    fn new(desk: &Arc<Desk>, rows: Rows, appended: Option<Appended>) -> Worker {
        Worker {
            desk: Arc::clone(desk),
            rows: Arc::new(RwLock::new(rows)),
            appended,
            search: Search::default(),
            more: false,
            trouble: None,
            connections: HashSet::new(),
            told: Whereabouts::default(),
        }
    }

    fn run(mut self) {
        self.begin();
        loop {
            let has_older = self.appended.as_ref().is_some_and(Appended::has_older);
            let busy = self.more || has_older || self.search.next < read(&self.rows).end();
            let orders = if busy {
                self.desk.orders()
            } else {
                self.desk.next_orders()
            };
            if orders.stop {
                return;
            }
            let mut mail = Mail::default();
            self.obey(orders, &mut mail);
            self.search.go_on(&read(&self.rows), &self.desk, &mut mail);
            if let (Some(appended), Rows::Record(session)) =
                (&mut self.appended, &*read(&self.rows))
            {
                mail.older_marks = appended.older_marks(session).unwrap_or_default();
            }
            self.tell(mail);
        }
    }

    /// Rows first, so that a screen is there at once; then what happened before.
    fn begin(&mut self) {
        let mut mail = Mail::default();
        let header = match &*read(&self.rows) {
            Rows::Record(session) => Some(session.header().clone()),
            Rows::Remembered(_) => None,
        };
        mail.opened = Some(Opened {
            rows: Arc::clone(&self.rows),
            header,
        });
        self.meet(0, &mut mail);
        self.search.go_on(&read(&self.rows), &self.desk, &mut mail);
        self.tell(mail);
        let mut mail = Mail::default();
        if let (Some(appended), Rows::Record(session)) = (&mut self.appended, &*read(&self.rows)) {
            // What happened is beside the point; without it the messages can still be read.
            let newest = appended.newest(session).unwrap_or_default();
            (mail.happenings, mail.older_marks) = (newest.happenings, newest.marks);
        }
        self.tell(mail);
    }

    fn obey(&mut self, orders: Orders, mail: &mut Mail) {
        if let Some((number, filter)) = orders.filter {
            self.search = Search::new(number, filter, read(&self.rows).first());
        }
        if orders.look || self.more {
            self.take_in(mail);
        }
        if !orders.pushed.is_empty() {
            self.remember(orders.pushed, mail);
        }
    }

    /// Takes in what was appended to the record.
    fn take_in(&mut self, mail: &mut Mail) {
        let (known, from, taken) =
            match &mut *self.rows.write().unwrap_or_else(PoisonError::into_inner) {
                Rows::Record(session) => {
                    let (known, from) = (session.len(), session.bytes());
                    (known, from, session.refresh_some(PORTION))
                }
                Rows::Remembered(_) => return,
            };
        let mut rest = Rest::default();
        if let (Some(appended), Rows::Record(session)) = (&mut self.appended, &*read(&self.rows)) {
            self.more = taken.is_ok() && session.bytes() > from;
            let read = appended.since(session, from, known);
            let failed = taken.err().map(|error| chain(&error));
            let unread = read.as_ref().err().map(ToString::to_string);
            self.trouble = failed.or(unread);
            rest = read.unwrap_or_default();
        }
        (mail.happenings, mail.marks) = (rest.happenings, rest.marks);
        self.meet(known, mail);
        self.search.again(&read(&self.rows), &rest.changed, mail);
        mail.changed = rest.changed;
    }

    /// Takes in what the screen fetched.
    fn remember(&mut self, pushed: Vec<Told>, mail: &mut Mail) {
        let mut changed = Vec::new();
        let known = read(&self.rows).end();
        if let Rows::Remembered(remembered) =
            &mut *self.rows.write().unwrap_or_else(PoisonError::into_inner)
        {
            for told in pushed {
                changed.extend(remembered.take(told).map(|row| row as u32));
            }
            self.search.next = self.search.next.max(remembered.first());
        }
        self.meet(known, mail);
        self.search.again(&read(&self.rows), &changed, mail);
        mail.changed = changed;
    }

    /// Notes the connections of rows from `from` on.
    fn meet(&mut self, from: usize, mail: &mut Mail) {
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
    fn tell(&mut self, mut mail: Mail) {
        let rows = read(&self.rows);
        mail.at = Whereabouts {
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
            && mail.happenings.is_empty()
            && mail.older_marks.is_empty()
            && mail.changed.is_empty()
            && mail.connections.is_empty();
        if !quiet || mail.at != self.told {
            self.told = mail.at.clone();
            self.desk.post(mail);
        }
    }
}

fn read(rows: &RwLock<Rows>) -> RwLockReadGuard<'_, Rows> {
    rows.read().unwrap_or_else(PoisonError::into_inner)
}
