//! One filter language, wherever messages are chosen: in views, breakpoints, rules, `inspect`, `export` and replay.
//!
//! A filter is plain words, a `/regex/`, or a jq program over a documented view of the message; which of them a text is, is
//! decided by how it begins ([`Filter::parse`]). It is compiled once and tried on many messages, live ones ([`MessageFacts`]) and
//! recorded ones (a [`Row`] of a [`SessionRecord`]). [`help`] makes the help page and `docs/filters.md` from [`FIELDS`].

mod error;
mod facts;
mod form;
pub mod help;
mod pattern;
mod recorded_facts;
mod view;
mod words;

use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;

use crate::budget::{Budget, Patience};
use crate::index::Row;
use crate::jq::{Account, JqError, JqProgram};
use crate::lines::LineScanner;
use crate::{Error, SessionRecord};
use form::FilterForm;
use pattern::Pattern;
use words::Words;

pub use error::FilterError;
pub use facts::{EnvelopeFacts, MessageFacts, MessageFlags, RequestFacts, is_http_error};
pub use view::{FIELDS, FilterField};

/// Which messages are wanted.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    text: String,
    test: FilterTest,
    patience: Arc<Patience>,
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
                FilterTest::Jq(Arc::new(JqProgram::compile(program, &view::names())?))
            }
        };
        Ok(Filter {
            text: trimmed.to_owned(),
            test,
            patience: Arc::default(),
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
    /// When a jq program fails on the message, and when finding out takes longer than `budget`, or did so several times just
    /// before. A search for words is not interrupted; instead it is tried on a part of the message first.
    pub fn judge(&self, facts: &MessageFacts<'_>, budget: Budget) -> Result<bool, JqError> {
        if self.is_empty() {
            return Ok(true);
        }
        let is_overrun = |error: &JqError| matches!(error, JqError::TooSlow(_));
        self.patience
            .spend(|| self.judge_now(facts, budget), is_overrun)
    }

    fn judge_now(&self, facts: &MessageFacts<'_>, budget: Budget) -> Result<bool, JqError> {
        let raw = facts.message.raw();
        match &self.test {
            FilterTest::Everything => Ok(true),
            FilterTest::Words(words) => self.patience.search(
                budget,
                raw.len(),
                |length| words.are_in(&[&raw[..length]]),
                || words.are_in_facts(facts),
            ),
            FilterTest::Pattern(pattern) => pattern.is_in_time(raw, budget),
            FilterTest::Jq(program) => {
                let account = Account::new(budget, raw.len());
                program.any_true(facts.view(program.needs(), &account), &account)
            }
        }
    }

    /// Whether one recorded message matches.
    pub fn matches(&self, session: &SessionRecord, row: &Row) -> Result<bool, Error> {
        match &self.test {
            FilterTest::Everything => Ok(true),
            FilterTest::Words(words) => {
                let left = words.left_after_row(session, row);
                let folder = session.folder_at(row.offset());
                Ok(left.is_empty() || words::are_in_line(folder, &left, &session.row_line(row)?))
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
        let Some(first) = session.row(from) else {
            return Ok(());
        };
        let failed = |error| Error::io("read", session.path(), error);
        let mut lines = LineScanner::new(session.file(), first.offset(), session.covered());
        let mut next = from;
        while let (Some(row), Some(line)) = (session.row(next), lines.next_line().map_err(failed)?)
        {
            if line.offset != row.offset() {
                continue;
            }
            let folder = session.folder_at(row.offset());
            let wanted = match &self.test {
                FilterTest::Everything => true,
                FilterTest::Words(words) => {
                    let left = words.left_after_row(session, row);
                    left.is_empty() || words::are_in_line(folder, &left, line.bytes)
                }
                FilterTest::Pattern(pattern) => {
                    recorded_facts::has_pattern(folder, pattern, line.bytes)
                }
                FilterTest::Jq(_) => {
                    self.matches_line(session, row, &Bytes::copy_from_slice(line.bytes))?
                }
            };
            if seen(next, wanted).is_break() {
                break;
            }
            next += 1;
        }
        Ok(())
    }

    fn matches_line(
        &self,
        session: &SessionRecord,
        row: &Row,
        line: &Bytes,
    ) -> Result<bool, Error> {
        if let FilterTest::Pattern(pattern) = &self.test {
            let folder = session.folder_at(row.offset());
            return Ok(recorded_facts::has_pattern(folder, pattern, line));
        }
        let recorded = recorded_facts::RecordedMessage::read(session, row, line)?;
        match self.judge(&recorded.facts(session, row), Budget::OFFLINE) {
            // On one message jq may fail, but a program without an end would not get through a record.
            Err(JqError::TooSlow(_) | JqError::GivenUp) => {
                Err(Error::FilterStopped(self.text.clone()))
            }
            judged => Ok(judged.unwrap_or(false)),
        }
    }
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
