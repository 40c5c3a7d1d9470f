//! What the flags and config files of `serve` mean.

mod files;
mod servers;
mod settings;
mod spill;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use anyhow::{Result, bail};
use mcp_proxy_auth::SignInState;
use mcp_proxy_builtin::BuiltinServer;
use mcp_proxy_hub::config::{ConfigChanges, ConfigWarning, HubConfig, changes};
use mcp_proxy_hub::{HubDriver, HubSettings, ServerSettings};
use mcp_proxy_session::CredentialRedaction;
use mcp_proxy_spill::SpillStore;

use super::{Config, Target};
use crate::cli::proxy::ClientKind;
use crate::cli::serve::ServeArgs;
use crate::printer;
pub(super) use files::credentials_of_our_environment;
use files::{config_files, inherited_secrets_of, no_servers, read_config};
pub use files::{default_config_file, read_config_files};
use servers::servers;
use settings::settings;
use spill::spill_store;

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
    /// How the hub behaves.
    pub settings: HubSettings,
    /// How long open calls may take when the hub is told to stop.
    pub drain: Duration,
    /// Threads of the runtime.
    pub threads: Option<NonZeroUsize>,
    /// The configuration that it was made from, and from which it can be made again.
    pub source: Arc<HubSource>,
    /// What is odd about the configuration.
    pub warnings: Vec<ConfigWarning>,
    /// The hub, once it runs.
    pub driver: Arc<OnceLock<Arc<HubDriver>>>,
    /// The sign-ins as the hub knows them, by the server's name and URL.
    pub seen_sign_ins: Arc<Mutex<BTreeMap<(String, String), SignInState>>>,
}

impl HubTarget {
    /// The servers of the configuration that was read last.
    pub fn servers(&self) -> Vec<HubServerTarget> {
        let servers = self.source.servers.lock();
        servers.unwrap_or_else(PoisonError::into_inner).clone()
    }
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
    /// The servers of it.
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
        let hub = read_config(args)?;
        if hub.servers.is_empty() {
            bail!(no_servers(&config_files(args), &hub));
        }
        let mut secrets = hub.secrets();
        secrets.extend(inherited_secrets_of(&hub));
        let aliases = Mutex::default();
        let source = HubSource {
            args: args.clone(),
            spill_store: Arc::new(spill_store(&hub.options)?),
            reloading: Mutex::default(),
            servers: Mutex::new(servers(&hub, &aliases)?),
            aliases,
            current: Mutex::new(hub.clone()),
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
        proxy.memory_budget = proxy.memory_budget.or(options.memory_budget);
        let target = HubTarget {
            settings: settings(args.source.profile.as_deref(), options, &source.spill_store)?,
            drain: args.drain_timeout,
            threads: options.threads,
            driver: Arc::default(),
            seen_sign_ins: Arc::default(),
            warnings: hub.warnings.clone(),
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

    /// What tells this hub from others: its files, its profile and the names of its servers on the command line.
    pub fn identity(&self) -> Vec<String> {
        let files = self.files().into_iter();
        let files = files.map(|path| std::path::absolute(&path).unwrap_or(path));
        let servers = self.args.source.server.iter();
        let servers = servers.map(|flag| flag.split('=').next().unwrap_or_default().to_owned());
        let profile = self.args.source.profile.iter().cloned();
        let files = files.map(|path| path.display().to_string());
        files.chain(servers).chain(profile).collect()
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
        masks.add(inherited_secrets_of(&new));
        let profile = self.args.source.profile.as_deref();
        let settings = settings(profile, &new.options, &self.spill_store)?;
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
