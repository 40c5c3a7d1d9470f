//! `list_directory` and `file_info`.

use jiff::Timestamp;
use rustix::fs::FileType;
use serde_json::{Value, json};

use super::result_list::ResultList;
use super::root::{Location, RootSet, RootedPath};
use crate::arguments::Arguments;
use crate::tool::{ToolFailure, ToolOutput, ToolResult};

/// Entries in one answer.
const MOST_ENTRIES: usize = 1_000;

pub(super) fn list_directory(roots: &RootSet, arguments: &Arguments<'_>) -> ToolResult {
    let path = arguments.optional_text("path")?.unwrap_or(".");
    match roots.locate(path)? {
        Location::AllRoots => Ok(list_roots(roots)),
        Location::Below(path) => list_entries(&path),
    }
}

fn list_roots(roots: &RootSet) -> ToolOutput {
    let entry = |root: &super::Root| json!({ "name": root.name(), "type": "directory" });
    let entries: Vec<Value> = roots.iter().map(entry).collect();
    ToolOutput::structured(json!({ "entries": entries, "truncated": false }))
}

fn list_entries(path: &RootedPath<'_>) -> ToolResult {
    let directory = path
        .directory()
        .entries(path.relative())
        .map_err(|error| path.failure(error))?;
    let mut shown = ResultList::new(MOST_ENTRIES);
    let mut shown_count = 0;
    for entry in &directory.entries {
        let mut listed = json!({
            "name": entry.name.to_string_lossy(),
            "type": kind_name(entry.kind),
        });
        if entry.kind == FileType::RegularFile
            && let Ok(facts) = directory.facts(entry)
        {
            listed["size"] = json!(facts.size);
        }
        if shown.push(listed).is_err() {
            break;
        }
        shown_count += 1;
    }
    let total = directory.entries.len();
    let truncated = directory.truncated || shown_count < total;
    let mut result = json!({ "entries": shown.into_json(), "truncated": truncated });
    if truncated {
        let more = if directory.truncated {
            "more than "
        } else {
            ""
        };
        result["note"] = json!(format!(
            "the first {shown_count} of {more}{total} entries; use search_files to find others"
        ));
    }
    Ok(ToolOutput::structured(result))
}

pub(super) fn file_info(roots: &RootSet, arguments: &Arguments<'_>) -> ToolResult {
    let path = roots.locate_below(arguments.text("path")?)?;
    let facts = path
        .directory()
        .facts(path.relative())
        .map_err(|error| path.failure(error))?;
    let modified = Timestamp::from_second(facts.modified)
        .map_err(|_| ToolFailure::new("the modification time is out of range"))?;
    Ok(ToolOutput::structured(json!({
        "path": path.shown(),
        "type": kind_name(facts.kind),
        "size": facts.size,
        "permissions": format!("{:04o}", facts.permissions.bits()),
        "modified": modified.to_string(),
    })))
}

fn kind_name(kind: FileType) -> &'static str {
    match kind {
        FileType::RegularFile => "file",
        FileType::Directory => "directory",
        FileType::Symlink => "symlink",
        _ => "other",
    }
}
