//! The folder where records live: what is there, what it takes, and what may go.
//!
//! Nothing here ever removes a record that is being written, nor one outside the folder that was asked about: a `--session-file`
//! is the user's own.

mod companion_files;
mod prune;

use companion_files::FolderListing;
pub use prune::{PruneSelection, PruneSummary, prune, prune_to_size};

use crate::record_file::RecordOpening;
use crate::session_record::RecordedLine;
use crate::{Error, PeerInfo, lock};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// What the default place is kept under.
pub const DEFAULT_LIMIT: u64 = 2 << 30;

/// The user's folder for records: `mcp-proxy/sessions` in `$XDG_STATE_HOME`, else in `~/.local/state`.
pub fn state_dir() -> Result<PathBuf, Error> {
    let absolute = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let base = absolute("XDG_STATE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
    base.map(|base| base.join("mcp-proxy/sessions"))
        .ok_or(Error::NoStateDirectory)
}

/// The record of one session, as a list shows it: a file, and those that continue it.
#[derive(Debug, Clone)]
pub struct RecordListing {
    /// The files, oldest first. At least one.
    pub paths: Vec<PathBuf>,
    /// The session's id.
    pub id: String,
    /// When it started.
    pub started_at: SystemTime,
    /// When it ended, if it was not killed.
    pub ended_at: Option<SystemTime>,
    /// A running proxy is writing it.
    pub live: bool,
    /// The server, as the first line has it. [`crate::SessionRecord::server`] knows the transport better.
    pub server: PeerInfo,
    /// The server's command or URL.
    pub target: String,
    /// Bytes, with index and other files next to it.
    pub bytes: u64,
}

impl RecordListing {
    /// The record's file; of several the first.
    pub fn path(&self) -> &Path {
        &self.paths[0]
    }
}

/// Whether a file is a record, as far as its first line tells.
pub fn check_record(path: &Path) -> Result<(), Error> {
    RecordOpening::read(path).map(drop)
}

/// One file of a record.
struct ListedFile {
    listing: RecordListing,
    /// The names of the files before and after it.
    continues: Option<String>,
    continued_in: Option<String>,
}

impl ListedFile {
    /// Reads the first line, the last, and the sizes.
    fn read(path: PathBuf, names: &FolderListing) -> Result<ListedFile, Error> {
        let opening = RecordOpening::read(&path)?;
        let (file, header) = (opening.file, opening.header);
        let size = file
            .metadata()
            .map_err(|error| Error::io("read", &path, error))?
            .len();
        let companions = names.companions_of(&path);
        let companions = companions.iter().map(|path| companion_files::size(path));
        let end = end_line(&file, size);
        let end_text = |name: &str| end.as_ref()?.member::<String>(name);
        let continued_in = end_text("continued_in");
        let ended_at = end_text("timestamp").and_then(|time| crate::timestamp::parse(&time));
        let listing = RecordListing {
            id: header.id,
            started_at: header.started_at,
            ended_at: ended_at.filter(|_| continued_in.is_none()),
            live: lock::is_live(&path),
            server: header.server,
            target: header
                .server_command
                .or(header.server_url)
                .unwrap_or_default(),
            bytes: size + companions.sum::<u64>(),
            paths: vec![path],
        };
        Ok(ListedFile {
            listing,
            continues: opening.continues,
            continued_in,
        })
    }

    /// Adds the file that continues this one.
    fn push(&mut self, next: ListedFile) {
        let known = &mut self.listing;
        known.paths.extend(next.listing.paths);
        known.bytes += next.listing.bytes;
        known.live = next.listing.live;
        known.ended_at = next.listing.ended_at;
        self.continued_in = next.continued_in;
    }
}

/// The records in `folder`, newest first. Files that are not records are passed over.
pub fn list(folder: &Path) -> Result<Vec<RecordListing>, Error> {
    let names = match FolderListing::of(folder) {
        Ok(names) => names,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::io("read", folder, error)),
    };
    let paths = names.in_folder(folder).filter(|path| {
        let ending = path.extension();
        path.is_file() && ending.is_none_or(|ending| ending != "idx" && ending != "part")
    });
    let files = paths.filter_map(|path| {
        let name = path.file_name()?.to_str()?.to_owned();
        Some((name, ListedFile::read(path, &names).ok()?))
    });
    let mut found = join_files(files.collect());
    found.sort_by(|one, other| {
        let key = |record: &RecordListing| (record.started_at, record.path().to_path_buf());
        key(other).cmp(&key(one))
    });
    Ok(found)
}

/// Puts the files of each session together. `files` are known by their names.
fn join_files(mut files: BTreeMap<String, ListedFile>) -> Vec<RecordListing> {
    let is_first = |file: &ListedFile| {
        let previous = file.continues.as_ref().and_then(|name| files.get(name));
        previous.is_none_or(|previous| previous.listing.id != file.listing.id)
    };
    let firsts = files.iter().filter(|(_, file)| is_first(file));
    let firsts: Vec<String> = firsts.map(|(name, _)| name.clone()).collect();
    let mut records = Vec::new();
    for mut name in firsts {
        let Some(mut record) = files.remove(&name) else {
            continue;
        };
        while let Some(next) = record.continued_in.take()
            && let Some(file) = files.remove(&next)
        {
            if file.listing.id != record.listing.id || file.continues.as_ref() != Some(&name) {
                files.insert(next, file);
                break;
            }
            record.push(file);
            name = next;
        }
        records.push(record.listing);
    }
    // Files that name each other in a way that no recorder writes.
    records.extend(files.into_values().map(|file| file.listing));
    records
}

/// The last line, if that is an `end`.
fn end_line(file: &File, size: u64) -> Option<RecordedLine> {
    let len = size.min(4096) as usize;
    let mut tail = vec![0; len];
    file.read_exact_at(&mut tail, size - len as u64).ok()?;
    let tail = tail.strip_suffix(b"\n")?;
    let start = memchr::memrchr(b'\n', tail)? + 1;
    let record = RecordedLine {
        offset: 0,
        line: tail[start..].to_vec().into(),
    };
    (record.kind() == "end").then_some(record)
}
