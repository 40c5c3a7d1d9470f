//! Client credentials: no person signs in, and nobody sees where the secret goes.

use mcp_proxy_auth::{AuthError, AuthSettings, Grant, Refusal, Secret};
use serde_json::json;
use url::Url;

use crate::authorization_server::{Answer, TestServer};
use crate::browser::sign_in;

const CHALLENGE: &str = "Bearer error=\"insufficient_scope\", scope=\"write admin\"";

#[tokio::test]
async fn client_credentials_need_no_person() {
    let server = TestServer::start().await;
    let first = server.sign_in_with(machine());
    assert!(first.needs_no_person());
    let token = first.token().await.unwrap().unwrap();
    assert_eq!(first.token().await, Ok(Some(token.clone())));
    let Refusal::Retry(new) = first.refused(Some(&token), 401, &[]).await else {
        panic!("the client can ask again");
    };
    // The secret of the config is not stored, and where to ask is known.
    assert!(!server.stored_text().contains("canary-machine"));
    assert_eq!(
        server.sign_in_with(machine()).token().await,
        Ok(Some(new.clone()))
    );
    assert_eq!(server.seen("/token").len(), 2);
    let other = server.sign_in_with(machine());
    let refusal = other
        .refused(Some(&new), 403, &[CHALLENGE.to_owned()])
        .await;
    assert!(matches!(refusal, Refusal::Retry(wider) if wider != new));
    assert_eq!(server.seen("/token")[2].form["scope"], "read write admin");
}

#[tokio::test]
async fn a_scope_that_a_machine_may_not_have_is_missing_and_costs_no_other_token() {
    let server = TestServer::start().await;
    server.state().unknown_scopes.insert("admin");
    let machine = server.sign_in_with(machine());
    let token = machine.token().await.unwrap().unwrap();
    for _ in 0..2 {
        let refusal = machine
            .refused(Some(&token), 403, &[CHALLENGE.to_owned()])
            .await;
        let missing = vec!["write".to_owned(), "admin".to_owned()];
        assert_eq!(refusal, Refusal::MissingScope(missing));
    }
    assert_eq!(machine.token().await, Ok(Some(token.clone())));
    let again = machine.refused(Some(&token), 401, &[]).await;
    assert!(matches!(again, Refusal::Retry(_)), "{again:?}");
    assert!(!server.stored_text().contains("admin"));
}

#[tokio::test]
async fn a_wrong_client_secret_is_told() {
    let server = TestServer::start().await;
    let settings = AuthSettings {
        client_secret: Some(Secret::new("canary-wrong")),
        ..machine()
    };
    let refused = server.sign_in_with(settings).token().await.unwrap_err();
    assert!(matches!(&refused, AuthError::Refused { code, .. } if code == "invalid_client"));
    assert!(!refused.to_string().contains("canary"));
}

#[tokio::test]
async fn a_token_endpoint_that_has_moved_is_found_again() {
    let server = TestServer::start().await;
    let machine = server.sign_in_with(machine());
    let old = machine.token().await.unwrap().unwrap();
    let moved = format!("{}/moved-token", server.base);
    server.change_metadata(|metadata| metadata["token_endpoint"] = json!(moved));
    server.replace("/token", Answer::empty(404));
    for _ in 0..2 {
        let refusal = machine.refused(Some(&old), 401, &[]).await;
        assert!(matches!(refusal, Refusal::Retry(_)), "{refusal:?}");
    }
    assert_eq!(server.seen("/token").len(), 2);
    // Where it is now is known. One that is down has not moved.
    server.replace("/moved-token", Answer::empty(404));
    let new = machine.token().await.unwrap().unwrap();
    let refusal = machine.refused(Some(&new), 401, &[]).await;
    assert!(matches!(
        refusal,
        Refusal::Failed(AuthError::Status { status: 404, .. })
    ));
    assert_eq!(server.seen("/token").len(), 2);
}

#[tokio::test]
async fn scopes_that_are_no_longer_granted_are_no_longer_asked_for() {
    let server = TestServer::start().await;
    let machine = server.sign_in_with(machine());
    let token = machine.token().await.unwrap().unwrap();
    let challenge = [CHALLENGE.to_owned()];
    let Refusal::Retry(wider) = machine.refused(Some(&token), 403, &challenge).await else {
        panic!("it gets them");
    };
    server.state().unknown_scopes.insert("admin");
    let refusal = machine.refused(Some(&wider), 401, &[]).await;
    assert!(matches!(refusal, Refusal::Retry(_)), "{refusal:?}");
}

#[tokio::test]
async fn the_secret_goes_to_another_authorization_server_only_if_the_config_names_it() {
    let (server, other) = (TestServer::start().await, TestServer::start().await);
    let first = server.sign_in_with(machine());
    let token = first.token().await.unwrap().unwrap();
    server.move_to(&other);
    server.replace("/token", Answer::empty(404));
    let refusal = first.refused(Some(&token), 401, &[]).await;
    let Refusal::Failed(AuthError::OtherIssuer { found, .. }) = refusal else {
        panic!("{refusal:?}");
    };
    assert!(other.base.ends_with(&found));
    assert!(other.seen("/token").is_empty());
    let named = AuthSettings {
        authorization_server: Some(Url::parse(&other.base).unwrap()),
        ..machine()
    };
    // The other one gets it, and does not know the server.
    let named = server.sign_in_with(named);
    let refused = named.refused(Some(&token), 401, &[]).await;
    assert!(
        matches!(&refused, Refusal::Failed(AuthError::Refused { code, .. }) if code == "invalid_target")
    );
    assert_eq!(other.seen("/token").len(), 1);
    // A logout forgets where it went.
    first.sign_out().await.unwrap();
    let refused = first.token().await.unwrap_err();
    assert!(matches!(&refused, AuthError::Refused { code, .. } if code == "invalid_target"));
}

#[tokio::test]
async fn a_login_with_the_secret_of_the_config_goes_where_it_went_before() {
    let (server, other) = (TestServer::start().await, TestServer::start().await);
    let settings = || AuthSettings {
        grant: Grant::AuthorizationCode,
        ..machine()
    };
    let first = server.sign_in_with(settings());
    sign_in(&first).await;
    server.move_to(&other);
    let refused = first.begin(&[]).await.unwrap_err();
    assert!(matches!(refused, AuthError::OtherIssuer { .. }));
    // Without a secret, there is nothing to lose, and the person sees where it goes.
    let without = AuthSettings {
        client_secret: None,
        ..settings()
    };
    assert!(server.sign_in_with(without).begin(&[]).await.is_ok());
}

/// The settings of a client that needs no person.
fn machine() -> AuthSettings {
    AuthSettings {
        client_id: Some("machine".to_owned()),
        client_secret: Some(Secret::new("canary-machine")),
        grant: Grant::ClientCredentials,
        ..AuthSettings::default()
    }
}
