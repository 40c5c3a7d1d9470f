//! Tokens that expire or are refused, for one process and for several.

use mcp_proxy_auth::{AuthError, BearerToken, Refusal, Revocation, SignInFacts, SignInState};
use serde_json::json;

use crate::authorization_server::{Answer, TestServer};
use crate::browser::{redirect_of, sign_in, visit};

const CHALLENGE: &str = "Bearer error=\"insufficient_scope\", scope=\"write admin\"";

#[tokio::test]
async fn a_token_that_is_due_is_renewed_once_for_all_who_wait() {
    let server = TestServer::start().await;
    server.state().lifetime = Some(0);
    let first = server.sign_in();
    sign_in(&first).await;
    server.state().lifetime = Some(3600);
    // Two hubs, each with several requests.
    let other = server.sign_in();
    let (a, b, c, d) = tokio::join!(first.token(), first.token(), other.token(), other.token());
    let token = a.unwrap().unwrap();
    for also in [b, c, d] {
        assert_eq!(also.unwrap().unwrap(), token);
    }
    assert_eq!(renewals(&server), 1);
    let form = &server.seen("/token")[1].form;
    assert_eq!(form["resource"], server.mcp().as_str());
}

#[tokio::test]
async fn a_renewal_goes_on_if_nobody_waits_for_it() {
    let server = TestServer::start().await;
    server.state().lifetime = Some(0);
    let first = server.sign_in();
    sign_in(&first).await;
    server.state().lifetime = Some(3600);
    {
        let token = first.token();
        tokio::pin!(token);
        tokio::select! {
            biased;
            _ = &mut token => panic!("it needs a request"),
            () = async { while renewals(&server) == 0 { tokio::task::yield_now().await } } => {}
        }
    }
    // The new refresh token is not lost.
    assert!(first.token().await.unwrap().is_some());
    assert_eq!(renewals(&server), 1);
}

#[tokio::test]
async fn a_refused_token_is_renewed_and_a_refused_new_one_needs_a_person() {
    let server = TestServer::start().await;
    let first = server.sign_in();
    sign_in(&first).await;
    let old = first.token().await.unwrap().unwrap();
    let Refusal::Retry(new) = first.refused(Some(&old), 401, &[]).await else {
        panic!("it can be renewed");
    };
    assert_ne!(new, old);
    // Those that were sent before get the same one.
    assert_eq!(
        first.refused(Some(&old), 401, &[]).await,
        Refusal::Retry(new.clone())
    );
    assert_eq!(renewals(&server), 1);
    assert_eq!(first.refused_again(401, &[]).await, Refusal::SignIn);
    assert_eq!(renewals(&server), 1);
    // It may end sooner than was said.
    let refusal = first.refused(Some(&new), 401, &[]).await;
    assert!(matches!(refusal, Refusal::Retry(newer) if newer != new));
}

#[tokio::test]
async fn a_renewal_keeps_the_number_of_its_login_and_another_login_has_another() {
    let server = TestServer::start().await;
    server.state().lifetime = None;
    let first = server.sign_in();
    let facts = sign_in(&first).await;
    let old = first.token().await.unwrap().unwrap();
    let renewed = first.refused(Some(&old), 401, &[]).await;
    assert!(matches!(renewed, Refusal::Retry(_)));
    assert_eq!(first.state(), SignInState::SignedIn(facts.clone()));
    let again = sign_in(&first).await;
    assert_ne!(again.login, facts.login);
    let login = facts.login;
    assert_eq!(SignInFacts { login, ..again }, facts);
}

#[tokio::test]
async fn a_revoked_refresh_token_ends_the_sign_in() {
    let server = TestServer::start().await;
    let first = server.sign_in();
    sign_in(&first).await;
    let old = first.token().await.unwrap().unwrap();
    server.state().valid_refresh_tokens.clear();
    assert_eq!(first.refused(Some(&old), 401, &[]).await, Refusal::SignIn);
    assert_eq!(first.state(), SignInState::SignedOut);
    assert_eq!(first.token().await, Ok(None));
    assert!(!server.stored_text().contains("canary"));
}

#[tokio::test]
async fn an_authorization_server_that_is_down_ends_no_sign_in() {
    let server = TestServer::start().await;
    let first = server.sign_in();
    sign_in(&first).await;
    let old = first.token().await.unwrap().unwrap();
    server.replace("/token", Answer::empty(503));
    let refusal = first.refused(Some(&old), 401, &[]).await;
    assert!(matches!(
        refusal,
        Refusal::Failed(AuthError::Status { status: 503, .. })
    ));
    server.state().replaced.clear();
    let refusal = first.refused(Some(&old), 401, &[]).await;
    assert!(matches!(refusal, Refusal::Retry(_)));
}

#[tokio::test]
async fn a_process_that_is_killed_between_its_two_writes_ends_no_sign_in() {
    let server = TestServer::start().await;
    let hub = server.sign_in();
    sign_in(&hub).await;
    let old = hub.token().await.unwrap().unwrap();
    let sign_ins = server.folder().join("mcp-proxy/sign-ins.json");
    // The file as it was, with all that tells it from another one.
    let kept = server.folder().join("kept");
    std::fs::hard_link(&sign_ins, &kept).unwrap();
    let other = server.sign_in().refused(Some(&old), 401, &[]).await;
    assert!(matches!(other, Refusal::Retry(_)));
    std::fs::rename(&kept, &sign_ins).unwrap();
    let refusal = hub.refused(Some(&old), 401, &[]).await;
    assert_eq!(refusal, other);
    assert!(matches!(hub.state(), SignInState::SignedIn(_)));
}

#[tokio::test]
async fn a_renewal_that_fails_fails_for_all_who_wait_for_it() {
    let server = TestServer::start().await;
    let first = server.sign_in();
    sign_in(&first).await;
    let old = first.token().await.unwrap().unwrap();
    server.replace("/token", Answer::empty(503));
    let refused = || first.refused(Some(&old), 401, &[]);
    let (a, b, c) = tokio::join!(refused(), refused(), refused());
    for refusal in [a, b, c] {
        assert!(matches!(refusal, Refusal::Failed(_)), "{refusal:?}");
    }
    assert_eq!(renewals(&server), 1);
    // A token that is only due is good until it expires.
    server.change_stored(|sign_in| sign_in["renew-at"] = json!(0));
    let (a, b, c) = tokio::join!(first.token(), first.token(), first.token());
    for token in [a, b, c] {
        assert_eq!(token, Ok(Some(old.clone())));
    }
    // Whoever comes later tries again.
    assert_eq!(first.token().await, Ok(Some(old)));
    assert!(renewals(&server) >= 3);
}

#[tokio::test]
async fn without_a_token_a_401_needs_a_sign_in_unless_another_scheme_is_wanted() {
    let server = TestServer::start().await;
    let first = server.sign_in();
    assert_eq!(first.refused(None, 401, &[]).await, Refusal::SignIn);
    let bearer = "Bearer realm=\"x\"".to_owned();
    let basic = "Basic realm=\"x\"".to_owned();
    assert_eq!(
        first.refused(None, 401, std::slice::from_ref(&basic)).await,
        Refusal::NotOurs
    );
    assert_eq!(
        first.refused(None, 401, &[basic, bearer]).await,
        Refusal::SignIn
    );
    assert_eq!(first.refused(None, 403, &[]).await, Refusal::NotOurs);
    // Somebody has signed in since.
    sign_in(&server.sign_in()).await;
    assert!(matches!(
        first.refused(None, 401, &[]).await,
        Refusal::Retry(_)
    ));
}

#[tokio::test]
async fn the_next_login_asks_for_granted_and_missing_scopes() {
    let server = TestServer::start().await;
    let first = server.sign_in();
    sign_in(&first).await;
    let token = first.token().await.unwrap().unwrap();
    let refusal = first
        .refused(Some(&token), 403, &[CHALLENGE.to_owned()])
        .await;
    let missing = vec!["write".to_owned(), "admin".to_owned()];
    assert_eq!(refusal, Refusal::MissingScope(missing.clone()));
    // The token is as good as before for everything else.
    assert_eq!(first.token().await, Ok(Some(token.clone())));
    let other = server.sign_in();
    let SignInState::SignedIn(facts) = other.state() else {
        panic!("still signed in");
    };
    assert_eq!(facts.missing_scopes, missing);
    let facts = sign_in(&other).await;
    assert_eq!(facts.scopes, ["read", "write", "admin"]);
    assert!(facts.missing_scopes.is_empty());
    // Whoever asks with the old token gets the new one.
    let refusal = first
        .refused(Some(&token), 403, &[CHALLENGE.to_owned()])
        .await;
    assert!(matches!(refusal, Refusal::Retry(new) if new != token));
}

#[tokio::test]
async fn what_is_no_scope_is_not_kept() {
    let server = TestServer::start().await;
    let first = server.sign_in();
    let long = "x".repeat(257);
    let many: Vec<String> = (0..100).map(|number| format!("scope{number}")).collect();
    let many = many.join(" ");
    for (scopes, expected) in [(format!("{long} a\u{e4} b\\\\c write"), 1), (many, 64)] {
        let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{scopes}\"");
        let refusal = first.refused(None, 403, &[challenge]).await;
        let Refusal::MissingScope(missing) = refusal else {
            panic!("it lacks scopes");
        };
        assert_eq!(missing.len(), expected);
        assert_eq!(missing[0], "write");
    }
}

#[tokio::test]
async fn a_login_that_is_refused_for_its_scopes_is_not_refused_again() {
    let server = TestServer::start().await;
    let first = server.sign_in();
    sign_in(&first).await;
    server.state().unknown_scopes.insert("admin");
    for is_pasted in [true, false] {
        let token = first.token().await.unwrap().unwrap();
        first
            .refused(Some(&token), 403, &[CHALLENGE.to_owned()])
            .await;
        let mut login = first.begin(&[]).await.unwrap();
        let refused = match is_pasted {
            true => {
                let back = redirect_of(login.url()).await;
                login.pasted(back.as_str()).await
            }
            false => visit(&mut login).await.0,
        };
        let refused = refused.unwrap_err();
        assert!(matches!(refused, AuthError::Refused { code, .. } if code == "invalid_scope"));
        assert_eq!(sign_in(&first).await.scopes, ["read"]);
    }
}

#[tokio::test]
async fn a_registration_that_is_refused_for_its_scopes_is_not_refused_again() {
    let server = TestServer::start().await;
    let first = server.sign_in();
    let challenge = CHALLENGE.to_owned();
    let refusal = first.refused(None, 403, &[challenge]).await;
    assert!(matches!(refusal, Refusal::MissingScope(_)));
    let answer = Answer::json(400, &json!({"error": "invalid_client_metadata"}));
    server.replace("/register", answer);
    assert!(first.begin(&[]).await.is_err());
    server.state().replaced.clear();
    assert_eq!(sign_in(&first).await.scopes, ["read"]);
}

#[tokio::test]
async fn a_sign_out_revokes_and_forgets() {
    let server = TestServer::start().await;
    let first = server.sign_in();
    sign_in(&first).await;
    let done = first.sign_out().await.unwrap();
    assert!(done.was_signed_in);
    assert_eq!(done.revocation, Revocation::Revoked);
    assert!(server.state().valid_tokens.is_empty());
    assert!(server.state().valid_refresh_tokens.is_empty());
    assert_eq!(first.token().await, Ok(None));
    assert!(!server.stored_text().contains("canary"));
    assert!(!first.sign_out().await.unwrap().was_signed_in);
}

#[tokio::test]
async fn a_sign_out_forgets_even_if_the_authorization_server_is_no_help() {
    for (answer, is_offered) in [(Some(Answer::empty(500)), true), (None, false)] {
        let server = TestServer::start().await;
        match answer {
            Some(answer) => server.replace("/revoke", answer),
            None => server.change_metadata(|metadata| {
                metadata
                    .as_object_mut()
                    .unwrap()
                    .remove("revocation_endpoint");
            }),
        }
        let first = server.sign_in();
        sign_in(&first).await;
        let done = first.sign_out().await.unwrap();
        assert_eq!(matches!(done.revocation, Revocation::Failed(_)), is_offered);
        assert_eq!(done.revocation == Revocation::NotOffered, !is_offered);
        assert_eq!(first.state(), SignInState::SignedOut);
    }
}

#[tokio::test]
async fn a_token_of_another_person_is_not_ours_to_renew() {
    let server = TestServer::start().await;
    let first = server.sign_in();
    let foreign = BearerToken::from_authorization("Bearer other").unwrap();
    assert_eq!(
        first.refused(Some(&foreign), 401, &[]).await,
        Refusal::SignIn
    );
    assert!(server.seen("/token").is_empty());
}

fn renewals(server: &TestServer) -> usize {
    let tokens = server.seen("/token");
    let renewals = tokens
        .iter()
        .filter(|seen| seen.form["grant_type"] == "refresh_token");
    renewals.count()
}
