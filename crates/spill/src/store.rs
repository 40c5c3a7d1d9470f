//! The store: results in, handles out, and parts of results for those who own them.

mod table;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use mcp_proxy_wire::json::JsonRoot;

use crate::handle::{is_handle, new_handle};
use crate::jq_worker::JqRunner;
use crate::layout::write_laid_out;
use crate::line_index::LineIndex;
use crate::payload::Payload;
use crate::read::ReadableFile;
use crate::run_directory::{self, RunDirectory};
use crate::spilled_result::preview;
use crate::writer::SpillWriter;
use crate::{
    ReadAnswer, ReadLimit, ReadRequest, ResultShape, SpillError, SpillFormat, SpilledResult,
};
use crate::{roots, toon};
use table::{HandleTable, occupied};

pub(crate) use table::StoredFile;

/// Where results are kept, how much, how long, and what else may be read.
#[derive(Clone, Debug)]
pub struct SpillOptions {
    /// Each run makes a directory of its own in here, with its first result.
    pub directory: PathBuf,
    /// What all results together may take up on disk, in bytes. Files count in whole blocks.
    pub quota: u64,
    /// How long a result can be read.
    pub ttl: Duration,
    /// Directories whose files can be read like results, by absolute path.
    pub roots: Vec<PathBuf>,
    /// Starts a process that calls [`sweep_after`](crate::sweep_after) with this path, so that nothing is left of a run that
    /// is killed. Without it the next start removes that.
    pub spawn_sweeper: Option<fn(&Path)>,
    /// Where jq programs of clients run.
    pub jq: JqRunner,
}

/// Who spilled a result, and so may read it. What the number means is up to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpillOwner(pub u64);

/// Keeps results in private files until they expire, their owner is forgotten, or the store is dropped.
#[derive(Debug)]
pub struct SpillStore {
    options: SpillOptions,
    run: OnceLock<RunDirectory>,
    /// Held while the directory of the run is made, so that it is made once.
    creation: Mutex<()>,
    /// Never locked while a file is read or written.
    table: Mutex<HandleTable>,
}

/// What was written to a file.
struct WrittenFile {
    index: LineIndex,
    shape: ResultShape,
}

/// What a result looks like in its file.
struct FileForm<'a> {
    payload: Payload<'a>,
    toon: Option<String>,
    format: SpillFormat,
}

impl<'a> FileForm<'a> {
    fn new(result: &'a [u8], wanted: SpillFormat) -> FileForm<'a> {
        let payload = Payload::of_result(result);
        let toon = match (&payload, wanted) {
            (Payload::Json(json), SpillFormat::Toon) => smaller_toon(json),
            _ => None,
        };
        let format = match (&payload, &toon) {
            (_, Some(_)) => SpillFormat::Toon,
            (Payload::Json(_), None) => SpillFormat::Json,
            (Payload::Text(_), None) => SpillFormat::Text,
        };
        FileForm {
            payload,
            toon,
            format,
        }
    }
}

impl SpillStore {
    /// Opens a store, and removes what runs that are over have left. Nothing is created before the first result.
    pub fn open(options: SpillOptions) -> Result<SpillStore, SpillError> {
        run_directory::sweep(&options.directory)?;
        let table = HandleTable::new(options.quota);
        Ok(SpillStore {
            options,
            run: OnceLock::new(),
            creation: Mutex::new(()),
            table: Mutex::new(table),
        })
    }

    /// Writes a result to a file. If all it says is text, that text is the file, or the JSON that it holds; otherwise the
    /// whole result is.
    /// TOON is used if it is asked for, smaller, and reads back as the same value.
    pub fn spill(
        &self,
        owner: SpillOwner,
        result: &[u8],
        format: SpillFormat,
        now: Instant,
    ) -> Result<SpilledResult, SpillError> {
        let FileForm {
            payload,
            toon,
            format,
        } = FileForm::new(result, format);
        let handle = new_handle(format)?;
        let run = self.run_directory()?;
        let name = self.table().next_file_name(format);
        let mut reserved = 0;
        let mut reserve = |bytes| {
            let removed = self.table().reserve(owner, bytes, now)?;
            reserved += bytes;
            removed.iter().for_each(|file| run.remove_file(&file.name));
            Ok(())
        };
        let written = write_file(run, &name, &payload, toon.as_deref(), &mut reserve);
        let written = written.map_err(|error| {
            run.remove_file(&name);
            self.table().release(reserved);
            self.spill_error(error)
        })?;
        let result = SpilledResult {
            handle,
            format,
            byte_size: written.index.byte_size(),
            line_count: written.index.line_count(),
            kept_for: self.options.ttl,
            shape: written.shape,
            preview: preview_of(&payload, toon.as_deref()),
        };
        let file = StoredFile {
            name,
            format,
            index: written.index,
        };
        let expires = now.checked_add(self.options.ttl);
        let handle = result.handle.clone();
        self.table().insert(handle, owner, file, expires, reserved);
        Ok(result)
    }

    /// Reads a part of a result, or of a file below one of the roots.
    pub fn read(
        &self,
        owner: SpillOwner,
        file: &str,
        request: &ReadRequest,
        limit: ReadLimit,
        now: Instant,
    ) -> Result<ReadAnswer, SpillError> {
        self.open_file(owner, file, now)?
            .answer(request, limit, &self.options.jq)
    }

    /// The JSON object in a file, on one line, for use as the arguments of a tool. No number changes on the way.
    pub fn arguments(
        &self,
        owner: SpillOwner,
        file: &str,
        now: Instant,
    ) -> Result<Bytes, SpillError> {
        let json = self
            .open_file(owner, file, now)?
            .compact_json("argumentsFile")?;
        match json {
            Some((JsonRoot::Object, object)) => Ok(object.into()),
            _ => Err(SpillError::NotAnObject),
        }
    }

    /// What is in a file as one JSON value, or the one output of a jq filter for it. A text is a string.
    pub fn value(
        &self,
        owner: SpillOwner,
        file: &str,
        filter: Option<&str>,
        now: Instant,
    ) -> Result<Bytes, SpillError> {
        self.open_file(owner, file, now)?
            .value(filter, &self.options.jq)
    }

    /// The whole of a result.
    pub fn contents(
        &self,
        owner: SpillOwner,
        handle: &str,
        now: Instant,
    ) -> Result<(SpillFormat, Bytes), SpillError> {
        let file = self.open_result(owner, handle, now)?;
        Ok((file.format, file.contents()?.into()))
    }

    /// Removes all results of an owner who will not ask for them any more.
    pub fn forget_owner(&self, owner: SpillOwner) {
        let removed = self.table().remove_owner(owner);
        self.remove_files(&removed);
    }

    /// Removes the results whose time is over. They could not be read any more, but take up room.
    pub fn sweep_expired(&self, now: Instant) {
        let removed = self.table().remove_expired(now);
        self.remove_files(&removed);
    }

    /// Removes everything. From now on, nothing can be written or read.
    pub fn close(&self) {
        if let Some(run) = self.run.get() {
            run.remove();
        }
    }

    fn open_file(
        &self,
        owner: SpillOwner,
        file: &str,
        now: Instant,
    ) -> Result<ReadableFile, SpillError> {
        if is_handle(file) {
            return self.open_result(owner, file, now);
        }
        let (opened, byte_size) =
            roots::open_below(&self.options.roots, file).ok_or(SpillError::NoSuchFile)?;
        Ok(ReadableFile::outside(
            opened,
            SpillFormat::of_file(file),
            byte_size,
        ))
    }

    fn open_result(
        &self,
        owner: SpillOwner,
        handle: &str,
        now: Instant,
    ) -> Result<ReadableFile, SpillError> {
        let stored = self.table().find(owner, handle, now);
        let stored = stored.ok_or(SpillError::NoSuchFile)?;
        let run = self.run.get().ok_or(SpillError::NoSuchFile)?;
        // It may have been removed since it was looked up.
        let file = run.open_file(&stored.name).map_err(|error| match error {
            error if error.kind() == io::ErrorKind::NotFound => SpillError::NoSuchFile,
            error => SpillError::Io(error),
        })?;
        Ok(ReadableFile::stored(file, stored))
    }

    fn run_directory(&self) -> Result<&RunDirectory, SpillError> {
        if let Some(run) = self.run.get() {
            return Ok(run);
        }
        let _creation = self.creation.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(run) = self.run.get() {
            return Ok(run);
        }
        let run = RunDirectory::create(&self.options.directory)?;
        if let Some(spawn_sweeper) = self.options.spawn_sweeper {
            spawn_sweeper(run.lock_path());
        }
        Ok(self.run.get_or_init(|| run))
    }

    fn remove_files(&self, files: &[Arc<StoredFile>]) {
        if let Some(run) = self.run.get() {
            files.iter().for_each(|file| run.remove_file(&file.name));
        }
    }

    fn spill_error(&self, error: io::Error) -> SpillError {
        // That of the operating system has a number.
        match (error.kind(), error.raw_os_error()) {
            (io::ErrorKind::QuotaExceeded, None) => SpillError::QuotaExceeded {
                quota: self.options.quota,
            },
            _ => SpillError::Io(error),
        }
    }

    fn table(&self) -> MutexGuard<'_, HandleTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// TOON, if it is smaller than the file would be without.
fn smaller_toon(json: &[u8]) -> Option<String> {
    let mut laid_out = LineIndex::default();
    write_laid_out(json, &mut laid_out).ok()?;
    toon::encode(json).filter(|toon| (toon.len() as u64) < laid_out.byte_size())
}

fn preview_of(payload: &Payload<'_>, toon: Option<&str>) -> String {
    preview(toon.map_or(payload.bytes(), str::as_bytes))
}

fn write_file(
    run: &RunDirectory,
    name: &str,
    payload: &Payload<'_>,
    toon: Option<&str>,
    reserve: &mut dyn FnMut(u64) -> io::Result<()>,
) -> io::Result<WrittenFile> {
    // Most of the room at once, so that nothing is removed for a result that does not fit anyway.
    let least = occupied(toon.map_or(payload.bytes().len(), str::len) as u64);
    let mut ahead = least;
    reserve(least)?;
    let mut reserve_more = |bytes: u64| {
        let missing = bytes.saturating_sub(ahead);
        ahead = ahead.saturating_sub(bytes);
        if missing > 0 {
            reserve(missing)
        } else {
            Ok(())
        }
    };
    let mut writer = SpillWriter::new(run.create_file(name)?, &mut reserve_more);
    let shape = write_payload(payload, toon, &mut writer)?;
    let index = writer.finish()?;
    let size = index.byte_size();
    reserve_more(occupied(size) - size)?;
    Ok(WrittenFile { index, shape })
}

fn write_payload(
    payload: &Payload<'_>,
    toon: Option<&str>,
    writer: &mut impl io::Write,
) -> io::Result<ResultShape> {
    Ok(match (payload, toon) {
        (Payload::Json(json), None) => write_laid_out(json, writer)?,
        (Payload::Json(json), Some(toon)) => {
            writer.write_all(toon.as_bytes())?;
            write_laid_out(json, &mut io::sink())?
        }
        (Payload::Text(text), _) => {
            writer.write_all(text)?;
            ResultShape::Other
        }
    })
}
