//! `jsonl`: the record's own lines, verbatim, kinds that this build does not know included.
//!
//! Under redaction of its own an export writes the lines anew.

use super::SessionExporter;
use crate::{Error, SessionRecord};
use std::io::Write;

pub(super) const JSONL: SessionExporter = SessionExporter {
    name: "jsonl",
    extension: "jsonl",
    about: "the record's lines as they are, without a torn last one",
    write,
};

pub(crate) fn write(
    session: &SessionRecord,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(), Error> {
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
    Ok(())
}

/// Line by line, where some are left out or not shown as they are.
fn lines(
    session: &SessionRecord,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(), Error> {
    for record in session.records() {
        let record = record?;
        if session.has_line(&record) {
            out.write_all(&record.line).map_err(Error::Output)?;
            out.write_all(b"\n").map_err(Error::Output)?;
        }
        progress(record.offset, session.covered());
    }
    progress(session.covered(), session.covered());
    Ok(())
}
