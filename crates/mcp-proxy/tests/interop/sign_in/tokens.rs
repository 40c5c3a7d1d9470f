//! The life of tokens: renewed before and after they expire, once for all who wait, shared by two hubs, refused for a scope.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::hub_client::{HubClient, text};
use super::person::{CallOutcome, Person, SignInHub};
use super::servers::{AuthorizationServer, ProtectedServer};
use super::until;

/// A sign-in that is there already.
struct SignedIn {
    person: Person,
    server: ProtectedServer,
    issuer: AuthorizationServer,
}

impl SignedIn {
    fn new(flags: &[&str]) -> SignedIn {
        let issuer = AuthorizationServer::start(flags);
        let server = issuer.protected_server(&[]);
        SignedIn::to(issuer, server)
    }

    fn to(issuer: AuthorizationServer, server: ProtectedServer) -> SignedIn {
        let person = Person::new();
        person.login(&server.url, &[]);
        SignedIn {
            person,
            server,
            issuer,
        }
    }

    fn servers(&self) -> Value {
        json!({ "notes": { "url": self.server.url } })
    }

    fn call(&self, tool: &str) -> CallOutcome {
        self.person.call(&self.server.url, tool)
    }

    /// The statuses of the calls of a tool, in order.
    fn statuses(&self, tool: &str) -> Vec<u64> {
        let calls = self.server.calls().into_iter();
        let calls = calls.filter(|call| call.tool.as_deref() == Some(tool));
        calls.map(|call| call.status).collect()
    }
}

#[test]
fn a_token_that_is_about_to_expire_is_renewed_before_the_call() {
    let signed_in = SignedIn::new(&["--access-ttl", "8"]);
    until("a renewal", || {
        assert_eq!(signed_in.call("whoami").text(), "ada: notes:read");
        (signed_in.issuer.grants("refresh_token") == [200]).then_some(())
    });
    let statuses = signed_in.statuses("whoami");
    assert!(statuses.iter().all(|status| *status == 200), "{statuses:?}");
}

#[test]
fn a_call_with_a_token_that_the_server_no_longer_knows_is_repeated_with_a_new_one() {
    let signed_in = SignedIn::new(&[]);
    let hub = signed_in.person.hub("hub", &signed_in.servers(), &[]);
    let mut client = HubClient::connect(&hub.url);
    assert_eq!(
        client.call_until_it_answers("notes_whoami"),
        "ada: notes:read"
    );
    signed_in.issuer.forget_access_tokens();
    assert_eq!(client.call("notes_whoami"), "ada: notes:read");
    assert_eq!(signed_in.statuses("whoami"), [200, 401, 200]);
    assert_eq!(signed_in.issuer.grants("refresh_token"), [200]);
}

/// The event stream stays as it is, and the messages to the server get the new token.
#[test]
fn an_open_sse_session_goes_on_with_a_new_token() {
    let issuer = AuthorizationServer::start(&[]);
    let server = issuer.protected_server(&["--sse"]);
    let signed_in = SignedIn::to(issuer, server);
    let hub = signed_in.person.hub("hub", &signed_in.servers(), &[]);
    let mut client = HubClient::connect(&hub.url);
    assert_eq!(
        client.call_until_it_answers("notes_whoami"),
        "ada: notes:read"
    );
    signed_in.issuer.forget_access_tokens();
    assert_eq!(client.call("notes_whoami"), "ada: notes:read");
    assert_eq!(signed_in.statuses("whoami"), [202, 401, 202]);
    client.call_needs_sign_in("notes_write_note");
    assert_eq!(client.call("notes_whoami"), "ada: notes:read");
}

#[test]
fn one_renewal_serves_all_calls_that_wait_for_it() {
    let signed_in = SignedIn::new(&[]);
    let hub = signed_in.person.hub("hub", &signed_in.servers(), &[]);
    let mut clients: Vec<HubClient> = (0..4).map(|_| HubClient::connect(&hub.url)).collect();
    clients[0].call_until_it_answers("notes_whoami");
    signed_in.issuer.forget_access_tokens();
    call_together(&mut clients);
    assert_eq!(signed_in.issuer.grants("refresh_token"), [200]);
}

/// Two hubs that use one sign-in, with a client each.
fn two_hubs(signed_in: &SignedIn) -> (Vec<SignInHub>, Vec<HubClient>) {
    let servers = signed_in.servers();
    let hubs = ["one", "other"].map(|name| signed_in.person.hub(name, &servers, &[]));
    let connected = hubs.iter().map(|hub| HubClient::connect(&hub.url));
    let mut clients: Vec<HubClient> = connected.collect();
    for client in &mut clients {
        client.call_until_it_answers("notes_whoami");
    }
    (hubs.into(), clients)
}

/// All of them at the same time.
fn call_together(clients: &mut [HubClient]) {
    for client in clients.iter_mut() {
        client.send_call("notes_whoami");
    }
    for client in clients {
        assert_eq!(text(&client.answer()), "ada: notes:read");
    }
}

/// A refresh token that is used twice would end the sign-in.
#[test]
fn two_hubs_share_a_rotating_refresh_token() {
    let signed_in = SignedIn::new(&["--access-ttl", "4"]);
    let (_hubs, mut clients) = two_hubs(&signed_in);
    let renewals = until("three renewals", || {
        call_together(&mut clients);
        let renewals = signed_in.issuer.grants("refresh_token");
        (renewals.len() >= 3).then_some(renewals)
    });
    assert!(renewals.iter().all(|status| *status == 200), "{renewals:?}");
    assert_eq!(signed_in.issuer.grants("authorization_code"), [200]);
}

#[test]
fn two_hubs_and_a_shell_share_one_renewal() {
    let signed_in = SignedIn::new(&[]);
    let (_hubs, mut clients) = two_hubs(&signed_in);
    signed_in.issuer.forget_access_tokens();
    call_together(&mut clients);
    assert_eq!(signed_in.issuer.grants("refresh_token"), [200]);
    assert_eq!(signed_in.call("whoami").text(), "ada: notes:read");
    signed_in.issuer.forget_access_tokens();
    assert_eq!(signed_in.call("whoami").text(), "ada: notes:read");
    call_together(&mut clients);
    assert_eq!(signed_in.issuer.grants("refresh_token"), [200, 200]);
}

#[test]
fn a_revoked_refresh_token_needs_another_sign_in() {
    let signed_in = SignedIn::new(&[]);
    signed_in.issuer.forget_refresh_tokens();
    // The access token is still good.
    assert_eq!(signed_in.call("whoami").text(), "ada: notes:read");
    signed_in.issuer.forget_access_tokens();
    let command = signed_in.call("whoami").needs_sign_in();
    signed_in.person.type_in(&command);
    assert_eq!(signed_in.call("whoami").text(), "ada: notes:read");
}

#[test]
fn a_server_without_refresh_tokens_needs_another_sign_in_when_the_token_ends() {
    let signed_in = SignedIn::new(&["--no-refresh"]);
    signed_in.issuer.forget_access_tokens();
    let command = signed_in.call("whoami").needs_sign_in();
    signed_in.person.type_in(&command);
    assert_eq!(signed_in.call("whoami").text(), "ada: notes:read");
}

#[test]
fn a_missing_scope_is_asked_for_together_with_those_that_were_granted() {
    let signed_in = SignedIn::new(&[]);
    let hub = signed_in.person.hub("hub", &signed_in.servers(), &[]);
    let mut client = HubClient::connect(&hub.url);
    client.call_until_it_answers("notes_whoami");
    for (tool, granted) in [
        ("write_note", "notes:read notes:write"),
        ("share_note", "notes:read notes:share notes:write"),
    ] {
        let command = client.call_needs_sign_in(&format!("notes_{tool}"));
        // Other tools work meanwhile.
        assert!(client.call("notes_whoami").starts_with("ada: "));
        signed_in.person.type_in(&command);
        let answer = client.call_until_it_answers(&format!("notes_{tool}"));
        assert_eq!(answer, format!("{tool}: x"));
        let asked = signed_in.issuer.asked_scopes().pop().expect("a login");
        let asked = asked.iter().map(String::as_str);
        let asked: BTreeSet<&str> = asked.filter(|scope| scope.starts_with("notes:")).collect();
        assert_eq!(asked, granted.split(' ').collect());
    }
}

/// From the shell, the scopes that were missing are remembered from one program to the next.
#[test]
fn a_missing_scope_is_remembered_for_the_next_login() {
    let signed_in = SignedIn::new(&[]);
    let command = signed_in.call("write_note").needs_sign_in();
    assert_eq!(signed_in.call("whoami").text(), "ada: notes:read");
    signed_in.person.type_in(&command);
    assert_eq!(signed_in.call("write_note").text(), "write_note: x");
    assert_eq!(
        signed_in.call("whoami").text(),
        "ada: notes:read notes:write"
    );
}

#[test]
fn a_restarted_hub_is_still_signed_in() {
    let signed_in = SignedIn::new(&[]);
    for name in ["first", "second"] {
        let hub = signed_in.person.hub(name, &signed_in.servers(), &[]);
        let answer = HubClient::connect(&hub.url).call_until_it_answers("notes_whoami");
        assert_eq!(answer, "ada: notes:read");
    }
    assert_eq!(signed_in.issuer.grants("authorization_code"), [200]);
    assert_eq!(signed_in.issuer.grants("refresh_token"), [0; 0]);
}
