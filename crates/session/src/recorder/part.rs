//! Parts: a record that has grown to its limit continues in another file.
//!
//! The old file ends with a `next` line, the new one has a header of its own that names the file before it, and repeats the
//! `open` lines of the connections that are still open. Sequence numbers continue. A part begins with a message, so a verdict
//! that comes right after the last message of a part is still next to it.

use super::Recorder;
use super::sync::SyncTarget;
use crate::record_input::RecordEvent;
use crate::{Error, RecordLocation, RecordPart, SessionHeader, lock};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// What a recorder knows about the files of its record.
#[derive(Debug)]
pub(super) struct RecordParts {
    pub(super) header: SessionHeader,
    paths: Vec<PathBuf>,
    /// Bytes that a part may have.
    limit: Option<u64>,
    /// Messages in this part.
    pub(super) messages: u64,
    /// The `open` lines of the connections that are open.
    connections: BTreeMap<u32, Vec<u8>>,
    is_new: bool,
}

impl RecordParts {
    pub(super) fn new(header: &SessionHeader, path: &Path, limit: Option<u64>) -> RecordParts {
        RecordParts {
            header: header.clone(),
            paths: vec![path.to_path_buf()],
            limit,
            messages: 0,
            connections: BTreeMap::new(),
            is_new: false,
        }
    }

    pub(super) fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Keeps the line of a connection as long as that is open.
    pub(super) fn note_connection(&mut self, event: &RecordEvent<'_>, line: &[u8]) {
        match event {
            RecordEvent::Open { connection, .. } => {
                self.connections.insert(*connection, line.to_vec());
            }
            RecordEvent::Close { connection, .. } => {
                self.connections.remove(connection);
            }
            _ => {}
        }
    }

    pub(super) fn take_new(&mut self) -> Option<PathBuf> {
        let new = std::mem::take(&mut self.is_new);
        self.paths.last().filter(|_| new).cloned()
    }

    /// The last file was removed, and is another one now. Returns its number and the name of the file before it.
    pub(super) fn replace_last(&mut self, path: &Path) -> (u32, Option<String>) {
        self.paths.pop();
        let before = self.paths.last().and_then(|path| path.file_name());
        let previous = before.map(|name| name.to_string_lossy().into_owned());
        self.paths.push(path.to_path_buf());
        (self.paths.len() as u32, previous)
    }

    fn is_full(&self, file_bytes: u64) -> bool {
        self.messages > 0 && self.limit.is_some_and(|limit| file_bytes >= limit)
    }
}

impl Recorder {
    /// Begins a new part if this one is full and all its lines are written.
    pub(super) fn begin_part_if_full(&mut self, time: SystemTime) {
        let is_settled = self.lines.out.is_empty() && self.lost == 0 && !self.torn;
        if !is_settled || !self.parts.is_full(self.good) {
            return;
        }
        if let Err(error) = self.begin_part(time) {
            // The old file takes what follows, and is tried again when it has grown by as much.
            self.parts.limit = self.parts.limit.map(|limit| limit.saturating_mul(2));
            self.failed.get_or_insert(error);
        }
    }

    fn begin_part(&mut self, time: SystemTime) -> Result<(), Error> {
        let number = self.parts.paths.len() as u32 + 1;
        let wanted = part_path(&self.parts.paths[0], number);
        let (file, path) = RecordLocation::File(wanted).create(&self.parts.header)?;
        if let Err(error) = self.switch_to(time, number, &file, &path) {
            let _ = std::fs::remove_file(&path);
            return Err(error);
        }
        let previous = std::mem::replace(&mut self.path, path.clone());
        let part = RecordPart {
            number,
            previous: previous
                .file_name()
                .map(|name| name.to_string_lossy().into_owned()),
        };
        self.header =
            self.parts
                .header
                .line(&self.lines.masks, self.lines.redaction.as_ref(), &part);
        // The sync thread may have it open for a while.
        lock::release_lock(&self.file);
        self.file = file;
        self.good = 0;
        self.parts.paths.push(path);
        self.parts.messages = 0;
        self.parts.is_new = true;
        self.open_connections_again();
        Ok(())
    }

    /// A file is readable by itself: it repeats the `open` lines of the connections that are open.
    pub(super) fn open_connections_again(&mut self) {
        for line in self.parts.connections.values() {
            self.lines.out.extend_from_slice(line);
            self.pending += 1;
        }
    }

    /// Ends this part. Nothing may fail after the `next` line is written, because it names the new file.
    fn switch_to(
        &mut self,
        time: SystemTime,
        number: u32,
        file: &File,
        path: &Path,
    ) -> Result<(), Error> {
        let target = match &self.syncer {
            Some(_) => Some(
                SyncTarget::new(file, path)
                    .map_err(|error| Error::io("start the sync thread for", path, error))?,
            ),
            None => None,
        };
        self.write_next(time, number, path)?;
        if let (Some(syncer), Some(target)) = (&self.syncer, target) {
            syncer.switch_to(target);
        }
        Ok(())
    }

    /// The last line of a part that another one follows.
    fn write_next(&mut self, time: SystemTime, number: u32, path: &Path) -> Result<(), Error> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        self.lines.open("next", time);
        self.lines.number("part", u64::from(number));
        self.lines.key("file");
        crate::json::push_string(&mut self.lines.out, &name);
        self.lines.number("messages", self.parts.messages);
        self.lines.close();
        let line = std::mem::take(&mut self.lines.out);
        if let Err(error) = self.file.write_all(&line) {
            self.torn = self.file.set_len(self.good).is_err();
            return Err(Error::io("write to", &self.path, error));
        }
        self.good += line.len() as u64;
        Ok(())
    }
}

/// `x.jsonl` continues in `x.part2.jsonl`.
fn part_path(first: &Path, number: u32) -> PathBuf {
    let name = match first.extension() {
        Some(extension) => format!("part{number}.{}", extension.to_string_lossy()),
        None => format!("part{number}"),
    };
    first.with_extension(name)
}
