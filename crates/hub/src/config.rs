//! The hub's configuration: the `mcpServers` files that people already have, read into checked types.
//!
//! A file is JSON with comments and trailing commas, TOML or YAML, and in the form of any known client; `formats` has the
//! list. Our own options are under `"mcp-proxy"`, at the top and in a server's entry. [`parse_config`] reads the texts of some
//! files and touches neither files nor the environment: both are passed in. `docs/config.schema.json` describes a file for
//! editors.
//!
//! A broken entry disables its server and nothing else. A file that is broken as a whole, or wrong under our own key, is a
//! [`ConfigError`] that names the key. Neither error texts nor `Debug` show values, because they may be secrets.

mod auth_options;
mod changes;
mod entry;
mod env_file;
mod error;
mod flag;
mod formats;
mod hub_options;
mod inherited;
mod keys;
mod reader;
mod roots;
#[cfg(test)]
mod schema_tests;
mod secret;
mod server;
mod server_options;
mod tree;
mod values;
mod variables;
mod warning;

use std::fmt;
use std::path::{Path, PathBuf};

use entry::{EntryNotes, read_entry};
use formats::{FoundServers, TurnedOff, find_servers};
use keys::{FILE_KEYS, OWN_KEY, closest};
use reader::ConfigReader;
use roots::in_home;
use secret::SecretCollector;
use tree::Tree;

pub use auth_options::{AuthGrant, AuthOptions};
pub use changes::{ConfigChanges, changes};
pub use env_file::EnvFile;
pub use error::{ConfigError, ConfigFault, FileLanguage, ServerProblem};
pub use flag::ServerFlagError;
pub use hub_options::{EraOffer, ExposeMode, HubOptions, HubProfile, ListenKind};
pub use inherited::{InheritedEnv, inherited_secrets};
pub use roots::RootFolder;
pub use secret::{SecretText, ServerUrl, is_ordinary};
pub use server::{BuiltinTarget, FileAccess, ServerSpec, ServerTarget, UrlKind};
pub use server_options::{
    FixedArguments, RestartPolicy, ServerOptions, SharingScope, StartMode, ToolPrefix,
};
pub use values::{MAX_THREADS, parse_duration, parse_size};
pub use variables::expand as expand_variables;
pub use warning::{ConfigWarning, UnknownConfigKey};

/// The text of a config file.
#[derive(Clone)]
pub struct ConfigText {
    /// The file's name, for people.
    pub name: String,
    /// What is in it.
    pub text: String,
    /// The absolute folder that the file is in, if it belongs to a project: `${workspaceFolder}` is found from it.
    pub folder: Option<PathBuf>,
    /// The absolute folder that the program runs in. Some clients keep servers for single folders.
    pub current_folder: Option<PathBuf>,
}

/// What some config files say together.
#[derive(Debug, Clone, Default)]
pub struct HubConfig {
    /// The hub's own options.
    pub options: HubOptions,
    /// The servers, in the order of the files.
    pub servers: Vec<ServerConfig>,
    /// What people should know but does not stop the hub.
    pub warnings: Vec<ConfigWarning>,
}

/// A server as it is configured.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Its name.
    pub name: ServerName,
    /// Where it is configured.
    pub source: ServerSource,
    /// What it is, or why it is not offered.
    pub state: Result<ServerSpec, ServerProblem>,
}

/// The name of a server in the configuration.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerName(String);

/// Where a server is configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerSource {
    /// In the file of this name.
    File(String),
    /// On the command line.
    Flag,
}

/// Reads config files. Later files win: a server replaces an earlier one of the same name, and an option an earlier one.
pub fn parse_config(
    files: &[ConfigText],
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<HubConfig, ConfigError> {
    let mut config = HubConfig::default();
    let mut turned_off = Vec::new();
    for file in files {
        let text = file.text.strip_prefix('\u{feff}').unwrap_or(&file.text);
        let workspace = file.workspace(environment("HOME"));
        let with_workspace = |name: &str| match (name, workspace) {
            ("workspaceFolder", Some(path)) => path.to_str().map(str::to_owned),
            ("workspaceFolderBasename", Some(path)) => Some(path.file_name()?.to_str()?.to_owned()),
            (name, _) => environment(name),
        };
        let reader = ConfigReader {
            file: &file.name,
            environment: &with_workspace,
        };
        turned_off.extend(config.read_file(reader, text, file.current_folder.as_deref())?);
    }
    for server in &mut config.servers {
        for list in &turned_off {
            list.apply(server);
        }
    }
    Ok(config)
}

impl ConfigText {
    /// The project that the file belongs to. The files in a home folder are for all projects.
    fn workspace(&self, home: Option<String>) -> Option<&Path> {
        let folder = self.folder.as_deref()?;
        let workspace = match folder.file_name()?.to_str()? {
            ".cursor" | ".vscode" => folder.parent()?,
            _ => folder,
        };
        (home.as_deref().map(Path::new) != Some(workspace)).then_some(workspace)
    }
}

impl HubConfig {
    /// Adds a server. One with the same name is replaced, and a warning says so.
    pub fn insert(&mut self, server: ServerConfig) {
        match self.servers.iter_mut().find(|old| old.name == server.name) {
            Some(old) => {
                self.warnings.push(ConfigWarning::Replaced {
                    server: server.name.clone(),
                    earlier: old.source.clone(),
                    later: server.source.clone(),
                });
                *old = server;
            }
            None => self.servers.push(server),
        }
    }

    /// Every configured value that has to be masked wherever it appears, the longest first. Short and common values
    /// are left out.
    pub fn secrets(&self) -> Vec<String> {
        let mut secrets = SecretCollector::default();
        for spec in self.servers.iter().flat_map(|server| &server.state) {
            spec.collect_secrets(&mut secrets);
        }
        secrets.into_secrets()
    }

    /// Servers that a profile names but nobody has configured, each with the profile's name. Only complete once servers
    /// from the command line have been added.
    pub fn unknown_profile_servers(&self) -> Vec<(&str, &str)> {
        let is_known = |name: &str| {
            self.servers
                .iter()
                .any(|server| server.name.as_str() == name)
        };
        let mut unknown = Vec::new();
        for (profile, options) in &self.options.profiles {
            let names = options.servers.iter().flatten();
            let missing = names.filter(|name| !is_known(name));
            unknown.extend(missing.map(|name| (profile.as_str(), name.as_str())));
        }
        unknown
    }

    /// Gives the servers whose entries do not say what they inherit the hub's choice, or all of the environment. Only
    /// complete once servers and options from the command line have been added.
    pub fn resolve_inherited_env(&mut self) {
        let default = self.options.inherit_env.clone().unwrap_or_default();
        for spec in self.servers.iter_mut().flat_map(|server| &mut server.state) {
            if let ServerTarget::Command { inherit_env, .. } = &mut spec.target {
                inherit_env.get_or_insert_with(|| default.clone());
            }
        }
    }

    /// Returns what the client's settings turn off, maybe in other files too.
    fn read_file(
        &mut self,
        reader: ConfigReader<'_>,
        text: &str,
        current_folder: Option<&Path>,
    ) -> Result<Vec<TurnedOff>, ConfigError> {
        let root = tree::parse(reader.file, text).map_err(|fault| reader.error("", fault))?;
        let mut notes = EntryNotes {
            unknown_keys: unknown_keys(reader, &root)?,
            ..EntryNotes::default()
        };
        if let Some((path, options)) = root.lookup(OWN_KEY) {
            let mut options: HubOptions = reader.read(options, &path)?;
            let home = (reader.environment)("HOME");
            let roots = options.spill_roots.take();
            options.spill_roots = roots.map(|roots| in_home(roots, home.as_deref()));
            self.options = std::mem::take(&mut self.options).merged_with(options);
        }
        let mut found = find_servers(reader, &root, current_folder)?;
        found.check(reader, &root)?;
        found.keep_mistakes(&mut notes.unknown_keys);
        self.warnings.append(&mut found.warnings);
        let turned_off = std::mem::take(&mut found.turned_off);
        for server in read_servers(reader, found, &mut notes)? {
            self.insert(server);
        }
        self.warnings.append(&mut notes.warnings);
        if !notes.unknown_keys.is_empty() {
            self.warnings.push(ConfigWarning::UnknownKeys {
                file: reader.file.to_owned(),
                keys: notes.unknown_keys,
            });
        }
        Ok(turned_off)
    }
}

/// The keys at the top of a file that the hub does not know. One that it knows can be there only once.
fn unknown_keys(
    reader: ConfigReader<'_>,
    root: &Tree,
) -> Result<Vec<UnknownConfigKey>, ConfigError> {
    let Some(members) = root.members() else {
        let (expected, found) = ("an object", root.type_name());
        return Err(reader.error("", ConfigFault::WrongType { expected, found }));
    };
    let mut seen: Vec<&str> = Vec::new();
    let mut unknown = Vec::new();
    for key in members.iter().map(|member| member.key.as_str()) {
        if !FILE_KEYS.contains(&key) {
            unknown.push(UnknownConfigKey {
                path: tree::join("", key),
                suggestion: closest(key, FILE_KEYS),
            });
        } else if seen.contains(&key) {
            return Err(reader.error(key, ConfigFault::Duplicate(key.to_owned())));
        } else {
            seen.push(key);
        }
    }
    Ok(unknown)
}

/// The servers of a file. A name can appear again only where the later one wins.
fn read_servers(
    reader: ConfigReader<'_>,
    found: FoundServers,
    notes: &mut EntryNotes,
) -> Result<Vec<ServerConfig>, ConfigError> {
    let mut servers: Vec<ServerConfig> = Vec::new();
    for entry in found.entries {
        let name = ServerName::new(&entry.name);
        let is_known = servers.iter().any(|server| server.name == name);
        if is_known && !entry.wins {
            return Err(reader.error(entry.path, ConfigFault::Duplicate(entry.name)));
        }
        servers.push(ServerConfig {
            name,
            source: ServerSource::File(reader.file.to_owned()),
            state: read_entry(reader, entry, notes)?,
        });
    }
    Ok(servers)
}

impl ServerName {
    /// Takes a name.
    pub fn new(name: impl Into<String>) -> ServerName {
        ServerName(name.into())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for ServerSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerSource::File(file) => f.write_str(file),
            ServerSource::Flag => f.write_str("--server"),
        }
    }
}

impl fmt::Debug for ConfigText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The text is full of secrets.
        let mut shown = f.debug_struct("ConfigText");
        shown.field("name", &self.name).finish_non_exhaustive()
    }
}
