//! Where control sockets are: `<id>.sock` and its descriptor `<id>.json`, in a folder that is its user's alone.
//!
//! The folder is `mcp-proxy` in `$XDG_RUNTIME_DIR`, else `mcp-proxy-<uid>` in the folder for temporary files, which others
//! can write to: there its owner and mode are checked before anything in it is believed. A proxy that was killed leaves
//! its two files behind; the next proxy, or the next `ls`, removes them.

use std::fs::{DirBuilder, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, geteuid, getuid, test_kill_process};
use serde::{Deserialize, Serialize};
use tokio::net::UnixListener;

/// `sun_path` holds 104 bytes on macOS and 108 on Linux, with the zero at its end.
const LONGEST: usize = 103;
/// A descriptor is a few hundred bytes; what is longer is none.
const DESCRIPTOR: u64 = 64 * 1024;

/// What a running proxy says about itself to those who only list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProxyDescriptor {
    /// How it is named in `attach` and `ctl`.
    pub id: String,
    /// Its process.
    pub pid: u32,
    /// The session's whole id.
    pub session: String,
    /// The server, secrets masked.
    pub target: String,
    /// How clients speak.
    pub client: String,
    /// How the server speaks.
    pub server: String,
    /// The record's file.
    pub record: Option<PathBuf>,
    /// When it started.
    pub started: String,
    /// The proxy's version.
    pub version: String,
}

/// A proxy's own socket.
#[derive(Debug)]
pub struct ControlSocket {
    /// Where viewers dial.
    pub listener: UnixListener,
    /// Its files.
    pub files: SocketFiles,
}

/// A socket and its descriptor. They go when this is dropped.
#[derive(Debug)]
pub struct SocketFiles {
    socket: PathBuf,
    descriptor: PathBuf,
}

/// A proxy that answers.
#[derive(Clone, Debug)]
pub struct RunningProxy {
    /// What it says.
    pub descriptor: ProxyDescriptor,
    /// Where to dial.
    pub socket: PathBuf,
}

impl ControlSocket {
    /// Makes the socket and its descriptor.
    pub fn create(descriptor: &ProxyDescriptor) -> io::Result<ControlSocket> {
        let folder = own_folder(&descriptor.id)?;
        let socket = folder.join(format!("{}.sock", descriptor.id));
        // Under another name until it listens: who lists takes a socket that refuses for one that was left behind.
        let unfinished = folder.join(format!(".{}.new", descriptor.id));
        let _ = std::fs::remove_file(&unfinished);
        let listener = UnixListener::bind(&unfinished)?;
        std::fs::set_permissions(&unfinished, Permissions::from_mode(0o600))?;
        std::fs::rename(&unfinished, &socket)?;
        let files = SocketFiles {
            descriptor: folder.join(format!("{}.json", descriptor.id)),
            socket,
        };
        write_private(&files.descriptor, &serde_json::to_vec(descriptor)?)?;
        Ok(ControlSocket { listener, files })
    }
}

impl SocketFiles {
    /// Where viewers dial.
    pub fn socket(&self) -> &Path {
        &self.socket
    }
}

impl Drop for SocketFiles {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.descriptor);
        let _ = std::fs::remove_file(&self.socket);
    }
}

/// The proxies that run, the newest first. What was left behind is removed.
pub fn running_proxies() -> Vec<RunningProxy> {
    let mut found: Vec<_> = descriptors()
        .filter(|running| !remove_if_left(running))
        .collect();
    found.sort_by(|one, other| other.descriptor.started.cmp(&one.descriptor.started));
    found
}

/// Removes what killed proxies have left behind. Cheap: only those whose process is gone are dialled.
pub fn remove_stale_sockets() {
    for running in descriptors().filter(|running| !is_process(running.descriptor.pid)) {
        remove_if_left(&running);
    }
    // Killed between its socket and its descriptor.
    for socket in entries("sock").filter(|socket| !socket.with_extension("json").exists()) {
        if is_dead_socket(&socket) {
            let _ = std::fs::remove_file(socket);
        }
    }
}

/// The folders in which a proxy of this user may have its socket.
fn folders() -> Vec<PathBuf> {
    let uid = getuid().as_raw();
    let runtime = std::env::var_os("XDG_RUNTIME_DIR")
        .map(PathBuf::from)
        .filter(|folder| folder.is_absolute())
        // Without this variable, a user may still look for a proxy whose client had it.
        .unwrap_or_else(|| PathBuf::from(format!("/run/user/{uid}")));
    vec![
        runtime.join("mcp-proxy"),
        std::env::temp_dir().join(format!("mcp-proxy-{uid}")),
    ]
}

/// The first folder that can be had and whose sockets' paths are short enough.
/// A folder that is this user's alone, for what must be written down for a moment.
pub fn private_folder() -> io::Result<PathBuf> {
    own_folder("")
}

fn own_folder(id: &str) -> io::Result<PathBuf> {
    let mut failure = io::Error::new(ErrorKind::InvalidInput, "no folder");
    for folder in folders() {
        let longest = folder.as_os_str().len() + "/".len() + id.len() + ".sock".len();
        if longest > LONGEST {
            failure = io::Error::new(
                ErrorKind::InvalidInput,
                format!(
                    "{}: the path of a socket in it is over {LONGEST} bytes",
                    folder.display()
                ),
            );
            continue;
        }
        match make_private(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) => {
                failure = io::Error::new(error.kind(), format!("{}: {error}", folder.display()));
            }
        }
    }
    Err(failure)
}

/// Makes a folder for this user alone, or finds that it is one.
fn make_private(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    if !is_private(folder)? {
        // It is ours, and too open: what is in it was not secret so far, and will be from now on.
        std::fs::set_permissions(folder, Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Whether nobody else can look into it. An error if it is not ours at all.
fn is_private(folder: &Path) -> io::Result<bool> {
    let facts = std::fs::symlink_metadata(folder)?;
    let not_ours = |text: &str| Err(io::Error::new(ErrorKind::PermissionDenied, text.to_owned()));
    if !facts.is_dir() {
        return not_ours("it is not a folder");
    }
    if facts.uid() != geteuid().as_raw() {
        return not_ours("it belongs to another user");
    }
    Ok(facts.mode() & 0o077 == 0)
}

/// All descriptors in folders that are ours alone.
fn descriptors() -> impl Iterator<Item = RunningProxy> {
    entries("json").filter_map(|path| {
        if path.metadata().ok()?.len() > DESCRIPTOR {
            return None;
        }
        let descriptor = serde_json::from_slice(&std::fs::read(&path).ok()?).ok()?;
        Some(RunningProxy {
            descriptor,
            socket: path.with_extension("sock"),
        })
    })
}

/// The files with this ending in folders that are ours alone.
fn entries(ending: &'static str) -> impl Iterator<Item = PathBuf> {
    folders()
        .into_iter()
        .filter(|folder| is_private(folder).unwrap_or(false))
        .filter_map(|folder| std::fs::read_dir(folder).ok())
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(move |path| path.extension().is_some_and(|found| found == ending))
}

/// Removes both files if nobody listens.
fn remove_if_left(running: &RunningProxy) -> bool {
    let left = is_dead_socket(&running.socket);
    if left {
        let _ = std::fs::remove_file(running.socket.with_extension("json"));
        let _ = std::fs::remove_file(&running.socket);
    }
    left
}

/// A socket that nobody listens on refuses, however its proxy ended and whatever process has its number now.
fn is_dead_socket(socket: &Path) -> bool {
    match UnixStream::connect(socket) {
        Ok(_) => false,
        Err(error) => matches!(
            error.kind(),
            ErrorKind::ConnectionRefused | ErrorKind::NotFound
        ),
    }
}

fn is_process(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

/// Whole or not at all, for its owner only.
fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let unfinished = path.with_extension("part");
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&unfinished)?;
    io::Write::write_all(&mut file, bytes)?;
    std::fs::rename(&unfinished, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_ours_is_closed_and_one_that_is_none_is_refused() {
        let base = tempfile::tempdir().unwrap();
        let folder = base.path().join("mcp-proxy");
        make_private(&folder).unwrap();
        assert_eq!(std::fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
        std::fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        assert!(!is_private(&folder).unwrap());
        make_private(&folder).unwrap();
        assert!(is_private(&folder).unwrap());
        let link = base.path().join("link");
        std::os::unix::fs::symlink(&folder, &link).unwrap();
        let refused = |path: &Path| make_private(path).unwrap_err().kind();
        assert_eq!(refused(&link), ErrorKind::PermissionDenied);
        let file = base.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert_eq!(refused(&file), ErrorKind::PermissionDenied);
    }
}
