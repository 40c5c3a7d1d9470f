//! What the flags and config files of `serve` mean.

mod eras;
mod spill;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use mcp_proxy_builtin::{BuiltinServer, FilesOptions, FilesServer, Root, TimeServer, WriteAccess};
use mcp_proxy_hub::config::{
    BuiltinTarget, ConfigChanges, ConfigText, ExposeMode, FileAccess, HubConfig, HubOptions,
    HubProfile, NameFilter, NameGlob, RestartPolicy, RootFolder, ServerConfig, ServerOptions,
    ServerProblem, ServerTarget, StartMode, ToolPrefix, UrlKind, changes, parse_config,
};
use mcp_proxy_hub::dispatch_tool::DispatchToolOptions;
use mcp_proxy_hub::proxy_tool::ProxyToolOptions;
use mcp_proxy_hub::{
    AllowedNames, HubDriver, HubSettings, ListExposure, OwnTool, OwnToolUse, ProfileSettings,
    READ_TOOL_NAME, ReadToolOptions, ServerNaming, ServerSettings, ToolExposure, ViewFilter,
    default_prefix,
};
use mcp_proxy_session::CredentialRedaction;
use mcp_proxy_spill::SpillStore;
use mcp_proxy_transport::process::{Environment, ServerCommand};
use mcp_proxy_wire::Transport;
use serde_json::json;

use super::bounded_file::read_text;
use super::{Config, Target};
use crate::cli::proxy::ClientKind;
use crate::cli::serve::{ExposeArg, ServeArgs};
use crate::printer;
use eras::{era_offer, known_eras};
use spill::{spill_settings, spill_store};

/// A server has this long to answer the opening: `npx` may have to download it first.
const START_TIMEOUT: Duration = Duration::from_secs(60);
const LIST_TIMEOUT: Duration = Duration::from_secs(30);
/// Answers to clients wait for a server until this long after its start.
const SETTLE: Duration = Duration::from_millis(900);
/// Lists wait this long for a server that has never been listed: many agents ask only once, and all wait this long.
const FIRST_LIST: Duration = Duration::from_secs(10);
/// A call waits this long for a server that is starting.
const START_PATIENCE: Duration = Duration::from_secs(15);
/// The profile of clients that ask for none.
pub const NO_PROFILE: &str = "";

/// Many servers in place of one.
#[derive(Clone)]
pub struct HubTarget {
    /// The servers.
    pub servers: Vec<HubServerTarget>,
    /// How the hub behaves.
    pub settings: HubSettings,
    /// Threads of the runtime.
    pub threads: Option<NonZeroUsize>,
    /// The configuration that it was made from, and from which it can be made again.
    pub source: Arc<HubSource>,
    /// What is odd about the configuration.
    pub warnings: Vec<String>,
    /// The hub, once it runs.
    pub driver: Arc<OnceLock<Arc<HubDriver>>>,
}

/// Where a hub's configuration comes from.
pub struct HubSource {
    args: ServeArgs,
    /// Where large results are kept. It is the same for the whole run, so that clients can still read what they have.
    spill_store: Arc<SpillStore>,
    /// Held while a configuration is read and taken on, which must not overlap with another one.
    pub reloading: Mutex<()>,
    /// The names of all servers that there have been, in the order of their aliases.
    aliases: Mutex<Vec<String>>,
    /// What was read last.
    current: Mutex<HubConfig>,
    servers: Mutex<Vec<HubServerTarget>>,
}

/// One of the servers.
#[derive(Clone)]
pub struct HubServerTarget {
    /// How it is used.
    pub settings: ServerSettings,
    /// What it is. `None` if its configuration is broken.
    pub target: Option<HubServerKind>,
}

impl HubServerTarget {
    /// The name in the configuration.
    pub fn name(&self) -> &str {
        &self.settings.naming.name
    }
}

/// How a server behind the hub is reached.
#[derive(Clone)]
pub enum HubServerKind {
    /// As one behind `proxy` is.
    Target(Box<Target>),
    /// In this process.
    Builtin(Arc<BuiltinServer>),
}

impl Config {
    /// Checks the flags of `serve` and reads its config files.
    pub fn serve(args: &ServeArgs) -> Result<Config> {
        refuse_server_flags(args)?;
        let hub = read_config(args)?;
        let secrets = hub.secrets();
        let source = HubSource {
            args: args.clone(),
            spill_store: Arc::new(spill_store(args, &hub.options.dispatch)?),
            reloading: Mutex::default(),
            aliases: Mutex::default(),
            current: Mutex::new(hub.clone()),
            servers: Mutex::default(),
        };
        let mut proxy = args.proxy.clone();
        let options = &hub.options;
        if let (None, Some(listen)) = (proxy.listen, options.listen) {
            proxy.listen = Some(match listen {
                mcp_proxy_hub::config::ListenKind::Stdio => ClientKind::Stdio,
                mcp_proxy_hub::config::ListenKind::Http => ClientKind::Http,
                mcp_proxy_hub::config::ListenKind::Sse => ClientKind::Sse,
            });
        }
        proxy.listen_host = proxy.listen_host.or(options.listen_host.clone());
        proxy.listen_port = proxy.listen_port.or(options.listen_port);
        let target = HubTarget {
            settings: settings(args, options, &source.spill_store)?,
            servers: servers(&hub, &source.aliases)?,
            threads: args.threads.or(options.threads),
            driver: Arc::default(),
            warnings: hub.warnings.iter().map(ToString::to_string).collect(),
            source: Arc::new(source),
        };
        let mut config = Config::with_target(&proxy, Target::Hub(target))?;
        config.limits.requests = args.max_requests.max(1);
        config.masks.add(secrets);
        Ok(config)
    }
}

impl HubSource {
    /// The files that are read.
    pub fn files(&self) -> Vec<PathBuf> {
        config_files(&self.args)
    }

    /// The servers of the last configuration that was read again, if one was.
    pub fn servers(&self) -> Vec<HubServerTarget> {
        self.servers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The names of the profiles, as they were read last.
    pub fn profiles(&self) -> Vec<String> {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.options.profiles.keys().cloned().collect()
    }

    /// Reads the configuration again: the hub's settings, all servers, and what has changed. A mistake in it changes nothing.
    /// Its secrets are hidden from now on.
    pub fn read_again(
        &self,
        masks: &CredentialRedaction,
    ) -> Result<(HubSettings, Vec<HubServerTarget>, ConfigChanges)> {
        let new = read_config(&self.args)?;
        masks.add(new.secrets());
        let settings = settings(&self.args, &new.options, &self.spill_store)?;
        let servers = servers(&new, &self.aliases)?;
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = changes(&current, &new);
        let fixed = current.options.fixed_changes(&new.options);
        if !fixed.is_empty() {
            printer::say(&format!(
                "mcp-proxy: these options stay as they were until a restart: {}",
                fixed.join(", ")
            ));
        }
        *current = new;
        *self.servers.lock().unwrap_or_else(PoisonError::into_inner) = servers.clone();
        Ok((settings, servers, changes))
    }
}

fn refuse_server_flags(args: &ServeArgs) -> Result<()> {
    let proxy = &args.proxy;
    if let Some(word @ ("true" | "false")) = proxy.url.as_deref() {
        bail!("`{word}` belongs to no flag; write it with `=`, as in --lazy={word}");
    }
    let given = [
        (proxy.url.is_some(), "an argument"),
        (proxy.target_url.is_some(), "--target-url"),
        (
            !proxy.command.is_empty() || proxy.target_command.is_some(),
            "a command of its own",
        ),
        (!proxy.header.is_empty(), "--header"),
        (!proxy.env.is_empty() || proxy.env_mode.is_some(), "--env"),
        (proxy.cwd.is_some(), "--cwd"),
        (proxy.no_reconnect, "--no-reconnect"),
        (proxy.transport.is_some(), "--transport"),
    ];
    match given.iter().find(|(given, _)| *given) {
        Some((_, what)) => bail!(
            "serve takes its servers from --config FILE and --server NAME=COMMAND|URL, not from {what}"
        ),
        None => Ok(()),
    }
}

fn read_config(args: &ServeArgs) -> Result<HubConfig> {
    let files = config_files(args);
    let is_default = args.source.config.is_empty() && args.source.server.is_empty();
    let texts = files
        .iter()
        .map(|path| config_text(path))
        .collect::<Result<Vec<_>>>()?;
    let mut hub = parse_config(&texts, &|name| std::env::var(name).ok())?;
    for flag in &args.source.server {
        hub.insert(ServerConfig::from_flag(flag)?);
    }
    // Flags win over files.
    hub.options.cache_ttl = args.cache_ttl.or(hub.options.cache_ttl);
    if let Some(lazy) = args.lazy {
        hub.options.start = Some(match lazy {
            true => StartMode::Lazy,
            false => StartMode::Eager,
        });
    }
    let builtins = args.source.builtins.or(hub.options.builtins);
    if builtins.unwrap_or(is_default && hub.servers.is_empty()) {
        for builtin in default_servers() {
            if hub.servers.iter().all(|server| server.name != builtin.name) {
                hub.insert(builtin);
            }
        }
    }
    if let Some((profile, server)) = hub.unknown_profile_servers().first() {
        bail!("the profile {profile} names a server {server}, which is not configured");
    }
    Ok(hub)
}

fn config_files(args: &ServeArgs) -> Vec<PathBuf> {
    let mut files = args.source.config.clone();
    if files.is_empty() && args.source.server.is_empty() {
        files.extend(default_file().filter(|path| path.is_file()));
    }
    files
}

fn config_text(path: &Path) -> Result<ConfigText> {
    let text =
        read_text(path).with_context(|| format!("--config: cannot read {}", path.display()))?;
    Ok(ConfigText {
        name: path.display().to_string(),
        text,
        folder: std::path::absolute(path)?.parent().map(Path::to_owned),
    })
}

fn default_file() -> Option<PathBuf> {
    Some(super::config_folder()?.join("config.json"))
}

/// What there is without any config: the time, and the files of the current folder, read only.
fn default_servers() -> Vec<ServerConfig> {
    let text = r#"{"mcpServers": {
        "time": {"mcp-proxy": {"builtin": "time"}},
        "files": {"mcp-proxy": {"builtin": "files", "roots": ["."]}}
    }}"#;
    let file = ConfigText {
        name: "built-in".to_owned(),
        text: text.to_owned(),
        folder: std::env::current_dir().ok(),
    };
    parse_config(&[file], &|_| None).map_or_else(|_| Vec::new(), |config| config.servers)
}

fn settings(
    args: &ServeArgs,
    options: &HubOptions,
    store: &Arc<SpillStore>,
) -> Result<HubSettings> {
    let expose = match (args.mcpproxy, args.expose.is_empty()) {
        (Some(true), _) => vec![ExposeMode::Dispatch],
        (_, false) => {
            let mut modes: Vec<ExposeMode> = Vec::new();
            for mode in args.expose.iter().map(|arg| ExposeMode::from(*arg)) {
                if !modes.contains(&mode) {
                    modes.push(mode);
                }
            }
            modes
        }
        (without, true) => {
            let mut modes = options.expose.clone().unwrap_or_default();
            modes.retain(|mode| without.is_none() || *mode != ExposeMode::Dispatch);
            match modes.is_empty() {
                true => vec![ExposeMode::Proxy],
                false => modes,
            }
        }
    };
    let defaults = ProxyToolOptions::default();
    let limit = options
        .list_limit
        .and_then(|limit| u32::try_from(limit.get()).ok());
    let proxy_tool = ProxyToolOptions {
        name: options.proxy_tool_name.clone().unwrap_or(defaults.name),
        default_limit: limit.unwrap_or(defaults.default_limit),
    };
    let dispatch_tool = DispatchToolOptions {
        name: (options.dispatch.tool_name.clone()).unwrap_or(DispatchToolOptions::default().name),
        ..DispatchToolOptions::default()
    };
    if dispatch_tool.name == proxy_tool.name {
        bail!(
            "proxy-tool-name and dispatch-tool-name are both {:?}",
            proxy_tool.name
        );
    }
    if [&proxy_tool.name, &dispatch_tool.name].contains(&&READ_TOOL_NAME.to_owned()) {
        bail!("{READ_TOOL_NAME:?} is the name of a tool of its own (`--expose read`)");
    }
    let own_tools = OwnTools {
        proxy: &proxy_tool,
        dispatch: &dispatch_tool,
    };
    let everything = HubProfile::default();
    let main = match &args.source.profile {
        None => &everything,
        Some(name) => options.profiles.get(name).with_context(|| {
            let names: Vec<&str> = options.profiles.keys().map(String::as_str).collect();
            match names[..] {
                [] => format!("--profile {name}: the config has no profiles"),
                _ => format!("--profile {name}: the profiles are {}", names.join(", ")),
            }
        })?,
    };
    let named = options
        .profiles
        .iter()
        .map(|(name, profile)| (name.as_str(), profile));
    let profiles = std::iter::once((NO_PROFILE, main)).chain(named);
    Ok(HubSettings {
        profiles: profiles
            .map(|(name, profile)| profile_settings(name, profile, &expose, options, own_tools))
            .collect(),
        proxy_tool,
        dispatch_tool,
        spill: spill_settings(args, &options.dispatch, store),
        server_info: info("mcp-proxy"),
        client_info: info("mcp-proxy"),
        settle: SETTLE,
        first_list: FIRST_LIST,
        start_patience: START_PATIENCE,
        era: era_offer(args, options),
    })
}

/// The options of the hub's own tools.
#[derive(Clone, Copy)]
struct OwnTools<'a> {
    proxy: &'a ProxyToolOptions,
    dispatch: &'a DispatchToolOptions,
}

impl OwnTools<'_> {
    /// The tool of this mode, as it is listed with all these modes.
    fn listed(&self, mode: ExposeMode, expose: &[ExposeMode]) -> Option<OwnTool> {
        let with_dispatch = expose.contains(&ExposeMode::Dispatch);
        match mode {
            ExposeMode::Proxy => Some(OwnTool::Proxy(self.proxy.clone())),
            ExposeMode::Dispatch => Some(OwnTool::Dispatch(self.dispatch.clone())),
            ExposeMode::Read => Some(OwnTool::Read(ReadToolOptions {
                with_proxy: expose.contains(&ExposeMode::Proxy),
                dispatch: with_dispatch.then(|| self.dispatch.name.clone()),
                ..ReadToolOptions::alone(self.proxy.clone())
            })),
            ExposeMode::All => None,
        }
    }
}

fn info(name: &str) -> Bytes {
    let info =
        json!({"name": name, "title": "mcp-proxy hub", "version": env!("CARGO_PKG_VERSION")});
    info.to_string().into()
}

fn profile_settings(
    name: &str,
    profile: &HubProfile,
    expose: &[ExposeMode],
    options: &HubOptions,
    own_tools: OwnTools<'_>,
) -> ProfileSettings {
    let expose = profile.expose.as_deref().unwrap_or(expose);
    let offered = |mode: ExposeMode| match expose.contains(&mode) {
        true => OwnToolUse::Offered,
        false => OwnToolUse::Absent,
    };
    let listed_tools = expose
        .iter()
        .filter_map(|mode| own_tools.listed(*mode, expose));
    let listed = |wanted: Option<bool>| match wanted {
        Some(false) => ListExposure::Empty,
        Some(true) | None => ListExposure::Listed,
    };
    let defaults = ViewFilter::default();
    ProfileSettings {
        name: name.to_owned(),
        filter: ViewFilter {
            servers: profile.servers.clone(),
            allow: profile.tools.allow.as_deref().map(globs),
            deny: globs(&profile.tools.deny),
            tools: match expose.contains(&ExposeMode::All) {
                true => ToolExposure::All,
                false => ToolExposure::None,
            },
            pinned: profile.pin.clone(),
            resources: listed(options.native_resources),
            prompts: listed(options.native_prompts),
            own_tools: listed_tools.collect(),
            page_size: options
                .page_size
                .map_or(defaults.page_size, NonZeroUsize::get),
        },
        proxy_tool: offered(ExposeMode::Proxy),
        dispatch_tool: offered(ExposeMode::Dispatch),
        read_tool: offered(ExposeMode::Read),
    }
}

fn allowed(filter: &NameFilter) -> AllowedNames {
    AllowedNames {
        allow: filter.allow.as_deref().map(globs),
        deny: globs(&filter.deny),
    }
}

fn globs(globs: &[NameGlob]) -> Vec<String> {
    globs.iter().map(|glob| glob.as_str().to_owned()).collect()
}

fn servers(hub: &HubConfig, aliases: &Mutex<Vec<String>>) -> Result<Vec<HubServerTarget>> {
    let servers = hub.servers.iter();
    servers
        .map(|server| {
            let alias = alias(server.name.as_str(), aliases);
            server_target(alias, server, &hub.options)
        })
        .collect()
}

/// `c1`, `c2` and so on. A name has the same alias for the whole run, and no alias is ever given to another.
fn alias(name: &str, aliases: &Mutex<Vec<String>>) -> String {
    let mut names = aliases.lock().unwrap_or_else(PoisonError::into_inner);
    let place = names.iter().position(|known| known == name);
    let place = place.unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    });
    format!("c{}", place + 1)
}

fn server_target(
    alias: String,
    server: &ServerConfig,
    hub: &HubOptions,
) -> Result<HubServerTarget> {
    let defaults = ServerOptions::default();
    let (options, target, disabled) = match &server.state {
        Err(problem) => (&defaults, None, Some(problem.to_string())),
        Ok(spec) => match kind(&spec.target) {
            Ok(kind) => (&spec.options, Some(kind), None),
            Err(error) => (&spec.options, None, Some(format!("{error:#}"))),
        },
    };
    let roots = options.roots.as_deref().map(roots_json);
    Ok(HubServerTarget {
        settings: ServerSettings {
            naming: Arc::new(naming(alias, server.name.as_str(), options, hub)),
            disabled,
            is_turned_off: matches!(server.state, Err(ServerProblem::Disabled)),
            start: options.start.or(hub.start).unwrap_or(StartMode::Eager),
            eras: known_eras(server),
            scope: options.scope,
            start_timeout: options.start_timeout.unwrap_or(START_TIMEOUT),
            list_timeout: options.list_timeout.unwrap_or(LIST_TIMEOUT),
            call_timeout: options.call_timeout,
            idle_stop: options.idle_stop,
            restart: options.restart.unwrap_or(RestartPolicy::Always),
            restart_limit: options.restart_limit,
            cache_ttl: options
                .cache_ttl
                .or(hub.cache_ttl)
                .filter(|ttl| !ttl.is_zero()),
            roots: roots.transpose()?,
            last_listing: None,
        },
        target,
    })
}

fn naming(alias: String, name: &str, options: &ServerOptions, hub: &HubOptions) -> ServerNaming {
    let mut naming = ServerNaming::new(name, alias);
    naming.prefix = match &options.prefix {
        ToolPrefix::ServerName => Some(default_prefix(name)),
        ToolPrefix::Text(prefix) => Some(prefix.clone()),
        ToolPrefix::Nothing => None,
    };
    if let Some(separator) = options.separator.as_ref().or(hub.separator.as_ref()) {
        naming.separator.clone_from(separator);
    }
    naming.tools = allowed(&options.tools);
    naming.resources = allowed(&options.resources);
    naming.prompts = allowed(&options.prompts);
    naming.rename.clone_from(&options.rename);
    naming.descriptions.clone_from(&options.descriptions);
    naming.hidden_arguments.clone_from(&options.hide_arguments);
    naming.fixed_arguments = options
        .fix_arguments
        .iter()
        .map(|(tool, fixed)| {
            let values = fixed
                .0
                .iter()
                .map(|(name, value)| (name.clone(), value.to_string()));
            (tool.clone(), values.collect::<BTreeMap<_, _>>())
        })
        .collect();
    naming.pinned.clone_from(&options.pin);
    naming
}

fn roots_json(roots: &[RootFolder]) -> Result<Bytes> {
    let base = std::env::current_dir().context("cannot find the current folder")?;
    let roots: Vec<_> = roots
        .iter()
        .map(|root| json!({"uri": root.uri(&base)}))
        .collect();
    Ok(json!(roots).to_string().into())
}

fn kind(target: &ServerTarget) -> Result<HubServerKind> {
    let target = match target {
        ServerTarget::Command {
            program,
            args,
            env,
            cwd,
            inherit_env,
        } => Target::Command(ServerCommand {
            program: program.into(),
            args: args.iter().map(|arg| arg.reveal().into()).collect(),
            environment: match inherit_env {
                Some(true) => Environment::Inherit,
                Some(false) | None => Environment::Minimal,
            },
            env: env
                .iter()
                .map(|(name, value)| (name.into(), value.reveal().into()))
                .collect(),
            cwd: cwd.clone(),
        }),
        ServerTarget::Url { url, headers, kind } => Target::Url {
            url: url.uri().clone(),
            kind: kind.map(|kind| match kind {
                UrlKind::StreamableHttp => Transport::StreamableHttp,
                UrlKind::Sse => Transport::Sse,
            }),
            headers: headers.clone(),
            ca_file: None,
        },
        ServerTarget::Builtin(BuiltinTarget::Demo) => Target::Command(ServerCommand {
            program: std::env::current_exe()
                .context("cannot find our own binary")?
                .into(),
            args: vec!["demo-server".into(), "stdio".into()],
            environment: Environment::Minimal,
            env: Vec::new(),
            cwd: None,
        }),
        ServerTarget::Builtin(BuiltinTarget::Time) => {
            let server = BuiltinServer::Time(TimeServer::new());
            return Ok(HubServerKind::Builtin(Arc::new(server)));
        }
        ServerTarget::Builtin(BuiltinTarget::Files { roots, access }) => {
            let roots = roots.iter().map(|root| Root::open(root.path()));
            let options = FilesOptions {
                roots: roots.collect::<Result<_, _>>()?,
                write: match access {
                    FileAccess::ReadOnly => WriteAccess::ReadOnly,
                    FileAccess::ReadWrite => WriteAccess::ReadWrite,
                },
            };
            let server = BuiltinServer::Files(FilesServer::new(options)?);
            return Ok(HubServerKind::Builtin(Arc::new(server)));
        }
    };
    Ok(HubServerKind::Target(Box::new(target)))
}

impl From<ExposeArg> for ExposeMode {
    fn from(arg: ExposeArg) -> ExposeMode {
        match arg {
            ExposeArg::Proxy => ExposeMode::Proxy,
            ExposeArg::Dispatch => ExposeMode::Dispatch,
            ExposeArg::All => ExposeMode::All,
            ExposeArg::Read => ExposeMode::Read,
        }
    }
}
