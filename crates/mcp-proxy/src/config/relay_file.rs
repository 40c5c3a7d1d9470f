//! The files that a relay and `token` share.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::config_folder;

/// A file of a relay.
#[derive(Clone, Copy, Debug)]
pub enum RelayFile {
    /// What tokens are signed with.
    Secret,
    /// The tokens that are not accepted any more.
    Revoked,
}

impl RelayFile {
    /// The file that a flag names, or the one in the config folder.
    pub fn path(self, named: Option<&Path>) -> Result<PathBuf> {
        let (name, flag) = match self {
            RelayFile::Secret => ("secret", "--secret-file"),
            RelayFile::Revoked => ("revoked", "--revoked-file"),
        };
        if let Some(path) = named {
            return Ok(path.to_owned());
        }
        let folder = config_folder().with_context(|| {
            format!("neither XDG_CONFIG_HOME nor HOME is set: pass {flag} FILE")
        })?;
        Ok(folder.join("relay").join(name))
    }
}
