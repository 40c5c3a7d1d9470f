//! One filter language, wherever messages are chosen: in views, breakpoints, rules, `inspect`, `export` and replay.
//!
//! A filter is plain words, a `/regex/`, or a jq program over a documented view of the message; which of them a text is, is
//! decided by how it begins ([`Filter::parse`]). It is compiled once and tried on many messages, live ones ([`MessageFacts`]) and
//! recorded ones (a [`Row`] of a [`SessionRecord`]). `docs/filters.md` describes the language.

mod error;
mod facts;
mod form;
mod pattern;
mod recorded_facts;
mod view;
mod words;

use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;

use crate::index::Row;
use crate::jq::{JqError, JqProgram};
use crate::lines::LineScanner;
use crate::program_thread::ProgramThread;
use crate::{Error, SessionRecord};
use form::FilterForm;
use pattern::Pattern;
use recorded_facts::RecordedMessage;
use view::MessageView;
use words::Words;

pub use error::FilterError;
pub use facts::{EnvelopeFacts, MessageFacts, MessageFlags, RequestFacts, is_http_error};
pub use view::field_names;

/// A message of this size is searched for a pattern where it is: even a slow search takes some milliseconds only.
const QUICK: usize = 64 << 10;
/// Rows of a record, and bytes of their messages, that a program judges at once: handing it one takes longer than it needs for it.
const MOST_ROWS: usize = 256;
const MOST_BYTES: usize = 1 << 20;

/// Which messages are wanted.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    text: String,
    test: FilterTest,
    thread: Arc<ProgramThread>,
}

#[derive(Debug, Clone, Default)]
enum FilterTest {
    #[default]
    Everything,
    Words(Words),
    Pattern(Pattern),
    Jq(Arc<JqProgram>),
}

impl Filter {
    /// Reads a filter:
    ///
    /// - `/…/` or `/…/i` is a regular expression over the message's bytes;
    /// - what begins like jq over a field (`.method == "ping"`), with `(` or with a call (`select(…)`) is jq;
    /// - everything else is words that must all occur;
    /// - `jq:` and `words:` in front decide it.
    pub fn parse(text: &str) -> Result<Filter, FilterError> {
        let trimmed = text.trim();
        let test = match FilterForm::detect(trimmed) {
            FilterForm::Nothing => FilterTest::Everything,
            FilterForm::Words(words) => FilterTest::Words(Words::new(words)),
            FilterForm::Pattern { pattern, case } => {
                FilterTest::Pattern(Pattern::new(pattern, case)?)
            }
            FilterForm::Jq(program) => {
                FilterTest::Jq(Arc::new(JqProgram::compile(program, &field_names())?))
            }
        };
        Ok(Filter {
            text: trimmed.to_owned(),
            test,
            thread: Arc::default(),
        })
    }

    /// The filter as it was typed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What a text is read as: `words`, `regex` or `jq`, even if it is not a whole filter yet. `None` for an empty one.
    pub fn form_name(text: &str) -> Option<&'static str> {
        match FilterForm::detect(text.trim()) {
            FilterForm::Nothing => None,
            FilterForm::Words(_) => Some("words"),
            FilterForm::Pattern { .. } => Some("regex"),
            FilterForm::Jq(_) => Some("jq"),
        }
    }

    /// Whether every message matches.
    pub fn is_empty(&self) -> bool {
        matches!(self.test, FilterTest::Everything)
    }

    /// Whether a message matches. An error means that it is not known, and the message is not chosen.
    ///
    /// # Errors
    /// When a jq program fails on the message, and when finding out takes too long, or did so before.
    pub fn judge(&self, facts: &MessageFacts<'_>) -> Result<bool, JqError> {
        let raw = facts.message.raw();
        match &self.test {
            FilterTest::Everything => Ok(true),
            FilterTest::Words(words) => Ok(words.are_in_facts(facts)),
            FilterTest::Pattern(pattern) if raw.len() <= QUICK => Ok(pattern.is_in(raw)),
            FilterTest::Pattern(pattern) => {
                let (pattern, raw) = (pattern.clone(), raw.clone());
                self.thread.run(raw.len(), move |_| pattern.is_in(&raw))
            }
            FilterTest::Jq(program) => {
                let judged = self.judge_views(program, vec![facts.view(program.needs())])?;
                judged.into_iter().next().unwrap_or(Ok(false))
            }
        }
    }

    /// What a program says about each of some messages.
    fn judge_views(
        &self,
        program: &Arc<JqProgram>,
        views: Vec<MessageView>,
    ) -> Result<Vec<Result<bool, JqError>>, JqError> {
        let size = views.iter().map(MessageView::size).sum();
        let program = Arc::clone(program);
        self.thread.run(size, move |caller| {
            let views = views.into_iter();
            views
                .map(|view| program.any_true(view.into_value(), caller))
                .collect()
        })
    }

    /// Whether one recorded message matches.
    pub fn matches(&self, session: &SessionRecord, row: &Row) -> Result<bool, Error> {
        match &self.test {
            FilterTest::Everything => Ok(true),
            FilterTest::Words(words) => {
                let left = words.left_after_row(session, row);
                Ok(left.is_empty() || words::are_in_line(&left, &session.row_line(row)?))
            }
            _ => self.matches_line(session, row, &session.row_line(row)?),
        }
    }

    /// Whether a text that is not a message matches: a line of stderr, a note. jq knows messages only.
    pub fn matches_text(&self, text: &str) -> bool {
        match &self.test {
            FilterTest::Everything => true,
            FilterTest::Words(words) => words.are_in(&[text.as_bytes()]),
            FilterTest::Pattern(pattern) => pattern.is_in(text.as_bytes()),
            FilterTest::Jq(_) => false,
        }
    }

    /// The rows from `from` on that match, read in one pass over the record. `found` may stop it.
    pub fn search(
        &self,
        session: &SessionRecord,
        from: usize,
        mut found: impl FnMut(usize) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        self.scan(session, from, |row, matches| {
            if matches {
                found(row)
            } else {
                ControlFlow::Continue(())
            }
        })
    }

    /// The same, told of every row whether it matches, so that a search without matches can be stopped too.
    pub fn scan(
        &self,
        session: &SessionRecord,
        from: usize,
        mut seen: impl FnMut(usize, bool) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        if let FilterTest::Jq(program) = &self.test {
            return self.scan_with(program, session, from, seen);
        }
        each_row(session, from, |index, row, line| {
            let matches = match &self.test {
                FilterTest::Words(words) => {
                    let left = words.left_after_row(session, row);
                    left.is_empty() || words::are_in_line(&left, line)
                }
                FilterTest::Pattern(pattern) => recorded_facts::has_pattern(pattern, line),
                FilterTest::Everything | FilterTest::Jq(_) => true,
            };
            Ok(seen(index, matches))
        })
    }

    /// [`Filter::scan`] for a program, which is handed many rows at a time.
    fn scan_with(
        &self,
        program: &Arc<JqProgram>,
        session: &SessionRecord,
        from: usize,
        mut seen: impl FnMut(usize, bool) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        // The views of the rows before `next`.
        let (mut views, mut bytes, mut next) = (Vec::new(), 0, from);
        each_row(session, from, |index, row, line| {
            let recorded = RecordedMessage::read(session, row, &Bytes::copy_from_slice(line))?;
            let view = recorded.facts(session, row).view(program.needs());
            next = index + 1;
            bytes += view.size();
            views.push(view);
            if views.len() < MOST_ROWS && bytes < MOST_BYTES {
                return Ok(ControlFlow::Continue(()));
            }
            bytes = 0;
            self.tell_rows(program, next, std::mem::take(&mut views), &mut seen)
        })?;
        match views.is_empty() {
            true => Ok(()),
            false => self.tell_rows(program, next, views, &mut seen).map(drop),
        }
    }

    /// Judges the rows before `next` by their views, and tells `seen` of each.
    fn tell_rows(
        &self,
        program: &Arc<JqProgram>,
        next: usize,
        views: Vec<MessageView>,
        seen: &mut impl FnMut(usize, bool) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, Error> {
        let first = next - views.len();
        let judged = self.judge_views(program, views);
        let judged = judged.map_err(|_| Error::FilterStopped(self.text.clone()))?;
        for (row, matches) in (first..).zip(judged) {
            // On one message a program may fail.
            if seen(row, matches.unwrap_or(false)).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn matches_line(
        &self,
        session: &SessionRecord,
        row: &Row,
        line: &Bytes,
    ) -> Result<bool, Error> {
        if let FilterTest::Pattern(pattern) = &self.test {
            return Ok(recorded_facts::has_pattern(pattern, line));
        }
        let recorded = RecordedMessage::read(session, row, line)?;
        self.judge_recorded(&recorded.facts(session, row))
    }

    /// [`Filter::judge`] where a program that takes too long would not get through a record.
    fn judge_recorded(&self, facts: &MessageFacts<'_>) -> Result<bool, Error> {
        match self.judge(facts) {
            Err(JqError::TooSlow | JqError::SwitchedOff) => {
                Err(Error::FilterStopped(self.text.clone()))
            }
            judged => Ok(judged.unwrap_or(false)),
        }
    }
}

/// Shows `each` the rows from `from` on with their lines, in one pass over the record. It may stop that.
fn each_row(
    session: &SessionRecord,
    from: usize,
    mut each: impl FnMut(usize, &Row, &[u8]) -> Result<ControlFlow<()>, Error>,
) -> Result<(), Error> {
    let Some(first) = session.row(from) else {
        return Ok(());
    };
    let failed = |error| Error::io("read", session.path(), error);
    let mut lines = LineScanner::new(session.file(), first.offset(), session.covered());
    let mut next = from;
    while let (Some(row), Some(line)) = (session.row(next), lines.next_line().map_err(failed)?) {
        if line.offset != row.offset() {
            continue;
        }
        let flow = match line.is_whole() {
            true => each(next, row, line.bytes)?,
            false => each(next, row, &session.row_line(row)?)?,
        };
        if flow.is_break() {
            break;
        }
        next += 1;
    }
    Ok(())
}

/// Two filters are the same if they are typed the same.
impl PartialEq for Filter {
    fn eq(&self, other: &Filter) -> bool {
        self.text == other.text
    }
}

impl Eq for Filter {}

impl std::fmt::Display for Filter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::str::FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Filter, FilterError> {
        Filter::parse(text)
    }
}
