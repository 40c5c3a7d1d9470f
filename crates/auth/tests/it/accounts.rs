//! As whom a person is signed in.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcp_proxy_auth::SignInFacts;
use serde_json::{Value, json};

use crate::authorization_server::{Answer, TestServer};
use crate::browser::visit;

fn id_token(claims: &Value) -> String {
    let payload = URL_SAFE_NO_PAD.encode(claims.to_string());
    format!("e30.{payload}.canary")
}

async fn sign_in(server: &TestServer, scope: &str) -> SignInFacts {
    let scopes = [scope.to_owned()];
    let mut login = server.sign_in().begin(&scopes).await.unwrap();
    visit(&mut login).await.0.unwrap()
}

#[tokio::test]
async fn the_id_token_has_the_name() {
    for (claims, account) in [
        (
            json!({"sub": "1", "email": "ada@example.com"}),
            "ada@example.com",
        ),
        (
            json!({"sub": "1", "name": "Ada", "preferred_username": "ada"}),
            "ada",
        ),
        (json!({"sub": "1"}), "1"),
        (json!({"email": "a\u{1b}[2J\nb"}), "a[2Jb"),
    ] {
        let server = TestServer::start().await;
        server.state().id_token = Some(id_token(&claims));
        let facts = sign_in(&server, "openid").await;
        assert_eq!(facts.account.as_deref(), Some(account));
        // The id token itself is not kept.
        assert!(!server.stored_text().contains("e30."));
    }
}

#[tokio::test]
async fn a_broken_id_token_is_no_name_and_no_failure() {
    for token in ["", "x", "e30.???.x", "e30.e30.x"] {
        let server = TestServer::start().await;
        server.state().id_token = Some(token.to_owned());
        assert_eq!(sign_in(&server, "openid").await.account, None, "{token}");
    }
}

#[tokio::test]
async fn userinfo_is_asked_only_for_people_with_the_scope() {
    let server = TestServer::start().await;
    let endpoint = format!("{}/userinfo", server.base);
    server.change_metadata(|metadata| metadata["userinfo_endpoint"] = json!(endpoint));
    let answer = Answer::json(200, &json!({"sub": "1", "email": "ada@example.com"}));
    server.replace("/userinfo", answer);
    assert_eq!(sign_in(&server, "other").await.account, None);
    assert!(server.seen("/userinfo").is_empty());
    let facts = sign_in(&server, "openid").await;
    assert_eq!(facts.account.as_deref(), Some("ada@example.com"));
    // One that does not answer costs the name only.
    server.replace("/userinfo", Answer::empty(500));
    assert_eq!(sign_in(&server, "openid").await.account, None);
}
