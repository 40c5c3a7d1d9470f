//! Side files: bodies over [`SIDE_LIMIT`] live next to the record, in `<record>.d/`, and their line only names them.
//!
//! A side file is written under a temporary name, renamed, and only then does the recorder write its line, so a line never names
//! a file that is not whole. It is written while the body passes (cut through), so it is a value of its own and not a method of
//! the recorder. With redaction no byte may reach the disk before it was looked through. A relay's tokens are found while the body
//! passes ([`StreamedBody`]); for other rules it is kept in memory until it is whole.

use super::fault::RecorderFaults;
use super::sync::DiskSync;
use crate::private_files::SideFolder;
use crate::redact::StreamedBody;
use crate::{Error, RecordErrorPolicy, Redaction};
use bytes::Bytes;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bodies longer than this go to a side file.
pub const SIDE_LIMIT: usize = 64 * 1024;

/// The name of a finished side file within its folder.
#[derive(Debug, Clone)]
pub struct SideName {
    body: SideBody,
    redacted: Option<RedactedSide>,
}

/// What is left of a body that was looked through while it passed.
#[derive(Debug, Clone, Copy)]
pub(super) struct RedactedSide {
    /// In bytes.
    pub(super) len: u64,
    /// How many values were hidden.
    pub(super) hidden: u32,
}

#[derive(Debug, Clone)]
enum SideBody {
    File {
        name: String,
        folder: Arc<SideFolder>,
    },
    /// In memory: what is written of it is decided when its line is.
    Memory(Bytes),
    Lost,
}

impl SideName {
    /// Of a body that is kept nowhere.
    pub(super) const NONE: SideName = SideName::new(SideBody::Lost);

    const fn new(body: SideBody) -> SideName {
        SideName {
            body,
            redacted: None,
        }
    }

    /// The file's name, or `None` if the body could not be stored and the policy was to continue.
    pub fn as_str(&self) -> Option<&str> {
        match &self.body {
            SideBody::File { name, .. } => Some(name),
            SideBody::Memory(_) | SideBody::Lost => None,
        }
    }

    /// The body, if it is not in a file yet.
    pub(super) fn held(&self) -> Option<&Bytes> {
        match &self.body {
            SideBody::Memory(body) => Some(body),
            SideBody::File { .. } | SideBody::Lost => None,
        }
    }

    /// What is left of the body, if it was looked through while it passed.
    pub(super) fn redacted(&self) -> Option<RedactedSide> {
        self.redacted
    }

    /// Moves the file to the folder of the part that its line is written to, if a new part began while the body passed.
    pub(super) fn move_to(&self, folder: &Arc<SideFolder>) -> Result<(), Error> {
        match &self.body {
            SideBody::File { name, folder: own } if !Arc::ptr_eq(own, folder) => own
                .rename(name, folder, name)
                .map_err(|error| Error::io("move", &own.path().join(name), error)),
            _ => Ok(()),
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
    /// `None` once the body is lost: the policy is to warn and a write failed.
    open: Option<OpenSideFile>,
    /// The body, if it must not be written before it is whole.
    held: Option<Vec<u8>>,
    /// What hides tokens in the body while it passes.
    streamed: Option<StreamedBody>,
    len: u64,
    /// Where messages wait for the disk: who forces the file onto it.
    disk: Option<DiskSync>,
    on_error: RecordErrorPolicy,
    faults: Arc<RecorderFaults>,
}

/// The file under its temporary name.
#[derive(Debug)]
struct OpenSideFile {
    file: File,
    folder: Arc<SideFolder>,
    temporary: String,
}

impl OpenSideFile {
    fn path(&self) -> PathBuf {
        self.folder.path().join(&self.temporary)
    }
}

impl SideFile {
    /// A body that is kept nowhere: a [`super::RecentMessages`] remembers only that it passed.
    pub(super) fn nowhere() -> SideFile {
        SideFile {
            open: None,
            held: None,
            streamed: None,
            len: 0,
            disk: None,
            on_error: RecordErrorPolicy::Warn,
            faults: Arc::default(),
        }
    }

    /// A file in `folder`, or why there is no such folder.
    pub(super) fn create(
        folder: Result<Arc<SideFolder>, Error>,
        number: u64,
        disk: Option<DiskSync>,
        on_error: RecordErrorPolicy,
        faults: Arc<RecorderFaults>,
    ) -> Result<SideFile, Error> {
        let mut side = SideFile {
            open: None,
            held: None,
            streamed: None,
            len: 0,
            disk,
            on_error,
            faults,
        };
        let opened = folder.and_then(|folder| {
            let temporary = format!(".{number}.part");
            match folder.create(&temporary) {
                Ok(file) => Ok(OpenSideFile {
                    file,
                    folder,
                    temporary,
                }),
                Err(error) => Err(Error::io("create", &folder.path().join(temporary), error)),
            }
        });
        match opened {
            Ok(open) => side.open = Some(open),
            Err(error) => side.lose(error)?,
        }
        Ok(side)
    }

    /// This file for a body that is looked through: while it passes, or in memory until its line is written.
    pub(super) fn with_redaction(mut self, redaction: &Redaction) -> SideFile {
        self.streamed = redaction.streamed_body();
        if self.streamed.is_none() {
            self.held = Some(Vec::new());
        }
        self
    }

    /// Appends bytes. Under the policy `warn` a failure loses the body, is remembered for [`crate::Recorder::warning`], and is not an error here.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let Some(mut streamed) = self.streamed.take() else {
            return self.store(bytes);
        };
        let stored = streamed.piece(bytes, |shown| self.store(shown));
        self.streamed = Some(streamed);
        stored
    }

    fn store(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.len += bytes.len() as u64;
        if let Some(held) = &mut self.held {
            held.extend_from_slice(bytes);
        }
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        match open.file.write_all(bytes) {
            Ok(()) => Ok(()),
            Err(error) => {
                let error = Error::io("write to", &open.path(), error);
                self.lose(error)
            }
        }
    }

    /// Bytes stored so far.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether nothing was stored yet.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Gives the file its final name, made of the message's sequence number.
    pub fn finish(self, sequence: u64) -> Result<SideName, Error> {
        self.finish_as(format!("{sequence}.raw"))
    }

    pub(super) fn finish_as(mut self, name: String) -> Result<SideName, Error> {
        let Some(mut streamed) = self.streamed.take() else {
            return self.finish_stored(name);
        };
        self.store(&streamed.end())?;
        let redacted = RedactedSide {
            len: self.len,
            hidden: streamed.hidden(),
        };
        let stored = self.finish_stored(name)?;
        Ok(SideName {
            redacted: Some(redacted),
            ..stored
        })
    }

    fn finish_stored(mut self, name: String) -> Result<SideName, Error> {
        if let Some(held) = self.held.take() {
            return Ok(SideName::new(SideBody::Memory(held.into())));
        }
        let Some(open) = &self.open else {
            return Ok(SideName::NONE);
        };
        match open.folder.rename(&open.temporary, &open.folder, &name) {
            Ok(()) => {
                let Some(open) = self.open.take() else {
                    return Ok(SideName::NONE);
                };
                if let Some(disk) = &self.disk {
                    disk.add_side(open.file);
                }
                let folder = open.folder;
                Ok(SideName::new(SideBody::File { name, folder }))
            }
            Err(error) => {
                let error = Error::io("store", &open.folder.path().join(&name), error);
                self.lose(error).map(|()| SideName::NONE)
            }
        }
    }

    fn lose(&mut self, error: Error) -> Result<(), Error> {
        self.discard();
        self.faults.by_policy(self.on_error, error)
    }

    fn discard(&mut self) {
        if let Some(open) = self.open.take() {
            let _ = open.folder.remove(&open.temporary);
        }
    }
}

impl Drop for SideFile {
    fn drop(&mut self) {
        // Dropped before it was finished: the body never became a message.
        self.discard();
    }
}
