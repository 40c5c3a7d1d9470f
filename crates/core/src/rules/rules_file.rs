//! Where the rules of a run come from: a file that is read again when it has changed.
//!
//! A file that cannot be used changes nothing: the rules stay as they were, and [`RulesFile::fault`] says why.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use mcp_proxy_wire::Transport;

use super::rules_parser::LARGEST;
use super::{LiveRules, OpenServerCallback, RuleAction, Rules};
use crate::link::Dial;

/// The rules file of a run.
pub struct RulesFile {
    path: PathBuf,
    server: RulesServer,
    open_server: OpenServerCallback,
    state: Mutex<State>,
    /// Held while the file is read, which happens on threads of its own: of two readers the later one counts.
    reading: Mutex<()>,
}

/// What is said when the file was read again, and whether that changed anything.
pub fn reload_summary(read: &Result<usize, String>) -> String {
    match read {
        Ok(count) => format!("rules reloaded, {count} now"),
        Err(fault) => format!("rules not changed: {fault}"),
    }
}

impl fmt::Debug for RulesFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RulesFile").field(&self.path).finish()
    }
}

#[derive(Debug, Default)]
struct State {
    stamp: Option<FileStamp>,
    fault: Option<String>,
}

/// Tells one state of the file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileStamp {
    time: Option<SystemTime>,
    len: u64,
}

impl Rules {
    /// Reads a file of rules, for any server; whether those can be reached that it redirects to is not looked at.
    ///
    /// # Errors
    /// What is wrong with it, with its path.
    pub fn read(path: &Path) -> Result<Rules, String> {
        let shown = path.display();
        let bytes = read_file(path, LARGEST as u64).map_err(|why| format!("{shown}: {why}"))?;
        let text =
            String::from_utf8(bytes).map_err(|_| format!("{shown}: it is not UTF-8 text"))?;
        let folder = path.parent().unwrap_or(Path::new("."));
        Rules::parse(&text, folder).map_err(|error| format!("{shown}: {error}"))
    }
}

/// The contents of a file. A pipe or a device is refused, because reading it may never end.
pub(super) fn read_file(path: &Path, most: u64) -> Result<Vec<u8>, String> {
    let failed = |error: io::Error| error.to_string();
    let facts = std::fs::metadata(path).map_err(failed)?;
    if !facts.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    let file = File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    match bytes.len() as u64 > most {
        true => Err(format!("it is larger than {} MiB", most >> 20)),
        false => Ok(bytes),
    }
}

/// The servers that `server` in a rule may name.
#[derive(Clone, Debug)]
pub enum RulesServer {
    /// One, as it is shown.
    Only(String),
    /// Several, by the names that their connections have.
    Several,
}

impl RulesFile {
    /// Reads a rules file for a run with this server, or with several. `open_server` finds others, for redirects.
    ///
    /// # Errors
    /// What is wrong with it, in one line with its path.
    pub fn open(
        path: &Path,
        server: RulesServer,
        open_server: OpenServerCallback,
    ) -> Result<(RulesFile, Rules), String> {
        let file = RulesFile {
            open_server,
            path: path.to_owned(),
            server,
            state: Mutex::default(),
            reading: Mutex::default(),
        };
        let stamp = file.stamp();
        let rules = file.read()?;
        file.state().stamp = stamp;
        Ok((file, rules))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Why the file as it is now is not used; `None` if it is.
    pub fn fault(&self) -> Option<String> {
        self.state().fault.clone()
    }

    /// Reads the file if it is not the one that was read last. `None`: it is.
    pub(super) fn reload_if_changed(&self, live: &LiveRules) -> Option<Result<usize, String>> {
        let stamp = self.stamp();
        if self.state().stamp == stamp {
            return None;
        }
        Some(self.reload(live))
    }

    /// Reads the file, and uses it if it is right.
    pub(super) fn reload(&self, live: &LiveRules) -> Result<usize, String> {
        let _reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = self.stamp();
        let read = self.read();
        let mut state = self.state();
        state.stamp = stamp;
        match read {
            Ok(rules) => {
                state.fault = None;
                let count = rules.list().len();
                live.set(rules);
                Ok(count)
            }
            Err(fault) => {
                state.fault = Some(fault.clone());
                Err(fault)
            }
        }
    }

    fn read(&self) -> Result<Rules, String> {
        let shown = self.path.display();
        let rules = Rules::read(&self.path)?;
        let rules = match &self.server {
            RulesServer::Only(name) => rules.for_server(name),
            RulesServer::Several => rules.for_several_servers(),
        };
        for rule in rules.list() {
            if let RuleAction::Redirect(server) = &rule.action {
                self.server(server).map_err(|why| {
                    format!(
                        "{shown}: line {}: {}: redirect: {why}",
                        rule.line, rule.name
                    )
                })?;
            }
        }
        Ok(rules)
    }

    /// Another server, by its URL or command.
    pub(super) fn server(&self, name: &str) -> Result<(Transport, Dial), String> {
        (self.open_server)(name)
    }

    fn stamp(&self) -> Option<FileStamp> {
        let facts = std::fs::metadata(&self.path).ok()?;
        Some(FileStamp {
            time: facts.modified().ok(),
            len: facts.len(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
