//! `serve`: the hub in place of a server. Everything else is as in `proxy`.

mod health;
mod json_file;
mod kept_sessions;
mod listing_saver;
mod listings;
mod one_run;
mod profiles;
mod sign_ins;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result};
use mcp_proxy_builtin::BuiltinServer;
use mcp_proxy_control::{HubLoad, ServerHealth, ServerRow};
use mcp_proxy_core::control::{RunServer, ServerManagement, ServerOrder};
use mcp_proxy_core::{CarryOptions, Dial, InProcessServer, LinkEnd, Peer, ProxyRun, in_process};
use mcp_proxy_hub::config::{ServerName, SharingScope};
use mcp_proxy_hub::{
    AuditRecord, CallOutcome, HubDriver, HubReports, HubServer, NewServer, ServerChange,
    ServerListing, ServerRoute, ServerSettings, ServerState, ServerStatus,
};
use mcp_proxy_transport::http::Admission;
use mcp_proxy_wire::terminal_text::sanitize;
use mcp_proxy_wire::{ErrorCode, Side, Transport};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use super::{UsageError, proxy};
use crate::cli::serve::ServeArgs;
use crate::config::{Config, HubServerKind, HubServerTarget, HubTarget, Target};
use crate::printer;

use listing_saver::ListingSaver;

pub use health::{HEALTH_PATH, HealthHandler};
pub use kept_sessions::KeptSessions;
pub use one_run::{failure_of, settings_for_one_run};
pub use profiles::ProfilesHandler;

/// What the record calls the server of the hub's clients.
pub const HUB: &str = "hub";
/// How often the files of the configuration are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The lists of one server are written to disk at most this often.
const SAVE_PAUSE: Duration = Duration::from_secs(1);

/// Serves until the client ends or a signal comes.
pub fn run(args: &ServeArgs) -> Result<ExitCode> {
    let config = Config::serve(args).map_err(|error| UsageError(format!("{error:#}")))?;
    proxy::run_with(&config)
}

/// Starts the hub of a run, and with it its servers.
pub fn start(config: &Config, hub: &HubTarget, run: &Arc<ProxyRun>) -> Result<()> {
    for warning in &hub.warnings {
        printer::say(&format!("mcp-proxy: {warning}"));
    }
    start_driver(config, hub, run, known_settings, reports(config, hub))?;
    tokio::spawn(follow(config.clone(), hub.clone()));
    tokio::spawn(sign_ins::follow(config.clone(), hub.clone()));
    Ok(())
}

/// Starts the servers of a hub, each with what `settings` makes of its configuration.
pub fn start_driver(
    config: &Config,
    hub: &HubTarget,
    run: &Arc<ProxyRun>,
    settings: fn(&HubServerTarget) -> ServerSettings,
    reports: HubReports,
) -> Result<Arc<HubDriver>> {
    let servers = hub.servers();
    let servers = servers.iter().map(|server| {
        Ok(HubServer {
            settings: settings(server),
            route: server_route(config, hub, server)?,
        })
    });
    let carry = CarryOptions {
        // The hub answers by itself when a server has gone.
        last_request: Duration::ZERO,
        ..proxy::carry_options(config.limits)
    };
    let driver = HubDriver::start(
        Arc::clone(run),
        hub.settings.clone(),
        servers.collect::<Result<_>>()?,
        carry,
        reports,
    );
    let _ = hub.driver.set(Arc::clone(&driver));
    Ok(driver)
}

/// How a server is reached, and signed in to.
fn server_route(config: &Config, hub: &HubTarget, server: &HubServerTarget) -> Result<ServerRoute> {
    let (peer, dial) = route(config, server)?;
    Ok(ServerRoute {
        peer,
        dial,
        sign_in: sign_ins::begin(config, hub, server),
    })
}

/// What a server is to the record, and how it is dialled.
fn route(config: &Config, server: &HubServerTarget) -> Result<(Peer, Dial)> {
    let name = server.name();
    Ok(match &server.target {
        Some(HubServerKind::Target(target)) => {
            let dial = proxy::dial_named(config, target, name)
                .with_context(|| format!("server {name}"))?;
            (Peer::new(target.transport()).named(name), dial)
        }
        Some(HubServerKind::Builtin(server)) => {
            (Peer::in_process(name), dial_builtin(Arc::clone(server)))
        }
        None => (Peer::in_process(name), dial_nothing()),
    })
}

/// Reads the configuration again when a file of it changes, or on SIGHUP.
async fn follow(config: Config, hub: HubTarget) {
    let Ok(mut hangup) = signal(SignalKind::hangup()) else {
        return;
    };
    let files = hub.source.files();
    let mut seen = stamps(files.clone()).await;
    loop {
        tokio::select! {
            _ = hangup.recv() => {}
            () = tokio::time::sleep(LOOK_EVERY) => {
                let now = stamps(files.clone()).await;
                if now == seen {
                    continue;
                }
                seen = now;
            }
        }
        let (config, hub) = (config.clone(), hub.clone());
        let reloaded = tokio::task::spawn_blocking(move || reload(&config, &hub)).await;
        if let Ok(Err(error)) = reloaded {
            printer::say(&format!(
                "mcp-proxy: the configuration stays as it was: {error:#}"
            ));
        }
    }
}

/// When the files were changed last. A folder that does not answer keeps only its own thread waiting.
async fn stamps(files: Vec<PathBuf>) -> Vec<Option<(SystemTime, u64)>> {
    let looked = tokio::task::spawn_blocking(move || stamps_now(&files)).await;
    looked.unwrap_or_default()
}

fn stamps_now(files: &[PathBuf]) -> Vec<Option<(SystemTime, u64)>> {
    let stamp = |path: &PathBuf| {
        let about = std::fs::metadata(path).ok()?;
        Some((about.modified().ok()?, about.len()))
    };
    files.iter().map(stamp).collect()
}

/// Takes on the configuration as it is now. What did not change keeps running. It may take seconds if a file cannot be read.
pub fn reload(config: &Config, hub: &HubTarget) -> Result<()> {
    let driver = hub.driver.get().context("the hub is not running")?;
    let _turn = hub.source.reloading.lock();
    let (settings, servers, changes) = hub.source.read_again(&config.masks)?;
    let servers = servers.iter().map(|server| {
        let route = server_route(config, hub, server)?;
        let is_changed = [&changes.added, &changes.changed]
            .iter()
            .any(|names| names.iter().any(|name| name.as_str() == server.name()));
        let server = match is_changed {
            true => NewServer::Changed(Box::new(known_settings(server))),
            false => NewServer::Unchanged(server.name().to_owned()),
        };
        Ok((server, route))
    });
    let servers = servers.collect::<Result<Vec<_>>>()?;
    sign_ins::note_new_servers(config, hub);
    driver.reconfigure(settings, servers);
    let names = |names: &[ServerName]| {
        let names: Vec<&str> = names.iter().map(ServerName::as_str).collect();
        names.join(", ")
    };
    let told = [
        ("added", &changes.added),
        ("changed", &changes.changed),
        ("removed", &changes.removed),
    ];
    let told: Vec<String> = told
        .iter()
        .filter(|(_, servers)| !servers.is_empty())
        .map(|(what, servers)| format!("{what}: {}", names(servers)))
        .collect();
    let told = match told.is_empty() {
        true => "no server changed".to_owned(),
        false => told.join("; "),
    };
    printer::say(&format!("mcp-proxy: read the configuration again; {told}"));
    Ok(())
}

/// The servers for those who look at the run: each can be asked something by itself.
pub fn run_servers(config: &Config, hub: &HubTarget) -> Vec<RunServer> {
    let servers = hub.servers();
    servers
        .iter()
        .filter_map(|server| run_server(config, server))
        .collect()
}

fn run_server(config: &Config, server: &HubServerTarget) -> Option<RunServer> {
    let (peer, dial) = route(config, server).ok()?;
    let target = shown_target(config, server);
    Some(RunServer {
        peer,
        target,
        dial,
        is_for_clients_only: false,
    })
}

/// What a viewer can do about the servers.
pub fn management(config: &Config, hub: &HubTarget) -> Arc<dyn ServerManagement> {
    Arc::new(HubManagement {
        config: config.clone(),
        hub: hub.clone(),
    })
}

struct HubManagement {
    config: Config,
    hub: HubTarget,
}

impl HubManagement {
    /// The hub as the server of its clients, in its default profile.
    fn hub_itself(&self) -> Option<RunServer> {
        let driver = self.hub.driver.get()?;
        Some(RunServer {
            peer: Peer::in_process(HUB),
            target: "mcp-proxy serve".to_owned(),
            dial: driver.dial(""),
            is_for_clients_only: false,
        })
    }
}

impl ServerManagement for HubManagement {
    fn list(&self) -> Vec<ServerRow> {
        let status = self.hub.driver.get().map(|driver| driver.status());
        let known = self.hub.servers();
        let row = |status: ServerStatus| {
            let server = known.iter().find(|server| server.name() == status.name);
            let target = server.map(|server| shown_target(&self.config, server));
            ServerRow {
                transport: server.map(transport).unwrap_or_default(),
                target: target.unwrap_or_default(),
                connections: 0,
                health: Some(ServerHealth {
                    scope: server.map(scope).unwrap_or_default(),
                    sign_in: server.and_then(|server| sign_ins::health(&self.config, server)),
                    ..health(&self.config, &status)
                }),
                name: status.name,
            }
        };
        status.into_iter().flatten().map(row).collect()
    }

    fn load(&self) -> HubLoad {
        let driver = self.hub.driver.get();
        let backlog = driver.map(|driver| driver.backlog()).unwrap_or_default();
        HubLoad {
            lost_notifications: backlog.lost_notifications,
            clients_behind: backlog.clients_behind,
            memory_used: backlog.memory.used,
            memory_budget: backlog.memory.budget,
            memory_refused: backlog.memory.refused,
        }
    }

    fn find(&self, name: &str) -> Option<RunServer> {
        let servers = self.hub.servers();
        let named = servers.iter().find(|server| server.name() == name);
        let is_shown = |server: &&HubServerTarget| shown_target(&self.config, server) == name;
        match named.or_else(|| servers.iter().find(is_shown)) {
            Some(found) => run_server(&self.config, found),
            None if name == HUB => self.hub_itself(),
            None => None,
        }
    }

    fn change(&self, change: ServerOrder<'_>) -> Result<(), String> {
        let (name, change) = match change {
            ServerOrder::Restart(name) => (name, ServerChange::Restart),
            ServerOrder::Enable(name) => (name, ServerChange::Enable),
            ServerOrder::Disable(name) => (name, ServerChange::Disable),
            ServerOrder::Reload => {
                return reload(&self.config, &self.hub).map_err(|error| format!("{error:#}"));
            }
        };
        let driver = self.hub.driver.get().ok_or("the hub is not running")?;
        driver
            .change_server(name, change)
            .map_err(|error| self.config.masks.mask(&error.to_string()).into_owned())
    }
}

fn health(config: &Config, status: &ServerStatus) -> ServerHealth {
    let (state, reason) = match &status.state {
        ServerState::Disabled(reason) => ("disabled", Some(reason)),
        ServerState::Stopped => ("stopped", None),
        ServerState::Starting => ("starting", None),
        ServerState::Ready => ("ready", None),
        ServerState::NeedsSignIn(reason) => ("needs sign-in", Some(reason)),
        ServerState::Failed(reason) => ("failed", Some(reason)),
    };
    let [tools, resources, templates, prompts] = status.counts.map(|count| count as u64);
    let error = reason.or(status.last_error.as_ref());
    let masked = |text: &String| config.masks.mask(text).into_owned();
    ServerHealth {
        state: state.to_owned(),
        error: error.map(masked),
        tools,
        resources: resources + templates,
        prompts,
        stale: status.stale,
        restarts: status.restarts.into(),
        scope: String::new(),
        sign_in: None,
        own_sessions: status.own_sessions as u64,
        warnings: status.warnings.iter().map(masked).collect(),
    }
}

/// Who shares a server, as the configuration says it.
fn scope(server: &HubServerTarget) -> String {
    let word = match server.settings.scope {
        SharingScope::Auto => "auto",
        SharingScope::Shared => "shared",
        SharingScope::Session => "session",
    };
    word.to_owned()
}

fn transport(server: &HubServerTarget) -> String {
    match &server.target {
        Some(HubServerKind::Target(target)) => target.transport().as_str().to_owned(),
        Some(HubServerKind::Builtin(_)) => Transport::InProcess.as_str().to_owned(),
        // It is never reached: it is disabled, or its entry cannot be used.
        None => String::new(),
    }
}

/// The command or URL, without secrets.
fn shown_target(config: &Config, server: &HubServerTarget) -> String {
    match &server.target {
        Some(HubServerKind::Target(target)) => match &**target {
            Target::Command(command) => config.masks.argv(&proxy::words(command)).join(" "),
            Target::Url { url, .. } => config.masks.url(&url.to_string()).into_owned(),
            Target::Recording(_) | Target::Hub(_) | Target::Relay(_) => String::new(),
        },
        Some(HubServerKind::Builtin(builtin)) => format!("built-in {}", builtin.name()),
        None => String::new(),
    }
}

/// What to put into a client's config. The token itself is in none of our output: a variable of the client's stands for it.
pub fn client_config(address: &str, kind: Transport, admission: &Admission) -> String {
    let kind = match kind {
        Transport::Sse => "sse",
        _ => "http",
    };
    let mut entry = json!({"type": kind, "url": address});
    if admission.token.is_some() {
        entry["headers"] = json!({"Authorization": "Bearer ${MCP_PROXY_TOKEN}"});
    }
    let config = json!({"mcpServers": {"hub": entry}});
    format!("mcp-proxy: in a client's config: {config}")
}

/// Settings with what the server offered when it was last seen.
fn known_settings(server: &HubServerTarget) -> ServerSettings {
    ServerSettings {
        last_listing: listings::load(server).map(Arc::new),
        ..server.settings.clone()
    }
}

fn reports(config: &Config, hub: &HubTarget) -> HubReports {
    let hub = hub.clone();
    let masks = config.masks.clone();
    let quiet = config.quiet;
    let saver = ListingSaver::new(
        SAVE_PAUSE,
        |(server, listing): (HubServerTarget, Arc<ServerListing>)| {
            listings::save(&server, &listing)
        },
    );
    HubReports {
        log: Arc::new(move |text| printer::say(&format!("mcp-proxy: {}", masks.mask(text)))),
        save: Arc::new(move |name, listing| {
            let mut servers = hub.servers().into_iter();
            let Some(server) = servers.find(|server| server.name() == name) else {
                return;
            };
            saver.keep(name, (server, Arc::clone(listing)));
        }),
        audit: (!quiet)
            .then(|| Arc::new(|record: &AuditRecord| printer::say(&audit_line(record))) as _),
    }
}

fn audit_line(record: &AuditRecord) -> String {
    let outcome = match record.outcome {
        CallOutcome::Succeeded => "ok",
        CallOutcome::ToolFailed => "tool-error",
        CallOutcome::Failed => "failed",
        CallOutcome::Cached => "cached",
        CallOutcome::Cancelled => "cancelled",
        CallOutcome::Refused => "refused",
    };
    let (sent, received) = record.sizes;
    format!(
        "mcp-proxy: call {} server={:?} client={:?} {outcome} {:.1} ms, {sent} bytes out, {received} bytes in",
        sanitize(&record.what),
        record.server.as_deref().unwrap_or_default(),
        record.client,
        record.latency.as_secs_f64() * 1000.0
    )
}

/// A server in this process. Its work may block, so it is done on threads for that.
fn dial_builtin(server: Arc<BuiltinServer>) -> Dial {
    Arc::new(move |_| {
        let (link, end) = in_process();
        tokio::spawn(answer(Arc::clone(&server), end));
        Box::pin(std::future::ready(Ok(link)))
    })
}

async fn answer(server: Arc<BuiltinServer>, mut end: InProcessServer) {
    while let Some(message) = end.requests.next().await {
        let (server, answers) = (Arc::clone(&server), end.answers.clone());
        tokio::spawn(async move {
            let answer = tokio::task::spawn_blocking(move || server.answer(&message)).await;
            if let Ok(Some(answer)) = answer {
                let _ = answers.send(answer).await;
            }
        });
    }
}

/// A server whose configuration is broken is never dialled.
fn dial_nothing() -> Dial {
    Arc::new(|_| {
        let text = "it is not configured";
        let end = LinkEnd::failed(Side::Server, ErrorCode::SERVER_UNAVAILABLE, text);
        Box::pin(std::future::ready(Err(end)))
    })
}
