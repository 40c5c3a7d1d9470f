//! The folder where records live: what is there, what it takes, and what may go.
//!
//! Nothing here ever removes a record that is being written, nor one outside the folder that was asked about: a `--session-file`
//! is the user's own.

mod companion_files;
mod prune;

use companion_files::FolderListing;
pub use prune::{PruneSelection, PruneSummary, prune, prune_to_size, running_ids};

use crate::record_file::RecordOpening;
use crate::session_record::RecordedLine;
use crate::{Error, PeerInfo, SessionRecord, lock};
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

/// One record, as a list shows it.
#[derive(Debug, Clone)]
pub struct RecordListing {
    /// The record's file.
    pub path: PathBuf,
    /// The session's id.
    pub id: String,
    /// When it started.
    pub started_at: SystemTime,
    /// When it ended, if it was not killed.
    pub ended_at: Option<SystemTime>,
    /// Which part of its session it is, from 1.
    pub part: u32,
    /// Another part follows it.
    pub continues: bool,
    /// A running proxy is writing it.
    pub live: bool,
    /// The server, as the first line has it. [`SessionRecord::server`] knows the transport better.
    pub server: PeerInfo,
    /// The server's command or URL.
    pub target: String,
    /// Bytes, with index, and other files next to it.
    pub bytes: u64,
}

impl RecordListing {
    /// Reads what a list shows of one record: its first line, its last, and the sizes.
    pub fn read(path: &Path) -> Result<RecordListing, Error> {
        let names = FolderListing::siblings_of(path);
        RecordListing::read_among(path, &names)
    }

    /// The same where the names in its folder are known.
    fn read_among(path: &Path, names: &FolderListing) -> Result<RecordListing, Error> {
        let RecordOpening {
            file, header, part, ..
        } = RecordOpening::read(path)?;
        let size = file
            .metadata()
            .map_err(|error| Error::io("read", path, error))?
            .len();
        let beside = names.companions_of(path);
        let end = last_line_end(&file, size);
        Ok(RecordListing {
            id: header.id,
            started_at: header.started_at,
            ended_at: end.as_ref().map(|(time, _)| *time),
            part: part.number,
            continues: end.is_some_and(|(_, end)| end == PartEnd::Continues),
            live: lock::is_live(path),
            server: header.server,
            target: header
                .server_command
                .or(header.server_url)
                .unwrap_or_default(),
            bytes: size
                + beside
                    .iter()
                    .map(|path| companion_files::size(path))
                    .sum::<u64>(),
            path: path.to_path_buf(),
        })
    }

    /// How many messages it has. Reads the record if its index is stale, so a list asks for this last.
    pub fn messages(&self) -> Result<usize, Error> {
        SessionRecord::open(&self.path).map(|session| session.len())
    }
}

/// The records in `folder`, newest first. Files that are not records are passed over.
pub fn list(folder: &Path) -> Result<Vec<RecordListing>, Error> {
    let names = match FolderListing::of(folder) {
        Ok(names) => names,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::io("read", folder, error)),
    };
    let mut found: Vec<RecordListing> = names
        .in_folder(folder)
        .filter(|path| {
            path.is_file()
                && path
                    .extension()
                    .is_none_or(|ending| ending != "idx" && ending != "part")
        })
        .filter_map(|path| RecordListing::read_among(&path, &names).ok())
        .collect();
    found.sort_by(|one, other| {
        other
            .started_at
            .cmp(&one.started_at)
            .then_with(|| other.part.cmp(&one.part))
            .then_with(|| other.path.cmp(&one.path))
    });
    Ok(found)
}

/// The record in `folder` that a person means by `name`: a session id, the start of one, or a file name with or without its ending.
pub fn find(folder: &Path, name: &str) -> Result<Vec<RecordListing>, Error> {
    let mut found = list(folder)?;
    found.retain(|listed| {
        let file = listed
            .path
            .file_name()
            .map(|file| file.to_string_lossy().into_owned())
            .unwrap_or_default();
        listed.id.starts_with(name)
            || file == name
            || file
                .strip_suffix(".jsonl")
                .is_some_and(|stem| stem.ends_with(name))
    });
    Ok(found)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PartEnd {
    Ended,
    Continues,
}

/// The time in the last line, if that is an `end` or a `next`.
fn last_line_end(file: &File, size: u64) -> Option<(SystemTime, PartEnd)> {
    let len = size.min(4096) as usize;
    let mut tail = vec![0; len];
    file.read_exact_at(&mut tail, size - len as u64).ok()?;
    let tail = tail.strip_suffix(b"\n")?;
    let start = memchr::memrchr(b'\n', tail)? + 1;
    let record = RecordedLine {
        offset: 0,
        line: tail[start..].to_vec().into(),
    };
    let end = match record.kind() {
        "end" => PartEnd::Ended,
        "next" => PartEnd::Continues,
        _ => return None,
    };
    let time = crate::timestamp::parse(&record.member::<String>("timestamp")?)?;
    Some((time, end))
}
