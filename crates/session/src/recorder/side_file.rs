//! Side files: bodies over [`SIDE_LIMIT`] live next to the record, in `<record>.d/`, and their line only names them.
//!
//! A side file is written under a temporary name, renamed, and only then does the recorder write its line, so a line never names
//! a file that is not whole. It is written while the body passes (cut through), so it is a value of its own and not a method of
//! the recorder. With redaction it is kept in memory instead: no byte may reach the disk before the whole was looked through.

use super::fault::RecorderFaults;
use super::sync::DiskSync;
use crate::{Error, RecordErrorPolicy};
use bytes::Bytes;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bodies longer than this go to a side file.
pub const SIDE_LIMIT: usize = 64 * 1024;

/// The name of a finished side file within its folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SideName(SideBody);

#[derive(Debug, Clone, PartialEq, Eq)]
enum SideBody {
    File(String),
    /// In memory: what is written of it is decided when its line is.
    Memory(Bytes),
    Lost,
}

impl SideName {
    /// Of a body that is kept nowhere.
    pub(super) const NONE: SideName = SideName(SideBody::Lost);

    /// The file's name, or `None` if the body could not be stored and the policy was to continue.
    pub fn as_str(&self) -> Option<&str> {
        match &self.0 {
            SideBody::File(name) => Some(name),
            SideBody::Memory(_) | SideBody::Lost => None,
        }
    }

    /// The body, if it is not in a file yet.
    pub(super) fn held(&self) -> Option<&Bytes> {
        match &self.0 {
            SideBody::Memory(body) => Some(body),
            SideBody::File(_) | SideBody::Lost => None,
        }
    }
}

/// The folder that holds the side files of the record at `record`.
pub fn side_folder(record: &Path) -> PathBuf {
    let mut name = record.as_os_str().to_owned();
    name.push(".d");
    PathBuf::from(name)
}

/// A side file being written.
#[derive(Debug)]
pub struct SideFile {
    folder: PathBuf,
    temporary: PathBuf,
    /// `None` once the body is lost: the policy is to warn and a write failed.
    file: Option<File>,
    /// The body, if it must not be written before it is whole.
    held: Option<Vec<u8>>,
    len: u64,
    /// Where messages wait for the disk: who forces the file onto it.
    disk: Option<DiskSync>,
    on_error: RecordErrorPolicy,
    faults: Arc<RecorderFaults>,
}

impl SideFile {
    /// A body that is kept nowhere: a [`super::RecentMessages`] remembers only that it passed.
    pub(super) fn nowhere() -> SideFile {
        SideFile {
            folder: PathBuf::new(),
            temporary: PathBuf::new(),
            file: None,
            held: None,
            len: 0,
            disk: None,
            on_error: RecordErrorPolicy::Warn,
            faults: Arc::default(),
        }
    }

    pub(super) fn create(
        record: &Path,
        number: u64,
        disk: Option<DiskSync>,
        on_error: RecordErrorPolicy,
        faults: Arc<RecorderFaults>,
    ) -> Result<SideFile, Error> {
        let folder = side_folder(record);
        let temporary = folder.join(format!(".{number}.part"));
        let mut side = SideFile {
            folder,
            temporary,
            file: None,
            held: None,
            len: 0,
            disk,
            on_error,
            faults,
        };
        match side.open() {
            Ok(file) => side.file = Some(file),
            Err(error) => side.lose(error)?,
        }
        Ok(side)
    }

    /// A side file that is only memory until its line is written.
    pub(super) fn hold() -> SideFile {
        let mut side = SideFile::nowhere();
        side.held = Some(Vec::new());
        side
    }

    /// Appends bytes. Under the policy `warn` a failure loses the body, is remembered for [`crate::Recorder::warning`], and is not an error here.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.len += bytes.len() as u64;
        if let Some(held) = &mut self.held {
            held.extend_from_slice(bytes);
        }
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        match file.write_all(bytes) {
            Ok(()) => Ok(()),
            Err(error) => self.lose(Error::io("write to", &self.temporary, error)),
        }
    }

    /// Bytes given so far.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether nothing was given yet.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Gives the file its final name, made of the message's sequence number.
    pub fn finish(self, sequence: u64) -> Result<SideName, Error> {
        self.finish_as(format!("{sequence}.raw"))
    }

    pub(super) fn finish_as(mut self, name: String) -> Result<SideName, Error> {
        if let Some(held) = self.held.take() {
            return Ok(SideName(SideBody::Memory(held.into())));
        }
        if self.file.is_none() {
            return Ok(SideName::NONE);
        }
        let target = self.folder.join(&name);
        match std::fs::rename(&self.temporary, &target) {
            Ok(()) => {
                if let (Some(disk), Some(file)) = (&self.disk, self.file.take()) {
                    disk.add_side(file);
                }
                self.file = None;
                Ok(SideName(SideBody::File(name)))
            }
            Err(error) => self
                .lose(Error::io("store", &target, error))
                .map(|()| SideName::NONE),
        }
    }

    fn open(&self) -> Result<File, Error> {
        match DirBuilder::new().mode(0o700).create(&self.folder) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(Error::io("create", &self.folder, error));
            }
            _ => {}
        }
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&self.temporary)
            .map_err(|error| Error::io("create", &self.temporary, error))
    }

    fn lose(&mut self, error: Error) -> Result<(), Error> {
        if self.file.take().is_some() {
            let _ = std::fs::remove_file(&self.temporary);
        }
        self.faults.by_policy(self.on_error, error)
    }
}

impl Drop for SideFile {
    fn drop(&mut self) {
        // Dropped before it was finished: the body never became a message.
        if self.file.take().is_some() {
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}
