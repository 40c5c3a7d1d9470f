//! `GET /healthz`: how many servers are up, for those who watch over the hub. It tells no names and no errors.

use std::future::ready;
use std::sync::Arc;

use http::{Method, Request};
use hyper::body::Incoming;
use mcp_proxy_core::BoxFuture;
use mcp_proxy_hub::{ServerState, ServerStatus};
use mcp_proxy_transport::http::{Handler, HttpResponse, RequestSource, bare, json_bytes};
use serde_json::json;

use crate::config::HubTarget;

/// Where it is found.
pub const HEALTH_PATH: &str = "/healthz";

/// Answers it.
pub struct HealthHandler {
    hub: HubTarget,
}

impl HealthHandler {
    /// For this hub.
    pub fn new(hub: &HubTarget) -> Arc<HealthHandler> {
        Arc::new(HealthHandler { hub: hub.clone() })
    }

    fn answer(&self, method: &Method) -> HttpResponse {
        if !matches!(*method, Method::GET | Method::HEAD) {
            return bare(405);
        }
        let Some(driver) = self.hub.driver.get() else {
            return bare(503);
        };
        let status = driver.status();
        let count = |wanted: fn(&ServerState) -> bool| {
            status.iter().filter(|server| wanted(&server.state)).count()
        };
        // One that failed and is being tried again is not up either.
        let is_down = |server: &ServerStatus| match server.state {
            ServerState::Failed(_) => true,
            ServerState::Starting => server.last_error.is_some(),
            // It waits for a person, and works for those that have signed in.
            ServerState::NeedsSignIn(_)
            | ServerState::Ready
            | ServerState::Stopped
            | ServerState::Disabled(_) => false,
        };
        let word = match status.iter().any(is_down) {
            true => "degraded",
            false => "ok",
        };
        let tools: usize = status.iter().map(|server| server.counts[0]).sum();
        let body = json!({
            "status": word,
            "servers": status.len(),
            "ready": count(|state| matches!(state, ServerState::Ready)),
            "starting": count(|state| matches!(state, ServerState::Starting)),
            "failed": count(|state| matches!(state, ServerState::Failed(_))),
            "needsSignIn": count(|state| matches!(state, ServerState::NeedsSignIn(_))),
            "disabled": count(|state| matches!(state, ServerState::Disabled(_))),
            "tools": tools,
            "clients": driver.client_count(),
        });
        json_bytes(200, body.to_string().into())
    }
}

impl Handler for HealthHandler {
    fn handle(
        self: Arc<Self>,
        _: RequestSource,
        request: Request<Incoming>,
    ) -> BoxFuture<'static, HttpResponse> {
        Box::pin(ready(self.answer(request.method())))
    }
}
