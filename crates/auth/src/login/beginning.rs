//! The beginning of a login and its end: the client, the URL to open, and the exchange of the code.

use rmcp::transport::auth::OAuthClientConfig;
use url::Url;

use super::redirect_answer::{RedirectAnswer, Verdict};
use super::registration::register;
use crate::account::account_of;
use crate::discovery::Discovery;
use crate::oauth_error::error_code;
use crate::server_sign_in::ServerSignIn;
use crate::store::SignInSecrets;
use crate::token_endpoint::TokenAnswer;
use crate::{AuthError, Secret, SignInFacts};

/// What a login knows until its answer arrives.
pub(super) struct Begun {
    sign_in: ServerSignIn,
    discovery: Discovery,
    state: Secret,
    client: OAuthClientConfig,
    scopes: Vec<String>,
    resource: String,
}

impl std::fmt::Debug for Begun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Begun").finish_non_exhaustive()
    }
}

impl Begun {
    /// Finds the authorization server and becomes its client. Returns the URL to open.
    pub(super) async fn new(
        sign_in: ServerSignIn,
        redirect_uri: String,
        extra_scopes: &[String],
    ) -> Result<(Url, Begun), AuthError> {
        let mut discovery = sign_in.discover().await?;
        sign_in.check_issuer(&discovery).await?;
        let scopes = sign_in.scopes_to_ask(&discovery, extra_scopes).await?;
        let client = become_client(&sign_in, &mut discovery, redirect_uri, &scopes).await;
        let client = match client {
            Ok(client) => client,
            Err(error) => {
                sign_in.scopes_were_refused(&error, &scopes).await;
                return Err(error);
            }
        };
        let scope_names: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let url = discovery.manager.get_authorization_url(&scope_names).await;
        let url = url.map_err(|error| discovery.error(error))?;
        let malformed = || AuthError::malformed_url(discovery.issuer_host());
        let mut url = Url::parse(&url).map_err(|_| malformed())?;
        sign_in.client().policy().check(&url)?;
        let parameter = |name: &str| {
            let found = url.query_pairs().filter(|(key, _)| key == name);
            found.last().map(|(_, value)| value.into_owned())
        };
        let state = Secret::new(parameter("state").ok_or_else(malformed)?);
        let resource = parameter("resource").ok_or_else(malformed)?;
        if scopes.iter().any(|scope| scope == "offline_access") {
            // OpenID Connect grants it only to people who are asked.
            url.query_pairs_mut().append_pair("prompt", "consent");
        }
        let begun = Begun {
            sign_in,
            discovery,
            state,
            client,
            scopes,
            resource,
        };
        Ok((url, begun))
    }

    /// The server's host, for pages.
    pub(super) fn server(&self) -> &str {
        &self.discovery.server
    }

    /// After the authorization server has refused the login.
    pub(super) async fn refused(&self, error: &AuthError) {
        self.sign_in.scopes_were_refused(error, &self.scopes).await;
    }

    /// Whether an answer is the one that this login waits for, and comes from whom we asked.
    pub(super) fn judge(&self, answer: &RedirectAnswer) -> Verdict {
        if answer.state.as_ref() != Some(&self.state) {
            return Verdict::NotOurs;
        }
        if let Err(error) = self.check_issuer(answer.issuer.as_deref()) {
            return Verdict::Refused(error);
        }
        match (&answer.error, &answer.code) {
            (Some(error), _) => Verdict::Refused(AuthError::Refused {
                host: self.discovery.issuer_host(),
                code: error_code(error),
            }),
            (None, Some(code)) => Verdict::Code(code.clone()),
            (None, None) => Verdict::NotOurs,
        }
    }

    /// RFC 9207. rmcp checks it too, but answers with errors are never given to it.
    fn check_issuer(&self, received: Option<&str>) -> Result<(), AuthError> {
        let expected = self.discovery.metadata.issuer.as_deref();
        let promised = "authorization_response_iss_parameter_supported";
        match received {
            None if self.discovery.promises(promised) => Err(AuthError::NoIssuer {
                expected: self.discovery.issuer_host(),
            }),
            Some(received) if Some(received) != expected => Err(AuthError::WrongIssuer {
                expected: self.discovery.issuer_host(),
            }),
            _ => Ok(()),
        }
    }

    /// Exchanges the code and stores the tokens.
    pub(super) async fn exchange(
        &self,
        code: &Secret,
        issuer: Option<&str>,
    ) -> Result<SignInFacts, AuthError> {
        let manager = &self.discovery.manager;
        let answer = manager
            .exchange_code_for_token_with_issuer(code.expose(), self.state.expose(), issuer)
            .await;
        let answer = match answer.map_err(|error| self.discovery.error(error)) {
            Ok(answer) => answer,
            Err(error) => {
                self.refused(&error).await;
                return Err(error);
            }
        };
        let json = serde_json::to_vec(&answer).unwrap_or_default();
        let answer = TokenAnswer::read(&self.discovery.issuer_host(), &json)?;
        let server = self.discovery.authorization_server();
        let scopes = answer.scopes(&self.scopes);
        let account = account_of(&answer, &scopes, &server, self.sign_in.client()).await;
        let mut sign_in = self.sign_in.entry(&answer, scopes);
        sign_in.account = account;
        sign_in.can_refresh = answer.refresh_token.is_some();
        sign_in.resource = Some(self.resource.clone());
        sign_in.client_id = Some(self.client.client_id.clone());
        sign_in.authorization_server = Some(server);
        // The secret of the config stays there.
        let is_configured = sign_in.client_id == self.sign_in.settings().client_id;
        let registered = self.client.client_secret.clone().map(Secret::new);
        let secrets = SignInSecrets {
            access_token: Some(answer.access_token),
            refresh_token: answer.refresh_token,
            client_secret: registered.filter(|_| !is_configured),
        };
        self.sign_in.store_login(sign_in, secrets).await
    }
}

/// The client of the config, or a client id metadata document, or a new registration.
async fn become_client(
    sign_in: &ServerSignIn,
    discovery: &mut Discovery,
    redirect_uri: String,
    scopes: &[String],
) -> Result<OAuthClientConfig, AuthError> {
    let settings = sign_in.settings();
    let configured = settings.client_id.as_ref().filter(|id| {
        // Servers that do not know such documents register the client instead.
        !is_document(id) || discovery.promises("client_id_metadata_document_supported")
    });
    let Some(id) = configured else {
        return register(discovery, redirect_uri, scopes).await;
    };
    let mut config = OAuthClientConfig::new(id, redirect_uri).with_scopes(scopes.to_vec());
    if let Some(secret) = &settings.client_secret {
        config = config.with_client_secret(secret.expose());
    }
    let configured = discovery.manager.configure_client(config.clone());
    configured.map_err(|error| discovery.error(error))?;
    Ok(config)
}

/// Whether a client id is the URL of a client id metadata document.
fn is_document(id: &str) -> bool {
    Url::parse(id).is_ok_and(|url| url.scheme() == "https" && url.path() != "/")
}
