//! `GET /healthz` in front of one server: that the proxy runs, and how much it has done. It names nobody.

use std::future::ready;
use std::sync::Arc;

use http::{Method, Request};
use hyper::body::Incoming;
use mcp_proxy_core::{BoxFuture, ProxyRun};
use mcp_proxy_transport::http::{Handler, HttpResponse, RequestSource, bare, json_bytes};
use serde_json::json;

/// Answers it.
#[derive(Clone)]
pub struct ProxyHealth {
    run: Arc<ProxyRun>,
    /// Where sessions end, if they do here.
    endpoints: Vec<Arc<dyn Handler>>,
}

impl ProxyHealth {
    /// For this run.
    pub fn new(run: &Arc<ProxyRun>) -> Arc<ProxyHealth> {
        Arc::new(ProxyHealth {
            run: Arc::clone(run),
            endpoints: Vec::new(),
        })
    }

    /// The same, with the sessions of this endpoint.
    pub fn counting(mut self: Arc<Self>, endpoint: Arc<impl Handler + 'static>) -> Arc<Self> {
        Arc::make_mut(&mut self).endpoints.push(endpoint);
        self
    }

    fn answer(&self, method: &Method) -> HttpResponse {
        if !matches!(*method, Method::GET | Method::HEAD) {
            return bare(405);
        }
        let sessions: usize = self.endpoints.iter().map(|it| it.open_count()).sum();
        let body = json!({
            "status": "ok",
            "sessions": sessions,
            "connections": self.run.connections(),
            "messages": self.run.messages(),
        });
        json_bytes(200, body.to_string().into())
    }
}

impl Handler for ProxyHealth {
    fn handle(
        self: Arc<Self>,
        _: RequestSource,
        request: Request<Incoming>,
    ) -> BoxFuture<'static, HttpResponse> {
        Box::pin(ready(self.answer(request.method())))
    }
}
