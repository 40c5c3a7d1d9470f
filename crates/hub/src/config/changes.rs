//! What a reload has to do: which servers are new, gone or different.

use super::{HubConfig, ServerConfig, ServerName};

/// Servers that are not the same in two configurations. The order of servers means nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigChanges {
    /// Only in the new one.
    pub added: Vec<ServerName>,
    /// Only in the old one.
    pub removed: Vec<ServerName>,
    /// In both, but different.
    pub changed: Vec<ServerName>,
}

impl ConfigChanges {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

/// Compares the servers of two configurations.
pub fn changes(old: &HubConfig, new: &HubConfig) -> ConfigChanges {
    let mut changes = ConfigChanges::default();
    for server in &new.servers {
        match find(old, &server.name) {
            None => changes.added.push(server.name.clone()),
            Some(earlier) if !is_same(earlier, server) => changes.changed.push(server.name.clone()),
            Some(_) => {}
        }
    }
    let names = old.servers.iter().map(|server| &server.name);
    let gone = names.filter(|name| find(new, name).is_none());
    changes.removed = gone.cloned().collect();
    changes
}

fn find<'a>(config: &'a HubConfig, name: &ServerName) -> Option<&'a ServerConfig> {
    config.servers.iter().find(|server| server.name == *name)
}

/// Whether both are the same server, wherever they are configured.
fn is_same(old: &ServerConfig, new: &ServerConfig) -> bool {
    match (&old.state, &new.state) {
        (Ok(old), Ok(new)) => old == new,
        (Err(old), Err(new)) => old.is_same(new),
        _ => false,
    }
}
