//! `/mcp/p/NAME`: the profiles of a hub. A profile is looked up when it is asked for, because a reload may add and remove some.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::Request;
use hyper::body::Incoming;
use mcp_proxy_core::BoxFuture;
use mcp_proxy_transport::http::{
    self as http_transport, Handler, HttpResponse, McpEndpoint, RequestSource, not_found,
};

use crate::config::HubTarget;

/// Makes the endpoint of a profile.
pub type NewEndpoint = Box<dyn Fn(&str) -> Option<Arc<McpEndpoint>> + Send + Sync>;

/// Answers for all profiles.
pub struct ProfilesHandler {
    hub: HubTarget,
    new_endpoint: NewEndpoint,
    /// Those that were asked for. One whose profile is gone has no sessions any more.
    endpoints: Mutex<BTreeMap<String, Arc<McpEndpoint>>>,
}

impl ProfilesHandler {
    /// The path above all profiles.
    pub fn path() -> String {
        format!("{}/p", http_transport::PATH)
    }

    /// For the profiles that this hub has at the time of a request.
    pub fn new(hub: &HubTarget, new_endpoint: NewEndpoint) -> Arc<ProfilesHandler> {
        Arc::new(ProfilesHandler {
            hub: hub.clone(),
            new_endpoint,
            endpoints: Mutex::default(),
        })
    }

    fn find(&self, path: &str) -> Option<Arc<McpEndpoint>> {
        let names = self.hub.source.profiles();
        let asked = path.strip_prefix(&ProfilesHandler::path())?;
        let asked = asked.strip_prefix('/')?;
        let is_asked = |name: &&String| asked == **name || asked.strip_suffix('/') == Some(name);
        let name = names.iter().find(is_asked)?;
        let mut endpoints = self.endpoints();
        if let Some(known) = endpoints.get(name) {
            return Some(Arc::clone(known));
        }
        let endpoint = (self.new_endpoint)(name)?;
        endpoints.insert(name.clone(), Arc::clone(&endpoint));
        Some(endpoint)
    }

    fn unknown(&self) -> HttpResponse {
        let names = self.hub.source.profiles();
        let profiles = names
            .iter()
            .map(|name| format!("{}/{name}", ProfilesHandler::path()));
        let paths = std::iter::once(http_transport::PATH.to_owned()).chain(profiles);
        not_found(&paths.collect::<Vec<_>>().join(", "))
    }

    fn endpoints(&self) -> MutexGuard<'_, BTreeMap<String, Arc<McpEndpoint>>> {
        self.endpoints
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Handler for ProfilesHandler {
    fn handle(
        self: Arc<Self>,
        source: RequestSource,
        request: Request<Incoming>,
    ) -> BoxFuture<'static, HttpResponse> {
        match self.find(request.uri().path()) {
            Some(endpoint) => endpoint.handle(source, request),
            None => Box::pin(ready(self.unknown())),
        }
    }

    fn stop_all(&self) {
        let endpoints = self.endpoints();
        endpoints.values().for_each(|endpoint| endpoint.stop_all());
    }

    fn open_count(&self) -> usize {
        let endpoints = self.endpoints();
        endpoints
            .values()
            .map(|endpoint| endpoint.open_count())
            .sum()
    }
}
