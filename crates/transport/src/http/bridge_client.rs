//! Requests that the proxy makes itself, for clients of another kind: they say who we are, and keep the server's cookies.

use std::sync::Arc;

use http::header::{COOKIE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Response, Uri};
use mcp_proxy_core::{Connection, LinkEnd};
use mcp_proxy_wire::headers::HeaderEdits;

use super::cookies::CookieJar;
use super::incoming_body::IncomingBody;
use super::outgoing_body::OutgoingBody;
use super::remote::{RemoteServer, note_resent};

/// Who makes these requests.
const OWN_NAME: &str = concat!("mcp-proxy/", env!("CARGO_PKG_VERSION"));

/// The client of one session with a server.
pub(crate) struct BridgeClient {
    pub(crate) remote: Arc<RemoteServer>,
    pub(crate) connection: Arc<Connection>,
    cookies: CookieJar,
}

impl BridgeClient {
    pub(crate) fn new(remote: Arc<RemoteServer>, connection: Arc<Connection>) -> BridgeClient {
        BridgeClient {
            remote,
            connection,
            cookies: CookieJar::default(),
        }
    }

    /// Sends a request of this session.
    pub(crate) async fn send(
        &self,
        method: Method,
        url: Uri,
        headers: HeaderMap,
        payload: OutgoingBody,
    ) -> Result<Response<IncomingBody>, LinkEnd> {
        self.send_edited(method, url, headers, payload, None).await
    }

    /// The same, with changes to its head by rules or by a person.
    pub(crate) async fn send_edited(
        &self,
        method: Method,
        url: Uri,
        mut headers: HeaderMap,
        payload: OutgoingBody,
        edits: Option<&HeaderEdits>,
    ) -> Result<Response<IncomingBody>, LinkEnd> {
        headers.insert(USER_AGENT, HeaderValue::from_static(OWN_NAME));
        if let Some(cookies) = self.cookies.header(&url) {
            headers.insert(COOKIE, cookies);
        }
        if let Some(edits) = edits {
            edits.apply(&mut headers);
        }
        let asked = url.clone();
        let response = self.remote.send(method, url, headers, payload).await?;
        self.cookies.take(&asked, response.headers());
        note_resent(&self.connection, &response);
        Ok(response)
    }
}
