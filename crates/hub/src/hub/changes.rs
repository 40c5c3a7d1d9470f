//! Changes while the hub runs: servers restarted, switched on and off, and a new configuration.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use rustc_hash::FxHashMap;

use super::catalog_build::BuiltConfiguration;
use super::servers::Server;
use super::{Hub, HubAction};
use crate::catalog::{CatalogView, ServerIndex};
use crate::server_link::{ClientId, LinkId};
use crate::settings::{HubSettings, ServerSettings};

/// Something an operator wants done to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerChange {
    /// End it and start it again.
    Restart,
    /// Let clients use it again.
    Enable,
    /// End it, and offer nothing of it.
    Disable,
}

/// Why a server cannot be changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServerChangeError {
    /// There is no server of this name.
    #[error("unknown server {0:?}")]
    Unknown(String),
    /// Its configuration has to be changed first.
    #[error("server {name:?} cannot be used: {reason}")]
    Unusable {
        /// Its configured name.
        name: String,
        /// What is wrong with its entry.
        reason: String,
    },
}

/// A server of a new configuration.
#[derive(Clone, Debug)]
pub enum NewServer {
    /// It is as it was, and keeps running.
    Unchanged(String),
    /// It is new or was changed.
    Changed(Box<ServerSettings>),
}

impl Hub {
    /// Changes the state of one server.
    pub fn change_server(
        &mut self,
        name: &str,
        change: ServerChange,
        now: Instant,
    ) -> Result<(), ServerChangeError> {
        let index = self
            .server_named(name)
            .ok_or_else(|| ServerChangeError::Unknown(name.to_owned()))?;
        let unusable = self.server(index).settings.disabled.clone();
        if let Some(reason) = unusable.filter(|_| change != ServerChange::Disable) {
            let name = name.to_owned();
            return Err(ServerChangeError::Unusable { name, reason });
        }
        match change {
            ServerChange::Restart => {
                self.end_server(index, "it was restarted", now);
                self.server_mut(index).note_restart();
                self.start_if_eager(index, now);
            }
            ServerChange::Enable => {
                self.server_mut(index).is_switched_off = false;
                self.start_if_eager(index, now);
                self.rebuild_catalog();
            }
            ServerChange::Disable => {
                self.server_mut(index).is_switched_off = true;
                self.give_up_repeats(index);
                self.give_up_sign_in(index, now);
                self.end_server(index, "it was disabled (with `servers.disable`)", now);
                let server = self.server_mut(index);
                server.listing = None;
                server.stale = false;
                server.forget_failure();
                self.rebuild_catalog();
            }
        }
        Ok(())
    }

    /// Takes on a new configuration that was [prepared](Hub::prepare). Unchanged servers, their calls and all clients go on;
    /// clients of a profile that no longer exists are disconnected.
    pub fn reconfigure(&mut self, new: BuiltConfiguration, now: Instant) {
        let BuiltConfiguration {
            settings,
            servers,
            catalog,
        } = new;
        let kept: BTreeSet<&str> = servers
            .iter()
            .filter_map(|server| match server {
                NewServer::Unchanged(name) => Some(name.as_str()),
                NewServer::Changed(_) => None,
            })
            .collect();
        let gone: Vec<ServerIndex> = self
            .server_indices()
            .filter(|index| !kept.contains(self.server(*index).name()))
            .collect();
        for index in gone {
            self.give_up_repeats(index);
            self.give_up_sign_in(index, now);
            self.end_server(index, "its configuration was changed", now);
        }
        self.replace_servers(servers);
        self.replace_profiles(settings);
        self.install_configured(catalog);
        self.stop_waiting_for_lists(now);
        for index in self.server_indices() {
            if self.server(index).is_new() {
                self.start_if_eager(index, now);
            }
        }
    }

    fn replace_servers(&mut self, servers: Vec<NewServer>) {
        let mut old: FxHashMap<String, (ServerIndex, Server)> = FxHashMap::default();
        let indices: Vec<ServerIndex> = self.server_indices().collect();
        for (index, server) in indices.into_iter().zip(self.servers.drain(..)) {
            old.insert(server.name().to_owned(), (index, server));
        }
        let mut moved: FxHashMap<ServerIndex, ServerIndex> = FxHashMap::default();
        for server in servers {
            let Ok(place) = u16::try_from(self.servers.len()) else {
                break;
            };
            let server = match server {
                NewServer::Changed(settings) => Server::new(*settings),
                NewServer::Unchanged(name) => {
                    let Some((index, server)) = old.remove(&name) else {
                        continue;
                    };
                    moved.insert(index, ServerIndex(place));
                    server
                }
            };
            self.servers.push(server);
        }
        for link in self.links.values_mut() {
            link.server = moved.get(&link.server).copied().unwrap_or(link.server);
        }
        for call in self.calls.values_mut() {
            call.server = moved.get(&call.server).copied().unwrap_or(call.server);
        }
        for client in self.clients.values_mut() {
            let shares = std::mem::take(&mut client.shares);
            client.shares = shares
                .iter()
                .filter_map(|index| moved.get(index).copied())
                .collect();
            for listen in &mut client.listens {
                listen.move_servers(&moved);
            }
        }
        self.subscriptions.move_servers(&moved);
        self.tasks.move_servers(&moved);
        self.acknowledge_settled();
    }

    fn replace_profiles(&mut self, settings: HubSettings) {
        let names: Vec<String> = self
            .settings
            .profiles
            .iter()
            .map(|profile| profile.name.clone())
            .collect();
        self.proxy_tool = settings.proxy_tool.clone();
        self.views = self.views_for(&settings);
        self.settings = settings;
        let mut orphaned: Vec<ClientId> = Vec::new();
        for (id, client) in &mut self.clients {
            let name = names.get(client.profile).map_or("", String::as_str);
            match self
                .settings
                .profiles
                .iter()
                .position(|profile| profile.name == name)
            {
                Some(profile) => client.profile = profile,
                None => orphaned.push(*id),
            }
        }
        for id in orphaned {
            // What it waits for would be looked up in the view of another profile.
            let open = self.clients.get_mut(&id).map(|client| {
                client.profile = 0;
                std::mem::take(&mut client.open)
            });
            for open in open.into_iter().flat_map(FxHashMap::into_values) {
                self.abandon(open);
            }
            self.actions.push(HubAction::CloseClient(id));
        }
    }

    /// What the profiles of a new configuration showed before: clients are told what is different. A new profile has no
    /// clients.
    pub(super) fn views_for(&self, settings: &HubSettings) -> Vec<Arc<CatalogView>> {
        let old = &self.settings.profiles;
        let profiles = settings.profiles.iter();
        profiles
            .filter_map(|profile| {
                let place = old.iter().position(|known| known.name == profile.name);
                self.views.get(place.unwrap_or_default()).cloned()
            })
            .collect()
    }

    pub(super) fn server_named(&self, name: &str) -> Option<ServerIndex> {
        self.server_indices()
            .find(|index| self.server(*index).name() == name)
    }

    fn start_if_eager(&mut self, index: ServerIndex, now: Instant) {
        if self.server(index).starts_by_itself() {
            self.start_main(index, now);
        }
    }

    /// Calls to this server are not sent again: it will not come back, and its place may be another server's.
    fn give_up_repeats(&mut self, index: ServerIndex) {
        let calls = self.calls.values_mut();
        for call in calls.filter(|call| call.server == index) {
            call.repeated = true;
        }
    }

    /// Ends all conversations with a server. Calls on it fail, with this reason.
    pub(super) fn end_server(&mut self, index: ServerIndex, reason: &str, now: Instant) {
        let links: Vec<LinkId> = self
            .links
            .iter()
            .filter(|(_, link)| link.server == index)
            .map(|(id, _)| *id)
            .collect();
        for id in links {
            self.actions.push(HubAction::Close(id));
            self.drop_link(id, reason, now);
        }
        self.server_mut(index).forget_failure();
    }
}
