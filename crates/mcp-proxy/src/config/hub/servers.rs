//! The servers of the hub: how each is reached, named and used.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use mcp_proxy_builtin::{BuiltinServer, FilesOptions, FilesServer, Root, TimeServer, WriteAccess};
use mcp_proxy_hub::config::{
    AuthOptions, BuiltinTarget, FileAccess, HubConfig, HubOptions, InheritedEnv, RestartPolicy,
    RootFolder, ServerConfig, ServerOptions, ServerProblem, ServerTarget, StartMode, ToolPrefix,
    UrlKind,
};
use mcp_proxy_hub::{KnownEras, ServerNaming, ServerSettings, default_prefix};
use mcp_proxy_transport::process::{Environment, ServerCommand};
use mcp_proxy_wire::Transport;
use serde_json::json;

use super::{HubServerKind, HubServerTarget, LIST_TIMEOUT, START_TIMEOUT};
use crate::config::{Target, auth_settings};

/// All servers, also those that cannot be used.
pub(super) fn servers(
    hub: &HubConfig,
    aliases: &Mutex<Vec<String>>,
) -> Result<Vec<HubServerTarget>> {
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
        Ok(spec) => match kind(&spec.target, spec.options.auth.as_ref()) {
            Ok(kind) => (&spec.options, Some(kind), None),
            Err(error) => (&spec.options, None, Some(format!("{error:#}"))),
        },
    };
    let roots = options.roots.as_deref().map(roots_json);
    Ok(HubServerTarget {
        settings: ServerSettings {
            naming: Arc::new(naming(alias, server.name.as_str(), options, hub)),
            disabled,
            is_turned_off: server
                .state
                .as_ref()
                .is_err_and(ServerProblem::is_turned_off),
            is_remote: matches!(&server.state, Ok(spec) if matches!(spec.target, ServerTarget::Url { .. })),
            start: options.start.or(hub.start).unwrap_or(StartMode::Eager),
            // Our own servers speak both eras. What others speak is found out.
            eras: match &server.state {
                Ok(spec) if matches!(spec.target, ServerTarget::Builtin(_)) => KnownEras::Both,
                _ => KnownEras::None,
            },
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
    naming.tools = options.tools();
    naming.resources.clone_from(&options.resources);
    naming.prompts.clone_from(&options.prompts);
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

fn environment(inherited: Option<&InheritedEnv>) -> Environment {
    match inherited {
        Some(InheritedEnv::All) | None => Environment::Inherit,
        Some(InheritedEnv::Minimal) => Environment::Minimal,
        Some(InheritedEnv::Named(names)) => {
            Environment::Named(names.iter().map(Into::into).collect())
        }
    }
}

fn kind(target: &ServerTarget, auth: Option<&AuthOptions>) -> Result<HubServerKind> {
    let target = match target {
        ServerTarget::Command {
            program,
            args,
            env,
            env_file: _,
            cwd,
            inherit_env,
        } => Target::Command(ServerCommand {
            program: program.into(),
            args: args.iter().map(|arg| arg.reveal().into()).collect(),
            environment: environment(inherit_env.as_ref()),
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
            auth: auth.map(auth_settings).transpose()?.map(Box::new),
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
