//! A server that asks for a sign-in, next to one that does not.

use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::test_hub::{TestHub, time};
use crate::control::test_home::{TestHome, ok};
use crate::passing::read_request;
use crate::programs::request;

/// A server over HTTP that answers those who come with the right token.
struct ProtectedServer {
    address: String,
    /// The token that it accepts.
    accepted: Arc<Mutex<&'static str>>,
    /// The methods of the requests, with their `Authorization` headers.
    seen: Arc<Mutex<Vec<(String, Option<String>)>>>,
}

impl ProtectedServer {
    fn start() -> ProtectedServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let seen = Arc::default();
        let server = ProtectedServer {
            address,
            accepted: Arc::new(Mutex::new("good")),
            seen: Arc::clone(&seen),
        };
        let accepted = Arc::clone(&server.accepted);
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let mut connection = connection.unwrap();
                let request = read_request(&connection);
                let answer = answer(&request, &accepted, &seen);
                let _ = connection.write_all(answer.as_bytes());
            }
        });
        server
    }

    fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// What other tokens than this one came with requests.
    fn tokens(&self) -> Vec<Option<String>> {
        let seen = self.seen.lock().unwrap();
        let mut tokens: Vec<_> = seen.iter().map(|(_, token)| token.clone()).collect();
        tokens.sort();
        tokens.dedup();
        tokens
    }

    fn count(&self, method: &str) -> usize {
        let seen = self.seen.lock().unwrap();
        seen.iter().filter(|(seen, _)| seen == method).count()
    }
}

fn answer(
    request: &str,
    accepted: &Mutex<&'static str>,
    seen: &Mutex<Vec<(String, Option<String>)>>,
) -> String {
    let Some((head, body)) = request.split_once("\r\n\r\n") else {
        return String::new();
    };
    let token = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("authorization")
            .then(|| value.to_owned())
    });
    let message: Value = serde_json::from_str(body).unwrap_or_default();
    let method = message["method"].as_str().unwrap_or_default();
    let expected = format!("Bearer {}", accepted.lock().unwrap());
    let is_good = token.as_deref() == Some(&expected);
    seen.lock().unwrap().push((method.to_owned(), token));
    if !is_good {
        let challenge = "www-authenticate: Bearer error=\"invalid_token\"\r\n";
        return http("401 Unauthorized", challenge, "who are you?");
    }
    if method == "tools/call" && message["params"]["name"] == "write" {
        let challenge =
            "www-authenticate: Bearer error=\"insufficient_scope\", scope=\"write\"\r\n";
        return http("403 Forbidden", challenge, "");
    }
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    let result = match method {
        "" => return http("405 Method Not Allowed", "", ""),
        "initialize" => {
            json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}})
        }
        "tools/list" => json!({"tools": [tool("read"), tool("write")]}),
        "tools/call" => json!({"content": [{"type": "text", "text": "read"}]}),
        _ if message["id"].is_null() => return http("202 Accepted", "", ""),
        _ => json!({}),
    };
    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    http("200 OK", "", &answer.to_string())
}

fn http(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

/// What another process writes when somebody signs in.
fn sign_in(home: &TestHome, server: &str, token: &str) {
    let folder = home.path("data").join("mcp-proxy");
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(&folder).unwrap();
    let tokens = json!({"tokens": {server: {"access-token": token}}});
    replace(&folder, "tokens.json", &tokens);
    let sign_in = json!({
        "changes": 1,
        "secrets": "file",
        "account": "ada",
        "expires-at": 4_000_000_000_u64,
        "can-refresh": false,
        "authorization-server": {"issuer": "http://127.0.0.1:9", "token-endpoint": "http://127.0.0.1:9/token"},
    });
    replace(
        &folder,
        "sign-ins.json",
        &json!({"sign-ins": {server: sign_in}}),
    );
}

fn replace(folder: &Path, name: &str, content: &Value) {
    let new = folder.join("new");
    let mut options = std::fs::OpenOptions::new();
    let mut file = (options.write(true).create(true).truncate(true))
        .mode(0o600)
        .open(&new)
        .unwrap();
    file.write_all(content.to_string().as_bytes()).unwrap();
    std::fs::rename(new, folder.join(name)).unwrap();
}

fn state(hub: &TestHub, name: &str) -> String {
    let mut states = hub.states().into_iter();
    states.find(|(server, _)| server == name).unwrap().1
}

fn health(hub: &TestHub) -> Value {
    let answer = request(&hub.program.address, "GET", "/healthz", &[], b"");
    serde_json::from_str(&answer.text()).unwrap()
}

fn start(server: &ProtectedServer) -> TestHub {
    let config = json!({"mcpServers": {"a": {"url": server.url()}, "time": time()}});
    TestHub::start(&config, &["--expose", "all,proxy"])
}

#[test]
fn a_server_that_needs_a_sign_in_is_shown_so_and_used_after_the_login() {
    let server = ProtectedServer::start();
    let hub = start(&server);
    hub.until("it needs a sign-in", |hub| {
        state(hub, "a") == "needs sign-in" && hub.is_ready("time")
    });
    let told = health(&hub);
    assert_eq!(told["needsSignIn"], 1, "{told}");
    assert_eq!(
        (&told["failed"], &told["status"]),
        (&json!(0), &json!("ok"))
    );
    let command = format!("`mcp-proxy login {}`", server.url());
    let call = json!({"name": "a_read", "arguments": {}});
    let answer = hub.answer("tools/call", &call);
    assert_eq!(answer["error"]["code"], -31016, "{answer}");
    let text = answer["error"]["message"].as_str().unwrap();
    assert!(text.contains(&command), "{text}");
    assert_eq!(answer["error"]["data"]["signIn"]["name"], "a");
    let listed = hub.proxy(&json!({"action": "list", "type": "tool"}));
    let listed = listed.to_string();
    assert!(
        listed.contains("needs sign-in") && listed.contains(&server.url()),
        "{listed}"
    );
    let shown = ok(hub.home.run(&["status"]));
    assert!(
        shown.contains("needs sign-in") && shown.contains(&command),
        "{shown}"
    );
    let status: Value = serde_json::from_str(&ok(hub.home.run(&["status", "--json"]))).unwrap();
    assert_eq!(status["servers"][0]["health"]["state"], "needs sign-in");

    sign_in(&hub.home, &server.url(), "good");
    hub.until("the login is noticed", |hub| hub.is_ready("a"));
    let answer = hub.ask("tools/call", &call);
    assert_eq!(answer["content"][0]["text"], "read");
    let status: Value = serde_json::from_str(&ok(hub.home.run(&["status", "--json"]))).unwrap();
    let sign_in = &status["servers"][0]["health"]["sign_in"];
    assert_eq!(sign_in["account"], "ada", "{status}");
    assert_eq!(sign_in["until"], "2096-10-02T07:06:40.000000Z");
    let shown = ok(hub.home.run(&["status"]));
    assert!(
        shown.contains("a: signed in as ada until 2096-10-02"),
        "{shown}"
    );

    std::fs::remove_file(hub.home.path("data").join("mcp-proxy/sign-ins.json")).unwrap();
    hub.until("the logout is noticed", |hub| {
        state(hub, "a") == "needs sign-in"
    });
    let answer = hub.answer("tools/call", &call);
    assert_eq!(answer["error"]["code"], -31016, "{answer}");
    // The start, each call while it needed a sign-in, the login and the logout.
    assert_eq!(server.count("initialize"), 5);
}

#[test]
fn a_token_that_is_refused_in_the_middle_fails_the_call_with_what_to_do() {
    let server = ProtectedServer::start();
    let home = TestHome::new();
    sign_in(&home, &server.url(), "good");
    let config = json!({"mcpServers": {"a": {"url": server.url()}}});
    let hub = TestHub::start_in(home, &config, &["--expose", "all"]);
    hub.until("it is ready", |hub| hub.is_ready("a"));
    // A call that wants more fails alone.
    let answer = hub.answer("tools/call", &json!({"name": "a_write", "arguments": {}}));
    let is_scope = answer["error"]["code"] == -31016;
    assert!(is_scope || answer["error"]["code"] == -31003, "{answer}");
    let call = json!({"name": "a_read", "arguments": {}});
    assert_eq!(hub.ask("tools/call", &call)["content"][0]["text"], "read");
    *server.accepted.lock().unwrap() = "better";
    let answer = hub.answer("tools/call", &call);
    assert_eq!(answer["error"]["code"], -31016, "{answer}");
    assert_eq!(state(&hub, "a"), "needs sign-in");
    sign_in(&hub.home, &server.url(), "better");
    hub.until("the next call works", |hub| {
        hub.answer("tools/call", &call).get("result").is_some()
    });
    assert_eq!(state(&hub, "a"), "ready");
}

#[test]
fn a_clients_own_token_reaches_no_server_of_the_hub() {
    let server = ProtectedServer::start();
    let home = TestHome::new();
    let file = home.path("token");
    std::fs::write(&file, "token-of-the-client-for-the-hub").unwrap();
    let config = json!({"mcpServers": {"a": {"url": server.url()}}});
    let flags = [
        "--expose",
        "all",
        "--auth-token-file",
        file.to_str().unwrap(),
    ];
    let hub = TestHub::start_in_without_session(home, &config, &flags);
    let own = ("authorization", "Bearer token-of-the-client-for-the-hub");
    let session = hub.program.session_with(&[own]);
    let call = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a_read","arguments":{}}}"#;
    let ask = || hub.program.post(&[own, ("mcp-session-id", &session)], call);
    assert!(ask().text().contains("-31016"));
    assert_eq!(server.tokens(), [None]);
    sign_in(&hub.home, &server.url(), "good");
    hub.until("the login is noticed", |hub| hub.is_ready("a"));
    assert!(ask().text().contains(r#""text":"read""#));
    assert_eq!(server.tokens(), [None, Some("Bearer good".to_owned())]);
}
