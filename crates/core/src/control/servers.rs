//! Servers and connections: the lists of them, and the one that a request names.

use std::collections::BTreeMap;
use std::sync::Arc;

use mcp_proxy_control::{
    ConnectionNumber, ConnectionRow, ConnectionsListRequest, ConnectionsListResult, Fault,
    NoResult, Scope, ServerRow,
};

use super::{ProxyControl, RunServer, ServerManagement, ServerOrder};
use crate::connection::Connection;
use crate::intercept::HoldScope;

/// Connections in one answer, unless the request has a limit.
pub(super) const ROWS: usize = 100;
/// The highest limit that a request may have.
const MOST_ROWS: u64 = 1000;

/// The servers of the run.
pub(super) fn list(control: &ProxyControl) -> Vec<ServerRow> {
    let mut open: BTreeMap<Arc<str>, u64> = BTreeMap::new();
    for connection in control.run.registry().open() {
        *open
            .entry(Arc::clone(connection.server_name()))
            .or_default() += 1;
    }
    if let Some(management) = &control.callbacks.management {
        let mut rows = management.list();
        for row in &mut rows {
            row.connections = open.get(row.name.as_str()).copied().unwrap_or_default();
        }
        return rows;
    }
    let servers = control.callbacks.servers.iter();
    let row = |server: &RunServer| ServerRow {
        name: server.name().as_ref().to_owned(),
        transport: server.peer.transport.as_str().to_owned(),
        target: server.target.clone(),
        connections: open.get(&server.name()).copied().unwrap_or_default(),
        health: None,
    };
    servers.map(row).collect()
}

/// `servers.restart` and the like.
pub(super) fn change(control: &ProxyControl, order: ServerOrder<'_>) -> Result<NoResult, Fault> {
    outcome(management(control)?.change(order))
}

/// `servers.reload`. Files are read for it, which may take seconds, so others are served in the meantime.
pub(super) async fn reload(control: &ProxyControl) -> Result<NoResult, Fault> {
    let management = Arc::clone(management(control)?);
    let reload = move || management.change(ServerOrder::Reload);
    let reloaded = tokio::task::spawn_blocking(reload).await;
    outcome(reloaded.unwrap_or_else(|_| Err("the configuration could not be read".to_owned())))
}

fn management(control: &ProxyControl) -> Result<&Arc<dyn ServerManagement>, Fault> {
    let management = control.callbacks.management.as_ref();
    management.ok_or_else(|| {
        let text = "only the servers of `mcp-proxy serve` can be changed while it runs";
        Fault::new(Fault::FAILED, text).because("not_a_hub")
    })
}

fn outcome(changed: Result<(), String>) -> Result<NoResult, Fault> {
    changed
        .map(|()| NoResult {})
        .map_err(|why| Fault::new(Fault::FAILED, why))
}

/// The newest connections.
pub(super) fn newest(control: &ProxyControl) -> Vec<ConnectionRow> {
    let mut rows = control.run.registry().list();
    rows.truncate(ROWS);
    rows
}

/// `connections.list`
pub(super) fn connections(
    control: &ProxyControl,
    request: &ConnectionsListRequest,
) -> Result<ConnectionsListResult, Fault> {
    let limit = request.limit.unwrap_or(ROWS as u64);
    if !(1..=MOST_ROWS).contains(&limit) {
        let text = format!("limit: 1 to {MOST_ROWS}, not {limit}");
        return Err(Fault::params(text));
    }
    let server = request.server.as_deref();
    let server = server.map(|name| find_server(control, name)).transpose()?;
    let registry = control.run.registry();
    let is_wanted = |row: &ConnectionRow| {
        let server = server.as_ref();
        server.is_none_or(|server| row.server.name.as_deref() == Some(&*server.name()))
    };
    let rows = registry.list().into_iter().filter(is_wanted);
    Ok(ConnectionsListResult {
        connections: rows.take(usize::try_from(limit).unwrap_or(ROWS)).collect(),
        open: registry.open().len() as u64,
        count: control.run.connections().into(),
    })
}

/// The part of the run that a request is about.
pub(super) fn hold_scope(
    control: &ProxyControl,
    connection: Option<ConnectionNumber>,
    server: Option<&str>,
) -> Result<HoldScope, Fault> {
    Ok(match Scope::new(connection, server)? {
        Scope::Run => HoldScope::Run,
        Scope::Connection(number) => HoldScope::connection(&find_connection(control, number)?),
        Scope::Server(name) => HoldScope::Server(find_server(control, &name)?.name()),
    })
}

/// The server that a request is about: by its name, or that of a connection. `None`: the request names neither.
pub(super) fn named_server(
    control: &ProxyControl,
    connection: Option<ConnectionNumber>,
    server: Option<&str>,
) -> Result<Option<RunServer>, Fault> {
    match Scope::new(connection, server)? {
        Scope::Run => Ok(None),
        Scope::Connection(number) => {
            let connection = find_connection(control, number)?;
            find_server(control, connection.server_name()).map(Some)
        }
        Scope::Server(name) => find_server(control, &name).map(Some),
    }
}

/// The server of a connection that may have ended, as far as it is remembered.
pub(super) fn server_of(control: &ProxyControl, connection: u32) -> Option<RunServer> {
    let rows = control.run.registry().list();
    let mut rows = rows.into_iter();
    let row = rows.find(|row| row.connection.0 == connection)?;
    find_server(control, row.server.name.as_deref()?).ok()
}

/// The open connection of this number.
pub(super) fn find_connection(
    control: &ProxyControl,
    number: ConnectionNumber,
) -> Result<Arc<Connection>, Fault> {
    let found = control.run.registry().find(number.0);
    found.ok_or_else(|| {
        let (why, reason) = match number.0 == 0 || number.0 > control.run.connections() {
            true => ("does not exist", "unknown"),
            false => ("is not open any more", "not_live"),
        };
        Fault::params(format!("connection: {number} {why}")).because(reason)
    })
}

/// A server of the run by its name, or by its command or URL as it is shown. One that a hub had at its start and was taken out
/// of its configuration is still found: its connections may be open.
fn find_server(control: &ProxyControl, name: &str) -> Result<RunServer, Fault> {
    let management = control.callbacks.management.as_ref();
    let servers = &control.callbacks.servers;
    let first = || {
        let named = servers.iter().find(|server| &*server.name() == name);
        named.or_else(|| servers.iter().find(|server| server.target == name))
    };
    let found = management.and_then(|management| management.find(name));
    found.or_else(|| first().cloned()).ok_or_else(|| {
        let names: Vec<String> = list(control).into_iter().map(|row| row.name).collect();
        let names = names.join(", ");
        Fault::params(format!(
            "server: `{name}` is not a server of this run; it has: {names}"
        ))
        .because("unknown")
    })
}
