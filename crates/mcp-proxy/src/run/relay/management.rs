//! What viewers of a relay can ask of it over the control socket.

use std::sync::Arc;
use std::time::Duration;

use mcp_proxy_control::{RelayPairRequest, RelayPairResult, RelayStats};
use mcp_proxy_core::control::RelayManagement;
use mcp_proxy_token::{DEFAULT_LIFETIME, PAIRING_LIFETIME, TokenRequest};

use super::pairing;
use crate::config::{RelayKeys, RelayTarget};

/// Answers for this relay.
pub fn management(relay: &RelayTarget) -> Arc<dyn RelayManagement> {
    Arc::new(RunningRelay(relay.clone()))
}

struct RunningRelay(RelayTarget);

impl RelayManagement for RunningRelay {
    fn pair(&self, request: &RelayPairRequest) -> Result<RelayPairResult, String> {
        let Some(pairing) = &self.0.pairing else {
            return Err(match *self.0.keys {
                RelayKeys::Direct => "this relay needs no tokens (--direct)",
                RelayKeys::Tokens { .. } => {
                    "this relay cannot issue tokens: it has no secret to sign them with"
                }
            }
            .to_owned());
        };
        let lifetime = request.lifetime_s.map(Duration::from_secs);
        let request = TokenRequest {
            user: request.user.clone(),
            lifetime: lifetime.unwrap_or(DEFAULT_LIFETIME),
            connection_url: request.connection_url.clone(),
        };
        let code = pairing::offer(pairing, request).map_err(|error| format!("{error:#}"))?;
        let lifetime = u64::try_from(PAIRING_LIFETIME.as_millis());
        Ok(RelayPairResult {
            code,
            expires_in_ms: lifetime.unwrap_or(u64::MAX),
        })
    }

    fn stats(&self) -> RelayStats {
        let Some(driver) = self.0.driver.get() else {
            return RelayStats::default();
        };
        let (users, sockets) = driver.counts();
        let (clients, extensions) = driver.peer_counts();
        let counted = driver.counters().named();
        RelayStats {
            users,
            sockets,
            extensions,
            clients,
            counted: counted
                .map(|(name, count)| (name.to_owned(), count.into()))
                .into_iter()
                .collect(),
        }
    }
}
