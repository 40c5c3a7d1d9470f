//! A session of which only some messages are wanted, as if it had no others.
//!
//! Rows are thinned in memory; the record is not touched.

use super::{RecordedLine, SessionRecord};
use crate::{Error, Filter, line_members};
use mcp_proxy_wire::Kind;
use std::ops::ControlFlow;

impl SessionRecord {
    /// Leaves only the messages that `filter` chooses, and the requests of the answers among them: what an answer names is there.
    /// What else happened stays, but for verdicts on the others.
    pub fn retain_matching(&mut self, filter: &Filter) -> Result<(), Error> {
        if filter.is_empty() {
            return Ok(());
        }
        let mut kept = Vec::new();
        filter.search(self, 0, |row| {
            kept.push(row);
            ControlFlow::Continue(())
        })?;
        let requests = kept.iter().filter_map(|row| {
            let row = self.row(*row)?;
            matches!(row.kind(), Kind::Response | Kind::Error).then(|| row.peer())?
        });
        let requests: Vec<usize> = requests.collect();
        kept.extend(requests);
        kept.sort_unstable();
        kept.dedup();
        self.index.thin_out(&kept);
        self.thinned = true;
        Ok(())
    }

    /// Whether messages were left out by [`SessionRecord::retain_matching`].
    pub fn is_filtered(&self) -> bool {
        self.thinned
    }

    /// Whether a line of the record is still part of the session.
    pub(crate) fn has_line(&self, record: &RecordedLine) -> bool {
        if !self.thinned {
            return true;
        }
        match line_members::record_type(&record.line) {
            Some(b"msg") => {
                let rows = self.rows();
                rows.binary_search_by_key(&record.offset, |row| row.offset())
                    .is_ok()
            }
            Some(b"act") => record
                .member("sequence")
                .is_none_or(|sequence| self.find(sequence).is_some()),
            _ => true,
        }
    }
}
