//! Makes WebSockets of requests, and hands them to the relay.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use http::header::ORIGIN;
use http::{HeaderMap, Request};
use hyper::body::Incoming;
use mcp_proxy_core::{BoxFuture, Caller};
use mcp_proxy_relay::{
    PeerFailure, RelayAccess, RelayDriver, RelaySocket, RelaySocketHandle, SocketPath,
};
use mcp_proxy_transport::http::{Handler, HttpResponse, RequestSource, bare};
use mcp_proxy_transport::websocket::{
    SilenceLimits, SocketEnd, SocketOptions, SocketViolation, WebSocketHandle, accept_websocket,
};

/// A peer whose end is gone is found within a minute. An idle one gets its ping with every second `status`.
const SILENCE: SilenceLimits = SilenceLimits {
    ping_after: Duration::from_secs(40),
    answer_within: Duration::from_secs(20),
};

/// The sockets of one path.
pub struct SocketHandler {
    driver: Arc<RelayDriver>,
    path: SocketPath,
    access: RelayAccess,
}

impl SocketHandler {
    /// For sockets that are opened at this path.
    pub fn new(
        driver: Arc<RelayDriver>,
        path: SocketPath,
        access: RelayAccess,
    ) -> Arc<SocketHandler> {
        Arc::new(SocketHandler {
            driver,
            path,
            access,
        })
    }

    /// What a request may become. Without tokens, what runs in a browser and so has an Origin may be driven and must not
    /// drive: any extension could otherwise use all the others' tabs.
    fn role_of(&self, headers: &HeaderMap) -> Option<SocketPath> {
        let is_browser = self.access == RelayAccess::Direct && headers.contains_key(ORIGIN);
        match (is_browser, self.path) {
            (false, path) => Some(path),
            (true, SocketPath::Extension | SocketPath::Any) => Some(SocketPath::Extension),
            (true, SocketPath::Client) => None,
        }
    }
}

impl Handler for SocketHandler {
    fn handle(
        self: Arc<Self>,
        source: RequestSource,
        mut request: Request<Incoming>,
    ) -> BoxFuture<'static, HttpResponse> {
        let Some(path) = self.role_of(request.headers()) else {
            return Box::pin(ready(bare(403)));
        };
        // Without the headers, which are for servers that are dialled: a client may be here for days.
        let caller = Arc::new(Caller {
            path: request.uri().path().to_owned(),
            address: Some(source.address),
            ..Caller::default()
        });
        let driver = Arc::clone(&self.driver);
        let options = SocketOptions {
            silence: Some(SILENCE),
            ..SocketOptions::default()
        };
        let memory = driver.memory().clone();
        let answer = accept_websocket(
            &mut request,
            options,
            memory,
            move |link, handle| async move {
                let socket = RelaySocket {
                    link,
                    handle: Arc::new(Handle(handle)),
                    path,
                    caller: Some(caller),
                };
                driver.serve(socket).await;
            },
        );
        Box::pin(ready(answer))
    }
}

struct Handle(Arc<WebSocketHandle>);

impl RelaySocketHandle for Handle {
    fn set_close(&self, code: u16, reason: &str) {
        self.0.set_close(code, reason);
    }

    fn set_max_message(&self, bytes: usize) {
        self.0.set_max_message(bytes);
    }

    fn messages_begun(&self) -> u64 {
        self.0.messages_begun()
    }

    fn peer_failure(&self) -> Option<PeerFailure> {
        match self.0.end()? {
            SocketEnd::Violation(SocketViolation::TooLong { .. }) => Some(PeerFailure::TooLarge),
            SocketEnd::Silent(_) => Some(PeerFailure::Silent),
            _ => None,
        }
    }
}
