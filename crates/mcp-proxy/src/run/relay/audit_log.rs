//! `--audit-log`: one JSON line for each event of a relay.
//!
//! A line is written before anybody hears of what it is about, with one `write(2)` each time, so a killed relay loses nothing and
//! leaves at most its last line unfinished. A new file is the user's alone; one that exists keeps its mode. At its limit it is
//! renamed, and one older file is kept. SIGHUP opens it again, for programs that rename logs.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result, bail};
use jiff::Timestamp;
use mcp_proxy_relay::{AuditSink, AuditedAction, RelayAuditEvent};
use rustix::fs::OFlags;
use serde::Serialize;

use crate::printer;

/// How long the file may be, in bytes.
const LARGEST: u64 = 64 << 20;

/// How many refused tokens a second are written. Strangers can send them, and would push everything else out of the file.
const REFUSED_PER_SECOND: u32 = 20;

/// The file.
struct AuditLog {
    path: PathBuf,
    file: File,
    length: u64,
    limit: u64,
    refused: RefusedLines,
    /// What went wrong last, which is said once.
    problem: Option<String>,
    /// The last write has failed.
    is_torn: bool,
}

/// The lines about refused tokens.
#[derive(Default)]
struct RefusedLines {
    second: i64,
    written: u32,
    left_out: u64,
}

/// A line of it.
#[derive(Serialize)]
struct AuditLine<'a> {
    time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<&'a str>,
    #[serde(flatten)]
    what: &'a AuditedAction,
    /// How many lines about refused tokens were not written since the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<u64>,
}

/// The audit log of a running relay.
#[derive(Clone)]
pub struct SharedAuditLog(Arc<Mutex<AuditLog>>);

impl SharedAuditLog {
    /// Opens the file, or creates it.
    pub fn open(path: &Path) -> Result<SharedAuditLog> {
        let log = AuditLog::open(path, LARGEST)
            .with_context(|| format!("--audit-log: cannot write {}", path.display()))?;
        Ok(SharedAuditLog(Arc::new(Mutex::new(log))))
    }

    /// What writes into it.
    pub fn sink(&self) -> AuditSink {
        let log = self.clone();
        Arc::new(move |events| log.lock().write(events))
    }

    /// Opens the file again, because somebody else may have renamed it. If that fails, the old one stays in use.
    pub fn reopen(&self) {
        let mut log = self.lock();
        if let Err(error) = log.reopen() {
            let path = log.path.display();
            printer::say(&format!("mcp-proxy: cannot open {path} again: {error:#}"));
        }
    }

    /// What a person should know about who can read it.
    pub fn notice(&self) -> Option<String> {
        let log = self.lock();
        let mode = log.file.metadata().ok()?.permissions().mode() & 0o777;
        (mode & 0o077 != 0).then(|| {
            let path = log.path.display();
            format!(
                "mcp-proxy: others than you may use the audit log {path} (its mode is {mode:o}); `chmod 600` ends that"
            )
        })
    }

    fn lock(&self) -> MutexGuard<'_, AuditLog> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AuditLog {
    fn open(path: &Path, limit: u64) -> Result<AuditLog> {
        let (file, length) = open_at_end(path)?;
        Ok(AuditLog {
            path: path.to_owned(),
            length,
            file,
            limit,
            refused: RefusedLines::default(),
            is_torn: false,
            problem: None,
        })
    }

    fn reopen(&mut self) -> Result<()> {
        (self.file, self.length) = open_at_end(&self.path)?;
        self.is_torn = false;
        Ok(())
    }

    fn write(&mut self, events: &[RelayAuditEvent]) {
        let mut text = Vec::new();
        for event in events {
            let mut left_out = None;
            if matches!(event.what, AuditedAction::Refused { .. }) {
                let Some(count) = self.refused.admit(event.wall_ms) else {
                    continue;
                };
                left_out = Some(count).filter(|count| *count > 0);
            }
            let time = Timestamp::from_millisecond(event.wall_ms).unwrap_or_default();
            let line = AuditLine {
                time: format!("{time:.3}"),
                user: event.user.as_deref(),
                what: &event.what,
                left_out,
            };
            // Members are strings and numbers: writing these cannot fail.
            let _ = serde_json::to_writer(&mut text, &line);
            text.push(b'\n');
        }
        let problem = self.append(&text).err().map(|error| error.to_string());
        if problem != self.problem
            && let Some(problem) = &problem
        {
            let path = self.path.display();
            printer::say(&format!("mcp-proxy: cannot write {path}: {problem}"));
        }
        self.problem = problem;
    }

    fn append(&mut self, text: &[u8]) -> io::Result<()> {
        if self.length > 0 && self.length.saturating_add(text.len() as u64) > self.limit {
            let mut older = self.path.clone().into_os_string();
            older.push(".1");
            std::fs::rename(&self.path, older)?;
            self.file = open_file(&self.path)?;
            self.length = 0;
        }
        if self.is_torn {
            // Part of a line may be there, which must not swallow the next one.
            self.file.write_all(b"\n")?;
        }
        self.is_torn = false;
        let end = self.file.metadata()?.len();
        if let Err(error) = self.file.write_all(text) {
            self.is_torn = take_back_half_line(&mut self.file, end).is_err();
            return Err(error);
        }
        self.length += text.len() as u64;
        Ok(())
    }
}

/// Cuts off what a failed write has left after its last whole line. It began at `start`.
fn take_back_half_line(file: &mut File, start: u64) -> io::Result<()> {
    file.seek(SeekFrom::Start(start))?;
    let mut written = Vec::new();
    file.read_to_end(&mut written)?;
    let whole = written.iter().rposition(|byte| *byte == b'\n');
    let length = whole.map_or(0, |place| place + 1);
    file.set_len(start + length as u64)
}

impl RefusedLines {
    /// Whether one more may be written, and how many were left out before it.
    fn admit(&mut self, wall_ms: i64) -> Option<u64> {
        let second = wall_ms.div_euclid(1000);
        if second != self.second {
            (self.second, self.written) = (second, 0);
        }
        if self.written >= REFUSED_PER_SECOND {
            self.left_out += 1;
            return None;
        }
        self.written += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

/// For the user alone. A link is not followed, and a pipe is not waited for.
fn open_file(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
}

/// The file and its length, ready for the next line.
fn open_at_end(path: &Path) -> Result<(File, u64)> {
    let mut file = open_file(path)?;
    if !file.metadata()?.is_file() {
        bail!("it is not a file");
    }
    end_last_line(&mut file)?;
    let length = file.metadata()?.len();
    Ok((file, length))
}

/// A relay that was killed, or a full disk, may have left half a line.
fn end_last_line(file: &mut File) -> io::Result<()> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(());
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    match last[0] {
        b'\n' => Ok(()),
        _ => file.write_all(b"\n"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;

    use mcp_proxy_relay::SocketRole;

    use super::*;

    fn event() -> RelayAuditEvent {
        RelayAuditEvent {
            wall_ms: 1_760_989_433_163,
            user: None,
            what: AuditedAction::Refused {
                role: Some(SocketRole::Client),
                address: None,
                reason: "Invalid token",
            },
        }
    }

    #[test]
    fn half_a_line_is_ended_and_the_file_is_renamed_at_its_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit");
        std::fs::write(&path, "{\"half\":").unwrap();
        let mut log = AuditLog::open(&path, 400).unwrap();
        log.write(&[event()]);
        let text = std::fs::read_to_string(&path).unwrap();
        let written = text.strip_prefix("{\"half\":\n").unwrap();
        assert_eq!(
            written,
            "{\"time\":\"2025-10-20T19:43:53.163Z\",\"event\":\"refused\",\"role\":\"client\",\"reason\":\"Invalid token\"}\n"
        );
        for _ in 0..9 {
            log.write(&[event()]);
        }
        let older = std::fs::read_to_string(folder.path().join("audit.1")).unwrap();
        let newer = std::fs::read_to_string(&path).unwrap();
        assert!(older.len() <= 400 && newer.len() <= 400);
        assert!(older.ends_with('\n') && newer.ends_with('\n'));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn a15_half_a_line_of_a_failed_write_is_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit");
        for (written, kept) in [("{}\n{\"half", "{}\n"), ("{\"half", ""), ("", "")] {
            std::fs::write(&path, format!("{{\"before\":1}}\n{written}")).unwrap();
            let mut file = open_file(&path).unwrap();
            take_back_half_line(&mut file, 13).unwrap();
            // The next line follows the last whole one.
            file.write_all(b"{}\n").unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            assert_eq!(text, format!("{{\"before\":1}}\n{kept}{{}}\n"));
        }
    }

    #[test]
    fn a_file_that_was_renamed_is_created_again() {
        let folder = tempfile::tempdir().unwrap();
        let (path, older) = (folder.path().join("audit"), folder.path().join("older"));
        let log = SharedAuditLog::open(&path).unwrap();
        let write = log.sink();
        write(&[event()]);
        std::fs::rename(&path, &older).unwrap();
        write(&[event()]);
        log.reopen();
        write(&[event()]);
        let lines = |path: &Path| std::fs::read_to_string(path).unwrap().lines().count();
        assert_eq!((lines(&older), lines(&path)), (2, 1));
        // If it cannot be opened, the lines go on where they went before.
        std::fs::rename(&path, &older).unwrap();
        std::fs::create_dir(&path).unwrap();
        log.reopen();
        write(&[event()]);
        assert_eq!(lines(&older), 2);
    }

    #[test]
    fn a_file_that_others_can_read_keeps_its_mode_and_is_told_about() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit");
        let log = SharedAuditLog::open(&path).unwrap();
        assert_eq!(log.notice(), None);
        for mode in [0o640, 0o604, 0o620] {
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let log = SharedAuditLog::open(&path).unwrap();
            assert!(log.notice().is_some(), "{mode:o}");
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, mode);
        }
    }

    #[test]
    fn a_flood_of_refused_tokens_leaves_room_for_the_rest() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit");
        let mut log = AuditLog::open(&path, LARGEST).unwrap();
        let mut later = event();
        later.wall_ms += 1000;
        log.write(&vec![event(); 1000]);
        log.write(&[later]);
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 21);
        let last = text.lines().last().unwrap();
        assert!(last.ends_with("\"left_out\":980}"), "{last}");
    }

    #[test]
    fn only_a_file_of_the_users_own_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit");
        AuditLog::open(&path, LARGEST).unwrap();
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        for wrong in [&link, folder.path(), Path::new("/dev/null")] {
            assert!(AuditLog::open(wrong, LARGEST).is_err(), "{wrong:?}");
        }
    }
}
