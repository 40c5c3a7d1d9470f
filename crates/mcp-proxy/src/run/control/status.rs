//! `status`: how the servers of a running hub are doing.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use mcp_proxy_control::{
    ConnectionsListRequest, HelloRequest, HubLoad, ServerHealth, ServerRow, ServersListRequest,
    ServersListResult,
};
use mcp_proxy_transport::control::{ControlClient, RunningProxy};
use mcp_proxy_wire::terminal_text::{sanitize, size_text};
use serde_json::json;

use super::choose_hub;
use crate::cli::control::StatusArgs;
use crate::printer;
use crate::run::runtime;
use crate::run::sessions::ignore_broken_pipe;
use crate::run::sessions::inspect::write_json;

/// The most that a request may ask for.
const CONNECTIONS: u64 = 1000;
const HUB: &str = "hub";

/// Shows it.
pub fn run(args: &StatusArgs) -> Result<ExitCode> {
    let hub = choose_hub(args.hub.as_deref().or(args.id.as_deref()))?;
    let asked = runtime().context("cannot start")?.block_on(ask(&hub));
    let (listed, clients) = asked?;
    let mut out = printer::stdout_writer();
    ignore_broken_pipe(show(args, &hub, &listed, clients, &mut out))
}

async fn ask(hub: &RunningProxy) -> Result<(ServersListResult, usize)> {
    let mut client = ControlClient::connect(&hub.socket).await?;
    let hello = HelloRequest {
        name: Some("status".to_owned()),
    };
    client.call(&hello).await?;
    let listed = client.call(&ServersListRequest {}).await?;
    let list = ConnectionsListRequest {
        limit: Some(CONNECTIONS),
        ..ConnectionsListRequest::default()
    };
    let connections = client.call(&list).await?.connections;
    let clients = connections
        .iter()
        .filter(|row| row.open && row.server.name.as_deref() == Some(HUB));
    Ok((listed, clients.count()))
}

fn show(
    args: &StatusArgs,
    hub: &RunningProxy,
    listed: &ServersListResult,
    clients: usize,
    out: &mut impl Write,
) -> Result<ExitCode> {
    let (servers, load) = (&listed.servers, listed.hub.unwrap_or_default());
    if args.json {
        let status =
            json!({"id": hub.descriptor.id, "clients": clients, "servers": servers, "hub": load});
        write_json(out, status.to_string().as_bytes())?;
    } else {
        table(servers, clients, out)?;
        told(load, out)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn table(servers: &[ServerRow], clients: usize, out: &mut impl Write) -> Result<()> {
    let width = servers
        .iter()
        .map(|server| server.name.chars().count())
        .max();
    let width = width.unwrap_or_default().clamp(6, 40);
    let states = servers.iter().filter_map(|server| server.health.as_ref());
    let state_width = states.map(|health| health.state.chars().count()).max();
    let state_width = state_width.unwrap_or_default().max(8);
    writeln!(
        out,
        "{:<width$}  {:<state_width$}  {:>5}  {:>9}  {:>7}  {:>8}  {:<10}  last error",
        "server", "state", "tools", "resources", "prompts", "restarts", "transport"
    )?;
    for server in servers {
        let none = ServerHealth::default();
        let health = server.health.as_ref().unwrap_or(&none);
        let stale = if health.stale { "*" } else { "" };
        let line = format!(
            "{:<width$}  {:<state_width$}  {:>5}  {:>9}  {:>7}  {:>8}  {:<10}  {}",
            sanitize(&server.name),
            health.state,
            format!("{}{stale}", health.tools),
            health.resources,
            health.prompts,
            health.restarts,
            match &*server.transport {
                "" => "-",
                transport => transport,
            },
            sanitize(health.error.as_deref().unwrap_or_default()),
        );
        writeln!(out, "{}", line.trim_end())?;
    }
    if servers
        .iter()
        .any(|server| server.health.as_ref().is_some_and(|health| health.stale))
    {
        writeln!(out, "\n* as the server was when it last answered")?;
    }
    sign_ins(servers, out)?;
    let health = servers.iter().filter_map(|server| server.health.as_ref());
    let warnings: Vec<_> = health.flat_map(|health| &health.warnings).collect();
    if !warnings.is_empty() {
        writeln!(out, "\nwarnings:")?;
    }
    for warning in warnings {
        writeln!(out, "  {}", sanitize(warning))?;
    }
    let clients = match clients {
        1 => "1 client is connected".to_owned(),
        count => format!("{count} clients are connected"),
    };
    writeln!(out, "\n{clients}.")?;
    Ok(())
}

/// Where the user is signed in.
fn sign_ins(servers: &[ServerRow], out: &mut impl Write) -> Result<()> {
    let mut is_first = true;
    for server in servers {
        let health = server.health.as_ref();
        let Some(sign_in) = health.and_then(|health| health.sign_in.as_ref()) else {
            continue;
        };
        if std::mem::take(&mut is_first) {
            writeln!(out, "\nsign-ins:")?;
        }
        let (name, text) = (sanitize(&server.name), sign_in.to_string());
        writeln!(out, "  {name}: {}", sanitize(&text))?;
    }
    Ok(())
}

/// What clients have lost, if they have.
fn told(load: HubLoad, out: &mut impl Write) -> Result<()> {
    let HubLoad {
        lost_notifications,
        clients_behind,
        memory_refused,
        ..
    } = load;
    if memory_refused > 0 {
        writeln!(
            out,
            "{memory_refused} messages were refused because --memory-budget was used up; now {} of {} are in use.",
            size_text(load.memory_used as u64),
            size_text(load.memory_budget as u64)
        )?;
    }
    if lost_notifications > 0 {
        let now = match clients_behind {
            0 => "all have caught up".to_owned(),
            1 => "1 client has not caught up yet".to_owned(),
            count => format!("{count} clients have not caught up yet"),
        };
        writeln!(
            out,
            "{lost_notifications} notifications were not delivered to clients that read too slowly; {now}."
        )?;
    }
    Ok(())
}
