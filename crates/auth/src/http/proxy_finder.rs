//! The HTTP proxy of the environment, on the way to an authorization server.

use std::fmt;
use std::sync::Arc;

use http::{HeaderValue, Uri};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use tokio::net::TcpStream;
use tower_service::Service as _;

/// An HTTP proxy.
#[derive(Debug, Clone)]
pub struct HttpProxy {
    /// `http://host:port`
    pub url: Uri,
    /// The value of `Proxy-Authorization`.
    pub authorization: Option<HeaderValue>,
}

/// Finds the proxy on the way to a URL, or says what is wrong with the environment.
type Find = dyn Fn(&Uri) -> Result<Option<HttpProxy>, String> + Send + Sync;

/// Knows the proxies. Without any, connections are direct.
#[derive(Clone, Default)]
pub struct ProxyFinder(Option<Arc<Find>>);

impl ProxyFinder {
    /// Asks `find` for each connection.
    pub fn new(
        find: impl Fn(&Uri) -> Result<Option<HttpProxy>, String> + Send + Sync + 'static,
    ) -> ProxyFinder {
        ProxyFinder(Some(Arc::new(find)))
    }

    pub(super) fn find(&self, url: &Uri) -> Result<Option<HttpProxy>, String> {
        self.0.as_ref().map_or(Ok(None), |find| find(url))
    }
}

impl fmt::Debug for ProxyFinder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyFinder").finish_non_exhaustive()
    }
}

impl HttpProxy {
    /// A connection to the host of `url`. The proxy resolves its name.
    pub(super) async fn tunnel(self, url: Uri) -> Result<TcpStream, String> {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let mut tunnel = Tunnel::new(self.url, connector);
        if let Some(authorization) = self.authorization {
            tunnel = tunnel.with_auth(authorization);
        }
        let opened = tunnel.call(url).await;
        let opened = opened.map_err(|error| format!("the proxy gives no connection: {error}"))?;
        Ok(opened.into_inner())
    }
}
