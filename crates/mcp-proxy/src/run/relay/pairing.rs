//! `POST /pair`: a browser extension exchanges a code for a token.
//!
//! Only extensions may: a web page is refused even if somebody types a code into it. Neither codes nor tokens are recorded or
//! printed.

use std::net::SocketAddr;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_MAX_AGE, CACHE_CONTROL, HOST, HeaderName, ORIGIN, RETRY_AFTER, VARY,
};
use http::{HeaderMap, HeaderValue, Method, Request};
use hyper::body::Incoming;
use jiff::Timestamp;
use mcp_proxy_core::{BoxFuture, MemoryBudget};
use mcp_proxy_relay::{AuditSink, AuditedAction, RelayAuditEvent, RelayDriver};
use mcp_proxy_token::{IssuedToken, PairingRefusal, RevocationList, TokenRequest, issue};
use mcp_proxy_transport::http::{
    CollectedBody, Handler, HttpResponse, RequestSource, bare, collect, is_extension_origin,
    json_bytes,
};
use serde::Deserialize;
use serde_json::json;
use tokio::time::timeout;

use crate::config::{PairingConfig, TlsPlace, is_loopback};

/// Where codes are exchanged.
pub const PATH: &str = "/pair";
/// A request is one short code.
const LARGEST_REQUEST: usize = 1024;
/// How long a request may take to arrive.
const REQUEST_DEADLINE: Duration = Duration::from_secs(10);

/// A page of a public site, or an extension, asks whether it may speak to a private address.
const ALLOW_PRIVATE_NETWORK: HeaderName =
    HeaderName::from_static("access-control-allow-private-network");

/// Makes a code for a token that can be issued.
pub fn offer(pairing: &PairingConfig, request: TokenRequest) -> Result<String> {
    // Whatever is wrong with it is said here, and not to the browser.
    issue_now(pairing, &request)?;
    let mut codes = pairing.codes.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(codes.offer(request, Instant::now())?)
}

fn issue_now(pairing: &PairingConfig, request: &TokenRequest) -> Result<IssuedToken> {
    let path = &pairing.revoked_file;
    let revoked =
        RevocationList::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let Some(start) = revoked.next_issue(&request.user, SystemTime::now()) else {
        bail!(
            "{} is revoked in {}; a new token would be refused",
            request.user,
            path.display()
        );
    };
    Ok(issue(&pairing.key, request, start)?)
}

/// Answers the requests of extensions.
pub struct PairingHandler {
    pairing: Arc<PairingConfig>,
    audit: Option<AuditSink>,
    driver: Arc<RelayDriver>,
}

/// What an extension sends.
#[derive(Deserialize)]
struct PairingRequest {
    code: String,
}

impl PairingHandler {
    /// For the codes of this relay, which counts the refused ones.
    pub fn new(
        pairing: Arc<PairingConfig>,
        audit: Option<AuditSink>,
        driver: Arc<RelayDriver>,
    ) -> Arc<PairingHandler> {
        Arc::new(PairingHandler {
            pairing,
            audit,
            driver,
        })
    }

    async fn answer(&self, from: SocketAddr, request: Request<Incoming>) -> HttpResponse {
        let headers = request.headers();
        let origin = headers.get(ORIGIN).cloned();
        // Admission has refused extensions that are not among the pinned ones.
        let Some(origin) = origin.filter(is_extension_origin) else {
            return refusal(403, "not_an_extension");
        };
        let mut answer = match *request.method() {
            Method::OPTIONS => preflight(),
            Method::POST => self.exchange(from, request).await,
            _ => bare(405),
        };
        let headers = answer.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.append(VARY, HeaderValue::from_static("Origin"));
        answer
    }

    async fn exchange(&self, from: SocketAddr, request: Request<Incoming>) -> HttpResponse {
        let url = own_url(request.headers(), self.pairing.tls);
        let memory = MemoryBudget::new(LARGEST_REQUEST);
        let body = collect(request.into_body(), LARGEST_REQUEST, &memory);
        let body = timeout(REQUEST_DEADLINE, body);
        let Ok(CollectedBody::Whole(body)) = body.await else {
            return refusal(400, "bad_request");
        };
        // What cannot be read counts as a wrong code, and is limited like one.
        let code =
            serde_json::from_slice(&body).map_or(String::new(), |it: PairingRequest| it.code);
        let redeemed = {
            let codes = self.pairing.codes.lock();
            let mut codes = codes.unwrap_or_else(PoisonError::into_inner);
            codes.redeem(&code, from.ip(), Instant::now())
        };
        let mut token = match redeemed {
            Ok(token) => token,
            Err(PairingRefusal::Invalid) => return refusal(403, "invalid_code"),
            Err(PairingRefusal::TooManyAttempts(wait)) => return too_many(wait),
        };
        token.connection_url = token.connection_url.or(url);
        match issue_now(&self.pairing, &token) {
            Ok(issued) => {
                self.note_paired(&token.user, from);
                paired(&token, &issued)
            }
            // The user was revoked after the code was made.
            Err(_) => refusal(403, "invalid_code"),
        }
    }

    fn note_paired(&self, user: &str, address: SocketAddr) {
        if let Some(audit) = &self.audit {
            audit(&[RelayAuditEvent {
                wall_ms: Timestamp::now().as_millisecond(),
                user: Some(user.into()),
                what: AuditedAction::Paired { address },
            }]);
        }
    }
}

impl Handler for PairingHandler {
    fn handle(
        self: Arc<Self>,
        source: RequestSource,
        request: Request<Incoming>,
    ) -> BoxFuture<'static, HttpResponse> {
        Box::pin(async move {
            let answer = self.answer(source.address, request).await;
            if answer.status().is_client_error() {
                self.driver.count_refused_pairing();
            }
            answer
        })
    }
}

fn paired(request: &TokenRequest, issued: &IssuedToken) -> HttpResponse {
    let expires_at = issued.expires_at.duration_since(UNIX_EPOCH);
    let body = json!({
        "access_token": issued.token,
        "connection_url": request.connection_url,
        "user_id": request.user,
        "expires_at": expires_at.unwrap_or_default().as_secs(),
    });
    let mut answer = json_bytes(200, body.to_string().into());
    let never = HeaderValue::from_static("no-store");
    answer.headers_mut().insert(CACHE_CONTROL, never);
    answer
}

fn refusal(status: u16, error: &str) -> HttpResponse {
    json_bytes(status, json!({"error": error}).to_string().into())
}

fn too_many(wait: Duration) -> HttpResponse {
    let milliseconds = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    let body = json!({"error": "rate_limited", "retry_after_ms": milliseconds});
    let mut answer = json_bytes(429, body.to_string().into());
    let seconds = milliseconds.div_ceil(1000);
    answer
        .headers_mut()
        .insert(RETRY_AFTER, HeaderValue::from(seconds));
    answer
}

fn preflight() -> HttpResponse {
    let mut answer = bare(204);
    let headers = answer.headers_mut();
    for (name, value) in [
        (ACCESS_CONTROL_ALLOW_METHODS, "POST"),
        (ACCESS_CONTROL_ALLOW_HEADERS, "content-type"),
        (ACCESS_CONTROL_MAX_AGE, "600"),
        (ALLOW_PRIVATE_NETWORK, "true"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    answer
}

/// Where the browser has reached this relay. Admission knows the host.
fn own_url(headers: &HeaderMap, tls: TlsPlace) -> Option<String> {
    let host = headers.get(HOST)?.to_str().ok()?;
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let scheme = match tls {
        TlsPlace::Here => "wss",
        // A browser on this machine has not come through the reverse proxy.
        TlsPlace::InFront if !is_loopback(name) => "wss",
        TlsPlace::InFront | TlsPlace::Nowhere => "ws",
    };
    Some(format!("{scheme}://{host}"))
}
