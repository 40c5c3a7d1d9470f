//! The proxy in front of one server that needs a sign-in, and where tokens must not go.

use serde_json::json;

use super::hub_client::HubClient;
use super::person::{Person, login_command};
use super::servers::{AuthorizationServer, ProtectedServer};
use crate::fixtures::{self, PROXY};
use crate::process::RunningProgram;
use crate::texts;

/// The credentials of the calls that a server received.
fn credentials(server: &ProtectedServer) -> Vec<String> {
    let calls = server.calls().into_iter();
    calls
        .map(|call| call.authorization.unwrap_or_default())
        .collect()
}

fn front(person: &Person, server: &str) -> (RunningProgram, String) {
    let flags = [
        "proxy",
        "--no-record",
        "--listen",
        "http",
        "--listen-port",
        "0",
    ];
    let running = RunningProgram::start(person.command(&flags).arg(server));
    let url = running.wait_for(texts::LISTENING_ON);
    (running, url)
}

#[test]
fn requests_without_credentials_get_the_token_and_others_pass_unchanged() {
    let issuer = AuthorizationServer::start(&[]);
    let server = issuer.protected_server(&[]);
    let person = Person::new();
    let (proxy, url) = front(&person, &server.url);
    // The refusal passes unchanged; the person at the proxy is told what it means.
    assert!(!person.call(&url, "whoami").0.status.success());
    person.type_in(&login_command(&proxy.wait_for("needs sign-in")));
    assert_eq!(person.call(&url, "whoami").text(), "ada: notes:read");
    issuer.forget_access_tokens();
    assert_eq!(HubClient::connect(&url).call("whoami"), "ada: notes:read");
    assert_eq!(issuer.grants("refresh_token"), [200]);

    // It is not refused because of us, and nothing is renewed for it.
    let own = [
        "call",
        "whoami",
        "--url",
        &url,
        "--header",
        "Authorization: Bearer mine",
    ];
    assert!(!person.run(&own).status.success());
    assert!(server.saw("Bearer mine"));
    assert_eq!(issuer.grants("refresh_token"), [200]);
}

#[test]
fn a_client_on_stdio_gets_the_token_too() {
    let issuer = AuthorizationServer::start(&[]);
    let server = issuer.protected_server(&[]);
    let person = Person::new();
    person.login(&server.url, &[]);
    let script = fixtures::peer("ts_asks.mjs");
    let words = [
        &script,
        "demo",
        "legacy",
        PROXY,
        "proxy",
        "--no-record",
        &server.url,
    ];
    let mut asks = fixtures::command(&fixtures::node(), &words);
    let mut client = HubClient::over(person.with_environment(&mut asks));
    assert_eq!(client.call("whoami"), "ada: notes:read");
}

#[test]
fn a_token_goes_to_its_own_server_only() {
    let issuer = AuthorizationServer::start(&[]);
    let (mine, other) = (issuer.protected_server(&[]), issuer.protected_server(&[]));
    let person = Person::new();
    person.login(&mine.url, &[]);
    person.call(&other.url, "whoami").needs_sign_in();
    assert_eq!(person.call(&mine.url, "whoami").text(), "ada: notes:read");
    let token = credentials(&mine).pop().expect("a call");
    assert!(!other.saw(&token));
}

#[test]
fn a_client_s_token_for_the_hub_goes_to_no_server() {
    let issuer = AuthorizationServer::start(&[]);
    let server = issuer.protected_server(&[]);
    let person = Person::new();
    person.login(&server.url, &[]);
    let servers = json!({ "notes": { "url": server.url } });
    let hub = person.hub("hub", &servers, &[]);
    HubClient::connect(&hub.url).call_until_it_answers("notes_whoami");
    let own = [
        "call",
        "notes_whoami",
        "--url",
        &hub.url,
        "--header",
        "Authorization: Bearer mine",
    ];
    person.succeed(&own);
    assert_eq!(credentials(&server).len(), 2);
    assert!(!server.saw("Bearer mine"));
}
