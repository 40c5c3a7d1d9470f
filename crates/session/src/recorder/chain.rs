//! The files of a record: one that has grown to its limit continues in a new one, and one that was removed begins again.
//!
//! The old file ends with an `end` line that names the new one, and the header of the new one names the old one. The session id
//! stays, sequence numbers continue, and the `open` lines of the connections that are open are repeated. A new file begins with a
//! message, so a verdict that comes right after the last message of a file is still next to it.

use super::Recorder;
use super::sync::SyncTarget;
use crate::record_input::RecordEvent;
use crate::{Error, RecordErrorPolicy, RecordLocation, SessionHeader, lock};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// How often it is looked whether the file is still there: a system call for each message would cost more than it is worth.
pub(super) const LOOK_PAUSE: Duration = Duration::from_secs(1);

/// What a recorder knows about the files of its record.
#[derive(Debug)]
pub(super) struct RecordChain {
    pub(super) header: SessionHeader,
    /// Where the next file goes.
    location: RecordLocation,
    paths: Vec<PathBuf>,
    /// Bytes that a file may have.
    limit: Option<u64>,
    /// Messages in the file that is written.
    pub(super) messages: u64,
    /// The `open` lines of the connections that are open.
    connections: BTreeMap<u32, Vec<u8>>,
    is_new: bool,
    /// The file before, if the record is temporary: nothing else keeps what is in it.
    previous: Option<File>,
}

impl RecordChain {
    pub(super) fn new(header: &SessionHeader, path: &Path, limit: Option<u64>) -> RecordChain {
        RecordChain {
            header: header.clone(),
            location: RecordLocation::File(path.to_path_buf()),
            paths: vec![path.to_path_buf()],
            limit,
            messages: 0,
            connections: BTreeMap::new(),
            is_new: false,
            previous: None,
        }
    }

    /// This chain with files that have no name.
    pub(super) fn temporary(self) -> RecordChain {
        RecordChain {
            location: RecordLocation::Temporary,
            ..self
        }
    }

    pub(super) fn is_temporary(&self) -> bool {
        self.location == RecordLocation::Temporary
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
        let is_new = std::mem::take(&mut self.is_new) && !self.is_temporary();
        self.paths.last().filter(|_| is_new).cloned()
    }

    fn is_full(&self, bytes: u64) -> bool {
        self.messages > 0 && self.limit.is_some_and(|limit| bytes >= limit)
    }
}

impl Recorder {
    /// Begins a new file if this one is full and all its lines are written.
    pub(super) fn continue_if_full(&mut self, time: SystemTime) {
        let is_settled = self.lines.out.is_empty() && self.lost == 0 && !self.torn;
        if !is_settled || !self.chain.is_full(self.good) {
            return;
        }
        if let Err(error) = self.continue_in_new_file(time) {
            // The old file takes what follows, and is tried again when it has grown by as much.
            self.chain.limit = self.chain.limit.map(|limit| limit.saturating_mul(2));
            self.failed.get_or_insert(error);
        }
    }

    /// Nothing may fail after the last line of the old file is written, because it names the new one.
    fn continue_in_new_file(&mut self, time: SystemTime) -> Result<(), Error> {
        let (file, path) = self.chain.location.create(&self.chain.header)?;
        let ended = self.sync_target(&file, &path).and_then(|target| {
            self.write_continued(time, &path)?;
            Ok(target)
        });
        let target = match ended {
            Ok(target) => target,
            Err(error) => {
                let _ = std::fs::remove_file(&path);
                return Err(error);
            }
        };
        let continues = file_name(&self.path);
        let old = self.switch_to(file, &path, target, Some(continues));
        if self.chain.is_temporary() {
            self.chain.paths.clear();
            self.chain.previous = Some(old);
        }
        self.chain.paths.push(path);
        self.chain.is_new = true;
        self.chain.messages = 0;
        Ok(())
    }

    /// The last line of a file that another one continues.
    fn write_continued(&mut self, time: SystemTime, path: &Path) -> Result<(), Error> {
        self.lines.open("end", time);
        self.lines.word("why", "continued");
        self.lines.key("continued_in");
        crate::json::push_string(&mut self.lines.out, &file_name(path));
        self.lines.number("messages", self.chain.messages);
        self.lines.close();
        let line = std::mem::take(&mut self.lines.out);
        if let Err(error) = self.file.write_all(&line) {
            self.torn = self.file.set_len(self.good).is_err();
            return Err(Error::io("write to", &self.path, error));
        }
        self.good += line.len() as u64;
        Ok(())
    }

    /// Makes the file again if it was removed, perhaps with its folder, and says so. Lines that wait to be written belong to the
    /// old one, so it is put off until there are none.
    pub(super) fn begin_again_if_removed(&mut self) {
        let may_look = self.lines.out.is_empty() && !self.chain.is_temporary();
        if !may_look || self.seen_at.elapsed() < LOOK_PAUSE {
            return;
        }
        self.seen_at = Instant::now();
        let is_removed = |facts: std::fs::Metadata| facts.is_file() && facts.nlink() == 0;
        if !self.file.metadata().is_ok_and(is_removed) {
            return;
        }
        let outcome = match self.on_error {
            RecordErrorPolicy::Stop => Err(self.removed("it was removed while it was written")),
            RecordErrorPolicy::Warn => self.begin_again(),
        };
        if let Err(error) = outcome {
            self.failed.get_or_insert(error);
        }
    }

    fn begin_again(&mut self) -> Result<(), Error> {
        let place = RecordLocation::File(self.path.clone());
        let (file, path) = place.create(&self.chain.header)?;
        let target = self.sync_target(&file, &path)?;
        let text = format!(
            "it was removed, with {} messages in it; the record begins again in {}",
            self.chain.messages,
            path.display()
        );
        self.faults.warn(&self.removed(&text));
        self.chain.paths.pop();
        let continues = self.chain.paths.last().map(|path| file_name(path));
        self.switch_to(file, &path, target, continues);
        self.chain.paths.push(path);
        self.torn = false;
        // The record says so too, with a `gap` line.
        self.lost += std::mem::take(&mut self.chain.messages);
        Ok(())
    }

    fn sync_target(&self, file: &File, path: &Path) -> Result<Option<SyncTarget>, Error> {
        let target = self.syncer.as_ref().map(|_| SyncTarget::new(file, path));
        target
            .transpose()
            .map_err(|error| Error::io("start the sync thread for", path, error))
    }

    /// Writes to this file from now on. Returns the one before.
    fn switch_to(
        &mut self,
        file: File,
        path: &Path,
        target: Option<SyncTarget>,
        continues: Option<String>,
    ) -> File {
        if let (Some(syncer), Some(target)) = (&self.syncer, target) {
            syncer.switch_to(target);
        }
        let (masks, redaction) = (&self.lines.masks, self.lines.redaction.as_ref());
        self.header = self
            .chain
            .header
            .line(masks, redaction, continues.as_deref());
        for line in self.chain.connections.values() {
            self.lines.out.extend_from_slice(line);
            self.pending += 1;
        }
        // The sync thread may have it open for a while.
        lock::release_lock(&self.file);
        self.good = 0;
        self.path = path.to_path_buf();
        std::mem::replace(&mut self.file, file)
    }

    fn removed(&self, what: &str) -> Error {
        Error::io("continue", &self.path, io::Error::other(what.to_owned()))
    }
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}
