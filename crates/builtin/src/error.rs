//! What can be wrong with the options of a server.

use std::io;
use std::path::PathBuf;

/// A server cannot be made from these options.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuiltinError {
    /// There is nothing to serve.
    #[error("the files server needs at least one root directory")]
    NoRoots,
    /// A root is missing, is not a directory, or may not be read.
    #[error("cannot open the root directory {}", path.display())]
    OpenRoot {
        /// The path as configured.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The name of a root is the first part of paths below it.
    #[error("`{name}` cannot be the name of a root: use a plain file name")]
    RootName {
        /// The name as configured.
        name: String,
    },
    /// Two roots have the same name.
    #[error("two roots are named `{name}`: give one of them another name")]
    DuplicateRoot {
        /// The name that they share.
        name: String,
    },
    /// The local zone of the time server is not in the time zone database.
    #[error("{reason}")]
    UnknownZone {
        /// The name that was given, and similar ones.
        reason: String,
    },
}
