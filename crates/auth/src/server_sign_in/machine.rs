//! The client credentials grant: a machine needs no person, so nobody sees where its secret goes.

use http::StatusCode;

use super::ServerSignIn;
use crate::discovery::Discovery;
use crate::oauth_error::refuses_scopes;
use crate::server_key::issuer_host;
use crate::store::{AuthorizationServer, StoredSignIn};
use crate::token_endpoint::TokenAnswer;
use crate::{AuthError, BearerToken};

impl ServerSignIn {
    /// A new token, with the `more` scopes too. Where to ask is found out the first time, and again if it has moved.
    pub(super) async fn ask_as_client(
        &self,
        stored: &StoredSignIn,
        more: &[String],
    ) -> Result<Option<BearerToken>, AuthError> {
        let mut stored = stored.clone();
        stored.sign_in.client_id = self.settings().client_id.clone();
        let known = stored.sign_in.authorization_server.as_ref();
        if known.is_some_and(|known| self.is_named(known)) {
            let failure = match self.ask_where_known(&mut stored, more).await {
                Err(error) if has_moved(&error) => error,
                Err(error) if more.is_empty() && refuses_scopes(&error) => error,
                answer => return self.keep(&stored, answer?).await,
            };
            let before = stored.sign_in.clone();
            match self.find_where_to_ask(&mut stored).await {
                Ok(()) if stored.sign_in != before => {}
                Err(error @ AuthError::OtherIssuer { .. }) => return Err(error),
                Ok(()) | Err(_) => return Err(failure),
            }
        } else {
            self.find_where_to_ask(&mut stored).await?;
        }
        let answer = self.ask_where_known(&mut stored, more).await?;
        self.keep(&stored, answer).await
    }

    /// The secret of the config goes where the config says, or where it has gone before, and the first time where the server
    /// says.
    pub(crate) async fn check_issuer(&self, discovery: &Discovery) -> Result<(), AuthError> {
        let settings = self.settings();
        if settings.client_secret.is_none() || settings.authorization_server.is_some() {
            return Ok(());
        }
        let stored = self.load().await?;
        match &stored.sign_in.authorization_server {
            Some(known) if known.issuer != discovery.issuer() => Err(AuthError::OtherIssuer {
                server: self.shared.key.host(),
                expected: issuer_host(&known.issuer),
                found: discovery.issuer_host(),
            }),
            _ => Ok(()),
        }
    }

    async fn find_where_to_ask(&self, stored: &mut StoredSignIn) -> Result<(), AuthError> {
        let mut discovery = self.discover().await?;
        self.check_issuer(&discovery).await?;
        stored.sign_in.scopes = self.scopes_to_ask(&discovery, &[]).await?;
        stored.sign_in.resource = Some(discovery.resource(self.shared.key.url()).await);
        stored.sign_in.authorization_server = Some(discovery.authorization_server());
        Ok(())
    }

    async fn ask_where_known(
        &self,
        stored: &mut StoredSignIn,
        more: &[String],
    ) -> Result<TokenAnswer, AuthError> {
        let Some(server) = stored.sign_in.authorization_server.clone() else {
            return Err(AuthError::NoAuthorizationServer {
                server: self.shared.key.host(),
            });
        };
        let mut scopes = stored.sign_in.scopes.clone();
        for scope in more {
            if !scopes.contains(scope) {
                scopes.push(scope.clone());
            }
        }
        let resource = self.resource_of(stored);
        let endpoint = self.endpoint(self.client(), &server, stored);
        let answer = endpoint.client_credentials(&resource, &scopes).await?;
        stored.sign_in.scopes = scopes;
        Ok(answer)
    }

    /// Whether the config names this authorization server, or none.
    fn is_named(&self, server: &AuthorizationServer) -> bool {
        let bare = |issuer: &str| issuer.trim_end_matches('/').to_owned();
        let named = self.settings().authorization_server.as_ref();
        named.is_none_or(|named| bare(named.as_str()) == bare(&server.issuer))
    }
}

/// Whether nobody gives tokens there any more.
fn has_moved(error: &AuthError) -> bool {
    match error {
        AuthError::Unreachable { .. } | AuthError::Redirected { .. } => true,
        AuthError::Status { status, .. } => [StatusCode::NOT_FOUND, StatusCode::GONE]
            .iter()
            .any(|gone| gone.as_u16() == *status),
        _ => false,
    }
}
