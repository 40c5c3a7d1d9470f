//! `get`: messages by sequence number, from the record and its index, or from the ring of a run without a record.
//!
//! An answer is bounded by rows and by bytes and says where the next one begins. The record is read on a thread beside
//! the traffic; the ring, which the traffic itself fills, is looked at for a moment at a time.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use mcp_proxy_control::{Fault, GetRequest, PageWriter};
use mcp_proxy_session::{BodyInclusion, MessageWithContext, RequestSummary, SessionParts};

use super::ProxyControl;
use super::request_handler::bodies;

/// Rows of one answer, unless told.
const ROWS: u64 = 100;
/// And at most.
const MOST_ROWS: u64 = 1000;
/// An answer ends with the row that takes it over this.
const BYTES: usize = 4 << 20;
/// Rows that are taken from the ring in one go, while messages wait.
pub(super) const AT_ONCE: u64 = 50;

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
    match control.summary.record {
        Some(_) => from_record(control, wanted, upto).await,
        None => from_ring(control, wanted, upto).await,
    }
}

async fn from_record(
    control: &Arc<ProxyControl>,
    wanted: RowRange,
    upto: u64,
) -> Result<Vec<u8>, Fault> {
    in_record(control, wanted.from, move |session| {
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
    let mut known = BTreeMap::new();
    if sequences.is_empty() {
        return known;
    }
    if control.summary.record.is_some() {
        let oldest = sequences.iter().min().copied().unwrap_or(1);
        let looked = in_record(control, oldest, move |session| {
            let told = sequences.into_iter().filter_map(|sequence| {
                let told = session.message_with_context(session.find(sequence)?).ok()?;
                Some((sequence, told.request?))
            });
            Ok(told.collect())
        });
        return looked.await.unwrap_or_default();
    }
    for sequence in sequences {
        let told = control
            .run
            .recent(|ring| ring.message_with_context(sequence));
        let told = told.flatten().and_then(Result::ok);
        known.extend(told.and_then(|told| Some((sequence, told.request?))));
    }
    known
}

/// Looks into the record as it is now, back to the part that has the message `from`, on another thread than the traffic.
pub(super) async fn in_record<T: Send + 'static>(
    control: &Arc<ProxyControl>,
    from: u64,
    look: impl FnOnce(&SessionParts) -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    let control = Arc::clone(control);
    let read = tokio::task::spawn_blocking(move || {
        let mut record = control
            .record
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let Some(path) = &control.record_path() else {
            return Err(failed("there is none"));
        };
        let session = match record.as_mut() {
            Some(session) => {
                session.refresh().map_err(failed)?;
                session
            }
            None => record.insert(SessionParts::open(path).map_err(failed)?),
        };
        session.open_earlier(from).map_err(failed)?;
        look(session)
    });
    read.await.unwrap_or_else(|_| Err(failed("it was stopped")))
}

async fn from_ring(control: &ProxyControl, wanted: RowRange, upto: u64) -> Result<Vec<u8>, Fault> {
    let mut rows = RowsResponse::new(wanted);
    let mut oldest = 1;
    let mut next = wanted.from;
    while next <= wanted.to && !rows.is_full(next) {
        let looked = control.run.recent(|ring| {
            let (first, last) = ring.range()?;
            let from = next.max(first);
            let to = wanted.to.min(last).min(from + AT_ONCE - 1);
            let told: Vec<_> = (from..=to)
                .filter_map(|sequence| ring.message_with_context(sequence))
                .collect();
            Some((first, to, told))
        });
        let Some(looked) = looked else {
            let text = "this run keeps neither a record nor a ring";
            return Err(Fault::new(Fault::NOT_KEPT, text));
        };
        let Some((first, to, told)) = looked else {
            break;
        };
        oldest = first;
        for told in told {
            let told = told.map_err(failed)?;
            if rows.is_full(told.message.sequence) {
                break;
            }
            rows.add(&told);
        }
        if to < next {
            break;
        }
        next = to + 1;
        // Messages go first.
        tokio::task::yield_now().await;
    }
    Ok(rows.answer(upto, oldest))
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
