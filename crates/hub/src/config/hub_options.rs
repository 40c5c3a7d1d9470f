//! The hub's own options: `"mcp-proxy"` at the top of a file, or flags. What is not set is for defaults to decide.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::time::Duration;

use serde::de::{Error as _, IntoDeserializer as _};
use serde::{Deserialize, Deserializer};

use super::error::ConfigFault;
use super::inherited::InheritedEnv;
use super::roots::RootFolder;
use super::server_options::{StartMode, start_mode};
use super::values::{duration, list_limit, name_part, nonempty, positive_duration};
use super::values::{size, size_above_zero, threads, tool_name};
use crate::names::AllowedNames;

/// The hub's own options.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct HubOptions {
    /// How tools are offered, in this order. `mcpproxy: true` is `"dispatch"`.
    #[serde(alias = "mcpproxy", deserialize_with = "expose")]
    pub expose: Option<Vec<ExposeMode>>,
    /// What the one proxy tool is called.
    #[serde(deserialize_with = "tool_name")]
    pub proxy_tool_name: Option<String>,
    /// The most entries that the proxy tool lists.
    #[serde(deserialize_with = "list_limit")]
    pub list_limit: Option<NonZeroUsize>,
    /// What stands between a server's prefix and a name.
    #[serde(deserialize_with = "name_part")]
    pub separator: Option<String>,
    /// Whether resources are offered as resources.
    pub native_resources: Option<bool>,
    /// Whether prompts are offered as prompts.
    pub native_prompts: Option<bool>,
    /// The most entries in one page of a list.
    pub page_size: Option<NonZeroUsize>,
    /// Threads of the runtime.
    #[serde(deserialize_with = "threads")]
    pub threads: Option<NonZeroUsize>,
    /// Bytes of all messages that wait.
    #[serde(deserialize_with = "size_above_zero")]
    pub memory_budget: Option<u64>,
    /// What clients speak.
    pub listen: Option<ListenKind>,
    /// The address to listen on.
    #[serde(deserialize_with = "nonempty")]
    pub listen_host: Option<String>,
    /// The port to listen on; 0 picks one.
    pub listen_port: Option<u16>,
    /// The profiles by name.
    pub profiles: BTreeMap<String, HubProfile>,
    /// Whether the built-in servers are there next to the configured ones.
    #[serde(alias = "useutils")]
    pub builtins: Option<bool>,
    /// Whether clients that ask are told that they can speak 2026-07-28.
    pub era: Option<EraOffer>,
    /// What servers inherit that do not say so themselves.
    pub inherit_env: Option<InheritedEnv>,
    /// When servers are started that do not say so themselves. `mcplazy: true` is `"lazy"`.
    #[serde(alias = "mcplazy", deserialize_with = "start_mode")]
    pub start: Option<StartMode>,
    /// How long results of tools that only read are kept, for servers that do not say so themselves.
    #[serde(alias = "toolcachettl", deserialize_with = "duration")]
    pub cache_ttl: Option<Duration>,
    /// What the `proxy-dispatch` tool is called.
    #[serde(deserialize_with = "tool_name")]
    pub dispatch_tool_name: Option<String>,
    /// Results of more bytes are kept in a file; 0 turns that off.
    #[serde(alias = "mcpproxythreshold", deserialize_with = "size")]
    pub spill_threshold: Option<u64>,
    /// Whether objects and arrays are kept as TOON where that is smaller.
    #[serde(alias = "mcpproxytoon")]
    pub spill_toon: Option<bool>,
    /// The most bytes that all kept results together may have.
    #[serde(deserialize_with = "size")]
    pub spill_quota: Option<u64>,
    /// How long a kept result stays.
    #[serde(deserialize_with = "positive_duration")]
    pub spill_ttl: Option<Duration>,
    /// Folders whose files can be read like kept results.
    pub spill_roots: Option<Vec<RootFolder>>,
}

/// A selection of servers and tools that a client can ask for by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HubProfile {
    /// The servers, or all.
    pub servers: Option<Vec<String>>,
    /// The tools, by the names that clients see.
    pub tools: AllowedNames,
    /// How tools are offered, if not as in other profiles.
    #[serde(deserialize_with = "expose")]
    pub expose: Option<Vec<ExposeMode>>,
    /// Tools that are offered next to the dispatchers.
    pub pin: Vec<String>,
}

/// How tools are offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExposeMode {
    /// One tool for everything.
    Proxy,
    /// Every tool of every server.
    All,
    /// One tool that searches, calls, and keeps large results in files.
    Dispatch,
    /// One tool for everything that only reads.
    Read,
}

/// What clients speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ListenKind {
    /// Our own stdin and stdout.
    Stdio,
    /// Streamable HTTP.
    Http,
    /// HTTP+SSE.
    Sse,
}

/// What a client is told that asks whether it can speak 2026-07-28 (`server/discover`). Requests of clients that do not ask
/// are served in either era.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EraOffer {
    /// Yes, if every server that it can use is known to speak it. Questions of servers do not cross between the eras.
    #[default]
    Auto,
    /// Yes.
    Modern,
    /// No.
    Legacy,
}

impl ExposeMode {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            ExposeMode::Proxy => "proxy",
            ExposeMode::All => "all",
            ExposeMode::Dispatch => "dispatch",
            ExposeMode::Read => "read",
        }
    }
}

impl HubOptions {
    /// The options that differ but cannot change while the program runs.
    pub fn fixed_changes(&self, new: &HubOptions) -> Vec<&'static str> {
        let fixed = [
            ("listen", self.listen != new.listen),
            ("listen-host", self.listen_host != new.listen_host),
            ("listen-port", self.listen_port != new.listen_port),
            ("threads", self.threads != new.threads),
            ("memory-budget", self.memory_budget != new.memory_budget),
            ("spill-quota", self.spill_quota != new.spill_quota),
            ("spill-ttl", self.spill_ttl != new.spill_ttl),
            ("spill-roots", self.spill_roots != new.spill_roots),
        ];
        let changed = fixed.iter().filter(|(_, is_changed)| *is_changed);
        changed.map(|(name, _)| *name).collect()
    }

    /// These options with those of a later file or of flags, which win key by key.
    pub fn merged_with(mut self, later: HubOptions) -> HubOptions {
        self.profiles.extend(later.profiles);
        HubOptions {
            expose: later.expose.or(self.expose),
            proxy_tool_name: later.proxy_tool_name.or(self.proxy_tool_name),
            list_limit: later.list_limit.or(self.list_limit),
            separator: later.separator.or(self.separator),
            native_resources: later.native_resources.or(self.native_resources),
            native_prompts: later.native_prompts.or(self.native_prompts),
            page_size: later.page_size.or(self.page_size),
            threads: later.threads.or(self.threads),
            memory_budget: later.memory_budget.or(self.memory_budget),
            listen: later.listen.or(self.listen),
            listen_host: later.listen_host.or(self.listen_host),
            listen_port: later.listen_port.or(self.listen_port),
            profiles: self.profiles,
            builtins: later.builtins.or(self.builtins),
            era: later.era.or(self.era),
            inherit_env: later.inherit_env.or(self.inherit_env),
            start: later.start.or(self.start),
            cache_ttl: later.cache_ttl.or(self.cache_ttl),
            dispatch_tool_name: later.dispatch_tool_name.or(self.dispatch_tool_name),
            spill_threshold: later.spill_threshold.or(self.spill_threshold),
            spill_toon: later.spill_toon.or(self.spill_toon),
            spill_quota: later.spill_quota.or(self.spill_quota),
            spill_ttl: later.spill_ttl.or(self.spill_ttl),
            spill_roots: later.spill_roots.or(self.spill_roots),
        }
    }
}

/// A word, words with commas, or a list of words; as `mcpproxy` true or false.
fn expose<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Vec<ExposeMode>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(
        untagged,
        expecting = "expected words such as \"proxy\" or [\"proxy\", \"all\"]"
    )]
    enum Form {
        Switch(bool),
        Words(String),
        List(Vec<String>),
    }
    let words: Vec<String> = match Form::deserialize(value)? {
        Form::Switch(true) => return Ok(Some(vec![ExposeMode::Dispatch])),
        Form::Switch(false) => return Ok(None),
        Form::Words(words) => words.split(',').map(str::to_owned).collect(),
        Form::List(words) => words,
    };
    let mut modes = Vec::new();
    for word in words {
        let word = word.trim().into_deserializer();
        let mode: Result<ExposeMode, ConfigFault> = ExposeMode::deserialize(word);
        let mode = mode.map_err(D::Error::custom)?;
        if !modes.contains(&mode) {
            modes.push(mode);
        }
    }
    match modes.is_empty() {
        true => Err(D::Error::custom("must not be empty")),
        false => Ok(Some(modes)),
    }
}
