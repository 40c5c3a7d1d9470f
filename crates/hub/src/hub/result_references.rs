//! Results in files as parts of the arguments of a call.

use std::time::Instant;

use bytes::Bytes;
use mcp_proxy_spill::SpillError;

use super::work::OwnedFiles;
use crate::dispatch_tool::{DispatchToolError, find_references};
use crate::json::{self, Edits};

/// All results together may not be larger.
const LARGEST: usize = 64 << 20;

/// The arguments with the content of files in place of the references to them.
pub(super) fn with_results(
    arguments: &Bytes,
    files: &OwnedFiles,
    now: Instant,
) -> Result<Bytes, DispatchToolError> {
    let not_an_object = DispatchToolError::CallArgumentsNotAnObject;
    let parsed = json::parse(arguments.clone()).ok_or(not_an_object.clone())?;
    let mut edits = Edits::default();
    let mut size = 0;
    for reference in find_references(&parsed)? {
        let filter = reference.filter.as_deref();
        let value = files
            .store
            .value(files.owner, &reference.file, filter, now)
            .map_err(|error| reference.refused(error))?;
        size += value.len();
        if size > LARGEST {
            let error = SpillError::TooLarge {
                operation: "'arguments'",
                size: size as u64,
                limit: LARGEST as u64,
            };
            return Err(reference.refused(error));
        }
        edits.replace(reference.span, value);
    }
    let replaced = edits.apply(&parsed);
    // A whole value that is not an object cannot be the arguments, nor can what is nested too deep.
    let is_object =
        json::parse(replaced.clone()).is_some_and(|replaced| json::object(&replaced).is_some());
    is_object.then_some(replaced).ok_or(not_an_object)
}
