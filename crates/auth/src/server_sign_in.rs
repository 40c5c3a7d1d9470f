//! Everything about signing in to one server.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use url::Url;

use crate::server_key::ServerKey;
use crate::store::{SignIn, SignInSecrets};
use crate::{
    AuthError, AuthSettings, BearerToken, Grant, PendingLogin, Refusal, SignInState, SignIns,
};

/// A token that ends within this is renewed.
const RENEW_BEFORE: Duration = Duration::from_secs(30);

/// The sign-in to one server. Clones share everything.
#[derive(Debug, Clone)]
pub struct ServerSignIn {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    sign_ins: Arc<SignIns>,
    key: ServerKey,
    settings: AuthSettings,
}

/// How a sign-out went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignOut {
    /// Whether there was a sign-in.
    pub was_signed_in: bool,
    /// What the authorization server was told.
    pub revocation: Revocation,
}

/// Whether the authorization server revoked the tokens. They are forgotten in any case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Revocation {
    /// It did.
    Revoked,
    /// It has no revocation endpoint, or there was nothing to revoke. The tokens stay valid until they expire.
    NotOffered,
    /// It did not answer, or refused.
    Failed(AuthError),
}

impl ServerSignIn {
    /// For `server`, which must be https or on this machine.
    pub fn new(
        sign_ins: Arc<SignIns>,
        server: Url,
        settings: AuthSettings,
    ) -> Result<ServerSignIn, AuthError> {
        let key = ServerKey::checked(&server)?;
        Ok(ServerSignIn {
            shared: Arc::new(Shared {
                sign_ins,
                key,
                settings,
            }),
        })
    }

    /// What the sign-in belongs to: the server's URL without its query.
    pub fn server(&self) -> &str {
        self.shared.key.as_str()
    }

    /// Whether the client's id and secret are enough.
    pub fn needs_no_person(&self) -> bool {
        self.shared.settings.grant == Grant::ClientCredentials
    }

    /// Whether there is a sign-in. Reads no secrets and asks nobody.
    pub fn state(&self) -> SignInState {
        self.shared.sign_ins.state(self.shared.key.url())
    }

    /// A token that is valid now: from memory, from the store, or renewed. `None`: nobody is signed in.
    pub async fn token(&self) -> Result<Option<BearerToken>, AuthError> {
        let Some((sign_in, secrets)) = self.load().await? else {
            return Ok(None);
        };
        let is_valid = match sign_in.until() {
            Some(until) => until > SystemTime::now() + RENEW_BEFORE,
            None => true,
        };
        Ok(match is_valid {
            true => secrets.access_token.map(BearerToken::new),
            false => None,
        })
    }

    /// What to do after the server has refused a request with 401 or 403. `used` is the token that the request carried, if
    /// it was one of ours; `challenges` are the values of its `WWW-Authenticate` headers.
    pub async fn refused(
        &self,
        used: Option<&BearerToken>,
        status: u16,
        challenges: &[String],
    ) -> Refusal {
        let _ = (used, challenges);
        match status {
            401 => Refusal::SignIn,
            _ => Refusal::NotOurs,
        }
    }

    /// Begins a login: finds the authorization server, registers with it if need be, and listens for the redirect.
    pub async fn begin(&self, extra_scopes: &[String]) -> Result<PendingLogin, AuthError> {
        let _ = (extra_scopes, &self.shared.settings);
        Err(AuthError::Locked {
            server: self.shared.key.host(),
        })
    }

    /// Revokes the tokens where the authorization server can, and forgets them.
    pub async fn sign_out(&self) -> Result<SignOut, AuthError> {
        let was_signed_in = self.state() != SignInState::SignedOut;
        self.with_store(|sign_ins, key| sign_ins.forget(key))
            .await?;
        Ok(SignOut {
            was_signed_in,
            revocation: Revocation::NotOffered,
        })
    }

    async fn load(&self) -> Result<Option<(SignIn, SignInSecrets)>, AuthError> {
        self.with_store(|sign_ins, key| {
            let Some(sign_in) = sign_ins.sign_in(key)? else {
                return Ok(None);
            };
            let secrets = sign_ins.secrets(key, sign_in.secrets)?;
            Ok(Some((sign_in, secrets)))
        })
        .await
    }

    /// Works with the store on a thread that may wait for the disk.
    async fn with_store<T: Send + 'static>(
        &self,
        work: impl FnOnce(&SignIns, &ServerKey) -> Result<T, AuthError> + Send + 'static,
    ) -> Result<T, AuthError> {
        let shared = Arc::clone(&self.shared);
        let done = tokio::task::spawn_blocking(move || work(&shared.sign_ins, &shared.key));
        done.await.unwrap_or_else(|error| {
            Err(AuthError::Folder {
                why: error.to_string(),
            })
        })
    }
}
