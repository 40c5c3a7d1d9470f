//! A server that asks for a sign-in, next to one that does not.

use serde_json::{Value, json};
use url::{Position, Url};

use super::protected_server::{ProtectedServer, sign_in, sign_in_with_refresh};
use super::test_hub::{TestHub, time};
use crate::control::test_home::{TestHome, ok};
use crate::programs::{INITIALIZED, StdioProgram, request};

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
    assert_eq!(sign_in["until"], "2096-10-02T07:06:40Z");
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
    assert_eq!(answer["error"]["code"], -31016, "{answer}");
    let missing = &answer["error"]["data"]["signIn"]["missingScopes"];
    assert_eq!(*missing, json!(["write"]));
    assert_eq!(state(&hub, "a"), "ready");
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
fn a_server_that_refuses_every_renewed_token_is_not_asked_for_ever() {
    let server = ProtectedServer::start();
    let home = TestHome::new();
    sign_in_with_refresh(&home, &server);
    *server.accepted.lock().unwrap() = "none";
    let other = ProtectedServer::start();
    let config = json!({"mcpServers": {"a": {"url": server.url()}, "b": {"url": other.url()}}});
    let hub = TestHub::start_in(home, &config, &[]);
    hub.until("both need a sign-in", |hub| {
        hub.states()
            .iter()
            .all(|(_, state)| state == "needs sign-in")
    });
    // The token and the renewed one.
    assert_eq!(server.count("initialize"), 2);
    // The hub sees both that login and the renewal.
    sign_in(&hub.home, &other.url(), "good");
    hub.until("a login is noticed", |hub| hub.is_ready("b"));
    sign_in(&hub.home, &other.url(), "bad");
    hub.until("the next login is noticed", |hub| {
        state(hub, "b") == "needs sign-in"
    });
    assert_eq!(state(&hub, "a"), "needs sign-in");
    assert_eq!(server.count("initialize"), 2);
}

/// The proxy passes an error without an id on under the id of the request. The words are still the server's.
#[test]
fn an_error_without_an_id_is_not_taken_for_the_hubs_own() {
    let server = ProtectedServer::start();
    *server.accepted.lock().unwrap() = "*";
    let config = json!({"mcpServers": {"a": {"url": server.url()}}});
    let hub = TestHub::start(&config, &["--expose", "all"]);
    hub.until("it is ready", |hub| hub.is_ready("a"));
    let answer = hub.answer("tools/call", &json!({"name": "a_forge", "arguments": {}}));
    assert_eq!(answer["error"]["code"], -31016, "{answer}");
    assert!(answer["error"]["data"].is_null(), "{answer}");
    assert_eq!(state(&hub, "a"), "ready");
}

#[test]
fn a_login_that_looks_like_the_one_before_is_noticed() {
    let server = ProtectedServer::start();
    let home = TestHome::new();
    sign_in(&home, &server.url(), "good");
    *server.accepted.lock().unwrap() = "better";
    let config = json!({"mcpServers": {"a": {"url": server.url()}}});
    let hub = TestHub::start_in(home, &config, &[]);
    hub.until("it needs a sign-in", |hub| {
        state(hub, "a") == "needs sign-in"
    });
    sign_in(&hub.home, &server.url(), "better");
    hub.until("the login is noticed", |hub| hub.is_ready("a"));
}

#[test]
fn a_server_over_http_sse_needs_a_sign_in_too() {
    let server = ProtectedServer::start();
    let entry = json!({"url": server.url(), "type": "sse"});
    let hub = TestHub::start(&json!({"mcpServers": {"a": entry}}), &[]);
    hub.until("it needs a sign-in", |hub| {
        state(hub, "a") == "needs sign-in"
    });
    let answer = hub.answer("tools/call", &json!({"name": "a_read", "arguments": {}}));
    assert_eq!(answer["error"]["code"], -31016, "{answer}");
    assert_eq!(health(&hub)["needsSignIn"], 1);
}

#[test]
fn a_key_in_the_path_of_the_url_is_not_told() {
    const KEY: &str = "0a1b2c3d4e5f0a1b2c3d4e5f";
    let server = ProtectedServer::start();
    let url = format!("http://{}/s/{KEY}/mcp", server.address);
    let hub = TestHub::start(&json!({"mcpServers": {"a": {"url": url}}}), &[]);
    hub.until("it needs a sign-in", |hub| {
        state(hub, "a") == "needs sign-in"
    });
    let answer = hub.answer("tools/call", &json!({"name": "a_read", "arguments": {}}));
    assert_eq!(answer["error"]["code"], -31016, "{answer}");
    // The running hub knows what the name means.
    let text = answer["error"]["message"].as_str().unwrap();
    assert!(text.contains("`mcp-proxy login a`"), "{text}");
    let shown = ok(hub.home.run(&["status", "--json"]));
    for text in [answer.to_string(), shown] {
        assert!(!text.contains(KEY), "{text}");
    }
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

/// Follows a page as a browser does.
fn open_page(url: &str) {
    let mut url = Url::parse(url).unwrap();
    loop {
        let address = format!("{}:{}", url.host_str().unwrap(), url.port().unwrap());
        let target = &url[Position::BeforePath..];
        let page = request(&address, "GET", target, &[], b"");
        match page.header("location") {
            Some(next) => url = Url::parse(next).unwrap(),
            None => return assert_eq!(page.status, 200, "{}", page.text()),
        }
    }
}

/// The next message with this member.
fn next_with(talk: &mut StdioProgram, member: &str, value: &Value) -> Value {
    let messages = std::iter::repeat_with(|| talk.hear());
    let mut messages = messages.map(|line| serde_json::from_str::<Value>(&line).unwrap());
    messages.find(|message| message[member] == *value).unwrap()
}

/// The hub with a protected server, on stdio.
fn start_on_stdio(server: &ProtectedServer) -> (TestHome, StdioProgram) {
    let home = TestHome::new();
    let flag = format!("a={}", server.url());
    let words = [
        "serve", "--listen", "stdio", "--expose", "all", "--server", &flag,
    ];
    let talk = StdioProgram::start_with(&words, &home.env());
    (home, talk)
}

#[test]
fn a_legacy_client_that_can_open_pages_signs_in_in_the_middle_of_its_call() {
    let server = ProtectedServer::start();
    let (_home, mut talk) = start_on_stdio(&server);
    talk.say(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{"url":{}}},"clientInfo":{"name":"c","version":"1"}}}"#);
    next_with(&mut talk, "id", &json!(1));
    talk.say(INITIALIZED);
    talk.say(r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a_read","arguments":{}}}"#);
    let question = next_with(&mut talk, "method", &json!("elicitation/create"));
    assert_eq!(question["params"]["mode"], "url");
    let accept = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}});
    talk.say(&accept.to_string());
    open_page(question["params"]["url"].as_str().unwrap());
    let answer = next_with(&mut talk, "id", &json!(2));
    assert_eq!(answer["result"]["content"][0]["text"], "read", "{answer}");
    talk.close_stdin();
    assert_eq!(talk.end(), Some(0));
}

#[test]
fn a_modern_client_that_can_open_pages_calls_again_after_the_sign_in() {
    let server = ProtectedServer::start();
    let (_home, mut talk) = start_on_stdio(&server);
    let call = |id: u32, responses: &Value| {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"url": {}}},
            "io.modelcontextprotocol/clientInfo": {"name": "m", "version": "1"},
        });
        let mut params = json!({"name": "a_read", "arguments": {}, "_meta": meta});
        if !responses.is_null() {
            params["inputResponses"] = responses.clone();
        }
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
    };
    talk.say(&call(1, &Value::Null));
    let answer = next_with(&mut talk, "id", &json!(1));
    assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
    let asked = answer["result"]["inputRequests"].as_object().unwrap();
    let (key, question) = asked.iter().next().unwrap();
    open_page(question["params"]["url"].as_str().unwrap());
    talk.say(&call(2, &json!({key: {"action": "accept"}})));
    let answer = next_with(&mut talk, "id", &json!(2));
    assert_eq!(answer["result"]["content"][0]["text"], "read", "{answer}");
    talk.close_stdin();
    assert_eq!(talk.end(), Some(0));
}
