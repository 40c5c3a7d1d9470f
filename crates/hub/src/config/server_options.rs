//! What the hub does with one server: `"mcp-proxy"` in the server's entry. What is not set is for the hub to decide.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value};

use super::auth_options::AuthOptions;
use super::error::ConfigError;
use super::hub_options::{read_filter, read_filter_fields, read_name_part, read_tool_name};
use super::name_filter::NameFilter;
use super::node::{Fields, Node};
use super::roots::RootFolder;

/// What the hub does with one server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerOptions {
    /// What the names of its tools begin with.
    pub prefix: ToolPrefix,
    /// What stands between prefix and name, if not the hub's separator.
    pub separator: Option<String>,
    /// Its tools that are offered, by their names at the server.
    pub tools: NameFilter,
    /// Its resources that are offered, by URI.
    pub resources: NameFilter,
    /// Its prompts that are offered, by name.
    pub prompts: NameFilter,
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
    pub idle_stop: Option<Duration>,
    /// How long it may take to start.
    pub start_timeout: Option<Duration>,
    /// How long a list may take.
    pub list_timeout: Option<Duration>,
    /// How long a call may take.
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
    pub cache_ttl: Option<Duration>,
    /// How to sign in to it, if the config says so.
    pub auth: Option<AuthOptions>,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartMode {
    /// With the hub.
    Eager,
    /// When it is first needed.
    Lazy,
}

/// Which clients share a connection to a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestartPolicy {
    /// However it ended.
    Always,
    /// If it failed.
    OnFailure,
    /// Not at all.
    Never,
}

/// Arguments by name. `Debug` shows only the names, because a value may be a credential.
#[derive(Clone, Default, PartialEq)]
pub struct FixedArguments(pub Map<String, Value>);

impl fmt::Debug for FixedArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// The values of `start`.
pub(super) const START_WORDS: &[(&str, StartMode)] =
    &[("eager", StartMode::Eager), ("lazy", StartMode::Lazy)];

impl ServerOptions {
    /// Reads the options among the fields under our key. `builtin`, `write` and `inherit-env` belong to the target.
    pub(super) fn read(fields: &Fields<'_>) -> Result<ServerOptions, ConfigError> {
        let positive = |key| fields.read(key, Node::positive_duration);
        Ok(ServerOptions {
            prefix: fields.read("prefix", read_prefix)?.unwrap_or_default(),
            separator: fields.read("separator", read_name_part)?,
            tools: read_filter_fields(fields)?,
            resources: fields.read("resources", read_filter)?.unwrap_or_default(),
            prompts: fields.read("prompts", read_filter)?.unwrap_or_default(),
            rename: fields.read("rename", read_rename)?.unwrap_or_default(),
            descriptions: read_map(fields, "descriptions", Node::text)?,
            hide_arguments: read_map(fields, "hide-arguments", Node::texts)?,
            fix_arguments: read_map(fields, "fix-arguments", read_fixed)?,
            pin: fields.read("pin", Node::texts)?.unwrap_or_default(),
            start: fields.read("start", |node| node.choice(START_WORDS))?,
            idle_stop: positive("idle-stop")?,
            start_timeout: positive("start-timeout")?,
            list_timeout: positive("list-timeout")?,
            call_timeout: positive("call-timeout")?,
            scope: fields.read("scope", read_scope)?.unwrap_or_default(),
            roots: fields.read("roots", read_roots)?,
            restart: fields.read("restart", read_restart)?,
            restart_limit: fields.read("restart-limit", |node| {
                node.integer("expected a whole number, zero or more")
            })?,
            cache_ttl: fields.read_either("cache-ttl", "toolcachettl", Node::duration)?,
            auth: fields.read("auth", AuthOptions::read)?,
        })
    }
}

fn read_prefix(node: &Node<'_>) -> Result<ToolPrefix, ConfigError> {
    if node.is_null() {
        return Ok(ToolPrefix::Nothing);
    }
    match read_name_part(node)? {
        text if text.is_empty() => Ok(ToolPrefix::Nothing),
        text => Ok(ToolPrefix::Text(text)),
    }
}

fn read_rename(node: &Node<'_>) -> Result<BTreeMap<String, String>, ConfigError> {
    let mut names = BTreeMap::new();
    let mut taken = BTreeSet::new();
    for (tool, node) in node.members()? {
        let name = read_tool_name(&node)?;
        if !taken.insert(name.clone()) {
            return Err(node.bad("another tool has this new name"));
        }
        names.insert(tool.to_owned(), name);
    }
    Ok(names)
}

fn read_fixed(node: &Node<'_>) -> Result<FixedArguments, ConfigError> {
    let read = |(name, node): (&str, Node<'_>)| Ok((name.to_owned(), node.json()?));
    let arguments = node.members()?.into_iter().map(read);
    Ok(FixedArguments(arguments.collect::<Result<_, _>>()?))
}

fn read_scope(node: &Node<'_>) -> Result<SharingScope, ConfigError> {
    node.choice(&[
        ("auto", SharingScope::Auto),
        ("shared", SharingScope::Shared),
        ("session", SharingScope::Session),
    ])
}

fn read_restart(node: &Node<'_>) -> Result<RestartPolicy, ConfigError> {
    node.choice(&[
        ("always", RestartPolicy::Always),
        ("on-failure", RestartPolicy::OnFailure),
        ("never", RestartPolicy::Never),
    ])
}

pub(super) fn read_roots(node: &Node<'_>) -> Result<Vec<RootFolder>, ConfigError> {
    let home = node.variable("HOME");
    let read = |item: &Node<'_>| {
        let root = RootFolder::parse(&item.nonempty_text()?, home.as_deref());
        root.map_err(|why| item.bad(why))
    };
    node.items()?.iter().map(read).collect()
}

fn read_map<'a, T>(
    fields: &Fields<'a>,
    key: &str,
    read: fn(&Node<'a>) -> Result<T, ConfigError>,
) -> Result<BTreeMap<String, T>, ConfigError> {
    let Some(node) = fields.get(key) else {
        return Ok(BTreeMap::new());
    };
    let members = node.members()?.into_iter();
    members
        .map(|(name, node)| Ok((name.to_owned(), read(&node)?)))
        .collect()
}
