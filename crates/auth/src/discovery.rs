//! Where to sign in to a server: protected resource metadata, then metadata of the authorization server.

use std::sync::Arc;

use http::header::{ACCEPT, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderMap, Request, StatusCode};
use rmcp::transport::auth::{
    AuthError as RmcpError, AuthorizationManager, AuthorizationMetadata,
    AuthorizationMetadataSource, OAuthClientConfig, WWWAuthenticateParams,
};
use serde_json::Value;
use url::Url;

use crate::error::METADATA;
use crate::http::{ObservedClient, SafeClient};
use crate::server_key::{host_of, issuer_host};
use crate::store::AuthorizationServer;
use crate::{AuthError, AuthSettings, Grant};

/// It changes nothing on any server, and a server that wants a sign-in refuses it like everything else.
const PROBE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

/// An authorization server, and rmcp's state of the sign-in to it.
pub(crate) struct Discovery {
    pub(crate) manager: AuthorizationManager,
    pub(crate) metadata: AuthorizationMetadata,
    pub(crate) client: Arc<ObservedClient>,
    /// The server's host, for errors.
    pub(crate) server: String,
    /// Nothing was published: the endpoints are those that revision 2025-03-26 assumes.
    is_assumed: bool,
}

impl Discovery {
    /// Finds the authorization server of `server`. `resource` is the same URL without its query.
    pub(crate) async fn of(
        server: &Url,
        resource: &Url,
        settings: &AuthSettings,
        client: &SafeClient,
    ) -> Result<Discovery, AuthError> {
        let client = Arc::new(ObservedClient::new(client.clone()));
        let host = host_of(server);
        let challenge = probe(&client, server).await?;
        let mut manager = manager_of(resource, &client).await?;
        let found = manager
            .resolve_metadata_from_challenge(challenge.as_deref())
            .await;
        let found = match &settings.authorization_server {
            // What was found before still says which resource and scopes the server names.
            Some(issuer) => {
                let other = manager_of(issuer, &client).await?;
                other.resolve_metadata().await
            }
            None => found,
        };
        let found = found.map_err(|error| translated(error, &client, &host))?;
        let is_assumed = found.source == AuthorizationMetadataSource::LegacyEndpointFallback;
        if is_assumed && (settings.authorization_server.is_some() || !client.is_challenged()) {
            return Err(match settings.authorization_server {
                Some(_) => AuthError::NoAuthorizationServer { server: host },
                None => AuthError::NotProtected { server: host },
            });
        }
        manager.set_metadata(found.metadata.clone());
        let is_silent = !is_assumed && found.metadata.code_challenge_methods_supported.is_none();
        let discovery = Discovery {
            manager,
            metadata: found.metadata,
            client,
            server: host,
            is_assumed,
        };
        // The specification wants a login to end here. Whoever names the authorization server vouches for it.
        let is_login = settings.grant == Grant::AuthorizationCode;
        match is_silent && is_login && settings.authorization_server.is_none() {
            true => Err(AuthError::NoWordOfPkce {
                host: discovery.issuer_host(),
            }),
            false => Ok(discovery),
        }
    }

    /// The error of one of rmcp's operations in our words.
    pub(crate) fn error(&self, error: RmcpError) -> AuthError {
        match error {
            // Nothing says that these endpoints exist.
            RmcpError::RegistrationFailed(_) if self.is_assumed => {
                AuthError::NoAuthorizationServer {
                    server: self.server.clone(),
                }
            }
            error => translated(error, &self.client, &self.issuer_host()),
        }
    }

    /// The authorization server's host, for errors.
    pub(crate) fn issuer_host(&self) -> String {
        issuer_host(&self.issuer())
    }

    /// What has to be kept of the metadata.
    pub(crate) fn authorization_server(&self) -> AuthorizationServer {
        let text = |name: &str| Some(self.field(name)?.as_str()?.to_owned());
        let methods = self.field("token_endpoint_auth_methods_supported");
        let methods = methods.and_then(Value::as_array).into_iter().flatten();
        AuthorizationServer {
            issuer: self.issuer(),
            token_endpoint: self.metadata.token_endpoint.clone(),
            revocation_endpoint: text("revocation_endpoint"),
            userinfo_endpoint: text("userinfo_endpoint"),
            auth_methods: methods
                .filter_map(|method| Some(method.as_str()?.to_owned()))
                .collect(),
        }
    }

    /// The resource that the metadata names, or the server's URL. rmcp tells it only as a part of a login's URL.
    pub(crate) async fn resource(&mut self, server: &Url) -> String {
        let client = OAuthClientConfig::new("", server.as_str());
        let url = match self.manager.configure_client(client) {
            Ok(()) => self.manager.get_authorization_url(&[]).await.ok(),
            Err(_) => None,
        };
        let url = url.and_then(|url| Url::parse(&url).ok());
        let named = url.and_then(|url| {
            let mut pairs = url.query_pairs();
            let (_, resource) = pairs.find(|(name, _)| name == "resource")?;
            Some(resource.into_owned())
        });
        named.unwrap_or_else(|| server.to_string())
    }

    /// Who answers logins. An authorization server that publishes no metadata is known by its origin.
    pub(crate) fn issuer(&self) -> String {
        self.metadata.issuer.clone().unwrap_or_else(|| {
            let endpoint = Url::parse(&self.metadata.token_endpoint);
            endpoint.map_or_else(
                |_| self.server.clone(),
                |url| url.origin().ascii_serialization(),
            )
        })
    }

    pub(crate) fn promises(&self, field: &str) -> bool {
        self.field(field).and_then(Value::as_bool) == Some(true)
    }

    fn field(&self, name: &str) -> Option<&Value> {
        self.metadata.additional_fields.get(name)
    }
}

async fn manager_of(
    base: &Url,
    client: &Arc<ObservedClient>,
) -> Result<AuthorizationManager, AuthError> {
    let client = Arc::clone(client) as Arc<dyn rmcp::transport::auth::OAuthHttpClient>;
    let manager = AuthorizationManager::new_with_oauth_http_client(base.as_str(), client).await;
    manager.map_err(|_| AuthError::NotHttps {
        server: host_of(base),
    })
}

/// Asks the server without a token, and returns the challenge that says most about where to sign in.
async fn probe(client: &ObservedClient, server: &Url) -> Result<Option<String>, AuthError> {
    let mut url = server.clone();
    url.set_fragment(None);
    let request = Request::post(url.as_str())
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "application/json, text/event-stream")
        .body(PROBE.as_bytes().to_vec())
        .map_err(|_| AuthError::NotHttps {
            server: host_of(server),
        })?;
    let answer = match client.send(request).await {
        // Discovery asks with GET as well.
        Err(AuthError::Redirected { .. }) => return Ok(None),
        answer => answer?,
    };
    Ok(match answer.status() {
        StatusCode::UNAUTHORIZED => best_challenge(answer.headers(), server),
        _ => None,
    })
}

fn best_challenge(headers: &HeaderMap, server: &Url) -> Option<String> {
    let values = headers.get_all(WWW_AUTHENTICATE).iter();
    let challenges: Vec<&str> = values.filter_map(|value| value.to_str().ok()).collect();
    let rank = |challenge: &&&str| {
        let parameters = WWWAuthenticateParams::parse(challenge, server);
        (
            parameters.resource_metadata_url.is_some(),
            parameters.scope.is_some(),
        )
    };
    // The first of several equals.
    let best = challenges.iter().rev().max_by_key(rank)?;
    Some((*best).to_owned())
}

/// `host` is the one that answered.
fn translated(error: RmcpError, client: &ObservedClient, host: &str) -> AuthError {
    if let Some(failure) = client.failure() {
        return failure;
    }
    let issuer = |text: String| Url::parse(&text).map_or(String::new(), |url| host_of(&url));
    let bad = |what, why: &str| AuthError::BadAnswer {
        host: host.to_owned(),
        what,
        why: why.to_owned(),
    };
    match error {
        RmcpError::AuthorizationServerMismatch {
            expected_issuer, ..
        } => AuthError::WrongIssuer {
            expected: issuer(expected_issuer),
        },
        RmcpError::AuthorizationServerMissingIssuer { expected_issuer } => AuthError::NoIssuer {
            expected: issuer(expected_issuer),
        },
        RmcpError::PkceUnsupported => AuthError::NoPkce {
            host: host.to_owned(),
        },
        RmcpError::InvalidScope(_) => bad(METADATA, "it does not offer the response type `code`"),
        // rmcp has no other way to tell these apart.
        RmcpError::MetadataError(text) if text.contains("mismatch") => {
            bad(METADATA, "it is about another server")
        }
        RmcpError::MetadataError(text) if text.contains("none published") => bad(
            METADATA,
            "it names no authorization server that is allowed here and publishes metadata",
        ),
        RmcpError::MetadataError(_) => bad(METADATA, "it is incomplete"),
        RmcpError::RegistrationFailed(_) => bad("an answer to the registration", "it has no id"),
        RmcpError::TokenExchangeFailed(_) => bad("an answer", "it has no token"),
        RmcpError::OAuthError(_) | RmcpError::UrlError(_) => {
            AuthError::malformed_url(host.to_owned())
        }
        _ => bad("an answer", "it breaks the rules of OAuth"),
    }
}
