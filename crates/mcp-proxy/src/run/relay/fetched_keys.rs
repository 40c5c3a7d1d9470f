//! The keys of a `--jwks` URL: fetched at the start, then again from time to time and for tokens that name a new key.
//!
//! One task fetches, so that nobody else does at the same time, and a socket that goes away does not stop it. Keys that are
//! known stay in use until there are others.

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use http::header::ACCEPT;
use http::{HeaderMap, HeaderValue, Method, Uri};
use mcp_proxy_core::{LinkEnd, MemoryBudget};
use mcp_proxy_token::TokenVerifier;
use mcp_proxy_transport::http::{
    CollectedBody, OutboundProxy, OutgoingBody, RemoteServer, RemoteServerOptions, ToolHeaders,
    collect,
};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};

use crate::printer;

/// How often keys are fetched, and for how long.
#[derive(Clone, Copy, Debug)]
struct FetchTimes {
    /// How long a fetch may take.
    deadline: Duration,
    /// How often keys are fetched in any case.
    every: Duration,
    /// How often they are fetched because a token names a key that is not known. Anyone can send such a token.
    every_for_tokens: Duration,
}

const TIMES: FetchTimes = FetchTimes {
    deadline: Duration::from_secs(10),
    every: Duration::from_secs(600),
    every_for_tokens: Duration::from_secs(30),
};

/// Key sets have a few kilobytes.
const LARGEST: usize = 256 << 10;

/// The keys as they were fetched last.
pub struct FetchedKeys {
    server: Arc<RemoteServer>,
    times: FetchTimes,
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
    /// The last fetch, whatever caused it, brought no keys.
    has_failed: bool,
}

impl FetchState {
    fn is_due(self, times: FetchTimes) -> bool {
        self.started
            .is_none_or(|started| started.elapsed() >= times.every_for_tokens)
    }
}

impl FetchedKeys {
    /// Fetches them for the first time.
    pub async fn open(url: &Uri, ca_file: Option<&Path>) -> Result<Arc<FetchedKeys>> {
        FetchedKeys::open_with(url, ca_file, TIMES).await
    }

    async fn open_with(
        url: &Uri,
        ca_file: Option<&Path>,
        times: FetchTimes,
    ) -> Result<Arc<FetchedKeys>> {
        let variable = |name: &str| std::env::var(name).ok();
        let server = RemoteServer::new(RemoteServerOptions {
            tokens: None,
            proxy: OutboundProxy::from_environment(url, variable)?,
            url: url.clone(),
            headers: Vec::new(),
            ca_file: ca_file.map(ToOwned::to_owned),
            stall: times.deadline,
            tools: Arc::new(ToolHeaders::default()),
        })?;
        let verifier = fetch(&server, times.deadline)
            .await
            .with_context(|| format!("--jwks: cannot fetch {}", shown(&server)))?;
        let keys = Arc::new(FetchedKeys {
            server,
            times,
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

    /// Whether the keys may be older than those of the server, because it could not be asked.
    pub fn has_failed(&self) -> bool {
        self.fetches.borrow().has_failed
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
            if !state.is_running && !state.is_due(self.times) {
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
        // What came of it is seen when the token is checked. A fetch keeps its own deadline, which must not be missed by a moment.
        let _ = timeout(self.times.deadline * 2, fetches.wait_for(is_over)).await;
    }

    /// Fetches keys for as long as the relay runs.
    pub async fn keep_fresh(self: Arc<Self>) {
        let mut last_problem = None;
        loop {
            let is_wanted = tokio::select! {
                () = sleep(self.times.every) => false,
                () = self.wanted.notified() => true,
            };
            if is_wanted && !self.fetches.borrow().is_due(self.times) {
                continue;
            }
            self.fetches.send_modify(|state| {
                state.is_running = true;
                if is_wanted {
                    state.started = Some(Instant::now());
                }
            });
            let problem = match fetch(&self.server, self.times.deadline).await {
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
            self.fetches.send_modify(|state| {
                state.is_running = false;
                state.has_failed = problem.is_some();
            });
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

async fn fetch(server: &RemoteServer, deadline: Duration) -> Result<TokenVerifier> {
    match timeout(deadline, fetch_whole(server)).await {
        Ok(fetched) => fetched,
        Err(_) => bail!("no answer within {} seconds", deadline.as_secs()),
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
    // It is small, and there is only one at a time.
    let memory = MemoryBudget::new(LARGEST);
    match collect(answer.into_body(), LARGEST, &memory).await {
        CollectedBody::Whole(json) => Ok(TokenVerifier::from_jwks(&json)?),
        CollectedBody::TooLarge(..) | CollectedBody::NoRoom(..) => {
            bail!("the answer is larger than {} KiB", LARGEST >> 10)
        }
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

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::TcpListener;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use super::*;

    const KEYS: &str = r#"{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"a","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;
    /// Names the key `b`: `{"alg":"EdDSA","kid":"b"}`, `{}` and something like a signature.
    const UNKNOWN: &str = "eyJhbGciOiJFZERTQSIsImtpZCI6ImIifQ.e30.AAAA";
    /// So long that it is never reached.
    const NEVER: Duration = Duration::from_secs(3600);

    /// Answers every request with the keys, or, while it hangs, not at all.
    #[derive(Default)]
    struct KeyServer {
        asked: AtomicUsize,
        hangs: AtomicBool,
    }

    impl KeyServer {
        fn start() -> (Arc<KeyServer>, Uri) {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let url = format!("http://{}/keys", listener.local_addr().unwrap());
            let server = Arc::new(KeyServer::default());
            let own = Arc::clone(&server);
            std::thread::spawn(move || {
                let mut open = Vec::new();
                for mut stream in listener.incoming().flatten() {
                    let mut lines = BufReader::new(&stream).lines();
                    while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
                    own.asked.fetch_add(1, Ordering::SeqCst);
                    match own.hangs.load(Ordering::SeqCst) {
                        true => open.push(stream),
                        false => write!(
                            stream,
                            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{KEYS}",
                            KEYS.len()
                        )
                        .unwrap(),
                    }
                }
            });
            (server, url.parse().unwrap())
        }

        fn asked(&self) -> usize {
            self.asked.load(Ordering::SeqCst)
        }
    }

    async fn open(url: &Uri, times: FetchTimes) -> Arc<FetchedKeys> {
        let keys = FetchedKeys::open_with(url, None, times).await.unwrap();
        tokio::spawn(Arc::clone(&keys).keep_fresh());
        keys
    }

    #[tokio::test]
    async fn keys_are_fetched_again_after_each_interval() {
        let (server, url) = KeyServer::start();
        let every = Duration::from_millis(1);
        let times = FetchTimes { every, ..TIMES };
        let _keys = open(&url, times).await;
        while server.asked() < 4 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn unknown_keys_cause_one_fetch_in_their_interval() {
        let (server, url) = KeyServer::start();
        let times = FetchTimes {
            every: NEVER,
            every_for_tokens: NEVER,
            ..TIMES
        };
        let keys = open(&url, times).await;
        tokio::join!(keys.refresh_for(UNKNOWN), keys.refresh_for(UNKNOWN));
        keys.refresh_for(UNKNOWN).await;
        assert_eq!(server.asked(), 2);
        assert!(!keys.has_failed());
        // Once the interval is over, there is another.
        let times = FetchTimes {
            every_for_tokens: Duration::ZERO,
            ..times
        };
        let keys = open(&url, times).await;
        keys.refresh_for(UNKNOWN).await;
        keys.refresh_for(UNKNOWN).await;
        assert_eq!(server.asked(), 5);
    }

    #[tokio::test]
    async fn a_server_that_does_not_answer_is_given_up_and_asked_again_later() {
        let (server, url) = KeyServer::start();
        let times = FetchTimes {
            deadline: Duration::from_secs(2),
            every: NEVER,
            every_for_tokens: Duration::ZERO,
        };
        let keys = open(&url, times).await;
        server.hangs.store(true, Ordering::SeqCst);
        keys.refresh_for(UNKNOWN).await;
        assert!(keys.has_failed());
        assert!(
            !keys
                .verifier()
                .lacks_key_of(&UNKNOWN.replace("ImIi", "ImEi"))
        );
        server.hangs.store(false, Ordering::SeqCst);
        keys.refresh_for(UNKNOWN).await;
        assert!(!keys.has_failed());
    }
}
