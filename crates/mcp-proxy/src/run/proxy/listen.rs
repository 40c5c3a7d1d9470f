//! The client side on a port: picks the handlers for the two kinds of transport, listens, and shuts down cleanly.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use mcp_proxy_core::{Peer, ProxyRun};
use mcp_proxy_session::RecordEvent;
use mcp_proxy_transport::http::AutoDetectEndpoint;
use mcp_proxy_transport::http::HttpPassThrough;
use mcp_proxy_transport::http::RemoteServer;
use mcp_proxy_transport::http::{EndpointOptions, McpEndpoint, ModernClients, SessionLimits};
use mcp_proxy_transport::http::{Listener, ListenerLimits, ListenerOptions};
use mcp_proxy_transport::http::{Route, Routes};
use mcp_proxy_transport::sse::SseEndpoint;
use mcp_proxy_transport::sse::SsePassThrough;
use mcp_proxy_transport::{RemoteLinkOptions, SessionLoss, http, sse, tls};
use mcp_proxy_wire::Transport;

use super::dial::{dial, dial_remote, hub_dial, remote};
use super::signals::StopRequest;
use super::{RunEnd, STOP_DEADLINE, carry_options, limits};
use crate::config::{ClientEndpoint, Config, HubTarget, NO_PROFILE, Target};
use crate::printer;
use crate::run::serve::{self, ProfilesHandler};

/// Listens until a signal comes. `then` is called once people have been told where: the terminal UI hides what is printed.
pub async fn over_port(
    config: &Config,
    run: &Arc<ProxyRun>,
    mut stop: StopRequest,
    notices: &[String],
    then: impl FnOnce() -> Result<()>,
) -> Result<RunEnd> {
    let ClientEndpoint::Port {
        kind,
        host,
        port,
        admission,
        tls,
    } = &config.listen
    else {
        anyhow::bail!("no port to listen on");
    };
    let tls = match tls {
        Some((cert, key)) => Some(tls::server_config(cert, key).context("--tls-cert, --tls-key")?),
        None => None,
    };
    let refusals = Arc::clone(run);
    let options = ListenerOptions {
        admission: admission.clone(),
        tls,
        stall: config.limits.stall,
        is_public: !crate::config::is_loopback(host),
        limits: ListenerLimits::default(),
        on_refusal: Arc::new(move |text| refusals.record_event(&RecordEvent::Note { text })),
    };
    let listener = Listener::bind(host, *port, options)
        .await
        .with_context(|| {
            format!("cannot listen on {host}:{port} (--listen-port 0 picks a free port)")
        })?;
    let address = listener.url(path(*kind));
    let announce = || {
        run.set_address(&address);
        printer::say(&format!("listening on {address}"));
        notices.iter().for_each(|notice| printer::say(notice));
    };
    let routes = match &config.target {
        Target::Hub(hub) => {
            // The address is the first line, whatever the servers have to say.
            announce();
            if !config.quiet {
                printer::say(&serve::client_config(&address, *kind));
            }
            serve::start(config, hub, run)?;
            routes(config, run, *kind)?
        }
        _ => {
            let routes = routes(config, run, *kind)?;
            announce();
            routes
        }
    };
    then()?;
    let routes = Arc::new(routes);
    let mut stopped = None;
    let mut record_lost = false;
    listener
        .run(Arc::clone(&routes), async {
            tokio::select! {
                end = stop.wait() => stopped = Some(end),
                () = run.record_lost() => record_lost = true,
            }
        })
        .await;
    routes.stop_all();
    let deadline = tokio::time::Instant::now() + STOP_DEADLINE;
    while routes.open_count() > 0 && tokio::time::Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    if record_lost {
        let why = "the record cannot be written".to_owned();
        return Ok(RunEnd {
            why,
            code: ExitCode::FAILURE,
        });
    }
    Ok(stopped.unwrap_or_else(RunEnd::done))
}

/// The path that clients are told to use.
fn path(client: Transport) -> &'static str {
    match client {
        Transport::Sse => sse::PATH,
        _ => http::PATH,
    }
}

/// The path table: the one list of the handlers on a port. With the same kind of transport on both sides HTTP is passed
/// through, else it ends here.
fn routes(config: &Config, run: &Arc<ProxyRun>, client: Transport) -> Result<Routes> {
    let run = Arc::clone(run);
    let carry = carry_options(config.limits);
    let session_limits = SessionLimits {
        sessions: config.limits.sessions,
        requests: config.limits.requests,
        idle: config.limits.idle,
        message: config.limits.message,
    };
    let whole = limits(config.limits, Transport::Stdio, Transport::StreamableHttp);
    let cut = limits(config.limits, client, client);
    let endpoint = move |server: Peer| EndpointOptions {
        server,
        modern: ModernClients::Shared,
        limits: session_limits,
        carry,
    };
    let own = Route::exact(path(client));
    let routes = Routes::new();
    Ok(match (client, &config.target) {
        (
            Transport::StreamableHttp,
            Target::Url {
                kind: Some(Transport::StreamableHttp),
                ..
            },
        ) => {
            let remote = remote(config, &config.target)?;
            let same = same_path(&remote);
            routes.with(HttpPassThrough::new(run, remote, cut), [own, same])
        }
        (
            Transport::Sse,
            Target::Url {
                kind: Some(Transport::Sse),
                ..
            },
        ) => {
            let remote = remote(config, &config.target)?;
            let same = same_path(&remote);
            let exchange = SsePassThrough::new(run, remote, cut);
            let endpoints = Route::prefix("/").unlisted();
            routes
                .with(exchange.endpoints_handler(), [endpoints])
                .with(exchange, [own, same])
        }
        (Transport::StreamableHttp, Target::Url { kind: None, .. }) => {
            let remote = remote(config, &config.target)?;
            let same = same_path(&remote);
            let exchange = HttpPassThrough::new(Arc::clone(&run), Arc::clone(&remote), cut);
            let options = RemoteLinkOptions {
                max: whole.max,
                on_loss: SessionLoss::EndLink,
            };
            let dial = dial_remote(Arc::clone(&remote), Some(Transport::Sse), options);
            let sessions =
                McpEndpoint::new(Arc::clone(&run), dial, endpoint(Transport::Sse.into()));
            let auto = AutoDetectEndpoint::new(run, remote, exchange, sessions, whole.max);
            routes.with(auto, [own, same])
        }
        (Transport::StreamableHttp, Target::Hub(hub)) => hub_routes(hub, &run, endpoint)?,
        (Transport::Sse, target) => {
            let dial = dial(config, whole)?;
            let front = SseEndpoint::new(run, dial, target.peer(), session_limits, carry);
            let messages = Route::exact(sse::MESSAGE_PATH).unlisted();
            let routes = routes.with(front.messages(), [messages]).with(front, [own]);
            match target {
                Target::Hub(hub) => with_health(routes, hub),
                _ => routes,
            }
        }
        (_, target) => {
            let dial = dial(config, whole)?;
            let sessions = McpEndpoint::new(run, dial, endpoint(target.peer().into()));
            routes.with(sessions, [own])
        }
    })
}

/// The hub at `/mcp`, and each of its profiles below `/mcp/p`.
fn hub_routes(
    hub: &HubTarget,
    run: &Arc<ProxyRun>,
    endpoint: impl Fn(Peer) -> EndpointOptions + Send + Sync + 'static,
) -> Result<Routes> {
    let (own, run) = (hub.clone(), Arc::clone(run));
    let new_endpoint = move |profile: &str| {
        let options = EndpointOptions {
            modern: ModernClients::OneByOne,
            ..endpoint(Peer::in_process("hub"))
        };
        let dial = hub_dial(&own, profile)?;
        anyhow::Ok(McpEndpoint::new(Arc::clone(&run), dial, options))
    };
    let everything = new_endpoint(NO_PROFILE)?;
    let profiles = ProfilesHandler::new(hub, Box::new(move |name| new_endpoint(name).ok()));
    let below = Route::prefix(&ProfilesHandler::path()).unlisted();
    let routes = Routes::new()
        .with(everything, [Route::exact(http::PATH)])
        .with(profiles, [below]);
    Ok(with_health(routes, hub))
}

fn with_health(routes: Routes, hub: &HubTarget) -> Routes {
    let health = Route::exact(serve::HEALTH_PATH).unlisted();
    routes.with(serve::HealthHandler::new(hub), [health])
}

/// The path that the server itself is reached at: clients whose configuration only got another host find it here too.
/// Unlisted, because the paths of hosted servers may hold keys.
fn same_path(remote: &RemoteServer) -> Route {
    Route::exact(remote.url().path()).unlisted()
}
