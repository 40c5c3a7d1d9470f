//! A session in the `json` format, opened as if it were a record.

use super::SessionRecord;
use crate::{Error, RecordLocation, import};
use std::path::Path;

impl SessionRecord {
    /// Opens it as a record of its own, in a folder that goes with it.
    pub(super) fn open_document(path: &Path) -> Result<SessionRecord, Error> {
        let failed = |error| Error::io("make a place to read", path, error);
        let folder = tempfile::tempdir().map_err(failed)?;
        let place = RecordLocation::File(folder.path().join("session.jsonl"));
        let record = import::import_to_read(path, place).map_err(|error| match error {
            Error::Import { path, why } => Error::NotARecord {
                path,
                why: format!("read as a JSON export: {why}"),
            },
            other => other,
        })?;
        Ok(SessionRecord {
            _temporary: Some(folder),
            ..SessionRecord::open_record(&record)?
        })
    }
}
