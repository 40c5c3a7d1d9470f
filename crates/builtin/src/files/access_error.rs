//! Why a file cannot be used.

use rustix::io::Errno;

/// Why a path below a root cannot be used. Each text continues a sentence that starts with the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(super) enum AccessError {
    #[error("does not exist")]
    Missing,
    #[error("may not be accessed: permission denied")]
    Denied,
    #[error("leads out of the root")]
    Outside,
    #[error("is or contains a symbolic link, which is not followed")]
    SymbolicLink,
    #[error("contains a loop of symbolic links, or one that is not followed")]
    LinkLoop,
    #[error("is not a directory, or something on the way to it is not")]
    NotDirectory,
    #[error("is a directory")]
    IsDirectory,
    #[error("is a device, a pipe or a socket")]
    SpecialFile,
    #[error("belongs to the kernel, as /proc does")]
    KernelFile,
    #[error("cannot be used: {0}")]
    Other(Errno),
}

impl From<Errno> for AccessError {
    fn from(error: Errno) -> AccessError {
        match error {
            Errno::NOENT => AccessError::Missing,
            Errno::ACCESS | Errno::PERM => AccessError::Denied,
            Errno::XDEV => AccessError::Outside,
            Errno::LOOP => AccessError::LinkLoop,
            Errno::NOTDIR => AccessError::NotDirectory,
            Errno::ISDIR => AccessError::IsDirectory,
            other => AccessError::Other(other),
        }
    }
}

impl From<std::io::Error> for AccessError {
    fn from(error: std::io::Error) -> AccessError {
        AccessError::from(Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }
}
