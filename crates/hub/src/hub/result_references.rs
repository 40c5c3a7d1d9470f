//! Results in files as parts of the arguments of a call.

use std::time::{Duration, Instant};

use bytes::Bytes;
use mcp_proxy_spill::SpillError;

use super::work::OwnedFiles;
use crate::dispatch_tool::{DispatchToolError, find_references};
use crate::json::{self, Edits};
use crate::proxy_tool::ArgumentError;

/// All results together may not be larger.
const LARGEST: usize = 64 << 20;
/// After this time no further result is read. The one that is being read has limits of its own.
const TIME: Duration = Duration::from_secs(15);

/// The arguments with the content of files in place of the references to them.
pub(super) fn with_results(
    arguments: &Bytes,
    files: &OwnedFiles,
    now: Instant,
    is_wanted: &dyn Fn() -> bool,
) -> Result<Bytes, DispatchToolError> {
    with_results_until(Instant::now() + TIME, arguments, files, now, is_wanted)
}

fn with_results_until(
    deadline: Instant,
    arguments: &Bytes,
    files: &OwnedFiles,
    now: Instant,
    is_wanted: &dyn Fn() -> bool,
) -> Result<Bytes, DispatchToolError> {
    let not_an_object = ArgumentError::not_an_object;
    let parsed = json::parse(arguments.clone()).ok_or_else(not_an_object)?;
    let mut edits = Edits::default();
    let mut size = 0;
    for reference in find_references(&parsed)? {
        if !is_wanted() {
            return Err(reference.refused("Nobody waits for the call any more."));
        }
        if Instant::now() >= deadline {
            let seconds = TIME.as_secs();
            return Err(reference.refused(format!(
                "The results before it took more than {seconds} s. Use fewer results in one call, or simpler jq filters."
            )));
        }
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
    is_object
        .then_some(replaced)
        .ok_or_else(|| not_an_object().into())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Arc;

    use mcp_proxy_spill::{JqRunner, SpillOptions, SpillOwner, SpillStore};

    use super::*;

    /// What becomes of a call with two results, of which `wanted` are read before its client leaves.
    fn replaced(wanted: usize, deadline: Instant) -> Result<Bytes, DispatchToolError> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rows.json");
        std::fs::write(&file, "[1, 2]").unwrap();
        let store = SpillStore::open(SpillOptions {
            directory: folder.path().join("spill"),
            quota: 1 << 20,
            ttl: Duration::from_secs(60),
            roots: vec![folder.path().to_owned()],
            spawn_sweeper: None,
            jq: JqRunner::InProcess,
        });
        let files = OwnedFiles {
            store: Arc::new(store.unwrap()),
            owner: SpillOwner(1),
        };
        let file = file.to_str().unwrap();
        let arguments =
            format!(r#"{{"a":{{"$resultFile":"{file}"}},"b":{{"$resultFile":"{file}"}}}}"#);
        let asked = Cell::new(0);
        let is_wanted = || asked.replace(asked.get() + 1) < wanted;
        with_results_until(
            deadline,
            &arguments.into(),
            &files,
            Instant::now(),
            &is_wanted,
        )
    }

    fn refused_at(replaced: Result<Bytes, DispatchToolError>) -> String {
        match replaced {
            Err(DispatchToolError::BadReference { place, .. }) => place,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn m3_a_call_with_results_ends_with_its_time_or_its_client() {
        let later = Instant::now() + TIME;
        assert_eq!(replaced(2, later).unwrap(), r#"{"a":[1,2],"b":[1,2]}"#);
        assert_eq!(refused_at(replaced(1, later)), "arguments.b");
        assert_eq!(refused_at(replaced(2, Instant::now())), "arguments.a");
    }
}
