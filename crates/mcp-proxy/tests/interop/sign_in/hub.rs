//! A hub with one server that needs a sign-in and nine that do not.

use serde_json::{Value, json};

use super::http::get;
use super::hub_client::HubClient;
use super::person::{LIMIT, Person, SignInHub};
use super::servers::{AuthorizationServer, ProtectedServer};
use super::until;
use crate::fixtures::{self, PROXY};
use crate::process::{finish, said};

/// The hub's ten servers, of which `notes` is the protected one.
struct TenServers {
    hub: SignInHub,
    person: Person,
    _notes: ProtectedServer,
    _issuer: AuthorizationServer,
}

impl TenServers {
    fn start() -> TenServers {
        let issuer = AuthorizationServer::start(&[]);
        let notes = issuer.protected_server(&[]);
        let person = Person::new();
        let mut servers = json!({ "notes": { "url": notes.url } });
        for number in 1..10 {
            let demo = json!({ "command": PROXY, "args": ["demo-server", "stdio"] });
            servers[format!("demo{number}")] = demo;
        }
        let hub = person.hub("hub", &servers, &[]);
        TenServers {
            hub,
            person,
            _notes: notes,
            _issuer: issuer,
        }
    }

    fn tools(&self) -> String {
        let output = self.person.run(&["tools", "list", "--url", &self.hub.url]);
        String::from_utf8(output.stdout).expect("names")
    }

    fn health(&self) -> Value {
        let url = self.hub.url.replace("/mcp", "/healthz");
        serde_json::from_str(&get(&url).1).expect("JSON")
    }
}

#[test]
fn nine_servers_work_while_one_needs_a_sign_in() {
    let ten = TenServers::start();
    let tools = until("nine servers are listed", || {
        let tools = ten.tools();
        (1..10)
            .all(|number| tools.contains(&format!("demo{number}_echo")))
            .then_some(tools)
    });
    assert!(!tools.contains("notes_"), "{tools}");
    let mut client = HubClient::connect(&ten.hub.url);
    for number in 1..10 {
        assert_eq!(client.call(&format!("demo{number}_echo")), "x");
    }
    let health = ten.health();
    assert_eq!(health["needsSignIn"], 1, "{health}");
    assert_eq!(health["failed"], 0, "{health}");
    // What is printed works, and the same session goes on with the tool.
    let command = client.call_needs_sign_in("notes_whoami");
    ten.person.type_in(&command);
    assert_eq!(
        client.call_until_it_answers("notes_whoami"),
        "ada: notes:read"
    );
    until("its tools are listed", || {
        ten.tools().contains("notes_whoami").then_some(())
    });
    let health = ten.health();
    assert_eq!(health["needsSignIn"], 0, "{health}");
}

#[test]
fn a_running_hub_notices_a_sign_out() {
    let ten = TenServers::start();
    ten.person.login("notes", &[]);
    let mut client = HubClient::connect(&ten.hub.url);
    client.call_until_it_answers("notes_whoami");
    ten.person.succeed(&["logout", "notes"]);
    until("the hub has noticed", || {
        (ten.health()["needsSignIn"] == 1).then_some(())
    });
    client.call_needs_sign_in("notes_whoami");
    assert_eq!(client.call("demo1_echo"), "x");
}

/// The SDK's client calls a tool and opens the page that it is asked to open. Returns the answer to its call.
fn call_and_sign_in(hub: &SignInHub, person: &Person, tool: &str, version: &str) -> String {
    let script = fixtures::peer("ts_signs_in.mjs");
    let arguments = [script.as_str(), &hub.url, tool, version];
    let mut client = fixtures::command(&fixtures::node(), &arguments);
    let output = finish(person.with_environment(&mut client), LIMIT);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    assert_eq!(report["opened"], 1, "{}", said(&output));
    let text = report["text"].as_str();
    text.unwrap_or_else(|| panic!("{}", said(&output)))
        .to_owned()
}

fn sign_in_in_the_middle_of_calls(version: &str, flags: &[&str]) {
    let issuer = AuthorizationServer::start(&[]);
    let server = issuer.protected_server(&[]);
    let person = Person::new();
    let hub = person.hub("hub", &json!({ "notes": { "url": server.url } }), flags);
    let answer = call_and_sign_in(&hub, &person, "notes_whoami", version);
    assert_eq!(answer, "ada: notes:read");
    // A scope that is missing.
    let answer = call_and_sign_in(&hub, &person, "notes_write_note", version);
    assert_eq!(answer, "write_note: x");
    assert_eq!(issuer.grants("authorization_code"), [200, 200]);
    let answer = person.call(&server.url, "whoami").text();
    assert_eq!(answer, "ada: notes:read notes:write");
}

#[test]
fn a_client_that_can_open_pages_signs_in_in_the_middle_of_a_call() {
    sign_in_in_the_middle_of_calls("legacy", &[]);
}

#[test]
fn a_modern_client_that_can_open_pages_signs_in_in_the_middle_of_a_call() {
    sign_in_in_the_middle_of_calls("2026-07-28", &["--era", "modern"]);
}

#[test]
fn a_machine_needs_no_login() {
    let issuer = AuthorizationServer::start(&[]);
    let server = issuer.protected_server(&[]);
    let person = Person::new();
    let auth = json!({
        "grant": "client_credentials", "client-id": "machine", "client-secret": "machine-client-secret",
    });
    let servers = json!({ "notes": { "url": server.url, "mcp-proxy": { "auth": auth } } });
    let hub = person.hub("hub", &servers, &[]);
    let answer = HubClient::connect(&hub.url).call_until_it_answers("notes_whoami");
    assert_eq!(answer, "machine: notes:read");
    assert_eq!(issuer.grants("client_credentials"), [200]);
}
