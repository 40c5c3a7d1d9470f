//! Records and the files next to them, opened so that nobody else decides what they are.
//!
//! A record may lie in a folder that other users can write to, and it may come from somebody else. So the folder of the side
//! files is used only if it is ours, nothing in it is written through a link, and what is read must be a regular file: a pipe
//! or a device would make its reader wait forever.

use rustix::fs::{AtFlags, CWD, Mode, OFlags, mkdirat, openat, renameat, unlinkat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Opens a record for reading. A link may lead to it: its path comes from the user.
pub(crate) fn open_record(path: &Path) -> io::Result<File> {
    open_regular(CWD, path, OFlags::empty())
}

/// Opens a file in a record's folder of side files, or next to the record, for reading. Neither the file nor its folder may be
/// a link: the record may come from somebody else.
pub(crate) fn open_side_file(path: &Path) -> io::Result<File> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(ErrorKind::NotFound.into());
    };
    let folder = openat(
        CWD,
        folder,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    open_regular(&folder, Path::new(name), OFlags::NOFOLLOW)
}

/// Opens a file next to a record for reading, if it is not a link and the user or the record's owner made it.
pub(crate) fn open_companion(path: &Path, record: &File) -> io::Result<File> {
    let file = open_regular(CWD, path, OFlags::NOFOLLOW)?;
    let owner = file.metadata()?.uid();
    let is_trusted = is_own(owner) || record.metadata()?.uid() == owner;
    is_trusted
        .then_some(file)
        .ok_or_else(|| ErrorKind::PermissionDenied.into())
}

/// Creates a file that does not exist yet, readable for the user alone.
pub(crate) fn create_new(path: &Path) -> io::Result<File> {
    create_in(CWD, path)
}

/// Whether an error means that there is no such body: nothing is there, or something that is not a file.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidInput
    ) || matches!(
        Errno::from_io_error(error),
        Some(Errno::LOOP | Errno::NXIO | Errno::NODEV)
    )
}

fn open_regular(folder: impl std::os::fd::AsFd, path: &Path, more: OFlags) -> io::Result<File> {
    // Without O_NONBLOCK, opening a pipe waits for a writer.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | more;
    let file = File::from(openat(folder, path, flags, Mode::empty())?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(not_a_file()),
    }
}

fn create_in(folder: impl std::os::fd::AsFd, path: &Path) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(openat(folder, path, flags, Mode::from(0o600))?))
}

fn not_a_file() -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, "it is not a regular file")
}

fn is_own(owner: u32) -> bool {
    owner == rustix::process::geteuid().as_raw()
}

/// The folder of a record's side files, open: whatever is renamed around it, files go into this one.
#[derive(Debug)]
pub(crate) struct SideFolder {
    folder: File,
    path: PathBuf,
}

impl SideFolder {
    /// Creates the folder. One that exists is used only if it is the user's and others cannot write to it.
    pub(crate) fn open_or_create(path: PathBuf) -> io::Result<SideFolder> {
        match mkdirat(CWD, &path, Mode::from(0o700)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = File::from(openat(CWD, &path, flags, Mode::empty())?);
        match is_private_folder(&folder.metadata()?) {
            true => Ok(SideFolder { folder, path }),
            false => Err(io::Error::new(
                ErrorKind::PermissionDenied,
                "another user made this folder, or others may write to it",
            )),
        }
    }

    /// Whether a record may have its side files at `path`: nothing is there yet, or a folder that is ours.
    pub(crate) fn is_usable(path: &Path) -> bool {
        match path.symlink_metadata() {
            Ok(facts) => is_private_folder(&facts),
            Err(error) => error.kind() == ErrorKind::NotFound,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Creates a file in it. One of that name was left by a record that is gone, and goes too.
    pub(crate) fn create(&self, name: &str) -> io::Result<File> {
        match create_in(&self.folder, Path::new(name)) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                self.remove(name)?;
                create_in(&self.folder, Path::new(name))
            }
            other => other,
        }
    }

    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.folder, name, AtFlags::empty())?)
    }

    /// Gives a file of this folder another name, in this folder or in `to`.
    pub(crate) fn rename(&self, from: &str, to: &SideFolder, name: &str) -> io::Result<()> {
        Ok(renameat(&self.folder, OsStr::new(from), &to.folder, name)?)
    }
}

fn is_private_folder(facts: &Metadata) -> bool {
    facts.is_dir() && is_own(facts.uid()) && facts.permissions().mode() & 0o022 == 0
}
