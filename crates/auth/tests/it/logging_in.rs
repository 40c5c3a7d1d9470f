//! Logins of people.

use http::StatusCode;
use mcp_proxy_auth::{AuthError, SignInState};
use url::Url;

use crate::authorization_server::TestServer;
use crate::browser::{get, redirect_of, sign_in, visit};

#[tokio::test]
async fn a_login_finds_registers_and_stores() {
    let server = TestServer::start().await;
    let first = server.sign_in();
    assert_eq!(first.state(), SignInState::SignedOut);
    assert_eq!(first.token().await, Ok(None));
    let mut login = first.begin(&["extra".to_owned()]).await.unwrap();
    let (facts, page) = visit(&mut login).await;
    let facts = facts.unwrap();
    assert_eq!(page.status(), StatusCode::OK);
    assert_eq!(facts.issuer, server.base);
    assert_eq!(facts.scopes, ["read", "extra"]);
    assert!(facts.can_refresh && facts.until.is_some());
    // Another process sees it, and gives the token that the server takes.
    let other = server.sign_in();
    assert_eq!(other.state(), SignInState::SignedIn(facts));
    let token = other.token().await.unwrap().unwrap();
    let authorization = token.authorization();
    let value = authorization.strip_prefix("Bearer ").unwrap();
    assert!(server.state().valid_tokens.contains(value));
    assert_eq!(first.token().await, Ok(Some(token)));
}

#[tokio::test]
async fn a_redirect_with_a_wrong_state_is_refused_and_the_login_waits_on() {
    let server = TestServer::start().await;
    let mut login = server.sign_in().begin(&[]).await.unwrap();
    let back = redirect_of(login.url()).await;
    let mut forged = back.clone();
    forged.set_query(Some("code=canary-code-9&state=guessed"));
    let visits = async {
        let refused = get(&forged).await;
        let elsewhere = get(&forged.join("/favicon.ico").unwrap()).await;
        let page = get(&back).await;
        (refused.status(), elsewhere.status(), page.status())
    };
    let (facts, statuses) = tokio::join!(login.redirected(), visits);
    assert!(facts.is_ok());
    let expected = (
        StatusCode::BAD_REQUEST,
        StatusCode::NOT_FOUND,
        StatusCode::OK,
    );
    assert_eq!(statuses, expected);
    assert_eq!(server.seen("/token").len(), 1);
}

#[tokio::test]
async fn a_code_is_used_once() {
    let server = TestServer::start().await;
    let mut login = server.sign_in().begin(&[]).await.unwrap();
    let back = redirect_of(login.url()).await;
    assert!(login.pasted(back.as_str()).await.is_ok());
    assert_eq!(login.pasted(back.as_str()).await, Err(AuthError::Ended));
    assert_eq!(login.redirected().await, Err(AuthError::Ended));
    assert_eq!(server.seen("/token").len(), 1);
}

#[tokio::test]
async fn the_redirect_can_be_pasted_and_other_text_does_no_harm() {
    let server = TestServer::start().await;
    let mut login = server.sign_in().begin(&[]).await.unwrap();
    for text in ["", "hello", "http://127.0.0.1:1/callback?code=x&state=y"] {
        let refused = login.pasted(text).await;
        assert!(
            matches!(refused, Err(AuthError::NotTheRedirect { .. })),
            "{text}"
        );
    }
    let back = redirect_of(login.url()).await;
    assert!(login.pasted(&format!(" {back}\n")).await.is_ok());
}

#[tokio::test]
async fn a_person_who_says_no_ends_the_login() {
    let server = TestServer::start().await;
    let mut login = server.sign_in().begin(&[]).await.unwrap();
    let mut back = redirect_of(login.url()).await;
    let state = state_of(&back);
    let base = &server.base;
    back.set_query(Some(&format!(
        "error=access_denied&state={state}&iss={base}"
    )));
    let (facts, page) = tokio::join!(login.redirected(), get(&back));
    assert!(matches!(facts, Err(AuthError::Refused { code, .. }) if code == "access_denied"));
    assert_eq!(page.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn an_answer_from_another_issuer_is_not_exchanged() {
    let server = TestServer::start().await;
    let mut login = server.sign_in().begin(&[]).await.unwrap();
    let mut back = redirect_of(login.url()).await;
    let state = state_of(&back);
    back.set_query(Some(&format!(
        "code=x&state={state}&iss=https://evil.example.com"
    )));
    let (facts, _) = tokio::join!(login.redirected(), get(&back));
    assert!(matches!(facts, Err(AuthError::WrongIssuer { .. })));
    assert!(server.seen("/token").is_empty());
}

#[tokio::test]
async fn a_promised_issuer_must_be_there() {
    let server = TestServer::start().await;
    server.state().omits_issuer = true;
    let mut login = server.sign_in().begin(&[]).await.unwrap();
    let (facts, _) = visit(&mut login).await;
    assert!(matches!(facts, Err(AuthError::NoIssuer { .. })));
    assert!(server.seen("/token").is_empty());
    // Without the promise, it may be missing.
    server.change_metadata(|metadata| {
        metadata["authorization_response_iss_parameter_supported"] = false.into();
    });
    sign_in(&server.sign_in()).await;
}

#[tokio::test]
async fn dropping_a_login_frees_its_port() {
    let server = TestServer::start().await;
    let login = server.sign_in().begin(&[]).await.unwrap();
    let query = login.url().query_pairs().into_owned();
    let redirect = query.collect::<std::collections::HashMap<_, _>>()["redirect_uri"].clone();
    let port = Url::parse(&redirect).unwrap().port().unwrap();
    drop(login);
    while tokio::net::TcpListener::bind(("127.0.0.1", port))
        .await
        .is_err()
    {
        tokio::task::yield_now().await;
    }
}

fn state_of(url: &Url) -> String {
    let mut pairs = url.query_pairs();
    let state = pairs.find(|(name, _)| name == "state");
    state.unwrap().1.into_owned()
}
