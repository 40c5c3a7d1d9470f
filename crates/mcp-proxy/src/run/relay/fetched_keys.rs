//! The keys of a `--jwks` URL: fetched at the start, then again from time to time and for tokens that name a new key.
//!
//! One task fetches, so that nobody else does at the same time, and a socket that goes away does not stop it. Keys that are
//! known stay in use until there are others.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use http::header::ACCEPT;
use http::{HeaderMap, HeaderValue, Method, Uri};
use mcp_proxy_core::LinkEnd;
use mcp_proxy_token::TokenVerifier;
use mcp_proxy_transport::http::{
    CollectedBody, OutboundProxy, OutgoingBody, RemoteServer, RemoteServerOptions, ToolHeaders,
    collect,
};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};

use crate::printer;

/// How long a fetch may take.
const DEADLINE: Duration = Duration::from_secs(10);
/// How often keys are fetched in any case.
const EVERY: Duration = Duration::from_secs(600);
/// How often they are fetched because a token names a key that is not known. Anyone can send such a token.
const EVERY_FOR_TOKENS: Duration = Duration::from_secs(30);
/// Key sets have a few kilobytes.
const LARGEST: usize = 256 << 10;

/// The keys as they were fetched last.
pub struct FetchedKeys {
    server: Arc<RemoteServer>,
    verifier: RwLock<Arc<TokenVerifier>>,
    /// A token names a key that is not known.
    wanted: Notify,
    fetches: watch::Sender<FetchState>,
}

/// The fetches that tokens have caused.
#[derive(Clone, Copy, Debug, Default)]
struct FetchState {
    started: Option<Instant>,
    is_running: bool,
}

impl FetchState {
    fn is_due(self) -> bool {
        self.started
            .is_none_or(|started| started.elapsed() >= EVERY_FOR_TOKENS)
    }
}

impl FetchedKeys {
    /// Fetches them for the first time.
    pub async fn open(url: &Uri, ca_file: Option<&std::path::Path>) -> Result<Arc<FetchedKeys>> {
        let variable = |name: &str| std::env::var(name).ok();
        let server = RemoteServer::new(RemoteServerOptions {
            proxy: OutboundProxy::from_environment(url, variable)?,
            url: url.clone(),
            headers: Vec::new(),
            ca_file: ca_file.map(ToOwned::to_owned),
            stall: DEADLINE,
            tools: Arc::new(ToolHeaders::default()),
        })?;
        let verifier = fetch(&server)
            .await
            .with_context(|| format!("--jwks: cannot fetch {}", shown(&server)))?;
        let keys = Arc::new(FetchedKeys {
            server,
            verifier: RwLock::new(Arc::new(verifier)),
            wanted: Notify::new(),
            fetches: watch::Sender::default(),
        });
        Ok(keys)
    }

    /// What tokens are checked with now.
    pub fn verifier(&self) -> Arc<TokenVerifier> {
        let verifier = self.verifier.read();
        Arc::clone(&verifier.unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits for newer keys if a token names one that is not known, unless that was tried a moment ago.
    pub async fn refresh_for(&self, token: &str) {
        if !self.verifier().lacks_key_of(token) {
            return;
        }
        let asked = Instant::now();
        let mut fetches = self.fetches.subscribe();
        let was_running = {
            let state = *fetches.borrow_and_update();
            if !state.is_running && !state.is_due() {
                return;
            }
            state.is_running
        };
        if !was_running {
            self.wanted.notify_one();
        }
        let is_over = |state: &FetchState| {
            let is_newer = state.started.is_some_and(|started| started >= asked);
            !state.is_running && (was_running || is_newer)
        };
        // What came of it is seen when the token is checked.
        let _ = timeout(DEADLINE, fetches.wait_for(is_over)).await;
    }

    /// Fetches keys for as long as the relay runs.
    pub async fn keep_fresh(self: Arc<Self>) {
        let mut last_problem = None;
        loop {
            let is_wanted = tokio::select! {
                () = sleep(EVERY) => false,
                () = self.wanted.notified() => true,
            };
            if is_wanted && !self.fetches.borrow().is_due() {
                continue;
            }
            self.fetches.send_modify(|state| {
                state.is_running = true;
                if is_wanted {
                    state.started = Some(Instant::now());
                }
            });
            let problem = match fetch(&self.server).await {
                Ok(verifier) => {
                    let mut known = self
                        .verifier
                        .write()
                        .unwrap_or_else(PoisonError::into_inner);
                    *known = Arc::new(verifier);
                    None
                }
                Err(error) => Some(format!("{error:#}")),
            };
            self.fetches.send_modify(|state| state.is_running = false);
            if problem != last_problem
                && let Some(problem) = &problem
            {
                printer::say(&format!(
                    "mcp-proxy: cannot fetch {}: {problem}; the keys that are known stay in use",
                    shown(&self.server)
                ));
            }
            last_problem = problem;
        }
    }
}

async fn fetch(server: &RemoteServer) -> Result<TokenVerifier> {
    match timeout(DEADLINE, fetch_whole(server)).await {
        Ok(fetched) => fetched,
        Err(_) => bail!("no answer within {} seconds", DEADLINE.as_secs()),
    }
}

async fn fetch_whole(server: &RemoteServer) -> Result<TokenVerifier> {
    let mut headers = HeaderMap::new();
    headers.insert(
        ACCEPT,
        HeaderValue::from_static("application/jwk-set+json, application/json"),
    );
    let url = server.url().clone();
    let sent = server.send(Method::GET, url, headers, OutgoingBody::empty());
    let answer = sent.await.map_err(|end| match end {
        LinkEnd::Failed(failure) => anyhow::anyhow!("{}", failure.text),
        LinkEnd::Closed => anyhow::anyhow!("the connection was closed"),
    })?;
    if answer.status() != http::StatusCode::OK {
        bail!("the server answered {}", answer.status());
    }
    match collect(answer.into_body(), LARGEST).await {
        CollectedBody::Whole(json) => Ok(TokenVerifier::from_jwks(&json)?),
        CollectedBody::Partial(..) => bail!("the answer is larger than {} KiB", LARGEST >> 10),
        CollectedBody::Broken(_, why) => bail!("the answer broke off: {why}"),
    }
}

/// The URL without what may be a secret in it.
fn shown(server: &RemoteServer) -> String {
    let url = server.url();
    let (scheme, authority) = (url.scheme_str().unwrap_or_default(), url.authority());
    let authority = authority.map_or("", http::uri::Authority::as_str);
    format!("{scheme}://{authority}{}", url.path())
}
