//! Servers that are started for one command and then stopped, as `savings` and `call` do.

use mcp_proxy_hub::config::{RestartPolicy, StartMode};
use mcp_proxy_hub::{ServerSettings, ServerState, ServerStatus};

use crate::config::HubServerTarget;

/// A lazy server is started too, what it offered earlier does not count, and one that fails is not tried again.
pub fn settings_for_one_run(server: &HubServerTarget) -> ServerSettings {
    ServerSettings {
        start: StartMode::Eager,
        restart: RestartPolicy::Never,
        idle_stop: None,
        last_listing: None,
        ..server.settings.clone()
    }
}

/// Why a server cannot be used and is not being started.
pub fn failure_of(server: &ServerStatus) -> Option<&str> {
    match &server.state {
        ServerState::Disabled(reason)
        | ServerState::NeedsSignIn(reason)
        | ServerState::Failed(reason) => Some(reason),
        ServerState::Stopped => server.last_error.as_deref(),
        ServerState::Starting | ServerState::Ready => None,
    }
}
