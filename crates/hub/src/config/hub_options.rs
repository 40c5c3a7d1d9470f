//! The hub's own options: `"mcp-proxy"` at the top of a file. What is not set here is for flags and defaults to decide.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use super::dispatch_options::DispatchOptions;
use super::error::ConfigError;
use super::inherited::{InheritedEnv, read_inherited_env};
use super::keys::{FILTER_KEYS, HUB_KEYS, PROFILE_KEYS};
use super::name_filter::{NameFilter, NameGlob};
use super::node::{Fields, Node};
use super::server_options::{START_WORDS, StartMode};
use crate::proxy_tool::MAX_LIMIT;

/// More threads than any machine has use for.
pub const MAX_THREADS: u32 = 1024;

/// The hub's own options.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HubOptions {
    /// How tools are offered, in this order.
    pub expose: Option<Vec<ExposeMode>>,
    /// What the one proxy tool is called.
    pub proxy_tool_name: Option<String>,
    /// The most entries that the proxy tool lists.
    pub list_limit: Option<NonZeroUsize>,
    /// What stands between a server's prefix and a name.
    pub separator: Option<String>,
    /// Whether resources are offered as resources.
    pub native_resources: Option<bool>,
    /// Whether prompts are offered as prompts.
    pub native_prompts: Option<bool>,
    /// The most entries in one page of a list.
    pub page_size: Option<NonZeroUsize>,
    /// Threads of the runtime.
    pub threads: Option<NonZeroUsize>,
    /// Bytes of all messages that wait.
    pub memory_budget: Option<u64>,
    /// What clients speak.
    pub listen: Option<ListenKind>,
    /// The address to listen on.
    pub listen_host: Option<String>,
    /// The port to listen on; 0 picks one.
    pub listen_port: Option<u16>,
    /// The profiles by name.
    pub profiles: BTreeMap<String, HubProfile>,
    /// Whether the built-in servers are there next to the configured ones.
    pub builtins: Option<bool>,
    /// Whether clients that ask are told that they can speak 2026-07-28.
    pub era: Option<EraOffer>,
    /// What servers inherit that do not say so themselves.
    pub inherit_env: Option<InheritedEnv>,
    /// When servers are started that do not say so themselves.
    pub start: Option<StartMode>,
    /// How long results of tools that only read are kept, for servers that do not say so themselves.
    pub cache_ttl: Option<Duration>,
    /// The `proxy-dispatch` tool and results in files.
    pub dispatch: DispatchOptions,
}

/// A selection of servers and tools that a client can ask for by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HubProfile {
    /// The servers, or all.
    pub servers: Option<Vec<String>>,
    /// The tools, by the names that clients see.
    pub tools: NameFilter,
    /// How tools are offered, if not as in other profiles.
    pub expose: Option<Vec<ExposeMode>>,
    /// Tools that are offered next to the dispatchers.
    pub pin: Vec<String>,
}

/// How tools are offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EraOffer {
    /// Yes, if every server that it can use is known to speak it. Questions of servers do not cross between the eras.
    #[default]
    Auto,
    /// Yes.
    Modern,
    /// No.
    Legacy,
}

const ERA_WORDS: &[(&str, EraOffer)] = &[
    ("auto", EraOffer::Auto),
    ("modern", EraOffer::Modern),
    ("legacy", EraOffer::Legacy),
];

const EXPOSE_WORDS: &[(&str, ExposeMode)] = &[
    (ExposeMode::Proxy.as_str(), ExposeMode::Proxy),
    (ExposeMode::All.as_str(), ExposeMode::All),
    (ExposeMode::Dispatch.as_str(), ExposeMode::Dispatch),
    (ExposeMode::Read.as_str(), ExposeMode::Read),
];

const LISTEN_WORDS: &[(&str, ListenKind)] = &[
    ("stdio", ListenKind::Stdio),
    ("http", ListenKind::Http),
    ("sse", ListenKind::Sse),
];

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
    pub(super) fn read(node: &Node<'_>) -> Result<HubOptions, ConfigError> {
        let fields = node.fields(HUB_KEYS)?;
        Ok(HubOptions {
            expose: read_exposure(&fields)?,
            proxy_tool_name: fields.read("proxy-tool-name", read_tool_name)?,
            list_limit: fields.read("list-limit", read_list_limit)?,
            separator: fields.read("separator", read_name_part)?,
            native_resources: fields.read("native-resources", Node::boolean)?,
            native_prompts: fields.read("native-prompts", Node::boolean)?,
            page_size: fields.read("page-size", read_count)?,
            threads: fields.read("threads", read_threads)?,
            memory_budget: fields.read("memory-budget", Node::size)?,
            listen: fields.read("listen", |node| node.choice(LISTEN_WORDS))?,
            listen_host: fields.read("listen-host", Node::nonempty_text)?,
            listen_port: fields.read("listen-port", |node| {
                node.integer("expected a port from 0 to 65535")
            })?,
            profiles: fields.read("profiles", read_profiles)?.unwrap_or_default(),
            builtins: fields.read_either("builtins", "useutils", Node::boolean)?,
            era: fields.read("era", |node| node.choice(ERA_WORDS))?,
            inherit_env: fields.read("inherit-env", read_inherited_env)?,
            start: read_start(&fields)?,
            cache_ttl: fields.read_either("cache-ttl", "toolcachettl", Node::duration)?,
            dispatch: DispatchOptions::read(&fields)?,
        })
    }

    /// The options that differ but cannot change while the program runs.
    pub fn fixed_changes(&self, new: &HubOptions) -> Vec<&'static str> {
        let (own, other) = (&self.dispatch, &new.dispatch);
        let fixed = [
            ("listen", self.listen != new.listen),
            ("listen-host", self.listen_host != new.listen_host),
            ("listen-port", self.listen_port != new.listen_port),
            ("threads", self.threads != new.threads),
            ("memory-budget", self.memory_budget != new.memory_budget),
            ("spill-quota", own.spill_quota != other.spill_quota),
            ("spill-ttl", own.spill_ttl != other.spill_ttl),
            ("spill-roots", own.spill_roots != other.spill_roots),
        ];
        let changed = fixed.iter().filter(|(_, is_changed)| *is_changed);
        changed.map(|(name, _)| *name).collect()
    }

    /// These options with those of a later file, which win key by key.
    pub(super) fn merged_with(mut self, later: HubOptions) -> HubOptions {
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
            dispatch: self.dispatch.merged_with(later.dispatch),
        }
    }
}

/// `expose`, or `mcpproxy: true` for `"dispatch"`.
fn read_exposure(fields: &Fields<'_>) -> Result<Option<Vec<ExposeMode>>, ConfigError> {
    if fields.get("mcpproxy").is_none() {
        return fields.read("expose", read_expose);
    }
    let is_dispatch = fields.read_either("expose", "mcpproxy", Node::boolean)?;
    Ok((is_dispatch == Some(true)).then(|| vec![ExposeMode::Dispatch]))
}

/// `start`, or `mcplazy: true` for `"lazy"`.
fn read_start(fields: &Fields<'_>) -> Result<Option<StartMode>, ConfigError> {
    if fields.get("mcplazy").is_none() {
        return fields.read("start", |node| node.choice(START_WORDS));
    }
    let is_lazy = fields.read_either("start", "mcplazy", Node::boolean)?;
    Ok(is_lazy.map(|is_lazy| match is_lazy {
        true => StartMode::Lazy,
        false => StartMode::Eager,
    }))
}

fn read_profiles(node: &Node<'_>) -> Result<BTreeMap<String, HubProfile>, ConfigError> {
    let read = |(name, node): (&str, Node<'_>)| {
        if name.is_empty() {
            return Err(node.bad("a profile needs a name"));
        }
        let fields = node.fields(PROFILE_KEYS)?;
        let profile = HubProfile {
            servers: fields.read("servers", Node::texts)?,
            tools: fields.read("tools", read_filter)?.unwrap_or_default(),
            expose: fields.read("expose", read_expose)?,
            pin: fields.read("pin", Node::texts)?.unwrap_or_default(),
        };
        Ok((name.to_owned(), profile))
    };
    node.members()?.into_iter().map(read).collect()
}

/// A word, words with commas, or a list of words.
fn read_expose(node: &Node<'_>) -> Result<Vec<ExposeMode>, ConfigError> {
    let mut modes = Vec::new();
    let mut add = |mode| {
        if !modes.contains(&mode) {
            modes.push(mode);
        }
    };
    match node.is_list() {
        true => {
            for item in node.items()? {
                add(item.choice(EXPOSE_WORDS)?);
            }
        }
        false => {
            for word in node.text()?.split(',') {
                add(node.choice_of(word.trim(), EXPOSE_WORDS)?);
            }
        }
    }
    match modes.is_empty() {
        true => Err(node.bad("must not be empty")),
        false => Ok(modes),
    }
}

/// An object with `allow` and `deny`.
pub(super) fn read_filter(node: &Node<'_>) -> Result<NameFilter, ConfigError> {
    read_filter_fields(&node.fields(FILTER_KEYS)?)
}

/// `allow` and `deny` among other keys.
pub(super) fn read_filter_fields(fields: &Fields<'_>) -> Result<NameFilter, ConfigError> {
    let read_globs = |node: &Node<'_>| {
        let patterns = node.texts()?;
        Ok(patterns.into_iter().map(NameGlob::new).collect())
    };
    Ok(NameFilter {
        allow: fields.read("allow", read_globs)?,
        deny: fields.read("deny", read_globs)?.unwrap_or_default(),
    })
}

/// A name for one of the hub's own tools. `mcp:proxy` is one, though prefixes have no colon.
pub(super) fn read_tool_name(node: &Node<'_>) -> Result<String, ConfigError> {
    let is_allowed = |byte: u8| is_name_byte(byte) || byte == b':';
    let name = node.text()?;
    match name.len() {
        0 => Err(node.bad("must not be empty")),
        129.. => Err(node.bad("a tool's name has at most 128 characters")),
        _ if name.bytes().all(is_allowed) => Ok(name),
        _ => Err(node.bad("only letters, digits and _ - . / : can be in this tool's name")),
    }
}

/// A piece of a tool's name.
pub(super) fn read_name_part(node: &Node<'_>) -> Result<String, ConfigError> {
    let text = node.text()?;
    match text.bytes().all(is_name_byte) {
        true => Ok(text),
        false => Err(node.bad("only letters, digits and _ - . / can be in a tool's name")),
    }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-./".contains(&byte)
}

/// What the proxy tool itself takes as a limit.
fn read_list_limit(node: &Node<'_>) -> Result<NonZeroUsize, ConfigError> {
    read_up_to(MAX_LIMIT, "expected a whole number from 1 to 1000", node)
}

fn read_threads(node: &Node<'_>) -> Result<NonZeroUsize, ConfigError> {
    read_up_to(MAX_THREADS, "expected a whole number from 1 to 1024", node)
}

fn read_up_to(
    largest: u32,
    expected: &'static str,
    node: &Node<'_>,
) -> Result<NonZeroUsize, ConfigError> {
    let number: NonZeroU32 = node.integer(expected)?;
    if number.get() > largest {
        return Err(node.bad(expected));
    }
    NonZeroUsize::try_from(number).map_err(|_| node.bad(expected))
}

fn read_count(node: &Node<'_>) -> Result<NonZeroUsize, ConfigError> {
    // More than fits into 32 bits is a mistake everywhere.
    let count: NonZeroU32 = node.integer("expected a whole number above zero")?;
    NonZeroUsize::try_from(count).map_err(|_| node.bad("too large"))
}
