//! Signing in and out from the shell: with a browser, without one, with wrong answers, and with all kinds of clients.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use serde_json::{Value, json};
use url::Url;

use super::http::get;
use super::person::{LIMIT, Person};
use super::servers::AuthorizationServer;
use crate::fixtures;
use crate::h2::Certificate;
use crate::piped_program::PipedProgram;
use crate::process::{finish, said};

/// The requests with this path, each with its parameters.
fn parameters(issuer: &AuthorizationServer, path: &str) -> Vec<Value> {
    let events = issuer.events().into_iter();
    let found = events.filter(|event| event["path"] == path);
    found.map(|event| event["parameters"].clone()).collect()
}

fn scopes(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn a_person_signs_in_calls_a_tool_and_signs_out() {
    let issuer = AuthorizationServer::start(&[]);
    let server = issuer.protected_server(&[]);
    let person = Person::new();
    let command = person.call(&server.url, "whoami").needs_sign_in();
    person.type_in(&command);
    assert_eq!(person.call(&server.url, "whoami").text(), "ada: notes:read");
    assert_eq!(issuer.grants("authorization_code"), [200]);
    assert!(person.browser_log().ends_with("status 200\n"));

    let asked = &parameters(&issuer, "/auth")[0];
    assert_eq!(asked["code_challenge_method"], "S256");
    assert_eq!(asked["resource"], json!(server.url));
    let exchanged = &parameters(&issuer, "/token")[0];
    assert_eq!(exchanged["resource"], json!(server.url));
    for (path, mode) in [
        ("data/mcp-proxy", 0o700),
        ("data/mcp-proxy/tokens.json", 0o600),
    ] {
        let permissions = person.path(path).metadata().expect("it is there");
        assert_eq!(permissions.permissions().mode() & 0o777, mode, "{path}");
    }

    let token = server.calls()[0].authorization.clone().expect("a token");
    person.succeed(&["logout", &server.url]);
    let revoked = issuer.events().into_iter();
    let mut revoked = revoked.filter(|event| event["path"] == "/token/revocation");
    assert!(revoked.all(|event| event["status"] == 200));
    assert!(!parameters(&issuer, "/token/revocation").is_empty());
    // The server no longer takes the token, whoever sends it.
    let header = format!("Authorization: {token}");
    let with_it = ["call", "whoami", "--url", &server.url, "--header", &header];
    assert!(!person.run(&with_it).status.success());
    person.call(&server.url, "whoami").needs_sign_in();
    let left = std::fs::read_to_string(person.tokens_file()).unwrap_or_default();
    assert!(!left.contains("access"), "{left}");
}

#[test]
fn a_server_that_verifies_tokens_itself() {
    let issuer = AuthorizationServer::start(&["--format", "jwt"]);
    let server = issuer.protected_server(&["--format", "jwt"]);
    let person = Person::new();
    person.login(&server.url, &[]);
    assert_eq!(person.call(&server.url, "whoami").text(), "ada: notes:read");
}

/// Both servers have a certificate that only `--ca-file` and the browser know.
#[test]
fn a_server_and_an_authorization_server_with_tls() {
    let certificate = Certificate::new();
    let (cert, key) = (certificate.path("cert.pem"), certificate.path("key.pem"));
    let flags = ["--cert", cert.as_str(), "--key", key.as_str()];
    let issuer = AuthorizationServer::start(&flags);
    let server = issuer.protected_server(&flags);
    let person = Person::new();
    person.trust(&cert);
    assert!(!person.run(&["login", &server.url]).status.success());
    person.login(&server.url, &["--ca-file", &cert]);
    assert!(person.browser_log().contains("https://localhost:"));
    let call = ["call", "whoami", "--url", &server.url, "--ca-file", &cert];
    let output = person.succeed(&call);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "ada: notes:read\n");
    person.succeed(&["logout", &server.url, "--ca-file", &cert]);
    assert!(!person.run(&call).status.success());
}

#[test]
fn the_account_is_said_if_the_authorization_server_says_it() {
    let issuer = AuthorizationServer::start(&[]);
    let server = issuer.protected_server(&[]);
    let person = Person::new();
    let output = person.login(&server.url, &["--scope", "openid email"]);
    let asked = &issuer.asked_scopes()[0];
    assert!(
        asked.is_superset(&scopes(&["openid", "email", "notes:read"])),
        "{asked:?}"
    );
    assert!(said(&output).contains("ada"), "{}", said(&output));
}

/// A login without a browser, and the URL that it prints.
fn headless_login(person: &Person, server: &str) -> (PipedProgram, String) {
    let login = PipedProgram::start(&mut person.command(&["login", server, "--no-browser"]));
    let url = std::iter::from_fn(|| login.stdout.next()).find(|line| line.starts_with("http://"));
    (login, url.expect("the URL is a line of its own"))
}

/// Where a browser ends that can reach the authorization server but not the login.
fn address_bar(person: &Person, url: &str) -> String {
    let mut browser = browser(person, &["--stop-before-callback", url]);
    let pages = finish(browser.env_remove("TEST_BROWSER_LOG"), LIMIT);
    assert!(pages.status.success(), "{}", said(&pages));
    let pages = String::from_utf8(pages.stdout).expect("URLs");
    pages.lines().last().expect("a page").to_owned()
}

fn browser(person: &Person, arguments: &[&str]) -> Command {
    let script = fixtures::peer("browser.mjs");
    let mut command =
        fixtures::command(&fixtures::node(), &[&[script.as_str()], arguments].concat());
    person.with_environment(&mut command);
    command
}

#[test]
fn the_redirect_can_be_pasted() {
    let issuer = AuthorizationServer::start(&[]);
    let server = issuer.protected_server(&[]);
    let person = Person::new();
    let (mut login, url) = headless_login(&person, &server.url);
    let redirect = address_bar(&person, &url);
    login.say("");
    login.say("https://example.com/not-the-redirect");
    login.say(&redirect.replace("state=", "state=not-"));
    login.say(&redirect);
    login.end();
    assert!(login.succeeded());
    assert_eq!(issuer.grants("authorization_code"), [200]);
    assert_eq!(person.call(&server.url, "whoami").text(), "ada: notes:read");
}

#[test]
fn without_stdin_the_login_waits_for_the_redirect() {
    let issuer = AuthorizationServer::start(&[]);
    let server = issuer.protected_server(&[]);
    let person = Person::new();
    let (mut login, url) = headless_login(&person, &server.url);
    login.close_stdin();
    let pages = finish(&mut browser(&person, &[&url]), LIMIT);
    assert!(pages.status.success(), "{}", said(&pages));
    login.end();
    assert!(login.succeeded());
    assert_eq!(person.call(&server.url, "whoami").text(), "ada: notes:read");
}

#[test]
fn a_redirect_with_a_wrong_state_is_refused_and_the_login_waits() {
    let issuer = AuthorizationServer::start(&[]);
    let server = issuer.protected_server(&[]);
    let person = Person::new();
    let (mut login, url) = headless_login(&person, &server.url);
    let redirect = address_bar(&person, &url);
    for wrong in [
        redirect.replace("state=", "state=not-"),
        redirect.replace("state=", "other="),
    ] {
        let (status, page) = get(&wrong);
        assert_eq!(status, 400, "{page}");
    }
    assert_eq!(issuer.grants("authorization_code"), [0; 0]);
    let (status, page) = get(&redirect);
    assert_eq!(status, 200, "{page}");
    login.end();
    assert!(login.succeeded());
    assert_eq!(person.call(&server.url, "whoami").text(), "ada: notes:read");
}

/// An authorization server that takes no registrations, and the client that it knows.
#[test]
fn a_client_that_was_registered_by_hand() {
    let issuer = AuthorizationServer::start(&["--no-registration"]);
    let server = issuer.protected_server(&[]);
    let person = Person::new();
    let output = person.run(&["login", &server.url]);
    assert!(!output.status.success(), "{}", said(&output));
    let auth = json!({ "client-id": "registered-by-hand", "client-secret": "${NOTES_SECRET}" });
    let entry = json!({ "url": server.url, "mcp-proxy": { "auth": auth } });
    let config = person.write("mine.json", &json!({ "mcpServers": { "notes": entry } }));
    let mut login = person.command(&["login", "notes", "--config", &config]);
    let output = finish(
        login.env("NOTES_SECRET", "registered-by-hand-secret"),
        LIMIT,
    );
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(
        parameters(&issuer, "/auth")[0]["client_id"],
        "registered-by-hand"
    );
    // The sign-in belongs to the URL.
    assert_eq!(person.call(&server.url, "whoami").text(), "ada: notes:read");
}

#[test]
fn a_redirect_leads_to_this_machine() {
    let issuer = AuthorizationServer::start(&[]);
    let server = issuer.protected_server(&[]);
    let person = Person::new();
    let (_login, url) = headless_login(&person, &server.url);
    let url = Url::parse(&url).expect("a URL");
    let redirect = url.query_pairs().find(|(name, _)| name == "redirect_uri");
    let redirect = Url::parse(&redirect.expect("a redirect").1).expect("a URL");
    assert_eq!(redirect.host_str(), Some("127.0.0.1"));
    assert_eq!(redirect.path(), "/callback");
}
