//! Opens links to the server, whatever it is.

use std::borrow::Cow;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use mcp_proxy_core::mock::{self, MockServer};
use mcp_proxy_core::{Dial, LinkEnd};
use mcp_proxy_transport::http::{
    HttpLink, OutboundProxy, RemoteServer, RemoteServerOptions, auto_detect_link,
};
use mcp_proxy_transport::process::ServerCommand;
use mcp_proxy_transport::sse::sse_link;
use mcp_proxy_transport::{ChildServer, RemoteLinkOptions, SessionLoss, StderrCallback};
use mcp_proxy_wire::Transport;

use crate::config::{ClientEndpoint, Config, HubTarget, MockTarget, NO_PROFILE, Target};
use crate::printer;
use crate::run::sign_in::token_source;

/// What opens a link to the configured server.
pub fn dial(config: &Config) -> Result<Dial> {
    let can_hear = match config.listen {
        ClientEndpoint::Stdio => false,
        ClientEndpoint::Port { kind, .. } => kind == Transport::StreamableHttp,
        ClientEndpoint::InProcess(_) => true,
    };
    let on_loss = on_session_loss(config, can_hear);
    dial_target(config, (&config.target, None), on_loss)
}

/// The same for clients of this kind, whatever else their port serves.
pub fn dial_for(client: Transport, config: &Config) -> Result<Dial> {
    let on_loss = on_session_loss(config, client == Transport::StreamableHttp);
    dial_target(config, (&config.target, None), on_loss)
}

/// A streamable HTTP client can hear that its session is gone, and opens another one. The others cannot.
fn on_session_loss(config: &Config, can_hear: bool) -> SessionLoss {
    match config.reconnect && !can_hear && config.replay_of.is_none() {
        true => SessionLoss::Reopen,
        false => SessionLoss::EndLink,
    }
}

/// What opens a client session of the hub.
pub fn hub_dial(hub: &HubTarget, profile: &str) -> Result<Dial> {
    let driver = hub.driver.get().context("the hub is not running")?;
    Ok(driver.dial(profile))
}

/// What opens a link to one of several servers. Error texts call it by its name, because they reach clients.
pub fn dial_named(config: &Config, target: &Target, name: &str) -> Result<Dial> {
    let Target::Command(command) = target else {
        // The hub opens sessions again itself.
        return dial_target(config, (target, Some(name)), SessionLoss::EndLink);
    };
    let child = ChildServer {
        shown: name.to_owned(),
        on_stderr: pass_named_stderr(config, name),
        ..child(config, command)
    };
    Ok(Arc::new(move |connection| {
        let link = child.link(&connection);
        Box::pin(std::future::ready(link))
    }))
}

/// What a server prints is shown as it is, without the secrets that it was given.
fn pass_stderr(config: &Config) -> StderrCallback {
    let masks = config.masks.clone();
    let pass = match config.escapes_stderr {
        true => printer::pass_escaped_stderr,
        false => printer::pass_stderr,
    };
    Arc::new(
        move |line| match masks.mask(&String::from_utf8_lossy(line)) {
            Cow::Borrowed(_) => pass(line),
            Cow::Owned(masked) => pass(masked.as_bytes()),
        },
    )
}

/// What a server prints is shown with its name, and without the secrets that it was given. The hub remembers the last of it.
fn pass_named_stderr(config: &Config, name: &str) -> StderrCallback {
    let (masks, name) = (config.masks.clone(), name.to_owned());
    let driver = match &config.target {
        Target::Hub(hub) => Some(Arc::clone(&hub.driver)),
        _ => None,
    };
    Arc::new(move |line| {
        let line = String::from_utf8_lossy(line);
        let line = masks.mask(&line);
        let driver = driver.as_ref().and_then(|driver| driver.get());
        if driver.is_none_or(|driver| driver.server_printed(&name, &line)) {
            printer::pass_escaped_stderr(format!("[{name}] {line}").as_bytes());
        }
    })
}

/// What opens a link to a server, which has a name if there are several.
fn dial_target(
    config: &Config,
    (target, name): (&Target, Option<&str>),
    on_loss: SessionLoss,
) -> Result<Dial> {
    match target {
        Target::Command(command) => {
            let child = child(config, command);
            Ok(Arc::new(move |connection| {
                let link = child.link(&connection);
                Box::pin(std::future::ready(link))
            }))
        }
        Target::Url { kind, .. } => {
            let remote = remote(config, target, name)?;
            let options = RemoteLinkOptions {
                max: config.limits.message,
                on_loss,
            };
            Ok(dial_remote(remote, *kind, options))
        }
        Target::Recording(played) => dial_recording(config, played, on_loss),
        Target::Hub(hub) => hub_dial(hub, NO_PROFILE),
        Target::Relay(_) => {
            anyhow::bail!("a relay has no server of its own to open a connection to")
        }
    }
}

/// A recording, with a real server behind it or without.
fn dial_recording(config: &Config, played: &MockTarget, on_loss: SessionLoss) -> Result<Dial> {
    let beyond = match &played.fallback {
        Some(target) => Some(dial_target(config, (target, None), on_loss)?),
        None => None,
    };
    let recording = Arc::clone(&played.recording);
    let (matching, redacted) = (played.matching, played.redacted);
    Ok(Arc::new(move |connection| {
        let mock = MockServer::new(Arc::clone(&recording), matching, redacted);
        let beyond = beyond.clone();
        Box::pin(async move {
            let beyond = match beyond {
                Some(dial) => Some(dial(connection).await?),
                None => None,
            };
            Ok(mock::link(mock, beyond))
        })
    }))
}

/// A server process and who watches over it.
pub fn child(config: &Config, command: &ServerCommand) -> ChildServer {
    ChildServer {
        supervisor: config.supervisor.clone(),
        command: command.clone(),
        shown: config.masks.argv(&words(command)).join(" "),
        masks: config.masks.clone(),
        max_message: config.limits.message,
        on_stderr: pass_stderr(config),
    }
}

/// The words of a command.
pub fn words(command: &ServerCommand) -> Vec<String> {
    let words = std::iter::once(&command.program).chain(&command.args);
    words
        .map(|word| word.to_string_lossy().into_owned())
        .collect()
}

/// The HTTP client for a URL. Several servers have names.
pub fn remote(config: &Config, target: &Target, name: Option<&str>) -> Result<Arc<RemoteServer>> {
    let Target::Url {
        url,
        headers,
        ca_file,
        ..
    } = target
    else {
        anyhow::bail!("a command has no URL");
    };
    let variable = |name: &str| std::env::var(name).ok();
    Ok(RemoteServer::new(RemoteServerOptions {
        proxy: OutboundProxy::from_environment(url, variable)?,
        url: url.clone(),
        headers: headers.clone(),
        ca_file: ca_file.clone(),
        stall: config.limits.stall,
        tools: Arc::clone(&config.tools),
        tokens: token_source(config, target, name),
    })?)
}

/// What opens a link to a URL of a kind, or of one that is found out.
pub fn dial_remote(
    remote: Arc<RemoteServer>,
    kind: Option<Transport>,
    options: RemoteLinkOptions,
) -> Dial {
    Arc::new(move |connection| {
        let remote = Arc::clone(&remote);
        Box::pin(async move {
            Ok::<_, LinkEnd>(match kind {
                Some(Transport::Sse) => sse_link(remote, connection, options).await?,
                Some(_) => HttpLink::link(remote, connection, options),
                None => auto_detect_link(remote, connection, options),
            })
        })
    })
}
