//! New tokens for old ones: one renewal for all who wait, in this process and in others.

use std::fs::File;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::ServerSignIn;
use crate::oauth_error::{is_final, refuses_scopes};
use crate::store::{SignInSecrets, StoredSignIn};
use crate::token_endpoint::TokenAnswer;
use crate::{AuthError, BearerToken};

/// Longer than a renewal can take: the keychain, which others may be waiting for, twice, the discovery, and two requests.
const LOCK_DEADLINE: Duration = Duration::from_secs(300);
const LOCK_POLL: Duration = Duration::from_millis(20);

/// A renewal that failed.
#[derive(Debug)]
pub(super) struct Failure {
    ended: Instant,
    more: Vec<String>,
    error: AuthError,
}

impl Failure {
    /// Whether somebody who has waited since `asked` would only wait once more for the same.
    fn is_ours(&self, asked: Instant, more: &[String]) -> bool {
        self.ended > asked && (self.more == more || !refuses_scopes(&self.error))
    }
}

impl ServerSignIn {
    /// A token that is neither due nor `refused`. `None`: a person has to sign in. A machine asks for the `more` scopes too.
    pub(super) async fn renewed(
        &self,
        refused: Option<BearerToken>,
        more: &[String],
    ) -> Result<Option<BearerToken>, AuthError> {
        let (sign_in, more) = (self.clone(), more.to_vec());
        // It outlives a cancelled request: once a refresh token has been sent, it may be useless without the answer.
        let renewal = tokio::spawn(async move { sign_in.renew(refused, &more).await });
        renewal.await.unwrap_or_else(|error| {
            Err(AuthError::Folder {
                why: error.to_string(),
            })
        })
    }

    async fn renew(
        &self,
        refused: Option<BearerToken>,
        more: &[String],
    ) -> Result<Option<BearerToken>, AuthError> {
        let asked = Instant::now();
        let mut failure = self.shared.renewing.lock().await;
        let shared = failure.as_ref().filter(|last| last.is_ours(asked, more));
        let error = match shared {
            Some(last) => last.error.clone(),
            None => match self.attempt(refused.as_ref(), more).await {
                Ok(token) => {
                    *failure = None;
                    return Ok(token);
                }
                Err(error) => {
                    *failure = Some(Failure {
                        ended: Instant::now(),
                        more: more.to_vec(),
                        error: error.clone(),
                    });
                    error
                }
            },
        };
        drop(failure);
        let stored = self.load().await;
        let good = stored.ok().filter(|stored| !stored.has_expired());
        match good.and_then(|stored| stored.token()) {
            // The old one is good for a moment longer, and the next request tries again.
            Some(token) if Some(&token) != refused.as_ref() => Ok(Some(token)),
            _ => Err(error),
        }
    }

    async fn attempt(
        &self,
        refused: Option<&BearerToken>,
        more: &[String],
    ) -> Result<Option<BearerToken>, AuthError> {
        let _lock = self.lock().await?;
        // Somebody else may have renewed it meanwhile.
        let stored = self.load_anew().await?;
        let token = stored.token();
        if token.is_some() && token.as_ref() != refused && !stored.is_due() {
            return Ok(token);
        }
        match self.needs_no_person() {
            true => self.ask_as_client(&stored, more).await,
            false => self.refresh(&stored).await,
        }
    }

    async fn refresh(&self, stored: &StoredSignIn) -> Result<Option<BearerToken>, AuthError> {
        let server = stored.sign_in.authorization_server.as_ref();
        let (Some(server), Some(refresh_token)) = (server, &stored.secrets.refresh_token) else {
            return Ok(None);
        };
        let endpoint = self.endpoint(self.client(), server, stored);
        let resource = self.resource_of(stored);
        match endpoint.renew(refresh_token, &resource).await {
            Ok(answer) => self.keep(stored, answer).await,
            Err(error) if is_final(&error) => {
                let ended = stored.sign_in.clone();
                self.with_store(move |sign_ins, key| sign_ins.end(key, &ended))
                    .await?;
                // None, unless somebody has signed in meanwhile.
                Ok(self.load_anew().await?.token())
            }
            Err(error) => Err(error),
        }
    }

    /// Stores an answer in place of what there was. What the answer does not repeat stays. Who has signed in or out meanwhile
    /// comes first.
    pub(super) async fn keep(
        &self,
        stored: &StoredSignIn,
        answer: TokenAnswer,
    ) -> Result<Option<BearerToken>, AuthError> {
        let old = stored.sign_in.clone();
        let secrets = SignInSecrets {
            access_token: Some(answer.access_token.clone()),
            refresh_token: answer
                .refresh_token
                .clone()
                .or_else(|| stored.secrets.refresh_token.clone()),
            client_secret: stored.secrets.client_secret.clone(),
        };
        let mut sign_in = self.entry(&answer, answer.scopes(&old.scopes));
        sign_in.login = old.login;
        sign_in.account = old.account.clone();
        // Client credentials are as good as a refresh token.
        sign_in.can_refresh = secrets.refresh_token.is_some() || self.needs_no_person();
        sign_in.resource = old.resource.clone();
        sign_in.client_id = old.client_id.clone();
        sign_in.authorization_server = old.authorization_server.clone();
        let is_kept = self
            .with_store(move |sign_ins, key| sign_ins.renew(key, &old, sign_in, secrets))
            .await?;
        match is_kept {
            true => Ok(Some(BearerToken::new(answer.access_token))),
            false => Ok(self.load_anew().await?.token()),
        }
    }

    pub(super) fn resource_of(&self, stored: &StoredSignIn) -> String {
        let resource = stored.sign_in.resource.clone();
        resource.unwrap_or_else(|| self.shared.key.url().to_string())
    }

    /// Keeps other processes from renewing the same tokens.
    pub(super) async fn lock(&self) -> Result<File, AuthError> {
        let deadline = Instant::now() + LOCK_DEADLINE;
        loop {
            let tried = self
                .with_store(|sign_ins, key| sign_ins.try_lock(key))
                .await?;
            if let Some(lock) = tried {
                return Ok(lock);
            }
            if Instant::now() >= deadline {
                return Err(AuthError::Locked {
                    server: self.shared.key.host(),
                });
            }
            sleep(LOCK_POLL).await;
        }
    }
}
