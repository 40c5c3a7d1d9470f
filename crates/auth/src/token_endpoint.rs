//! Requests with a token or a secret in them: renewal, client credentials and revocation (RFC 6749, RFC 7009).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Request, Response};
use serde::Deserialize;
use url::Url;
use url::form_urlencoded::{Serializer, byte_serialize};

use crate::http::SafeClient;
use crate::oauth_error::{error_code, refusal_of};
use crate::server_key::host_of;
use crate::store::AuthorizationServer;
use crate::{AuthError, Secret};

/// What the token endpoint gives.
#[derive(Debug, Deserialize)]
pub(crate) struct TokenAnswer {
    pub(crate) access_token: Secret,
    token_type: String,
    #[serde(default)]
    pub(crate) expires_in: Option<u64>,
    #[serde(default)]
    pub(crate) refresh_token: Option<Secret>,
    #[serde(default)]
    scope: Option<String>,
    #[serde(default)]
    pub(crate) id_token: Option<Secret>,
}

impl TokenAnswer {
    /// Reads an answer, which is a success only if it has a token that requests can carry.
    pub(crate) fn read(host: &str, body: &[u8]) -> Result<TokenAnswer, AuthError> {
        #[derive(Deserialize)]
        struct Refusal {
            error: String,
        }
        let bad = |why: &str| AuthError::BadAnswer {
            host: host.to_owned(),
            what: "an answer",
            why: why.to_owned(),
        };
        let Ok(answer) = serde_json::from_slice::<TokenAnswer>(body) else {
            // Some say what is wrong with status 200.
            return Err(match serde_json::from_slice::<Refusal>(body) {
                Ok(refusal) => AuthError::Refused {
                    host: host.to_owned(),
                    code: error_code(&refusal.error),
                },
                Err(_) => bad("it has no token"),
            });
        };
        if !answer.token_type.eq_ignore_ascii_case("bearer") {
            return Err(bad("its token is not a bearer token"));
        }
        let token = answer.access_token.expose();
        match !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic()) {
            true => Ok(answer),
            false => Err(bad("its token has characters that no header can have")),
        }
    }

    /// The scopes that were granted: those that were asked for, unless it names others.
    pub(crate) fn scopes(&self, asked: &[String]) -> Vec<String> {
        match &self.scope {
            Some(scope) => scope.split_whitespace().map(str::to_owned).collect(),
            None => asked.to_vec(),
        }
    }
}

/// The endpoints of an authorization server that know our client.
pub(crate) struct TokenEndpoint<'a> {
    pub(crate) client: &'a SafeClient,
    pub(crate) server: &'a AuthorizationServer,
    pub(crate) client_id: &'a str,
    pub(crate) client_secret: Option<&'a Secret>,
}

impl TokenEndpoint<'_> {
    /// New tokens for a refresh token.
    pub(crate) async fn renew(
        &self,
        refresh_token: &Secret,
        resource: &str,
    ) -> Result<TokenAnswer, AuthError> {
        self.token(&[
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh_token.expose()),
            ("resource", resource),
        ])
        .await
    }

    /// A token for the client itself.
    pub(crate) async fn client_credentials(
        &self,
        resource: &str,
        scopes: &[String],
    ) -> Result<TokenAnswer, AuthError> {
        let scope = scopes.join(" ");
        let mut form = vec![("grant_type", "client_credentials"), ("resource", resource)];
        if !scope.is_empty() {
            form.push(("scope", &scope));
        }
        self.token(&form).await
    }

    /// Ends a token. `kind` is `refresh_token` or `access_token`.
    pub(crate) async fn revoke(
        &self,
        endpoint: &str,
        token: &Secret,
        kind: &str,
    ) -> Result<(), AuthError> {
        let form = [("token", token.expose()), ("token_type_hint", kind)];
        self.post(endpoint, &form).await.map(drop)
    }

    async fn token(&self, form: &[(&str, &str)]) -> Result<TokenAnswer, AuthError> {
        let (host, answer) = self.post(&self.server.token_endpoint, form).await?;
        TokenAnswer::read(&host, answer.body())
    }

    async fn post(
        &self,
        endpoint: &str,
        form: &[(&str, &str)],
    ) -> Result<(String, Response<Vec<u8>>), AuthError> {
        let malformed = || AuthError::malformed_url(host_of(self.client.policy().server()));
        let url = Url::parse(endpoint).map_err(|_| malformed())?;
        let request = self.request(&url, form).map_err(|_| malformed())?;
        let answer = self.client.send(request).await?;
        match refusal_of(&url, answer.status(), answer.body()) {
            Some(refusal) => Err(refusal),
            None => Ok((host_of(&url), answer)),
        }
    }

    fn request(&self, url: &Url, form: &[(&str, &str)]) -> Result<Request<Vec<u8>>, http::Error> {
        let mut body = Serializer::new(String::new());
        body.extend_pairs(form);
        let mut request = Request::post(url.as_str())
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(ACCEPT, "application/json");
        match self.client_secret {
            Some(secret) if self.takes_basic() => {
                request = request.header(AUTHORIZATION, basic(self.client_id, secret));
            }
            secret => {
                body.append_pair("client_id", self.client_id);
                if let Some(secret) = secret {
                    body.append_pair("client_secret", secret.expose());
                }
            }
        }
        request.body(body.finish().into_bytes())
    }

    /// Basic is the default of RFC 8414.
    fn takes_basic(&self) -> bool {
        let methods = &self.server.auth_methods;
        let has = |name: &str| methods.iter().any(|method| method == name);
        has("client_secret_basic") || !has("client_secret_post")
    }
}

fn basic(id: &str, secret: &Secret) -> HeaderValue {
    let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
    let pair = format!("{}:{}", encoded(id), encoded(secret.expose()));
    let value = format!("Basic {}", STANDARD.encode(pair));
    // Base64 is a valid header value.
    let mut value = HeaderValue::try_from(value).unwrap_or_else(|_| HeaderValue::from_static(""));
    value.set_sensitive(true);
    value
}

#[cfg(test)]
mod tests {
    use super::TokenAnswer;
    use crate::AuthError;

    #[test]
    fn a_token_answer_needs_a_bearer_token_that_a_header_can_have() {
        let read = |body: &str| TokenAnswer::read("auth.example.com", body.as_bytes());
        let answer = read(r#"{"access_token":"a","token_type":"bearer","scope":"x y"}"#).unwrap();
        assert_eq!(answer.scopes(&[]), ["x", "y"]);
        for body in [
            r#"{"access_token":"a","token_type":"DPoP"}"#,
            r#"{"access_token":"a\r\nX: y","token_type":"Bearer"}"#,
            r#"{"access_token":"","token_type":"Bearer"}"#,
            "[]",
        ] {
            assert!(
                matches!(read(body), Err(AuthError::BadAnswer { .. })),
                "{body}"
            );
        }
        let refused = read(r#"{"error":"bad_verification_code"}"#);
        assert!(matches!(refused, Err(AuthError::Refused { .. })));
    }

    #[test]
    fn without_a_scope_all_that_was_asked_for_is_granted() {
        let answer = br#"{"access_token":"a","token_type":"Bearer"}"#;
        let answer = TokenAnswer::read("auth.example.com", answer).unwrap();
        assert_eq!(answer.scopes(&["x".to_owned()]), ["x"]);
    }
}
