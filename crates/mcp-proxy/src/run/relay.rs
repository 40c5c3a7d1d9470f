//! `relay`: MCP clients and browser extensions, each over a WebSocket.

mod audit_log;
mod fetched_keys;
mod health;
mod init;
mod management;
mod pair;
mod pairing;
mod sockets;
mod token_check;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use mcp_proxy_core::{CarryOptions, ProxyRun};
use mcp_proxy_relay::{RelayDriver, RelayOptions, RelaySettings, SocketPath};
use mcp_proxy_transport::http::{Route, Routes};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{UsageError, proxy, serve};
use crate::cli::relay::{RelayArgs, RelayCommand};
use crate::config::{Config, RelayTarget};

pub use management::management;

use audit_log::SharedAuditLog;
use health::RelayHealth;
use pairing::PairingHandler;
use sockets::SocketHandler;

/// How long a socket may take to show its token.
const AUTHENTICATION_DEADLINE: Duration = Duration::from_secs(10);
/// Tokens that are checked in a second. Ten thousand extensions are back a few seconds after a restart.
const AUTHENTICATIONS_PER_SECOND: u32 = 2_500;
/// How long sockets have to take the news that the relay stops.
const FAREWELL: Duration = Duration::from_secs(2);

/// Runs until a signal comes, or creates what a relay needs.
pub fn run(args: &RelayArgs) -> Result<ExitCode> {
    match &args.command {
        Some(RelayCommand::Init(args)) => return init::run(args),
        Some(RelayCommand::Pair(args)) => return pair::run(args),
        None => {}
    }
    let config = Config::relay(args).map_err(|error| UsageError(format!("{error:#}")))?;
    raise_socket_limit();
    proxy::run_with(&config)
}

/// Every browser and client is an open file, and systems allow a program 1,024 of them unless it asks for more.
fn raise_socket_limit() {
    let allowed = getrlimit(Resource::Nofile);
    let most = Rlimit {
        current: allowed.maximum,
        maximum: allowed.maximum,
    };
    // If this is refused, the relay has as many sockets as it was given.
    let _ = setrlimit(Resource::Nofile, most);
}

/// A relay that runs.
pub struct StartedRelay {
    /// The handlers of its sockets.
    pub routes: Routes,
    /// What a person should know, once the address has been said.
    pub notices: Vec<String>,
}

/// Starts the relay of a run.
pub async fn start(
    config: &Config,
    relay: &RelayTarget,
    run: &Arc<ProxyRun>,
) -> Result<StartedRelay> {
    let tokens = token_check::open(&relay.keys).await?;
    let audit = relay.audit_log.as_deref();
    let audit = audit
        .map(SharedAuditLog::open)
        .transpose()
        .map_err(|error| UsageError(format!("{error:#}")))?;
    let notices = audit.iter().filter_map(SharedAuditLog::notice).collect();
    if let Some(log) = audit.clone() {
        proxy::on_hangup(move || log.reopen())?;
    }
    let audit = audit.map(|log| log.sink());
    let driver = RelayDriver::start(RelayOptions {
        run: Arc::clone(run),
        carry: CarryOptions {
            // The relay answers by itself.
            last_request: Duration::ZERO,
            drain_open: Duration::ZERO,
            drain_idle: Duration::ZERO,
            ..proxy::carry_options(config.limits)
        },
        settings: RelaySettings {
            memory: run.memory().clone(),
            max_message: config.limits.message,
            ..relay.settings.clone()
        },
        check: tokens.check,
        refresh_keys: tokens.refresh_keys,
        authentication_deadline: AUTHENTICATION_DEADLINE,
        authentications_per_second: AUTHENTICATIONS_PER_SECOND,
        audit: audit.clone(),
    });
    let _ = relay.driver.set(Arc::clone(&driver));
    if let Some(checker) = tokens.checker {
        checker.spawn(Arc::clone(&driver));
    }
    let access = relay.settings.access;
    let socket = |path| SocketHandler::new(Arc::clone(&driver), path, access);
    let routes = match &relay.pairing {
        Some(pairing) => Routes::new().with(
            PairingHandler::new(Arc::clone(pairing), audit, Arc::clone(&driver)),
            [Route::exact(pairing::PATH).unlisted()],
        ),
        None => Routes::new(),
    };
    let routes = routes
        .with(socket(SocketPath::Extension), [Route::exact("/extension")])
        .with(socket(SocketPath::Client), [Route::exact("/mcp")])
        .with(socket(SocketPath::Any), [Route::exact("/")])
        .with(
            RelayHealth::new(driver),
            [Route::exact(serve::HEALTH_PATH).unlisted().without_token()],
        );
    Ok(StartedRelay { routes, notices })
}

/// Tells everybody that the relay stops, and gives them a moment to hear it.
pub async fn say_farewell(relay: &RelayTarget) {
    let Some(driver) = relay.driver.get() else {
        return;
    };
    driver.shut_down();
    let deadline = tokio::time::Instant::now() + FAREWELL;
    while driver.counts().1 > 0 && tokio::time::Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
