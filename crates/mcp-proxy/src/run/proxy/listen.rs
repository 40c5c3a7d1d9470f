//! The client side on a port: picks the handlers for the two kinds of transport, listens, and shuts down cleanly.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use mcp_proxy_core::{Peer, ProxyRun};
use mcp_proxy_session::RecordEvent;
use mcp_proxy_transport::http::AutoDetectEndpoint;
use mcp_proxy_transport::http::Handler;
use mcp_proxy_transport::http::HttpPassThrough;
use mcp_proxy_transport::http::RemoteServer;
use mcp_proxy_transport::http::{
    EndpointOptions, LegacyClients, McpEndpoint, ModernClients, SessionLimits, SessionMemory,
    SessionPlaces,
};
use mcp_proxy_transport::http::{Listener, ListenerLimits, ListenerOptions};
use mcp_proxy_transport::http::{Route, Routes};
use mcp_proxy_transport::sse::SseEndpoint;
use mcp_proxy_transport::tls::ServerCertificate;
use mcp_proxy_transport::{RemoteLinkOptions, SessionLoss, http, sse};
use mcp_proxy_wire::Transport;

use super::dial::{dial_for, dial_remote, hub_dial, remote};
use super::health::ProxyHealth;
use super::signals::{HangupMeaning, StopRequest, on_hangup};
use super::{RunEnd, STOP_DEADLINE, carry_options, drain};
use crate::config::{ClientEndpoint, Config, HubTarget, NO_PROFILE, Target};
use crate::printer;
use crate::run::relay;
use crate::run::serve::{self, KeptSessions, ProfilesHandler};

/// Browsers and clients of a relay at once.
const RELAY_SOCKETS: usize = 65_536;
/// How long their requests may take to arrive.
const RELAY_HEAD_DEADLINE: Duration = Duration::from_secs(10);

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
        legacy,
        ..
    } = &config.listen
    else {
        anyhow::bail!("no port to listen on");
    };
    let tls = match tls {
        Some((cert, key)) => {
            let certificate = ServerCertificate::open(cert, key);
            let certificate = certificate.context("--tls-cert, --tls-key")?;
            reload_on_hangup(Arc::clone(&certificate), &config.target)
                .context("cannot watch for signals")?;
            Some(
                certificate
                    .server_config()
                    .context("--tls-cert, --tls-key")?,
            )
        }
        None => None,
    };
    let refusals = Arc::clone(run);
    let options = ListenerOptions {
        admission: admission.clone(),
        tls,
        stall: config.limits.stall,
        is_public: !crate::config::is_loopback(host),
        limits: listener_limits(&config.target),
        on_refusal: Arc::new(move |text| refusals.record_event(&RecordEvent::Note { text })),
    };
    let listener = Listener::bind(host, *port, options)
        .await
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::AddrInUse => anyhow!(
                "cannot listen on {host}:{port}: the port is in use; choose another with --listen-port, or 0 for any that is free"
            ),
            _ => anyhow!(error).context(format!("cannot listen on {host}:{port}")),
        })?;
    let address = listener.url(path(*kind));
    let address = match kind {
        Transport::WebSocket => address.replacen("http", "ws", 1),
        _ => address,
    };
    let announce = || {
        run.set_address(&address);
        printer::say_while_running(&format!("listening on {address}"));
        let notices = notices.iter();
        notices.for_each(|notice| printer::say_while_running(notice));
    };
    let mut kept = None;
    let routes = match &config.target {
        Target::Hub(hub) => {
            // The address is the first line, whatever the servers have to say.
            announce();
            if !config.quiet {
                printer::say_while_running(&serve::client_config(&address, *kind, admission));
            }
            serve::start(config, hub, run)?;
            kept = keep_sessions(config, hub, &address, *legacy);
            let memory = kept.as_ref().map(|kept| kept.memory());
            routes(config, run, *legacy, memory)?
        }
        Target::Relay(relay) => {
            let started = relay::start(config, relay, run).await?;
            announce();
            let notices = started.notices.iter();
            notices.for_each(|notice| printer::say_while_running(notice));
            started.routes
        }
        _ => {
            let routes = routes(config, run, *legacy, None)?;
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
            if let Some(kept) = &kept {
                kept.finish();
            }
            drain(config, stop.clone()).await;
            // The listener's sockets end with it.
            if let Target::Relay(relay) = &config.target {
                relay::say_farewell(relay).await;
            }
        })
        .await;
    routes.stop_all();
    let deadline = tokio::time::Instant::now() + STOP_DEADLINE;
    let ending = async {
        while routes.open_count() > 0 && tokio::time::Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        () = ending => {}
        () = stop.hurry() => {}
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

/// The sessions that outlive this run. Without them clients open new ones, so a failure is only told.
fn keep_sessions(
    config: &Config,
    hub: &HubTarget,
    address: &str,
    legacy: LegacyClients,
) -> Option<Arc<KeptSessions>> {
    if legacy == LegacyClients::Stateless {
        return None;
    }
    let kept = KeptSessions::open(config, hub, address);
    kept.inspect_err(|error| {
        printer::say(&format!("mcp-proxy: sessions end with this run: {error:#}"));
    })
    .ok()
}

/// Where SIGHUP is not the end of the run, it makes the listener read its certificate again.
fn reload_on_hangup(certificate: Arc<ServerCertificate>, target: &Target) -> std::io::Result<()> {
    if HangupMeaning::of(target) == HangupMeaning::Stop {
        return Ok(());
    }
    on_hangup(move || {
        if let Err(error) = certificate.reload() {
            let error = anyhow::Error::from(error);
            printer::say(&format!(
                "mcp-proxy: the certificate stays as it was: {error:#}"
            ));
        }
    })
}

/// A relay has a socket for each browser and client; others have a few for each session.
fn listener_limits(target: &Target) -> ListenerLimits {
    match target {
        Target::Relay(_) => ListenerLimits {
            connections: RELAY_SOCKETS,
            header_deadline: RELAY_HEAD_DEADLINE,
            ..ListenerLimits::default()
        },
        _ => ListenerLimits::default(),
    }
}

/// The path that clients are told to use.
fn path(client: Transport) -> &'static str {
    match client {
        Transport::Sse => sse::PATH,
        Transport::WebSocket => "/",
        _ => http::PATH,
    }
}

/// The path table: the one list of the handlers on a port. Every listener serves both kinds of HTTP clients. Streamable HTTP is passed
/// through if the server speaks it too; otherwise HTTP ends here.
fn routes(
    config: &Config,
    run: &Arc<ProxyRun>,
    legacy: LegacyClients,
    memory: Option<Arc<SessionMemory>>,
) -> Result<Routes> {
    let run = Arc::clone(run);
    let carry = carry_options(config.limits);
    let limits_of_sessions = SessionLimits {
        requests: config.limits.requests,
        idle: config.limits.idle,
        message: config.limits.message,
    };
    let max_message = config.limits.message;
    let most = config.limits.sessions;
    let endpoint = move |server: Peer| EndpointOptions {
        server,
        modern: ModernClients::Shared,
        legacy,
        limits: limits_of_sessions,
        places: SessionPlaces::new(most),
        memory: memory.clone(),
        carry,
    };
    let sse_endpoint = |places: Arc<SessionPlaces>| {
        let (dial, server) = (dial_for(Transport::Sse, config)?, config.target.peer());
        let allowed = (limits_of_sessions, places);
        anyhow::Ok(SseEndpoint::new(
            Arc::clone(&run),
            dial,
            server,
            allowed,
            carry,
        ))
    };
    let mcp_endpoint = |options: EndpointOptions| {
        let dial = dial_for(Transport::StreamableHttp, config)?;
        anyhow::Ok(McpEndpoint::new(Arc::clone(&run), dial, options))
    };
    let mcp = Route::exact(http::PATH);
    let routes = Routes::new();
    // Added last: if the server's own path is that of `/healthz`, the server is served there.
    let health = || ProxyHealth::new(&run);
    Ok(match &config.target {
        Target::Url {
            kind: Some(Transport::StreamableHttp),
            ..
        } => {
            let remote = remote(config, &config.target, None)?;
            let same = same_path(&remote);
            let exchange = HttpPassThrough::new(Arc::clone(&run), remote, max_message);
            let front = sse_endpoint(SessionPlaces::new(most))?;
            let routes = with_sse(routes.with(exchange, [mcp, same]), &front);
            with_health(routes, health().counting(front))
        }
        Target::Url { kind: None, .. } => {
            let remote = remote(config, &config.target, None)?;
            let same = same_path(&remote);
            let exchange = HttpPassThrough::new(Arc::clone(&run), Arc::clone(&remote), max_message);
            let options = RemoteLinkOptions {
                max: max_message,
                on_loss: SessionLoss::EndLink,
            };
            let dial = dial_remote(Arc::clone(&remote), Some(Transport::Sse), options);
            let options = endpoint(Transport::Sse.into());
            let front = sse_endpoint(Arc::clone(&options.places))?;
            let sessions = McpEndpoint::new(Arc::clone(&run), dial, options);
            let health = health()
                .counting(Arc::clone(&sessions))
                .counting(Arc::clone(&front));
            let bridges = (sessions, Arc::clone(&front));
            let auto =
                AutoDetectEndpoint::new(Arc::clone(&run), remote, exchange, bridges, max_message);
            let routes = with_sse(routes.with(auto, [mcp, same]), &front);
            with_health(routes, health)
        }
        Target::Hub(hub) => hub_routes(hub, &run, endpoint)?,
        target => {
            let options = endpoint(target.peer().into());
            // Both kinds of clients share one limit.
            let front = sse_endpoint(Arc::clone(&options.places))?;
            let sessions = mcp_endpoint(options)?;
            let routes = match target {
                // Named on the command line as HTTP+SSE: its own path is for such clients.
                Target::Url { url, .. } => {
                    let same = Route::exact(url.path()).unlisted();
                    let streams = Arc::clone(&front);
                    routes.with(streams, [same])
                }
                _ => routes,
            };
            let health = health()
                .counting(Arc::clone(&sessions))
                .counting(Arc::clone(&front));
            let routes = with_sse(routes.with(sessions, [mcp]), &front);
            with_health(routes, health)
        }
    })
}

/// HTTP+SSE that ends here: the stream and the message endpoint.
fn with_sse(routes: Routes, front: &Arc<SseEndpoint>) -> Routes {
    let messages = Route::exact(sse::MESSAGE_PATH).unlisted();
    let stream = Route::exact(sse::PATH);
    let front = Arc::clone(front);
    routes
        .with(front.messages(), [messages])
        .with(front, [stream])
}

/// The hub at `/mcp`, for HTTP+SSE clients at `/sse`, and each of its profiles below `/mcp/p`.
fn hub_routes(
    hub: &HubTarget,
    run: &Arc<ProxyRun>,
    endpoint: impl Fn(Peer) -> EndpointOptions + Send + Sync + 'static,
) -> Result<Routes> {
    let options = move || EndpointOptions {
        modern: ModernClients::OneByOne,
        ..endpoint(Peer::in_process("hub"))
    };
    let all = options();
    let front = SseEndpoint::new(
        Arc::clone(run),
        hub_dial(hub, NO_PROFILE)?,
        all.server.clone(),
        (all.limits, Arc::clone(&all.places)),
        all.carry,
    );
    let everything = McpEndpoint::new(Arc::clone(run), hub_dial(hub, NO_PROFILE)?, all);
    let (own, run) = (hub.clone(), Arc::clone(run));
    let of_profile = move |name: &str| {
        let dial = hub_dial(&own, name).ok()?;
        Some(McpEndpoint::new(Arc::clone(&run), dial, options()))
    };
    let profiles = ProfilesHandler::new(hub, Box::new(of_profile));
    let below = Route::prefix(&ProfilesHandler::path()).unlisted();
    let routes = Routes::new()
        .with(everything, [Route::exact(http::PATH)])
        .with(profiles, [below]);
    let routes = with_sse(routes, &front);
    Ok(with_health(routes, serve::HealthHandler::new(hub)))
}

fn with_health(routes: Routes, health: Arc<impl Handler + 'static>) -> Routes {
    let path = Route::exact(serve::HEALTH_PATH).unlisted().without_token();
    routes.with(health, [path])
}

/// The path that the server itself is reached at: clients whose configuration only got another host find it here too.
/// Unlisted, because the paths of hosted servers may hold keys.
fn same_path(remote: &RemoteServer) -> Route {
    Route::exact(remote.url().path()).unlisted()
}
