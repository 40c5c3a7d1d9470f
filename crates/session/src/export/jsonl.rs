//! `jsonl`: the record's own lines, verbatim, kinds that this build does not know included.
//!
//! Side files stay where they are; the lines still name them. Under redaction of its own an export writes the lines anew, and the
//! large bodies into them: the side files are not redacted.

use super::SessionExporter;
use crate::{Error, Session};
use std::io::Write;
use std::os::unix::fs::FileExt;

pub(super) struct Jsonl;

impl SessionExporter for Jsonl {
    fn name(&self) -> &'static str {
        "jsonl"
    }

    fn extension(&self) -> &'static str {
        "jsonl"
    }

    fn about(&self) -> &'static str {
        "the record's lines as they are, without a torn last one"
    }

    fn export(
        &self,
        session: &Session,
        out: &mut dyn Write,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(), Error> {
        if session.is_thinned() || session.hides() {
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
}

/// Line by line, where some are left out or not shown as they are.
fn lines(
    session: &Session,
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
