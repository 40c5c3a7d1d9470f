//! `jsonl`: the record's own lines, verbatim, kinds that this build does not know included.
//!
//! Side files stay where they are; the lines still name them. Under redaction of its own an export writes the lines anew, and the
//! large bodies into them: the side files are not redacted.

use super::body::has_missing_body;
use super::{ExportFormat, ExportSummary};
use crate::session_record::{RecordedLine, read_line};
use crate::{Error, SIDE_LIMIT, SessionRecord};
use std::io::Write;

pub(super) const JSONL: ExportFormat = ExportFormat {
    name: "jsonl",
    extension: "jsonl",
    about: "the record's lines as they are, without a torn last one",
    write,
};

pub(crate) fn write(
    session: &SessionRecord,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<ExportSummary, Error> {
    if session.is_filtered() || session.has_extra_redaction() {
        return lines(session, out, progress);
    }
    let total = session.covered();
    let mut buffer = vec![0; 1 << 20];
    let mut done = 0;
    while done < total {
        let len = (total - done).min(buffer.len() as u64) as usize;
        session
            .file()
            .read_exact_at(&mut buffer[..len], done)
            .map_err(|error| Error::io("read", session.path(), error))?;
        out.write_all(&buffer[..len]).map_err(Error::Output)?;
        done += len as u64;
        progress(done, total);
    }
    // Bodies in side files are not part of this export, so none is missing from it.
    Ok(ExportSummary::default())
}

/// Line by line, where some are left out or not shown as they are.
fn lines(
    session: &SessionRecord,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<ExportSummary, Error> {
    let mut exported = ExportSummary::default();
    for record in session.records() {
        let record = record?;
        if session.has_line(&record) {
            exported.missing +=
                u64::from(session.has_extra_redaction() && lacks_body(session, &record));
            out.write_all(&record.line).map_err(Error::Output)?;
            out.write_all(b"\n").map_err(Error::Output)?;
        }
        progress(record.offset, session.covered());
    }
    progress(session.covered(), session.covered());
    Ok(exported)
}

/// Whether the large body of a line that should have it put in is gone.
fn lacks_body(session: &SessionRecord, record: &RecordedLine) -> bool {
    record.kind() == "msg"
        && record.line.len() < SIDE_LIMIT
        && read_line(&record.line, session.folder_at(record.offset))
            .is_ok_and(|message| has_missing_body(&message))
}
