//! What can go wrong with a sign-in: one sentence each, with the server, what happened and what to do.
//!
//! No text repeats a token, a code, a secret or a path, or anything else that a server sent except names of hosts and short
//! error codes.

/// Why a sign-in, a token or the store cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// Tokens must not go there.
    #[error("{server} is not an https URL; a sign-in needs https, except on this machine")]
    NotHttps {
        /// The server's URL.
        server: String,
    },
    /// The folder of the store is not usable.
    #[error("the folder of the sign-ins cannot be used: {why}")]
    Folder {
        /// What is wrong with it.
        why: String,
    },
    /// A file of the store cannot be read or written.
    #[error("the file {file} of the sign-ins cannot be {what}: {why}")]
    File {
        /// Its name, without the folder.
        file: &'static str,
        /// `read` or `written`.
        what: &'static str,
        /// What the system says.
        why: String,
    },
    /// A file of the store is not what we wrote.
    #[error("the file {file} of the sign-ins is damaged; remove it and sign in again")]
    Damaged {
        /// Its name, without the folder.
        file: &'static str,
    },
    /// Another process has held the sign-in for too long.
    #[error("another process has been renewing the sign-in to {server} for too long; try again")]
    Locked {
        /// The server's host.
        server: String,
    },
}
