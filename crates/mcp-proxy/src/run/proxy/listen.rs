//! The client side on a port: picks the front for the two kinds, listens, and ends in order.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use mcp_proxy_core::Pipeline;
use mcp_proxy_session::Io;
use mcp_proxy_transport::front::Front;
use mcp_proxy_transport::http::auto::AutoFront;
use mcp_proxy_transport::http::exchange::Exchange;
use mcp_proxy_transport::http::listener::{Listener, ListenerOptions};
use mcp_proxy_transport::http::sessions::{SessionLimits, Sessions};
use mcp_proxy_transport::sse::exchange::SseExchange;
use mcp_proxy_transport::sse::front::SseFront;
use mcp_proxy_transport::tls;
use mcp_proxy_wire::Transport;

use super::dial::{dial, dial_remote, remote};
use super::signals::Stop;
use super::{RunEnd, STOP_DEADLINE, carry_options, limits};
use crate::config::{Config, Listen, Target};
use crate::printer;

/// Listens until a signal comes.
pub async fn over_port(
    config: &Config,
    pipeline: &Arc<Pipeline>,
    mut stop: Stop,
    notices: &[String],
) -> Result<RunEnd> {
    let Listen::Port {
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
    let refusals = Arc::clone(pipeline);
    let options = ListenerOptions {
        admission: admission.clone(),
        tls,
        stall: config.limits.stall,
        is_public: !crate::config::is_loopback(host),
        on_refusal: Arc::new(move |text| refusals.note(&Io::Note { text })),
    };
    let listener = Listener::bind(host, *port, options)
        .await
        .with_context(|| {
            format!("cannot listen on {host}:{port} (--listen-port 0 picks a free port)")
        })?;
    let front = front(config, pipeline, *kind)?;
    let address = listener.url(front.path());
    pipeline.listens_on(&address);
    printer::say(&format!("listening on {address}"));
    notices.iter().for_each(|notice| printer::say(notice));
    let mut stopped = None;
    let mut record_lost = false;
    listener
        .run(front.clone(), async {
            tokio::select! {
                end = stop.wait() => stopped = Some(end),
                () = pipeline.record_lost() => record_lost = true,
            }
        })
        .await;
    front.stop_all();
    let deadline = tokio::time::Instant::now() + STOP_DEADLINE;
    while front.open_count() > 0 && tokio::time::Instant::now() < deadline {
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

/// Same kind on both sides: pass through. Else HTTP ends here.
fn front(config: &Config, pipeline: &Arc<Pipeline>, client: Transport) -> Result<Front> {
    let pipeline = Arc::clone(pipeline);
    let carry = carry_options(config.limits);
    let session_limits = SessionLimits {
        sessions: config.limits.sessions,
        idle: config.limits.idle,
        message: config.limits.message,
    };
    let whole = limits(config.limits, Transport::Stdio, Transport::StreamableHttp);
    let cut = limits(config.limits, client, client);
    Ok(match (client, &config.target) {
        (
            Transport::StreamableHttp,
            Target::Url {
                kind: Some(Transport::StreamableHttp),
                ..
            },
        ) => Front::Exchange(Exchange::new(
            pipeline,
            remote(config, &config.target)?,
            cut,
        )),
        (
            Transport::Sse,
            Target::Url {
                kind: Some(Transport::Sse),
                ..
            },
        ) => Front::SseExchange(SseExchange::new(
            pipeline,
            remote(config, &config.target)?,
            cut,
        )),
        (Transport::StreamableHttp, Target::Url { kind: None, .. }) => {
            let remote = remote(config, &config.target)?;
            let exchange = Exchange::new(Arc::clone(&pipeline), Arc::clone(&remote), cut);
            let dial = dial_remote(Arc::clone(&remote), Some(Transport::Sse), whole.max);
            let kind = Transport::Sse;
            let sessions = Sessions::new(Arc::clone(&pipeline), dial, kind, session_limits, carry);
            let max = whole.max;
            Front::Auto(AutoFront::new(pipeline, remote, exchange, sessions, max))
        }
        (Transport::Sse, target) => {
            let dial = dial(config, whole)?;
            let kind = target.transport();
            Front::Sse(SseFront::new(pipeline, dial, kind, session_limits, carry))
        }
        (_, target) => {
            let dial = dial(config, whole)?;
            let kind = target.transport();
            Front::Sessions(Sessions::new(pipeline, dial, kind, session_limits, carry))
        }
    })
}
