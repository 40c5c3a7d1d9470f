//! A protected server and its authorization server on one port of loopback. Single answers can be replaced.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use mcp_proxy_auth::{AuthSettings, ServerSignIn, SignIns, TokenStoreChoice};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use url::{Url, form_urlencoded};

/// The server. It ends with the test's runtime.
pub struct TestServer {
    pub base: String,
    pub state: Arc<Mutex<State>>,
    folder: tempfile::TempDir,
}

/// What it knows and what it has seen.
#[derive(Default)]
pub struct State {
    pub base: String,
    /// Answers that take the place of the usual ones, by path.
    pub replaced: HashMap<&'static str, Answer>,
    /// Paths that never answer.
    pub silent: HashSet<&'static str>,
    pub seen: Vec<Seen>,
    pub lifetime: Option<u64>,
    /// In token answers.
    pub id_token: Option<String>,
    pub omits_issuer: bool,
    /// Scopes that nobody gets.
    pub unknown_scopes: HashSet<&'static str>,
    issued: u32,
    codes: HashMap<String, HashMap<String, String>>,
    pub valid_tokens: HashSet<String>,
    pub valid_refresh_tokens: HashSet<String>,
}

/// A request that arrived.
#[derive(Clone, Debug)]
pub struct Seen {
    pub path: String,
    pub headers: HeaderMap,
    /// Of the query or the body.
    pub form: HashMap<String, String>,
}

/// A fixed answer.
#[derive(Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn json(status: u16, body: &Value) -> Answer {
        Answer {
            status,
            headers: vec![("content-type", "application/json".to_owned())],
            body: body.to_string().into_bytes(),
        }
    }

    pub fn redirect(to: &str) -> Answer {
        Answer {
            status: 307,
            headers: vec![("location", to.to_owned())],
            body: Vec::new(),
        }
    }

    pub fn empty(status: u16) -> Answer {
        Answer {
            status,
            headers: Vec::new(),
            body: Vec::new(),
        }
    }
}

impl TestServer {
    pub async fn start() -> TestServer {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(State {
            base: base.clone(),
            lifetime: Some(3600),
            ..State::default()
        }));
        let served = Arc::clone(&state);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let state = Arc::clone(&served);
                let service = service_fn(move |request| answer(Arc::clone(&state), request));
                let connection =
                    http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                tokio::spawn(connection);
            }
        });
        TestServer {
            base,
            state,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub fn replace(&self, path: &'static str, answer: Answer) {
        self.state().replaced.insert(path, answer);
    }

    /// Changes the metadata of the authorization server.
    pub fn change_metadata(&self, change: impl FnOnce(&mut Value)) {
        let mut metadata = metadata(&self.base);
        change(&mut metadata);
        self.replace(METADATA, Answer::json(200, &metadata));
    }

    /// Names another authorization server than before.
    pub fn move_to(&self, other: &TestServer) {
        let mut named = resource(&self.base);
        named["authorization_servers"] = json!([other.base]);
        self.replace(RESOURCE, Answer::json(200, &named));
    }

    /// The requests to a path.
    pub fn seen(&self, path: &str) -> Vec<Seen> {
        let seen = self.state().seen.clone();
        seen.into_iter().filter(|seen| seen.path == path).collect()
    }

    pub fn mcp(&self) -> Url {
        Url::parse(&format!("{}/mcp", self.base)).unwrap()
    }

    /// The store, as another process would open it.
    pub fn sign_ins(&self) -> Arc<SignIns> {
        let folder = self.folder().join("mcp-proxy");
        SignIns::open(folder, TokenStoreChoice::File).unwrap()
    }

    pub fn sign_in(&self) -> ServerSignIn {
        self.sign_in_with(AuthSettings::default())
    }

    pub fn sign_in_with(&self, settings: AuthSettings) -> ServerSignIn {
        ServerSignIn::new(self.sign_ins(), self.mcp(), settings).unwrap()
    }

    /// A folder for one test.
    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// Changes what `sign-ins.json` says about the only server in it.
    pub fn change_stored(&self, change: impl FnOnce(&mut Value)) {
        let file = self.folder().join("mcp-proxy/sign-ins.json");
        let mut stored: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let sign_ins = stored["sign-ins"].as_object_mut().unwrap();
        change(sign_ins.values_mut().next().unwrap());
        std::fs::write(&file, stored.to_string()).unwrap();
    }

    /// All that is in the folder of the store.
    pub fn stored_text(&self) -> String {
        let folder = self.folder().join("mcp-proxy");
        let files = std::fs::read_dir(folder).unwrap();
        let texts = files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
        texts.collect()
    }
}

pub const METADATA: &str = "/.well-known/oauth-authorization-server";
pub const RESOURCE: &str = "/.well-known/oauth-protected-resource/mcp";

pub fn metadata(base: &str) -> Value {
    json!({
        "issuer": base,
        "authorization_endpoint": format!("{base}/authorize"),
        "token_endpoint": format!("{base}/token"),
        "registration_endpoint": format!("{base}/register"),
        "revocation_endpoint": format!("{base}/revoke"),
        "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true,
    })
}

pub fn resource(base: &str) -> Value {
    json!({
        "resource": format!("{base}/mcp"),
        "authorization_servers": [base],
        "scopes_supported": ["read"],
    })
}

async fn answer(
    state: Arc<Mutex<State>>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body
        .collect()
        .await
        .map(|body| body.to_bytes())
        .unwrap_or_default();
    let path = head.uri.path().to_owned();
    let pairs = match head.uri.query() {
        Some(query) => form_urlencoded::parse(query.as_bytes()),
        None => form_urlencoded::parse(&body),
    };
    let seen = Seen {
        path: path.clone(),
        headers: head.headers,
        form: pairs.into_owned().collect(),
    };
    let answer = {
        let mut state = state.lock().unwrap();
        state.seen.push(seen.clone());
        match state.silent.contains(path.as_str()) {
            true => None,
            false => Some(match state.replaced.get(path.as_str()) {
                Some(answer) => answer.clone(),
                None => state.answer(&seen),
            }),
        }
    };
    let answer = match answer {
        Some(answer) => answer,
        None => std::future::pending().await,
    };
    let mut response = Response::builder().status(answer.status);
    for (name, value) in answer.headers {
        response = response.header(name, value);
    }
    Ok(response.body(Full::new(Bytes::from(answer.body))).unwrap())
}

impl State {
    fn answer(&mut self, seen: &Seen) -> Answer {
        match seen.path.as_str() {
            "/mcp" => self.protected(seen),
            METADATA => Answer::json(200, &metadata(&self.base)),
            RESOURCE => Answer::json(200, &resource(&self.base)),
            "/register" => {
                self.issued += 1;
                let client = json!({
                    "client_id": format!("client-{}", self.issued),
                    "client_secret": format!("canary-client-{}", self.issued),
                    "redirect_uris": [],
                });
                Answer::json(201, &client)
            }
            "/authorize" => self.authorize(&seen.form),
            "/token" | "/moved-token" => self.token(seen),
            "/revoke" => {
                let token = &seen.form["token"];
                self.valid_tokens.remove(token);
                self.valid_refresh_tokens.remove(token);
                Answer::empty(200)
            }
            _ => Answer::empty(404),
        }
    }

    fn asks_too_much(&self, form: &HashMap<String, String>) -> bool {
        let mut asked = form
            .get("scope")
            .into_iter()
            .flat_map(|scope| scope.split(' '));
        asked.any(|scope| self.unknown_scopes.contains(scope))
    }

    fn protected(&self, seen: &Seen) -> Answer {
        let token = seen.headers.get("authorization");
        let token = token.and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        if token.is_some_and(|token| self.valid_tokens.contains(token)) {
            return Answer::json(200, &json!({"ok": true}));
        }
        let challenge = format!(
            "Bearer resource_metadata=\"{}{RESOURCE}\", scope=\"read\"",
            self.base
        );
        Answer {
            headers: vec![("www-authenticate", challenge)],
            ..Answer::empty(401)
        }
    }

    fn authorize(&mut self, form: &HashMap<String, String>) -> Answer {
        assert_eq!(form["code_challenge_method"], "S256");
        assert_eq!(form["resource"], format!("{}/mcp", self.base));
        self.issued += 1;
        let code = format!("canary-code-{}", self.issued);
        self.codes.insert(code.clone(), form.clone());
        let mut back = Url::parse(&form["redirect_uri"]).unwrap();
        let (name, value) = match self.asks_too_much(form) {
            true => ("error", "invalid_scope"),
            false => ("code", code.as_str()),
        };
        back.query_pairs_mut()
            .append_pair(name, value)
            .append_pair("state", &form["state"]);
        if !self.omits_issuer {
            back.query_pairs_mut().append_pair("iss", &self.base);
        }
        Answer::redirect(back.as_str())
    }

    fn token(&mut self, seen: &Seen) -> Answer {
        let form = &seen.form;
        let refused =
            |code: &str| Answer::json(400, &json!({"error": code, "error_description": "canary"}));
        if form.get("resource") != Some(&format!("{}/mcp", self.base)) {
            return refused("invalid_target");
        }
        if self.asks_too_much(form) {
            return refused("invalid_scope");
        }
        let scope = match form["grant_type"].as_str() {
            "authorization_code" => {
                let Some(asked) = self.codes.remove(&form["code"]) else {
                    return refused("invalid_grant");
                };
                let verifier = form["code_verifier"].as_bytes();
                let digest = ring::digest::digest(&ring::digest::SHA256, verifier);
                assert_eq!(asked["code_challenge"], URL_SAFE_NO_PAD.encode(digest));
                assert_eq!(asked["redirect_uri"], form["redirect_uri"]);
                asked.get("scope").cloned()
            }
            "refresh_token" => {
                // Each is good for one renewal.
                if !self.valid_refresh_tokens.remove(&form["refresh_token"]) {
                    return refused("invalid_grant");
                }
                None
            }
            "client_credentials" => {
                let basic = format!("Basic {}", STANDARD.encode("machine:canary-machine"));
                if seen
                    .headers
                    .get("authorization")
                    .is_none_or(|value| *value != basic)
                {
                    return Answer::json(401, &json!({"error": "invalid_client"}));
                }
                form.get("scope").cloned()
            }
            _ => return refused("unsupported_grant_type"),
        };
        self.issued += 1;
        let access = format!("canary-access-{}", self.issued);
        self.valid_tokens.insert(access.clone());
        let mut answer = json!({"access_token": access, "token_type": "Bearer"});
        if form["grant_type"] != "client_credentials" {
            let refresh = format!("canary-refresh-{}", self.issued);
            self.valid_refresh_tokens.insert(refresh.clone());
            answer["refresh_token"] = json!(refresh);
        }
        if let Some(lifetime) = self.lifetime {
            answer["expires_in"] = json!(lifetime);
        }
        if let Some(scope) = scope {
            answer["scope"] = json!(scope);
        }
        if let Some(id_token) = &self.id_token {
            answer["id_token"] = json!(id_token);
        }
        Answer::json(200, &answer)
    }
}
