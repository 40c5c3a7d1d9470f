//! `write_file` and `edit_file`.
//!
//! New content is written to a file next to the old one and then renamed over it, so that nobody reads half a file and
//! a hard link elsewhere keeps its content.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process;

use rustix::fs::{AtFlags, Mode, OFlags, fchmod, openat, renameat, unlinkat};
use rustix::io::Errno;

use super::FILE_LIMIT;
use super::access_error::AccessError;
use super::confined::facts_at;
use super::root::{RootSet, RootedPath};
use crate::arguments::Arguments;
use crate::tool::{ToolFailure, ToolOutput, ToolResult};

pub(super) fn write_file(roots: &RootSet, arguments: &Arguments<'_>) -> ToolResult {
    let path = roots.locate_below(arguments.text("path")?)?;
    let content = arguments.text("content")?;
    if content.len() as u64 > FILE_LIMIT {
        return Err(ToolFailure::new(format!(
            "`content` is longer than {FILE_LIMIT} bytes"
        )));
    }
    replace(&path, content.as_bytes()).map_err(|error| path.failure(error))?;
    Ok(ToolOutput::text(format!("Wrote {}.", path.shown())))
}

pub(super) fn edit_file(roots: &RootSet, arguments: &Arguments<'_>) -> ToolResult {
    let path = roots.locate_below(arguments.text("path")?)?;
    let old = arguments.text("old")?;
    let new = arguments.text("new")?;
    if old.is_empty() {
        return Err(ToolFailure::new("`old` must not be empty"));
    }
    let text = read_whole(&path)?;
    let mut places = text.match_indices(old);
    let Some((place, _)) = places.next() else {
        return Err(ToolFailure::new(format!(
            "`old` does not occur in {}",
            path.shown()
        )));
    };
    let others = places.count();
    if others > 0 {
        return Err(ToolFailure::new(format!(
            "`old` occurs {} times in {}: include more of the text around it",
            others + 1,
            path.shown()
        )));
    }
    let (before, rest) = text.split_at(place);
    let after = rest.strip_prefix(old).unwrap_or_default();
    let edited = [before, new, after].concat();
    if edited.len() as u64 > FILE_LIMIT {
        return Err(ToolFailure::new(format!(
            "`new` makes the file longer than {FILE_LIMIT} bytes"
        )));
    }
    replace(&path, edited.as_bytes()).map_err(|error| path.failure(error))?;
    let line = before.matches('\n').count() + 1;
    Ok(ToolOutput::text(format!(
        "Edited {} at line {line}.",
        path.shown()
    )))
}

fn read_whole(path: &RootedPath<'_>) -> Result<String, ToolFailure> {
    let opened = path.directory().open_file(path.relative());
    let (file, _) = opened.map_err(|error| path.failure(error))?;
    let mut bytes = Vec::new();
    let read = file.take(FILE_LIMIT + 1).read_to_end(&mut bytes);
    read.map_err(|error| path.failure(error.into()))?;
    if bytes.len() as u64 > FILE_LIMIT {
        return Err(ToolFailure::new(format!(
            "{} is larger than {FILE_LIMIT} bytes",
            path.shown()
        )));
    }
    String::from_utf8(bytes)
        .map_err(|_| ToolFailure::new(format!("{} is not UTF-8 text", path.shown())))
}

/// Replaces or creates a file, with the directories above it. A symbolic link is not written through.
fn replace(path: &RootedPath<'_>, content: &[u8]) -> Result<(), AccessError> {
    let relative = path.relative();
    let name = relative.file_name().ok_or(AccessError::IsDirectory)?;
    let parent = relative.parent().unwrap_or(Path::new(""));
    let parent = path.directory().create_directory(parent)?;
    let permissions = match facts_at(&parent, name) {
        Ok(facts) => {
            facts.expect_file()?;
            Some(facts.permissions)
        }
        Err(AccessError::Missing) => None,
        Err(error) => return Err(error),
    };
    let (file, temporary) = create_temporary(&parent)?;
    let written = fill(file, content, permissions)
        .and_then(|()| Ok(renameat(&parent, &temporary, &parent, name)?));
    if written.is_err() {
        // The first error is the one to report. If this fails too, a file with our name stays behind.
        let _ = unlinkat(&parent, &temporary, AtFlags::empty());
    }
    written
}

/// Creates a file with a name that is not in use.
fn create_temporary(parent: &OwnedFd) -> Result<(File, String), AccessError> {
    const ATTEMPTS: u32 = 100;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for attempt in 0..ATTEMPTS {
        let name = format!(".mcp-proxy-{}-{attempt}.tmp", process::id());
        match openat(parent, &name, flags, Mode::from_raw_mode(0o666)) {
            Err(Errno::EXIST) => {}
            opened => return Ok((File::from(opened?), name)),
        }
    }
    Err(AccessError::Other(Errno::EXIST))
}

fn fill(mut file: File, content: &[u8], permissions: Option<Mode>) -> Result<(), AccessError> {
    if let Some(permissions) = permissions {
        fchmod(&file, permissions)?;
    }
    file.write_all(content)?;
    Ok(())
}
