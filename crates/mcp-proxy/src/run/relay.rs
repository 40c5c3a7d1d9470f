//! `relay`: MCP clients and browser extensions, each over a WebSocket.

mod health;
mod init;
mod sockets;

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use mcp_proxy_core::{CarryOptions, ProxyRun};
use mcp_proxy_relay::{CheckedToken, RelayDriver, RelayOptions, SocketPath};
use mcp_proxy_token::RevocationList;
use mcp_proxy_transport::http::{Route, Routes};

use super::{UsageError, proxy, serve};
use crate::cli::relay::{RelayArgs, RelayCommand};
use crate::config::{Config, RelayTarget};
use crate::printer;

use health::RelayHealth;
use sockets::SocketHandler;

/// How often the file of revoked tokens is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long a socket may take to show its token.
const AUTHENTICATION_DEADLINE: Duration = Duration::from_secs(10);
/// Tokens that are checked in a second. Ten thousand extensions are back a few seconds after a restart.
const AUTHENTICATIONS_PER_SECOND: u32 = 2_500;
/// How long sockets have to take the news that the relay stops.
const FAREWELL: Duration = Duration::from_secs(2);

/// Runs until a signal comes, or creates what a relay needs.
pub fn run(args: &RelayArgs) -> Result<ExitCode> {
    if let Some(RelayCommand::Init(args)) = &args.command {
        return init::run(args);
    }
    let config = Config::relay(args).map_err(|error| UsageError(format!("{error:#}")))?;
    proxy::run_with(&config)
}

/// Starts the relay of a run: the handlers of its sockets.
pub fn start(config: &Config, relay: &RelayTarget, run: &Arc<ProxyRun>) -> Result<Routes> {
    let revoked = RevocationList::open(&relay.revoked_file)
        .with_context(|| format!("cannot read {}", relay.revoked_file.display()))?;
    let revoked = Arc::new(Mutex::new(revoked));
    let checked = (relay.clone(), Arc::clone(&revoked));
    let driver = RelayDriver::start(RelayOptions {
        run: Arc::clone(run),
        carry: CarryOptions {
            // The relay answers by itself.
            last_request: Duration::ZERO,
            drain_open: Duration::ZERO,
            drain_idle: Duration::ZERO,
            ..proxy::carry_options(config.limits)
        },
        settings: relay.settings.clone(),
        check: Arc::new(move |token| {
            let (relay, revoked) = &checked;
            relay.check(token, revoked)
        }),
        authentication_deadline: AUTHENTICATION_DEADLINE,
        authentications_per_second: AUTHENTICATIONS_PER_SECOND,
    });
    let _ = relay.driver.set(Arc::clone(&driver));
    tokio::spawn(follow_revocations(
        relay.clone(),
        revoked,
        Arc::clone(&driver),
    ));
    let socket = |path| SocketHandler::new(Arc::clone(&driver), path);
    Ok(Routes::new()
        .with(socket(SocketPath::Extension), [Route::exact("/extension")])
        .with(socket(SocketPath::Client), [Route::exact("/mcp")])
        .with(socket(SocketPath::Any), [Route::exact("/")])
        .with(
            RelayHealth::new(driver),
            [Route::exact(serve::HEALTH_PATH).unlisted()],
        ))
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

/// Reads the file of revoked tokens again when it changes, and closes the sockets whose tokens are in it.
async fn follow_revocations(
    relay: RelayTarget,
    revoked: Arc<Mutex<RevocationList>>,
    driver: Arc<RelayDriver>,
) {
    let mut last_problem = None;
    let mut was_changed = false;
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let read = lock(&revoked).refresh();
        let is_changed = matches!(read, Ok(true));
        let problem = read.err().map(|error| error.to_string());
        if problem != last_problem
            && let Some(error) = &problem
        {
            let path = relay.revoked_file.display();
            printer::say(&format!(
                "mcp-proxy: cannot read {path}: {error}; the tokens that were revoked stay revoked"
            ));
        }
        last_problem = problem;
        // Once more after a change: a socket may have been between the check of its token and the relay.
        if is_changed || was_changed {
            driver.recheck(|token| is_good(&lock(&revoked), token));
        }
        was_changed = is_changed;
    }
}

fn is_good(revoked: &RevocationList, token: &CheckedToken) -> bool {
    revoked.check(&RelayTarget::verified(token)).is_ok()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
