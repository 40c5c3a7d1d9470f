//! `--server NAME=COMMAND` and `--server NAME=URL`.

use super::secret::{SecretText, ServerUrl};
use super::server::{ServerSpec, ServerTarget};
use super::{ServerConfig, ServerName, ServerSource};

/// Why a `--server` flag cannot be used. The text does not quote it, because a command can contain keys.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServerFlagError {
    /// There is no name.
    #[error("--server takes NAME=COMMAND or NAME=URL")]
    NoName,
    /// There is nothing after the name.
    #[error("--server {0}: no command and no URL after `=`")]
    NoTarget(ServerName),
    /// The URL cannot be used.
    #[error("--server {0}: {1}")]
    BadUrl(ServerName, &'static str),
    /// The command cannot be split into words.
    #[error("--server {0}: the command cannot be split into words; is a quote left open?")]
    BadCommand(ServerName),
}

impl ServerConfig {
    /// Reads the value of a `--server` flag. A command is split like shell words; no shell is run.
    pub fn from_flag(flag: &str) -> Result<ServerConfig, ServerFlagError> {
        let (name, target) = flag.split_once('=').ok_or(ServerFlagError::NoName)?;
        let name = name.trim();
        if name.is_empty() || name.chars().any(char::is_control) || name.contains("://") {
            return Err(ServerFlagError::NoName);
        }
        let name = ServerName::new(name);
        let target = target.trim();
        let spec = match target.starts_with("http://") || target.starts_with("https://") {
            true => url_target(&name, target)?,
            false => command_target(&name, target)?,
        };
        Ok(ServerConfig {
            name,
            source: ServerSource::Flag,
            state: Ok(ServerSpec::new(spec)),
        })
    }
}

fn url_target(name: &ServerName, text: &str) -> Result<ServerTarget, ServerFlagError> {
    let url = ServerUrl::parse(text);
    Ok(ServerTarget::Url {
        url: url.map_err(|why| ServerFlagError::BadUrl(name.clone(), why))?,
        headers: Vec::new(),
        kind: None,
    })
}

fn command_target(name: &ServerName, text: &str) -> Result<ServerTarget, ServerFlagError> {
    let words = shlex::split(text).filter(|_| !text.contains('\0'));
    let words = words.ok_or_else(|| ServerFlagError::BadCommand(name.clone()))?;
    let mut words = words.into_iter();
    match words.next() {
        Some(program) if !program.is_empty() => Ok(ServerTarget::Command {
            program,
            args: words.map(SecretText::new).collect(),
            env: Vec::new(),
            env_file: None,
            cwd: None,
            inherit_env: None,
        }),
        _ => Err(ServerFlagError::NoTarget(name.clone())),
    }
}
