//! What a login refuses: one clear sentence for each, and nothing is sent where it must not go.

use mcp_proxy_auth::{AuthError, AuthSettings, Grant, Secret, ServerSignIn};
use serde_json::{Value, json};
use url::Url;

use crate::authorization_server::{Answer, METADATA, RESOURCE, TestServer, metadata, resource};
use crate::browser::{sign_in, visit};

/// The error of a login, which repeats nothing of what the server sent.
async fn refusal(sign_in: &ServerSignIn) -> AuthError {
    let error = match sign_in.begin(&[]).await {
        Err(error) => error,
        Ok(mut login) => visit(&mut login).await.0.unwrap_err(),
    };
    let text = error.to_string();
    assert!(!text.contains("canary") && !text.contains('\n'), "{text}");
    assert!(!text.ends_with('.'), "{text}");
    error
}

async fn refusal_of(change: impl FnOnce(&TestServer)) -> AuthError {
    let server = TestServer::start().await;
    change(&server);
    refusal(&server.sign_in()).await
}

#[tokio::test]
async fn a_server_that_asks_for_no_sign_in_is_told_from_one_that_does_not_say_where() {
    let nothing = |server: &TestServer| {
        server.replace(METADATA, Answer::empty(404));
        server.replace(RESOURCE, Answer::empty(404));
    };
    let open = refusal_of(|server| {
        nothing(server);
        server.replace("/mcp", Answer::json(200, &json!({})));
    });
    assert!(matches!(open.await, AuthError::NotProtected { .. }));
    let closed = refusal_of(|server| {
        nothing(server);
        server.replace("/mcp", Answer::empty(401));
        server.replace("/register", Answer::empty(404));
    });
    assert!(matches!(
        closed.await,
        AuthError::NoAuthorizationServer { .. }
    ));
}

#[tokio::test]
async fn the_endpoints_of_2025_03_26_are_assumed_after_a_401() {
    let server = TestServer::start().await;
    server.replace(METADATA, Answer::empty(404));
    server.replace(RESOURCE, Answer::empty(404));
    server.replace("/mcp", Answer::empty(401));
    server.state().omits_issuer = true;
    let facts = sign_in(&server.sign_in()).await;
    assert_eq!(facts.issuer, server.base);
}

#[tokio::test]
async fn openid_discovery_is_as_good() {
    let server = TestServer::start().await;
    server.replace(METADATA, Answer::empty(404));
    let answer = Answer::json(200, &metadata(&server.base));
    server.replace("/.well-known/openid-configuration", answer);
    sign_in(&server.sign_in()).await;
}

#[tokio::test]
async fn the_well_known_path_is_tried_without_a_challenge() {
    let server = TestServer::start().await;
    server.replace("/mcp", Answer::empty(405));
    let facts = sign_in(&server.sign_in()).await;
    assert_eq!(facts.scopes, ["read"]);
}

#[tokio::test]
async fn metadata_of_another_issuer_is_refused() {
    let error = refusal_of(|server| {
        server.change_metadata(|metadata| metadata["issuer"] = json!("https://evil.example.com"));
    });
    assert!(matches!(error.await, AuthError::WrongIssuer { .. }));
    let error = refusal_of(|server| {
        server.change_metadata(|metadata| drop(metadata.as_object_mut().unwrap().remove("issuer")));
    });
    assert!(matches!(error.await, AuthError::NoIssuer { .. }));
}

#[tokio::test]
async fn metadata_of_another_resource_is_refused() {
    let error = refusal_of(|server| {
        let mut other = resource(&server.base);
        other["resource"] = json!("https://other.example.com/mcp");
        server.replace(RESOURCE, Answer::json(200, &other));
    });
    let error = error.await;
    assert!(
        matches!(&error, AuthError::BadAnswer { why, .. } if why == "it is about another server"),
        "{error:?}"
    );
}

#[tokio::test]
async fn metadata_that_is_no_metadata_is_refused() {
    for body in ["[]", "{", "canary", r#"{"issuer":"canary"}"#] {
        let error = refusal_of(|server| {
            let answer = Answer {
                body: body.as_bytes().to_vec(),
                ..Answer::empty(200)
            };
            server.replace(METADATA, answer);
        });
        let error = error.await;
        assert!(
            matches!(error, AuthError::BadAnswer { .. }),
            "{body}: {error:?}"
        );
    }
}

#[tokio::test]
async fn huge_metadata_is_refused() {
    let error = refusal_of(|server| {
        server.change_metadata(|metadata| metadata["canary"] = "x".repeat(1024 * 1024).into());
    });
    assert!(matches!(error.await, AuthError::TooLarge { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_slow_authorization_server_is_given_up() {
    let error = refusal_of(|server| {
        server.state().silent.insert(METADATA);
    });
    assert!(matches!(error.await, AuthError::TooSlow { .. }));
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_told() {
    let server = TestServer::start().await;
    let port = free_port();
    let url = Url::parse(&format!("http://127.0.0.1:{port}/mcp")).unwrap();
    let sign_in = ServerSignIn::new(server.sign_ins(), url, AuthSettings::default()).unwrap();
    assert!(matches!(
        refusal(&sign_in).await,
        AuthError::Unreachable { .. }
    ));
}

#[tokio::test]
async fn an_authorization_server_that_is_down_is_told() {
    let error = refusal_of(|server| server.replace(METADATA, Answer::empty(503)));
    assert!(matches!(error.await, AuthError::Status { status: 503, .. }));
}

#[tokio::test]
async fn no_endpoint_leads_to_another_scheme_or_into_a_network() {
    for (field, endpoint) in [
        ("authorization_endpoint", "file:///etc/passwd"),
        ("authorization_endpoint", "javascript:alert(1)"),
        (
            "authorization_endpoint",
            "http://auth.example.com/authorize",
        ),
        ("token_endpoint", "http://auth.example.com/token"),
        ("registration_endpoint", "http://auth.example.com/register"),
        ("registration_endpoint", "ftp://auth.example.com/register"),
    ] {
        let error = refusal_of(|server| {
            server.change_metadata(|metadata| metadata[field] = json!(endpoint));
        });
        let error = error.await;
        assert!(
            matches!(error, AuthError::InsecureUrl { .. }),
            "{endpoint}: {error:?}"
        );
    }
    for field in [
        "authorization_endpoint",
        "token_endpoint",
        "registration_endpoint",
    ] {
        let error = refusal_of(|server| {
            let endpoint = "https://169.254.169.254/latest";
            server.change_metadata(|metadata| metadata[field] = json!(endpoint));
        });
        assert!(
            matches!(error.await, AuthError::PrivateAddress { .. }),
            "{field}"
        );
    }
}

#[tokio::test]
async fn an_authorization_server_in_a_private_network_is_refused() {
    let error = refusal_of(|server| {
        let mut named = resource(&server.base);
        named["authorization_servers"] = json!(["https://10.0.0.1/"]);
        server.replace(RESOURCE, Answer::json(200, &named));
    });
    assert!(matches!(error.await, AuthError::BadAnswer { .. }));
}

#[tokio::test]
async fn a_redirect_of_metadata_stays_in_its_origin() {
    let server = TestServer::start().await;
    server.replace(METADATA, Answer::redirect("/moved"));
    server.replace("/moved", Answer::json(200, &metadata(&server.base)));
    sign_in(&server.sign_in()).await;
    let other = TestServer::start().await;
    let moved = format!("{}{METADATA}", other.base);
    server.replace(METADATA, Answer::redirect(&moved));
    let error = refusal(&server.sign_in()).await;
    assert!(matches!(error, AuthError::Redirected { .. }), "{error:?}");
    assert!(other.seen(METADATA).is_empty());
}

#[tokio::test]
async fn requests_with_codes_tokens_and_secrets_follow_no_redirect() {
    let other = TestServer::start().await;
    for path in ["/register", "/token"] {
        let error = refusal_of(|server| {
            server.replace(path, Answer::redirect(&format!("{}{path}", other.base)));
        });
        let error = error.await;
        assert!(
            matches!(error, AuthError::Redirected { .. }),
            "{path}: {error:?}"
        );
    }
    let server = TestServer::start().await;
    let first = server.sign_in();
    sign_in(&first).await;
    server.replace(
        "/revoke",
        Answer::redirect(&format!("{}/revoke", other.base)),
    );
    first.sign_out().await.unwrap();
    assert!(other.state().seen.is_empty());
}

#[tokio::test]
async fn metadata_that_does_not_mention_pkce_is_refused_unless_the_config_names_its_issuer() {
    let without = |metadata: &mut Value| {
        let fields = metadata.as_object_mut().unwrap();
        fields.remove("code_challenge_methods_supported");
    };
    let server = TestServer::start().await;
    server.change_metadata(without);
    let error = refusal(&server.sign_in()).await;
    assert!(matches!(error, AuthError::NoWordOfPkce { .. }), "{error:?}");
    assert!(server.seen("/register").is_empty());
    let settings = AuthSettings {
        authorization_server: Some(Url::parse(&server.base).unwrap()),
        ..AuthSettings::default()
    };
    // The test server checks that S256 is used.
    sign_in(&server.sign_in_with(settings)).await;
    // OpenID metadata is no exception.
    let mut openid = metadata(&server.base);
    without(&mut openid);
    server.replace(METADATA, Answer::empty(404));
    server.replace(
        "/.well-known/openid-configuration",
        Answer::json(200, &openid),
    );
    let error = refusal(&server.sign_in()).await;
    assert!(matches!(error, AuthError::NoWordOfPkce { .. }), "{error:?}");
    // A machine has no use for it.
    let settings = AuthSettings {
        client_id: Some("machine".to_owned()),
        client_secret: Some(Secret::new("canary-machine")),
        grant: Grant::ClientCredentials,
        ..AuthSettings::default()
    };
    assert!(server.sign_in_with(settings).token().await.is_ok());
}

#[tokio::test]
async fn pkce_with_s256_is_not_negotiable() {
    let error = refusal_of(|server| {
        let plain = json!(["plain"]);
        server.change_metadata(|metadata| metadata["code_challenge_methods_supported"] = plain);
    });
    assert!(matches!(error.await, AuthError::NoPkce { .. }));
}

#[tokio::test]
async fn what_the_endpoints_refuse_is_told_by_its_code() {
    for path in ["/register", "/token"] {
        let error = refusal_of(|server| {
            let body = json!({"error": "server_says_no", "error_description": "canary"});
            server.replace(path, Answer::json(400, &body));
        });
        let error = error.await;
        assert!(
            matches!(&error, AuthError::Refused { code, .. } if code == "server_says_no"),
            "{path}: {error:?}"
        );
    }
}

#[tokio::test]
async fn answers_without_what_was_asked_for_are_refused() {
    for path in ["/register", "/token"] {
        let error = refusal_of(|server| {
            server.replace(path, Answer::json(200, &json!({"canary": true})));
        });
        let error = error.await;
        assert!(
            matches!(error, AuthError::BadAnswer { .. }),
            "{path}: {error:?}"
        );
    }
}

#[tokio::test]
async fn without_registration_a_client_of_the_config_is_needed() {
    let without = |metadata: &mut Value| {
        metadata
            .as_object_mut()
            .unwrap()
            .remove("registration_endpoint");
    };
    let server = TestServer::start().await;
    server.change_metadata(without);
    let error = refusal(&server.sign_in()).await;
    assert!(matches!(error, AuthError::NoRegistration { .. }));
    let settings = AuthSettings {
        client_id: Some("by-hand".to_owned()),
        client_secret: Some(Secret::new("canary-by-hand")),
        ..AuthSettings::default()
    };
    sign_in(&server.sign_in_with(settings)).await;
    assert!(
        server.seen("/token")[0]
            .headers
            .contains_key("authorization")
    );
    assert!(!server.stored_text().contains("canary-by-hand"));
}

#[tokio::test]
async fn a_document_is_the_client_where_documents_are_understood() {
    let id = "https://client.example.com/mcp-proxy.json";
    let server = TestServer::start().await;
    let settings = || AuthSettings {
        client_id: Some(id.to_owned()),
        ..AuthSettings::default()
    };
    sign_in(&server.sign_in_with(settings())).await;
    assert_eq!(server.seen("/register").len(), 1);
    server.change_metadata(|metadata| {
        metadata["client_id_metadata_document_supported"] = json!(true);
    });
    sign_in(&server.sign_in_with(settings())).await;
    assert_eq!(server.seen("/register").len(), 1);
    assert_eq!(server.seen("/authorize")[1].form["client_id"], id);
}

#[tokio::test]
async fn the_config_names_the_authorization_server_and_the_port() {
    let server = TestServer::start().await;
    server.replace(RESOURCE, Answer::empty(404));
    server.replace("/mcp", Answer::empty(401));
    let port = free_port();
    let settings = AuthSettings {
        authorization_server: Some(Url::parse(&server.base).unwrap()),
        redirect_port: Some(port),
        ..AuthSettings::default()
    };
    sign_in(&server.sign_in_with(settings.clone())).await;
    let redirect = format!("http://127.0.0.1:{port}/callback");
    assert_eq!(server.seen("/authorize")[0].form["redirect_uri"], redirect);
    // A port that is taken is told.
    let _taken = loop {
        // The listener of the login ends soon after it.
        match tokio::net::TcpListener::bind(("127.0.0.1", port)).await {
            Ok(listener) => break listener,
            Err(_) => tokio::task::yield_now().await,
        }
    };
    let error = refusal(&server.sign_in_with(settings)).await;
    assert!(matches!(error, AuthError::Port { .. }));
}

#[tokio::test]
async fn a_machine_without_an_authorization_server_is_told() {
    let server = TestServer::start().await;
    server.replace(METADATA, Answer::empty(404));
    server.replace(RESOURCE, Answer::empty(404));
    server.replace("/mcp", Answer::json(200, &json!({})));
    let settings = AuthSettings {
        client_id: Some("machine".to_owned()),
        client_secret: Some(Secret::new("canary-machine")),
        grant: Grant::ClientCredentials,
        ..AuthSettings::default()
    };
    let error = server.sign_in_with(settings).token().await;
    assert!(matches!(error, Err(AuthError::NotProtected { .. })));
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}
