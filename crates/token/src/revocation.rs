//! The file of revoked tokens. It only ever grows, by one whole line at a time.
//!
//! ```text
//! # comment
//! 5f0c2a94b7e1d3f6a8c0e2b4d6f8a1c3
//! user:alice 2026-11-17T22:00:00Z
//! ```
//!
//! A line is the `jti` of a token, or a user with the time before which all tokens of that user are revoked. `jti:` in
//! front of a `jti` is allowed, and needed if it would be read as something else. A user without a time is revoked for
//! good. Lines that are not understood are kept and have no effect.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

use crate::claims::is_name;
use crate::{TokenError, VerifiedToken};

/// What is revoked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RevocationEntry {
    /// One token, by its `jti`.
    Token(String),
    /// All tokens of a user that were issued before a time, or all of them.
    User {
        /// The user.
        user: String,
        /// Tokens issued from then on are good.
        before: Option<SystemTime>,
    },
}

/// The revoked tokens, as the file had them when it was last read.
#[derive(Debug)]
pub struct RevocationList {
    path: PathBuf,
    /// What the file was when it was read; `None` if there was none.
    read_from: Option<FileVersion>,
    tokens: HashSet<String>,
    users: HashMap<String, Cutoff>,
}

/// Which tokens of a user are revoked. The later one wins, and `Forever` is the latest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cutoff {
    Before(SystemTime),
    Forever,
}

/// Tells whether a file was changed or replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileVersion {
    device: u64,
    inode: u64,
    length: u64,
    modified: (i64, i64),
}

impl RevocationEntry {
    /// Revokes the tokens of a user that were issued up to now.
    ///
    /// `iat` has whole seconds, so the rest of this second is included: a token that was issued just before must not
    /// survive.
    pub fn user_until(user: &str, now: SystemTime) -> RevocationEntry {
        let seconds = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        RevocationEntry::User {
            user: user.to_owned(),
            before: Some(UNIX_EPOCH + Duration::from_secs(seconds + 1)),
        }
    }

    /// Reads a line. `None` for a comment and for what is not understood.
    fn parse(line: &str) -> Option<RevocationEntry> {
        let line = line.trim();
        if let Some(rest) = line.strip_prefix("user:") {
            return parse_user(rest);
        }
        let token_id = match line.strip_prefix("jti:") {
            Some(token_id) => token_id,
            None if line.starts_with('#') => return None,
            None => line,
        };
        is_name(token_id).then(|| RevocationEntry::Token(token_id.to_owned()))
    }
}

fn parse_user(text: &str) -> Option<RevocationEntry> {
    let (user, before) = match text.rsplit_once(char::is_whitespace) {
        Some((user, time)) => {
            let time: Timestamp = time.parse().ok()?;
            (user.trim(), Some(SystemTime::from(time)))
        }
        None => (text, None),
    };
    is_name(user).then(|| RevocationEntry::User {
        user: user.to_owned(),
        before,
    })
}

/// The line of the file.
impl fmt::Display for RevocationEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RevocationEntry::Token(token_id) => {
                let is_special = ["#", "user:", "jti:"]
                    .iter()
                    .any(|start| token_id.starts_with(start));
                let prefix = if is_special { "jti:" } else { "" };
                write!(f, "{prefix}{token_id}")
            }
            RevocationEntry::User { user, before } => {
                write!(f, "user:{user}")?;
                match before.map(Timestamp::try_from) {
                    Some(Ok(time)) => write!(f, " {time}"),
                    // A time that cannot be written revokes all the same.
                    Some(Err(_)) | None => Ok(()),
                }
            }
        }
    }
}

impl RevocationList {
    /// Reads the file. If there is none, nothing is revoked yet.
    pub fn open(path: &Path) -> io::Result<RevocationList> {
        let mut list = RevocationList {
            path: path.to_owned(),
            read_from: None,
            tokens: HashSet::new(),
            users: HashMap::new(),
        };
        list.refresh()?;
        Ok(list)
    }

    /// Reads the file again if it was changed, and says whether it was. If that fails, or if the file is gone, what was read
    /// before stays in force.
    pub fn refresh(&mut self) -> io::Result<bool> {
        let version = match fs::metadata(&self.path) {
            Ok(facts) => Some(FileVersion::of(&facts)),
            Err(error) if error.kind() == ErrorKind::NotFound && self.read_from.is_none() => None,
            Err(error) => return Err(error),
        };
        if version == self.read_from {
            return Ok(false);
        }
        let text = match version {
            Some(_) => fs::read(&self.path)?,
            None => Vec::new(),
        };
        self.tokens.clear();
        self.users.clear();
        for line in String::from_utf8_lossy(&text).lines() {
            if let Some(entry) = RevocationEntry::parse(line) {
                self.insert(entry);
            }
        }
        self.read_from = version;
        Ok(true)
    }

    /// Whether a token is still good.
    pub fn check(&self, token: &VerifiedToken) -> Result<(), TokenError> {
        let is_listed = token
            .token_id
            .as_ref()
            .is_some_and(|token_id| self.tokens.contains(token_id));
        let is_before = match self.users.get(&token.user) {
            None => false,
            Some(Cutoff::Forever) => true,
            // A token that does not say when it was issued may have been issued before.
            Some(Cutoff::Before(time)) => token.issued_at.is_none_or(|issued| issued < *time),
        };
        match is_listed || is_before {
            true => Err(TokenError::Revoked),
            false => Ok(()),
        }
    }

    /// When a new token of the user can be issued: now, or when the second ends in which the tokens of the user were revoked.
    /// `None` if they are revoked for longer.
    pub fn next_issue(&self, user: &str, now: SystemTime) -> Option<SystemTime> {
        match self.users.get(user) {
            None => Some(now),
            Some(Cutoff::Forever) => None,
            Some(Cutoff::Before(time)) => {
                (*time <= now + Duration::from_secs(1)).then(|| now.max(*time))
            }
        }
    }

    /// Adds an entry to the file, and to this list. It is on the disk when this returns.
    pub fn append(&mut self, entry: RevocationEntry) -> io::Result<()> {
        let name = match &entry {
            RevocationEntry::Token(token_id) => token_id,
            RevocationEntry::User { user, .. } => user,
        };
        if !is_name(name) {
            return Err(io::Error::new(
                ErrorKind::InvalidInput,
                "a name has 1 to 256 characters, no control characters and no spaces around it",
            ));
        }
        append_line(&self.path, &entry.to_string())?;
        self.insert(entry);
        Ok(())
    }

    fn insert(&mut self, entry: RevocationEntry) {
        match entry {
            RevocationEntry::Token(token_id) => {
                self.tokens.insert(token_id);
            }
            RevocationEntry::User { user, before } => {
                let cutoff = before.map_or(Cutoff::Forever, Cutoff::Before);
                let known = self.users.entry(user).or_insert(cutoff);
                *known = cutoff.max(*known);
            }
        }
    }
}

impl FileVersion {
    fn of(facts: &fs::Metadata) -> FileVersion {
        FileVersion {
            device: facts.dev(),
            inode: facts.ino(),
            length: facts.len(),
            modified: (facts.mtime(), facts.mtime_nsec()),
        }
    }
}

/// One `write(2)` of a whole line, under a lock, and then `fsync`: if the process is killed, the line is there or it is not.
fn append_line(path: &Path, line: &str) -> io::Result<()> {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let folder = folder.unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)?;
    file.lock()?;
    // An editor may have left the last line without an end.
    let start = if ends_line(&mut file)? { "" } else { "\n" };
    file.write_all(format!("{start}{line}\n").as_bytes())?;
    file.sync_all()?;
    File::open(folder)?.sync_all()
}

fn ends_line(file: &mut File) -> io::Result<bool> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(true);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last[0] == b'\n')
}
