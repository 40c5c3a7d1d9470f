//! `GET /healthz` of a relay: that it runs, and what it has counted. It names nobody.

use std::future::ready;
use std::sync::Arc;

use http::{Method, Request};
use hyper::body::Incoming;
use mcp_proxy_core::BoxFuture;
use mcp_proxy_relay::RelayDriver;
use mcp_proxy_transport::http::{Handler, HttpResponse, RequestSource, bare, json_bytes};
use serde_json::json;

/// Answers it.
pub struct RelayHealth(Arc<RelayDriver>);

impl RelayHealth {
    /// For this relay.
    pub fn new(driver: Arc<RelayDriver>) -> Arc<RelayHealth> {
        Arc::new(RelayHealth(driver))
    }

    fn answer(&self, method: &Method) -> HttpResponse {
        if !matches!(*method, Method::GET | Method::HEAD) {
            return bare(405);
        }
        let (users, sockets) = self.0.counts();
        let mut body = json!({"status": "ok", "users": users, "sockets": sockets});
        for (name, count) in self.0.counters().named() {
            body[name] = count.into();
        }
        json_bytes(200, body.to_string().into())
    }
}

impl Handler for RelayHealth {
    fn handle(
        self: Arc<Self>,
        _: RequestSource,
        request: Request<Incoming>,
    ) -> BoxFuture<'static, HttpResponse> {
        Box::pin(ready(self.answer(request.method())))
    }
}
