//! `get`: messages by sequence number, from the record and its index.
//!
//! An answer is bounded by rows and by bytes and says where the next one begins. The record is read on another thread than the
//! traffic. A run that keeps no record has a temporary one.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use mcp_proxy_control::{Fault, GetRequest, PageWriter};
use mcp_proxy_session::{BodyInclusion, MessageWithContext, RequestSummary, SessionRecord};

use super::ProxyControl;
use super::request_handler::bodies;

/// Rows of one answer, unless told.
const ROWS: u64 = 100;
/// And at most.
const MOST_ROWS: u64 = 1000;
/// An answer ends with the row that takes it over this.
const BYTES: usize = 4 << 20;

/// Which rows are wanted.
#[derive(Clone, Copy)]
struct RowRange {
    from: u64,
    to: u64,
    limit: u64,
    bodies: BodyInclusion,
}

/// An answer in the making.
struct RowsResponse {
    page: PageWriter,
    wanted: RowRange,
    /// Where the next answer begins.
    next: Option<u64>,
}

/// Answers `get`.
pub(super) async fn get(control: &Arc<ProxyControl>, params: GetRequest) -> Result<Vec<u8>, Fault> {
    let upto = control.run.progress().upto;
    let limit = params.limit.or(params.last).unwrap_or(ROWS);
    if !(1..=MOST_ROWS).contains(&limit) {
        return Err(Fault::params(format!(
            "limit: 1 to {MOST_ROWS}, not {limit}"
        )));
    }
    let wanted = RowRange {
        from: match params.last {
            Some(last) => (upto + 1).saturating_sub(last.max(1)),
            None => params.from.unwrap_or(1),
        }
        .max(1),
        to: params.to.unwrap_or(upto).min(upto),
        limit,
        bodies: bodies(params.raw),
    };
    in_record(control, move |session| {
        let mut rows = RowsResponse::new(wanted);
        for index in session.at_or_after(wanted.from)..session.len() {
            let Some(sequence) = session.row(index).map(|row| row.sequence()) else {
                break;
            };
            if sequence > wanted.to || rows.is_full(sequence) {
                break;
            }
            rows.add(&session.message_with_context(index).map_err(failed)?);
        }
        Ok(rows.answer(upto, session.oldest_sequence()))
    })
    .await
}

/// What the messages with these numbers answer, as far as that is known.
pub(super) async fn request_summaries(
    control: &Arc<ProxyControl>,
    sequences: Vec<u64>,
) -> BTreeMap<u64, RequestSummary> {
    if sequences.is_empty() {
        return BTreeMap::new();
    }
    let looked = in_record(control, move |session| {
        let told = sequences.into_iter().filter_map(|sequence| {
            let told = session.message_with_context(session.find(sequence)?).ok()?;
            Some((sequence, told.request?))
        });
        Ok(told.collect())
    });
    looked.await.unwrap_or_default()
}

/// Looks into the record as it is now, on another thread than the traffic.
pub(super) async fn in_record<T: Send + 'static>(
    control: &Arc<ProxyControl>,
    look: impl FnOnce(&SessionRecord) -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    let control = Arc::clone(control);
    let read = tokio::task::spawn_blocking(move || {
        let mut record = control
            .record
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let written = control.run.record_path();
        let Some(path) = written.or_else(|| control.summary.record.clone()) else {
            return Err(Fault::new(Fault::NOT_KEPT, "this run keeps no messages"));
        };
        let is_temporary = control.summary.record.is_none();
        let known = record.take().map(|mut session| {
            session.refresh().map_err(failed)?;
            // A temporary record keeps two files, and a record that was removed has begun again.
            let is_current =
                session.ends_with(&path) && !(is_temporary && session.paths().count() > 2);
            Ok(is_current.then_some(session))
        });
        let session = match known.transpose()?.flatten() {
            Some(session) => session,
            None => SessionRecord::open(&path).map_err(failed)?,
        };
        look(record.insert(session))
    });
    read.await.unwrap_or_else(|_| Err(failed("it was stopped")))
}

impl RowsResponse {
    fn new(wanted: RowRange) -> RowsResponse {
        RowsResponse {
            page: PageWriter::default(),
            wanted,
            next: None,
        }
    }

    /// Whether no more fits; then `sequence` is where the next answer begins.
    fn is_full(&mut self, sequence: u64) -> bool {
        let full = self.page.rows() >= self.wanted.limit || self.page.bytes() > BYTES;
        if full {
            self.next.get_or_insert(sequence);
        }
        full
    }

    fn add(&mut self, told: &MessageWithContext) {
        self.page.add(&told.to_json(self.wanted.bodies));
    }

    /// `first` is the oldest message that can be had at all.
    fn answer(self, upto: u64, first: u64) -> Vec<u8> {
        self.page.finish(self.next, first, upto)
    }
}

pub(super) fn failed(error: impl std::fmt::Display) -> Fault {
    Fault::new(Fault::FAILED, format!("cannot read the record: {error}"))
}
