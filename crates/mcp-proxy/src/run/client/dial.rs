//! The way to the server of a command: a URL, a process, the servers of a config file behind a hub in this process, or the hub
//! that is running.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use mcp_proxy_core::{CarryEnd, Link, ProxyRun, RunOptions, carry};
use mcp_proxy_hub::{HubDriver, HubReports, ServerChange};
use mcp_proxy_shell::{CancelSignal, CommandFailure, ServerStream};
use mcp_proxy_transport::{LineReader, LineWriter};
use mcp_proxy_wire::{Side, Transport};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::cli::ProxyArgs;
use crate::cli::client::{DEFAULT_TIMEOUT, UsedServerArgs};
use crate::cli::serve::ServeArgs;
use crate::config::{Config, HubTarget, Target};
use crate::printer;
use crate::run::proxy;
use crate::run::serve::{self, failure_of, settings_for_one_run};

use super::running_hub::find;

/// What the pipe between the client and the link to the server holds.
const PIPE_BYTES: usize = 64 << 10;
/// Once a server is ready, the others have this long from their start: a command must not wait for one that hangs.
const OTHERS_START: Duration = Duration::from_secs(10);
/// How often servers that are starting are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Servers have this long to end.
const STOP_DEADLINE: Duration = Duration::from_secs(2);

/// Whether the flags name a server.
pub(super) fn names_server(server: &UsedServerArgs) -> bool {
    server.url.is_some() || !server.server_command.is_empty() || !server.source.is_empty()
}

/// Opens it. If it is for a call of one tool, only what concerns the server of that tool is said, unless the user wants to know
/// everything.
pub(super) async fn open(
    server: &UsedServerArgs,
    called: Option<&str>,
    cancel: &mut CancelSignal,
) -> Result<ServerStream, CommandFailure> {
    if server.source.is_empty() {
        return cancel.or_cancelled(open_one(server)).await;
    }
    if server.url.is_some() || !server.server_command.is_empty() {
        let text = "give one of --url, -- COMMAND, and --config or --server".to_owned();
        return Err(CommandFailure::Mistake(text));
    }
    let args = ServeArgs::without_clients(&server.source).map_err(mistake)?;
    let config = Config::serve(&args).map_err(mistake)?;
    let run = start_run(&config);
    let driver = match &config.target {
        Target::Hub(hub) => Some(start_hub(&config, hub, &run, server, called, cancel).await?),
        _ => None,
    };
    let shown = shown(&config);
    connect(&config, run, driver, shown)
}

/// Opens a URL, a command, or the running hub.
pub(super) async fn open_one(server: &UsedServerArgs) -> Result<ServerStream, CommandFailure> {
    if server.url.is_some() || !server.server_command.is_empty() {
        let config = one_server(server)?;
        let shown = shown(&config);
        return connect(&config, start_run(&config), None, shown);
    }
    let hub = find(server).await?;
    let config = one_server(&hub.server)?;
    let shown = format!("hub {} ({})", hub.id, shown(&config));
    if server.verbose {
        printer::say(&format!("mcp-proxy: using {shown}"));
    }
    connect(&config, start_run(&config), None, shown)
}

fn mistake(error: impl Into<anyhow::Error>) -> CommandFailure {
    CommandFailure::Mistake(format!("{:#}", error.into()))
}

/// A URL or a command, as `proxy` takes it.
fn one_server(server: &UsedServerArgs) -> Result<Config, CommandFailure> {
    let defaults = ProxyArgs::without_client().map_err(mistake)?;
    let args = ProxyArgs {
        url: server.url.clone(),
        command: server.server_command.clone(),
        header: server.header.clone(),
        env: server.env.clone(),
        ca_file: server.ca_file.clone(),
        ..defaults
    };
    let mut config = Config::new(&args).map_err(mistake)?;
    config.escapes_stderr = true;
    Ok(config)
}

fn start_run(config: &Config) -> Arc<ProxyRun> {
    ProxyRun::new(RunOptions {
        recorder: None,
        warn: Arc::new(|text| printer::say(&format!("mcp-proxy: {text}"))),
        pass_noise: false,
        hold: config.hold,
    })
}

/// A link to the server, with our end of it as a stream of lines.
fn connect(
    config: &Config,
    run: Arc<ProxyRun>,
    driver: Option<Arc<HubDriver>>,
    shown: String,
) -> Result<ServerStream, CommandFailure> {
    let dial = proxy::dial(config).map_err(mistake)?;
    let connection = run.connect(Transport::Stdio, config.target.peer());
    let (stream, own_end) = tokio::io::duplex(PIPE_BYTES);
    let (from_client, to_client) = tokio::io::split(own_end);
    let client = Link::new(
        LineReader::new(
            from_client,
            Side::Client,
            config.limits.message,
            run.memory(),
        ),
        LineWriter::new(to_client, Side::Client),
    );
    let options = proxy::carry_options(config.limits);
    let (stop, stopped) = oneshot::channel::<()>();
    let carrying = tokio::spawn(async move {
        // It is used or dropped: both mean the same.
        let mut stopped = std::pin::pin!(async { stopped.await.unwrap_or_default() });
        let end = tokio::select! {
            server = dial(Arc::clone(&connection)) => {
                let server = server.unwrap_or_else(Link::dead);
                carry(&connection, client, server, options, stopped).await
            }
            () = &mut stopped => CarryEnd::Stopped,
        };
        connection.close(end.text());
        if let Some(driver) = driver {
            driver.shut_down(STOP_DEADLINE).await;
        }
        run.end(end.text());
        match end {
            CarryEnd::Failed(failure) => Some(failure.text),
            _ => None,
        }
    });
    Ok(ServerStream {
        stream,
        stop,
        ended: Box::pin(async move { carrying.await.ok().flatten() }),
        shown,
    })
}

/// Starts the servers of a hub, and waits until each is ready or has failed: a command sees all of them or is told why not.
async fn start_hub(
    config: &Config,
    hub: &HubTarget,
    run: &Arc<ProxyRun>,
    flags: &UsedServerArgs,
    called: Option<&str>,
    cancel: &mut CancelSignal,
) -> Result<Arc<HubDriver>, CommandFailure> {
    let timeout = flags.timeout.unwrap_or(DEFAULT_TIMEOUT);
    let reports = HubReports {
        // What became of each server is said below.
        log: Arc::new(|_| ()),
        save: Arc::new(|_, _| ()),
        audit: None,
    };
    let driver = serve::start_driver(config, hub, run, settings_for_one_run, reports);
    let driver = driver.map_err(mistake)?;
    let start = Instant::now();
    let is_settled = |driver: &HubDriver| {
        let status = driver.status();
        let all = status.iter().all(|server| {
            server.state == mcp_proxy_hub::ServerState::Ready || failure_of(server).is_some()
        });
        all && driver.is_catalog_current()
    };
    let settling = async {
        while !is_settled(&driver) && start.elapsed() < timeout {
            if start.elapsed() >= OTHERS_START && has_ready_server(&driver) {
                break;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    };
    if let Err(cancelled) = cancel.or_cancelled(settling).await {
        driver.shut_down(STOP_DEADLINE).await;
        return Err(cancelled);
    }
    let called = called.filter(|_| !flags.verbose);
    let only = called.and_then(|tool| driver.server_of_tool(tool));
    for warning in &hub.warnings {
        let told = match &only {
            Some(server) => warning.about(server),
            None => Some(warning.clone()),
        };
        if let Some(warning) = told {
            printer::say(&format!("mcp-proxy: {warning}"));
        }
    }
    let waited = start.elapsed();
    let mut can_be_used = false;
    for server in driver.status() {
        let is_told = only.as_ref().is_none_or(|only| *only == server.name);
        for warning in server.warnings.iter().filter(|_| is_told) {
            printer::say(&format!("mcp-proxy: {warning}"));
        }
        let reason = match failure_of(&server) {
            Some(reason) if is_told => reason.to_owned(),
            Some(_) => continue,
            None if server.state == mcp_proxy_hub::ServerState::Ready => {
                can_be_used = true;
                continue;
            }
            None => {
                // Nothing waits for it again.
                let _ = driver.change_server(&server.name, ServerChange::Disable);
                let waited = waited.as_secs_f64().round();
                format!("it did not answer within {waited} s")
            }
        };
        let is_turned_off = hub.servers().iter().any(|configured| {
            let settings = &configured.settings;
            settings.is_turned_off && settings.naming.name == server.name
        });
        if flags.verbose || !is_turned_off {
            let reason = config.masks.mask(&reason);
            printer::say(&format!("mcp-proxy: server {}: {reason}", server.name));
        }
    }
    if !can_be_used {
        driver.shut_down(STOP_DEADLINE).await;
        let text = "no server of the configuration can be used".to_owned();
        return Err(CommandFailure::Unreachable(text));
    }
    Ok(driver)
}

fn has_ready_server(driver: &HubDriver) -> bool {
    let status = driver.status();
    status
        .iter()
        .any(|server| server.state == mcp_proxy_hub::ServerState::Ready)
}

/// The server, without secrets.
fn shown(config: &Config) -> String {
    match &config.target {
        Target::Command(command) => config.masks.argv(&proxy::words(command)).join(" "),
        Target::Url { url, .. } => config.masks.url(&url.to_string()).into_owned(),
        Target::Hub(_) | Target::Recording(_) | Target::Relay(_) => {
            "the configured servers".to_owned()
        }
    }
}
