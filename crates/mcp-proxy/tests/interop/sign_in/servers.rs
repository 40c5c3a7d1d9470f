//! The two servers that a sign-in is between, and what they saw.

use std::collections::BTreeSet;

use serde_json::Value;

use super::http::{get, post};
use crate::fixtures;
use crate::process::RunningProgram;
use crate::texts;

/// The authorization server.
pub struct AuthorizationServer {
    _running: RunningProgram,
    pub url: String,
}

impl AuthorizationServer {
    /// With the flags of `fixtures/peers/authorization_server.mjs`.
    pub fn start(flags: &[&str]) -> AuthorizationServer {
        let (running, url) = start("authorization_server.mjs", flags);
        AuthorizationServer {
            _running: running,
            url,
        }
    }

    /// A protected server that takes its tokens.
    pub fn protected_server(&self, flags: &[&str]) -> ProtectedServer {
        let arguments = [&[self.url.as_str()], flags].concat();
        let (running, url) = start("protected_server.mjs", &arguments);
        ProtectedServer {
            _running: running,
            url,
        }
    }

    /// Every request to it that has to do with secrets.
    pub fn events(&self) -> Vec<Value> {
        list(&format!("{}/test/events", self.url))
    }

    /// The requests to the token endpoint for this grant, with the status of their answers.
    pub fn grants(&self, grant: &str) -> Vec<u64> {
        let events = self.events().into_iter();
        let granted = events.filter(|event| event["parameters"]["grant_type"] == grant);
        granted
            .filter_map(|event| event["status"].as_u64())
            .collect()
    }

    /// The scopes that were asked for in the browser, sorted, one set for each login.
    pub fn asked_scopes(&self) -> Vec<BTreeSet<String>> {
        let events = self.events().into_iter();
        let logins = events.filter(|event| event["path"] == "/auth");
        let scopes = |event: Value| {
            let text = event["parameters"]["scope"].as_str().unwrap_or_default();
            text.split_whitespace().map(str::to_owned).collect()
        };
        logins.map(scopes).collect()
    }

    /// Forgets all access tokens, as if they had expired before anybody expected it.
    pub fn forget_access_tokens(&self) {
        self.forget("access");
    }

    /// Forgets all refresh tokens, as if they had been revoked.
    pub fn forget_refresh_tokens(&self) {
        self.forget("refresh");
    }

    fn forget(&self, what: &str) {
        let (status, body) = post(&format!("{}/test/forget/{what}", self.url));
        let answer: Value = serde_json::from_str(&body).expect("JSON");
        assert!(
            status == 200 && answer["forgotten"].as_u64() > Some(0),
            "{status} {body}"
        );
    }

    /// Every secret that it gave out or was shown: tokens, client secrets, codes, verifiers.
    pub fn secrets(&self) -> BTreeSet<String> {
        const NAMES: [&str; 8] = [
            "access_token",
            "refresh_token",
            "id_token",
            "client_secret",
            "registration_access_token",
            "code",
            "code_verifier",
            "token",
        ];
        let events = self.events();
        let parts = events
            .iter()
            .flat_map(|event| [&event["parameters"], &event["answer"]]);
        let values = parts.flat_map(|part| NAMES.iter().filter_map(|name| part[*name].as_str()));
        // What proves that a client is the one it says.
        let credentials = events
            .iter()
            .filter_map(|event| event["authorization"].as_str());
        let credentials = credentials.filter_map(|header| Some(header.split_once(' ')?.1));
        values.chain(credentials).map(str::to_owned).collect()
    }
}

/// The server that needs a sign-in.
pub struct ProtectedServer {
    _running: RunningProgram,
    pub url: String,
}

/// A request to it.
#[derive(Debug, PartialEq, Eq)]
pub struct SeenRequest {
    pub tool: Option<String>,
    pub authorization: Option<String>,
    pub status: u64,
}

impl ProtectedServer {
    /// Whether a request had this `Authorization` header.
    pub fn saw(&self, authorization: &str) -> bool {
        self.requests()
            .iter()
            .any(|request| request["authorization"] == authorization)
    }

    fn requests(&self) -> Vec<Value> {
        let (origin, _) = self.url.rsplit_once('/').expect("a URL with a path");
        list(&format!("{origin}/test/requests"))
    }

    /// The calls of tools that it received.
    pub fn calls(&self) -> Vec<SeenRequest> {
        let requests = self.requests().into_iter();
        let calls = requests.filter(|request| request["method"] == "tools/call");
        let text = |value: &Value| value.as_str().map(str::to_owned);
        calls
            .map(|request| SeenRequest {
                tool: text(&request["tool"]),
                authorization: text(&request["authorization"]),
                status: request["status"].as_u64().unwrap_or_default(),
            })
            .collect()
    }
}

fn start(script: &str, arguments: &[&str]) -> (RunningProgram, String) {
    let script = fixtures::peer(script);
    let arguments = [&[script.as_str()], arguments].concat();
    let mut command = fixtures::command(&fixtures::node(), &arguments);
    // The servers of a test have the same certificate, if any.
    if let Some([_, cert]) = arguments.windows(2).find(|pair| pair[0] == "--cert") {
        command.env("NODE_EXTRA_CA_CERTS", cert);
    }
    let running = RunningProgram::start(&mut command);
    let url = running.wait_for(texts::LISTENING_ON);
    (running, url)
}

fn list(url: &str) -> Vec<Value> {
    let (status, body) = get(url);
    assert_eq!(status, 200, "{url}: {body}");
    serde_json::from_str(&body).expect("a list")
}
