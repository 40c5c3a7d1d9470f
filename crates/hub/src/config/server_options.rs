//! What the hub does with one server: `"mcp-proxy"` in the server's entry. What is not set is for the hub to decide.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::auth_options::AuthOptions;
use super::inherited::InheritedEnv;
use super::roots::RootFolder;
use super::values::{check_tool_name, duration, name_part, positive_duration};
use crate::names::AllowedNames;

/// What the hub does with one server.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct ServerOptions {
    /// A server in this process, instead of a command or a URL.
    pub(super) builtin: Option<BuiltinName>,
    /// Whether the built-in file server may write.
    pub(super) write: Option<bool>,
    /// What it gets of our own environment.
    pub(super) inherit_env: Option<InheritedEnv>,
    /// What the names of its tools begin with.
    #[serde(deserialize_with = "prefix")]
    pub prefix: ToolPrefix,
    /// What stands between prefix and name, if not the hub's separator.
    #[serde(deserialize_with = "name_part")]
    pub separator: Option<String>,
    /// Its tools that are offered, by their names at the server, if not all.
    pub allow: Option<Vec<String>>,
    /// Its tools that are not offered.
    pub deny: Vec<String>,
    /// Its resources that are offered, by URI.
    pub resources: AllowedNames,
    /// Its prompts that are offered, by name.
    pub prompts: AllowedNames,
    /// Other names for tools, by their names at the server.
    pub rename: BTreeMap<String, String>,
    /// Other descriptions, by tool.
    pub descriptions: BTreeMap<String, String>,
    /// Arguments that clients do not see, by tool.
    pub hide_arguments: BTreeMap<String, Vec<String>>,
    /// Arguments that the hub fills in, by tool.
    pub fix_arguments: BTreeMap<String, FixedArguments>,
    /// Tools that are offered next to the dispatchers.
    pub pin: Vec<String>,
    /// When the server is started.
    pub start: Option<StartMode>,
    /// How long the server may be unused before it is stopped.
    #[serde(deserialize_with = "positive_duration")]
    pub idle_stop: Option<Duration>,
    /// How long it may take to start.
    #[serde(deserialize_with = "positive_duration")]
    pub start_timeout: Option<Duration>,
    /// How long a list may take.
    #[serde(deserialize_with = "positive_duration")]
    pub list_timeout: Option<Duration>,
    /// How long a call may take.
    #[serde(deserialize_with = "positive_duration")]
    pub call_timeout: Option<Duration>,
    /// Which clients share a connection to it.
    pub scope: SharingScope,
    /// What it gets for `roots/list`, instead of the client's roots.
    pub roots: Option<Vec<RootFolder>>,
    /// When it is started again.
    pub restart: Option<RestartPolicy>,
    /// How often it is started again.
    pub restart_limit: Option<u32>,
    /// How long results of tools that only read are kept.
    #[serde(alias = "toolcachettl", deserialize_with = "duration")]
    pub cache_ttl: Option<Duration>,
    /// How to sign in to it, if the config says so.
    pub auth: Option<AuthOptions>,
}

/// A server in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum BuiltinName {
    Time,
    Files,
    Demo,
}

/// What the names of a server's tools begin with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ToolPrefix {
    /// The server's name.
    #[default]
    ServerName,
    /// This.
    Text(String),
    /// Nothing, and no separator.
    Nothing,
}

/// When a server is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StartMode {
    /// With the hub.
    Eager,
    /// When it is first needed.
    Lazy,
}

/// Which clients share a connection to a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SharingScope {
    /// The hub decides by what the server does.
    #[default]
    Auto,
    /// All clients.
    Shared,
    /// Each client session has its own.
    Session,
}

/// When a server that ended is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RestartPolicy {
    /// However it ended.
    Always,
    /// If it failed.
    OnFailure,
    /// Not at all.
    Never,
}

/// Arguments by name. `Debug` shows only the names, because a value may be a credential.
#[derive(Clone, Default, PartialEq, Deserialize)]
pub struct FixedArguments(pub Map<String, Value>);

impl fmt::Debug for FixedArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl ServerOptions {
    /// Its tools that are offered, by their names at the server.
    pub fn tools(&self) -> AllowedNames {
        AllowedNames {
            allow: self.allow.clone(),
            deny: self.deny.clone(),
            ..AllowedNames::default()
        }
    }

    /// The keys that lead to an option that does not fit the others, and why.
    pub(super) fn problem(&self) -> Option<(Vec<&str>, &'static str)> {
        let mut taken = BTreeSet::new();
        for (tool, name) in &self.rename {
            let is_free = taken.insert(name);
            let checked = check_tool_name(name).err();
            let why = checked.or((!is_free).then_some("another tool has this new name"));
            if let Some(why) = why {
                return Some((vec!["rename", tool], why));
            }
        }
        let auth = self.auth.as_ref()?;
        Some((vec!["auth"], auth.problem()?))
    }
}

/// A text; null or nothing for no prefix.
fn prefix<'de, D: Deserializer<'de>>(value: D) -> Result<ToolPrefix, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected letters, digits and _ - . /, or null")]
    enum Form {
        Nothing(()),
        Text(#[serde(deserialize_with = "name_part")] Option<String>),
    }
    Ok(match Form::deserialize(value)? {
        Form::Text(Some(text)) if !text.is_empty() => ToolPrefix::Text(text),
        Form::Nothing(()) | Form::Text(_) => ToolPrefix::Nothing,
    })
}

/// A word; as `mcplazy` true or false.
pub(super) fn start_mode<'de, D: Deserializer<'de>>(
    value: D,
) -> Result<Option<StartMode>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected one of eager, lazy")]
    enum Form {
        IsLazy(bool),
        Mode(StartMode),
    }
    Ok(Some(match Form::deserialize(value)? {
        Form::Mode(mode) => mode,
        Form::IsLazy(true) => StartMode::Lazy,
        Form::IsLazy(false) => StartMode::Eager,
    }))
}
