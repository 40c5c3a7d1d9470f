//! The servers of `serve`: those of its config files, of its flags, and those that are built in.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use mcp_proxy_hub::config::{
    ConfigText, EraOffer, ExposeMode, HubConfig, HubOptions, InheritedEnv, RootFolder,
    ServerConfig, ServerTarget, StartMode, inherited_secrets, parse_config,
};

use crate::cli::proxy::EnvMode;
use crate::cli::serve::ServeArgs;
use crate::config::bounded_file::read_text;

/// Reads the config files, and what flags add to them.
pub(super) fn read_config(args: &ServeArgs) -> Result<HubConfig> {
    let is_default = args.source.config.is_empty() && args.source.server.is_empty();
    let mut hub = read_config_files(&config_files(args))?;
    hub.read_env_files(&|path| read_text(path).map_err(|error| error.to_string()));
    for flag in &args.source.server {
        hub.insert(ServerConfig::from_flag(flag)?);
    }
    hub.options = std::mem::take(&mut hub.options).merged_with(flags(args));
    if args.mcpproxy == Some(false)
        && let Some(modes) = &mut hub.options.expose
    {
        modes.retain(|mode| *mode != ExposeMode::Dispatch);
    }
    if hub
        .options
        .builtins
        .unwrap_or(is_default && hub.servers.is_empty())
    {
        for builtin in default_servers() {
            if hub.servers.iter().all(|server| server.name != builtin.name) {
                hub.insert(builtin);
            }
        }
    }
    if let Some((profile, server)) = hub.unknown_profile_servers().first() {
        bail!("the profile {profile} names a server {server}, which is not configured");
    }
    hub.resolve_inherited_env();
    Ok(hub)
}

/// What the flags say about the hub. They win over files.
fn flags(args: &ServeArgs) -> HubOptions {
    let expose = match args.mcpproxy {
        Some(true) => vec![ExposeMode::Dispatch],
        _ => args.expose.iter().map(|mode| (*mode).into()).collect(),
    };
    let spill_roots: Vec<RootFolder> = args.spill_root.iter().map(RootFolder::new).collect();
    HubOptions {
        expose: (!expose.is_empty()).then_some(expose),
        threads: args.threads,
        builtins: args.source.builtins,
        era: args.era.map(EraOffer::from),
        inherit_env: args.proxy.env_mode.map(|mode| match mode {
            EnvMode::Inherit => InheritedEnv::All,
            EnvMode::Minimal => InheritedEnv::Minimal,
        }),
        start: args.lazy.map(|lazy| match lazy {
            true => StartMode::Lazy,
            false => StartMode::Eager,
        }),
        cache_ttl: args.cache_ttl,
        spill_threshold: args.spill_threshold,
        spill_toon: args.spill_toon,
        spill_quota: args.spill_quota,
        spill_ttl: args.spill_ttl,
        spill_roots: (!spill_roots.is_empty()).then_some(spill_roots),
        ..HubOptions::default()
    }
}

/// Reads config files alone.
pub fn read_config_files(files: &[PathBuf]) -> Result<HubConfig> {
    let texts = files.iter().map(|path| config_text(path));
    let texts = texts.collect::<Result<Vec<_>>>()?;
    Ok(parse_config(&texts, &|name| std::env::var(name).ok())?)
}

/// What is said when nothing is there to serve.
pub(super) fn no_servers(files: &[PathBuf], hub: &HubConfig) -> String {
    let names: Vec<String> = files
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    let mut text = match names.is_empty() {
        true => "no servers".to_owned(),
        false => format!("{}: no servers", names.join(", ")),
    };
    for warning in &hub.warnings {
        text += &format!("; {warning}");
    }
    text + "; add one to the file or with --server NAME=COMMAND|URL, or use --builtins"
}

/// Credentials in our own environment, if any server inherits it: what a server prints may have them.
pub(super) fn inherited_secrets_of(hub: &HubConfig) -> Vec<String> {
    let specs = hub.servers.iter().flat_map(|server| &server.state);
    let inherits = specs.into_iter().any(|spec| match &spec.target {
        ServerTarget::Command { inherit_env, .. } => *inherit_env != Some(InheritedEnv::Minimal),
        ServerTarget::Url { .. } | ServerTarget::Builtin(_) => false,
    });
    match inherits {
        true => credentials_of_our_environment(),
        false => Vec::new(),
    }
}

/// The credentials among our own variables.
pub(in crate::config) fn credentials_of_our_environment() -> Vec<String> {
    let text = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    inherited_secrets(std::env::vars_os().filter_map(text), |path| {
        Path::new(path).exists()
    })
}

/// The files that are read.
pub(super) fn config_files(args: &ServeArgs) -> Vec<PathBuf> {
    let mut files = args.source.config.clone();
    if files.is_empty() && args.source.server.is_empty() {
        files.extend(default_config_file());
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
        current_folder: std::env::current_dir().ok(),
    })
}

/// The user's own config file, if there is one.
pub fn default_config_file() -> Option<PathBuf> {
    let file = crate::config::config_folder()?.join("config.json");
    file.is_file().then_some(file)
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
        current_folder: None,
    };
    parse_config(&[file], &|_| None).map_or_else(|_| Vec::new(), |config| config.servers)
}
