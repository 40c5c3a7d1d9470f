//! What people should know about their config files but does not stop the hub.

use std::fmt;

use super::{ServerName, ServerSource};

/// How many unknown keys a warning names. Some clients keep all their settings in the same file.
const MOST_KEYS: usize = 8;

/// Something that people should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigWarning {
    /// Keys that the hub does not know and ignores.
    UnknownKeys {
        /// The file.
        file: String,
        /// The keys.
        keys: Vec<UnknownConfigKey>,
    },
    /// An entry that only its client can run, or that has no name.
    Skipped {
        /// The file.
        file: String,
        /// The entry's name, or its place if it has none.
        server: String,
        /// Why.
        why: &'static str,
    },
    /// An `envFile` that cannot be read: the server starts without its variables.
    EnvFile {
        /// The server.
        server: ServerName,
        /// Where the server is configured.
        source: ServerSource,
        /// The keys that lead to it.
        key: String,
        /// Why.
        why: String,
    },
    /// A server is configured twice; the later one counts.
    Replaced {
        /// The server.
        server: ServerName,
        /// Where it was first.
        earlier: ServerSource,
        /// Where it is now.
        later: ServerSource,
    },
    /// A `timeout` so short that it may be meant in seconds or in milliseconds. It is ignored.
    AmbiguousTimeout {
        /// The server.
        server: ServerName,
    },
}

/// A key that the hub does not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownConfigKey {
    /// The keys that lead to it.
    pub path: String,
    /// The key that was probably meant.
    pub suggestion: Option<&'static str>,
}

impl ConfigWarning {
    /// What it says about this server.
    pub fn about(&self, name: &str) -> Option<ConfigWarning> {
        let is_about = match self {
            ConfigWarning::UnknownKeys { file, keys } => {
                let entry = format!(".{name}.");
                let keys = keys.iter().filter(|key| key.path.contains(&entry));
                let keys: Vec<UnknownConfigKey> = keys.cloned().collect();
                let file = file.clone();
                return (!keys.is_empty()).then_some(ConfigWarning::UnknownKeys { file, keys });
            }
            ConfigWarning::Skipped { server, .. } => server == name,
            ConfigWarning::EnvFile { server, .. }
            | ConfigWarning::Replaced { server, .. }
            | ConfigWarning::AmbiguousTimeout { server } => server.as_str() == name,
        };
        is_about.then(|| self.clone())
    }
}

impl fmt::Display for ConfigWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigWarning::UnknownKeys { file, keys } => {
                let shown: Vec<String> = keys
                    .iter()
                    .take(MOST_KEYS)
                    .map(|key| key.to_string())
                    .collect();
                write!(f, "{file}: ignored unknown keys: {}", shown.join(", "))?;
                match keys.len().saturating_sub(MOST_KEYS) {
                    0 => Ok(()),
                    more => write!(f, " and {more} more"),
                }
            }
            ConfigWarning::Skipped { file, server, why } => {
                let server = server.escape_debug();
                write!(f, "{file}: skipped {server}: {why}")
            }
            ConfigWarning::EnvFile {
                source, key, why, ..
            } => {
                let key = key.escape_debug();
                write!(
                    f,
                    "{source}: cannot read {key}: {why}; the server starts without its variables"
                )
            }
            ConfigWarning::Replaced {
                server,
                earlier,
                later,
            } => {
                // Nobody has checked the name of a server that is replaced.
                let server = server.as_str().escape_debug();
                write!(f, "server {server}: {later} replaces {earlier}")
            }
            ConfigWarning::AmbiguousTimeout { server } => write!(
                f,
                "server {server}: ignored a `timeout` below 1000, which may be meant in seconds or milliseconds; \
                 set `call-timeout` under \"mcp-proxy\" instead"
            ),
        }
    }
}

impl fmt::Display for UnknownConfigKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        match self.suggestion {
            Some(key) => write!(f, " (did you mean `{key}`?)"),
            None => Ok(()),
        }
    }
}
