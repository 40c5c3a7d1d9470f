//! The servers of a hub: how they are doing, and what the user does about them.

use std::collections::BTreeSet;
use std::time::Duration;

use mcp_proxy_control::{
    ConnectionRow, ConnectionsListRequest, ServerRow, ServersDisableRequest, ServersEnableRequest,
    ServersListRequest, ServersReloadRequest, ServersRestartRequest,
};
use mcp_proxy_wire::json_string;

use super::answers::RequestPurpose;
use super::{App, Focus, Overlay, ProxyOwner};
use crate::command::UiCommand;
use crate::proxy::ProxyStatus;
use crate::source::{SessionEvent, SessionEventKind};

/// How often a hub is asked about its servers while they are shown.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// The most connections that one answer can have.
const MOST_CONNECTIONS: u64 = 1000;

/// The window with the servers of a hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServersWindow {
    /// The place of the selected server.
    pub selected: usize,
    /// The place of the first server on the screen.
    pub top: usize,
    /// Servers that fit the screen, as it was last drawn.
    pub height: usize,
    /// Why it is open.
    pub opening: WindowOpening,
}

/// Why the window with the servers is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowOpening {
    /// The user wants to see it.
    ByUser,
    /// The hub has just started. It closes by itself when the first client connects.
    AtStart,
}

/// Something that is done about servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ServerTask {
    Restart(String),
    Enable(String),
    Disable(String),
    Reload,
}

impl ServerTask {
    fn success(&self) -> String {
        match self {
            ServerTask::Restart(name) => format!("{name} is restarted"),
            ServerTask::Enable(name) => format!("{name} can be used again"),
            ServerTask::Disable(name) => format!("{name} is disabled"),
            ServerTask::Reload => "the configuration was read again".to_owned(),
        }
    }

    pub(super) fn failure(&self, why: &str) -> String {
        match self {
            ServerTask::Restart(name) => format!("{name} was not restarted: {why}"),
            ServerTask::Enable(name) => format!("{name} was not enabled: {why}"),
            ServerTask::Disable(name) => format!("{name} was not disabled: {why}"),
            ServerTask::Reload => format!("the configuration stays as it was: {why}"),
        }
    }
}

impl App {
    pub(super) fn open_servers(&mut self) {
        match &self.proxy.link {
            ProxyStatus::Live if self.proxy.is_hub() => {}
            ProxyStatus::Live if self.proxy.hello.target.is_empty() => {
                return self.complain("the proxy has not answered yet");
            }
            ProxyStatus::Gone(why) => {
                let text = format!("the proxy is gone: {why}");
                return self.complain(text);
            }
            ProxyStatus::Live | ProxyStatus::None => {
                return self.complain("this is not a running hub (`mcp-proxy serve`)");
            }
        }
        if self.proxy.servers.is_empty() {
            self.proxy.servers = failed_first(self.proxy.hello.servers.clone());
        }
        self.servers_asked = None;
        let shown = self.tabs.first().map(|tab| tab.view.filter());
        let mut servers = self.proxy.servers.iter();
        let place = servers.position(|server| shown == Some(&filter_text(&server.name)));
        self.open(Overlay::Servers(ServersWindow {
            // Back from its messages, the user is where they were.
            selected: place.unwrap_or(0),
            top: 0,
            height: 1,
            opening: WindowOpening::ByUser,
        }));
    }

    /// At the start of a hub in this terminal there is nothing to see but its servers, and how clients reach it.
    pub(super) fn greet(&mut self) {
        self.proxy.connections = self.proxy.hello.connections.clone();
        if self.owner != ProxyOwner::Here || !self.proxy.is_hub() || self.proxy.clients() > 0 {
            return;
        }
        self.open_servers();
        if let Overlay::Servers(window) = &mut self.overlay {
            window.opening = WindowOpening::AtStart;
        }
    }

    /// Takes an answer about connections.
    pub(super) fn take_connections(&mut self, connections: Vec<ConnectionRow>) {
        self.proxy.connections = connections;
        if let Overlay::Servers(window) = &self.overlay
            && window.opening == WindowOpening::AtStart
            && self.proxy.clients() > 0
        {
            self.overlay = Overlay::None;
        }
    }

    /// Asks how the servers are doing, if they are shown, it is time, and nothing is being asked about them.
    pub(super) fn poll_servers(&mut self) {
        let is_shown = matches!(self.overlay, Overlay::Servers(_));
        let is_due = self
            .servers_asked
            .is_none_or(|asked| self.now.duration_since(asked) >= ASK_EVERY);
        let is_asked = || {
            let mut pending = self.pending_requests.values();
            pending
                .any(|then| matches!(then, RequestPurpose::Servers | RequestPurpose::Connections))
        };
        if !is_shown || !is_due || self.proxy.link != ProxyStatus::Live || is_asked() {
            return;
        }
        self.servers_asked = Some(self.now);
        self.ask(&ServersListRequest {}, RequestPurpose::Servers);
    }

    /// Takes an answer. The selected server stays selected wherever it is now.
    pub(super) fn take_servers(&mut self, servers: Vec<ServerRow>) {
        let before = std::mem::replace(&mut self.proxy.servers, failed_first(servers));
        let Overlay::Servers(window) = &mut self.overlay else {
            return;
        };
        let now = &self.proxy.servers;
        let same = before
            .get(window.selected)
            .and_then(|old| now.iter().position(|server| server.name == old.name));
        let last = now.len().saturating_sub(1);
        window.selected = same.unwrap_or(window.selected).min(last);
        let request = ConnectionsListRequest {
            limit: Some(MOST_CONNECTIONS),
            ..ConnectionsListRequest::default()
        };
        self.ask(&request, RequestPurpose::Connections);
    }

    pub(super) fn servers_changed(&mut self, task: &ServerTask) {
        self.say(task.success());
        // The next turn shows what came of it.
        self.servers_asked = None;
    }

    /// Does what a key stands for in the window.
    pub(super) fn server_command(&mut self, command: UiCommand) {
        let Overlay::Servers(window) = &mut self.overlay else {
            return;
        };
        window.opening = WindowOpening::ByUser;
        if command == UiCommand::ReloadServers {
            let then = RequestPurpose::ServersChanged(ServerTask::Reload);
            return self.ask(&ServersReloadRequest {}, then);
        }
        let Some(server) = self.proxy.servers.get(window.selected) else {
            return self.complain("the hub has no servers");
        };
        let name = server.name.clone();
        let server = name.clone();
        let then = RequestPurpose::ServersChanged;
        match command {
            UiCommand::ServerMessages => self.show_messages_of(&name),
            UiCommand::RestartServer => self.ask(
                &ServersRestartRequest { server },
                then(ServerTask::Restart(name)),
            ),
            UiCommand::EnableServer => self.ask(
                &ServersEnableRequest { server },
                then(ServerTask::Enable(name)),
            ),
            UiCommand::DisableServer => self.ask(
                &ServersDisableRequest { server },
                then(ServerTask::Disable(name)),
            ),
            // Those of other groups.
            _ => {}
        }
    }

    /// Shows only the hub's conversations with this server.
    fn show_messages_of(&mut self, name: &str) {
        if self.connections_of(name).is_empty() {
            return self.complain(format!("nothing was sent to {name} yet"));
        }
        self.overlay = Overlay::None;
        self.focus = Focus::List;
        // The servers are those of the live session.
        self.tab = 0;
        self.set_filter(&filter_text(name));
        self.say(format!(
            "only messages of {name}; {} shows everything again",
            UiCommand::ClearFilter.key()
        ));
    }

    /// The numbers of the connections to a server, as far as the record and the hub remember them.
    fn connections_of(&self, name: &str) -> BTreeSet<u32> {
        let events = self.tabs.first().map(|tab| tab.view.events().iter());
        let recorded = events
            .into_iter()
            .flatten()
            .filter(|event| event.server.as_deref() == Some(name))
            .filter_map(|event| event.connection);
        let rows = self.proxy.connections.iter();
        let told = rows
            .filter(|row| row.server.name.as_deref() == Some(name))
            .map(|row| row.connection.0);
        recorded.chain(told).collect()
    }

    /// The last lines that a server wrote on stderr, the oldest first.
    pub(crate) fn stderr_of(&self, name: &str, most: usize) -> Vec<&SessionEvent> {
        let connections = self.connections_of(name);
        let is_wanted = |event: &&SessionEvent| {
            let connection = event.connection;
            event.kind == SessionEventKind::Stderr
                && connection.is_some_and(|number| connections.contains(&number))
        };
        let events = self.tabs.first().map(|tab| tab.view.events().iter().rev());
        let newest = events.into_iter().flatten().filter(is_wanted).take(most);
        let mut lines: Vec<&SessionEvent> = newest.collect();
        lines.reverse();
        lines
    }
}

/// The servers that cannot be used although they should be, before the others. One that is tried again stays among them.
fn failed_first(mut servers: Vec<ServerRow>) -> Vec<ServerRow> {
    servers.sort_by_key(|server| {
        let health = server.health.as_ref();
        let has_failed = health.is_some_and(|health| match health.state.as_str() {
            "failed" | "needs sign-in" => true,
            "starting" => health.error.is_some(),
            _ => false,
        });
        !has_failed
    });
    servers
}

/// The filter for the messages of a server.
fn filter_text(name: &str) -> String {
    format!(".server == {}", json_string(name))
}
