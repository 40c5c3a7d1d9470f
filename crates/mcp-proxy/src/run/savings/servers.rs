//! Starts the servers, takes their definitions, and stops them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use mcp_proxy_core::{ProxyRun, RunOptions};
use mcp_proxy_hub::savings::MeasuredCatalog;
use mcp_proxy_hub::{HubDriver, HubReports, ServerListing};
use tokio::time::Instant;

use crate::cli::serve::{ServeArgs, ServerSourceArgs};
use crate::config::{Config, HubTarget, Target};
use crate::printer;
use crate::run::serve::{failure_of, settings_for_one_run};
use crate::run::{UsageError, runtime, serve};

/// How often the servers are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Servers have this long to end. Nothing was asked of them that they would have to finish.
const STOP_DEADLINE: Duration = Duration::from_secs(2);

/// A server that was started.
pub(super) struct AskedServer {
    pub(super) name: String,
    pub(super) answer: ServerAnswer,
}

/// How that went.
pub(super) enum ServerAnswer {
    /// It listed its tools; so many of them are seen.
    Ready { tools: usize },
    /// It did not, for this reason.
    Failed(String),
}

/// What servers offer, by name, as they are asked.
#[derive(Clone, Default)]
struct Listings(Arc<Mutex<HashMap<String, Arc<ServerListing>>>>);

/// Starts the servers and asks each for its definitions.
pub(super) fn ask(
    source: &ServerSourceArgs,
    timeout: Duration,
) -> Result<(Vec<AskedServer>, MeasuredCatalog)> {
    let config = ServeArgs::without_clients(source)
        .map_err(anyhow::Error::from)
        .and_then(|args| Config::serve(&args))
        .map_err(|error| UsageError(format!("{error:#}")))?;
    let Target::Hub(hub) = &config.target else {
        bail!("this configuration is not one of a hub");
    };
    for warning in &hub.warnings {
        printer::say(&format!("mcp-proxy: {warning}"));
    }
    // If a guard is killed, what it left behind becomes ours to clean up. Where that is not possible it is left out.
    let _ = mcp_proxy_transport::process::become_subreaper();
    let listings = Listings::default();
    let mut asked = runtime()
        .context("cannot start")?
        .block_on(converse(&config, hub, &listings, timeout))?;
    let known = listings.lock();
    let measured = MeasuredCatalog {
        servers: hub
            .servers()
            .iter()
            .filter_map(|server| {
                let listing = known.get(server.name())?;
                Some((Arc::clone(&server.settings.naming), Arc::clone(listing)))
            })
            .collect(),
        filter: hub.settings.profiles[0].filter.clone(),
        proxy_tool: hub.settings.proxy_tool.clone(),
        dispatch_tool: hub.settings.dispatch_tool.clone(),
    };
    let counts = measured.tool_counts();
    for server in &mut asked {
        if let ServerAnswer::Ready { tools } = &mut server.answer {
            *tools = counts.get(&server.name).copied().unwrap_or(0);
        }
    }
    Ok((asked, measured))
}

async fn converse(
    config: &Config,
    hub: &HubTarget,
    listings: &Listings,
    timeout: Duration,
) -> Result<Vec<AskedServer>> {
    let run = ProxyRun::new(RunOptions {
        recorder: None,
        warn: Arc::new(|text| printer::say(&format!("mcp-proxy: {text}"))),
        pass_noise: false,
        hold: config.hold,
    });
    let driver = serve::start_driver(config, hub, &run, settings_for_one_run, listings.reports())?;
    let deadline = Instant::now() + timeout;
    while Instant::now() < deadline && !is_settled(&driver, listings) {
        tokio::time::sleep(LOOK_EVERY).await;
    }
    let status = driver.status();
    driver.shut_down(STOP_DEADLINE).await;
    run.end("the servers were asked for their lists");
    let known = listings.lock();
    let asked = status.into_iter().map(|status| AskedServer {
        answer: match known.get(&status.name) {
            Some(listing) => ServerAnswer::Ready {
                tools: listing.tools.len(),
            },
            None => {
                let reason = failure_of(&status).map_or_else(|| no_answer(timeout), str::to_owned);
                ServerAnswer::Failed(config.masks.mask(&reason).into_owned())
            }
        },
        name: status.name,
    });
    Ok(asked.collect())
}

fn is_settled(driver: &HubDriver, listings: &Listings) -> bool {
    let status = driver.status();
    let known = listings.lock();
    status
        .iter()
        .all(|server| known.contains_key(&server.name) || failure_of(server).is_some())
}

fn no_answer(timeout: Duration) -> String {
    format!("it did not answer within {} s", timeout.as_secs_f64())
}

impl Listings {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<ServerListing>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing is logged: what became of each server is told at the end.
    fn reports(&self) -> HubReports {
        let listings = self.clone();
        HubReports {
            log: Arc::new(|_| ()),
            save: Arc::new(move |name, listing| {
                listings.lock().insert(name.to_owned(), Arc::clone(listing));
            }),
            audit: None,
        }
    }
}
