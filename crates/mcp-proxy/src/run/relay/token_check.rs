//! Whose a token is: the signature, and then the file of revoked tokens.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result};
use mcp_proxy_relay::{CheckedToken, KeyRefresh, RelayDriver, TokenCheck, TokenRefusal};
use mcp_proxy_token::{RevocationList, TokenError, TokenVerifier, VerifiedToken};

use super::fetched_keys::FetchedKeys;
use crate::config::{KeySource, RelayKeys};
use crate::printer;

/// How much longer than it says a token is accepted.
const LEEWAY_SECONDS: i64 = 5;
/// How often the file of revoked tokens is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The user of a relay that asks for no tokens.
const DIRECT_USER: &str = "local";

/// Checks tokens.
pub struct TokenChecker {
    keys: TokenKeys,
    revoked_file: PathBuf,
    revoked: Mutex<RevocationList>,
}

enum TokenKeys {
    Fixed(Arc<TokenVerifier>),
    Fetched(Arc<FetchedKeys>),
}

/// What decides about tokens.
pub struct TokenDecision {
    pub check: TokenCheck,
    pub refresh_keys: Option<KeyRefresh>,
    /// What has to be kept up to date for it.
    pub checker: Option<Arc<TokenChecker>>,
}

/// Opens the files and fetches the keys that decide about tokens.
pub async fn open(keys: &RelayKeys) -> Result<TokenDecision> {
    let RelayKeys::Tokens { keys, revoked_file } = keys else {
        return Ok(TokenDecision {
            check: Arc::new(|_| Ok(direct_user())),
            refresh_keys: None,
            checker: None,
        });
    };
    let revoked = RevocationList::open(revoked_file)
        .with_context(|| format!("cannot read {}", revoked_file.display()))?;
    let keys = match keys {
        KeySource::File(verifier) => TokenKeys::Fixed(Arc::clone(verifier)),
        KeySource::Url { url, ca_file } => {
            TokenKeys::Fetched(FetchedKeys::open(url, ca_file.as_deref()).await?)
        }
    };
    let refresh_keys: Option<KeyRefresh> = match &keys {
        TokenKeys::Fixed(_) => None,
        TokenKeys::Fetched(fetched) => {
            let fetched = Arc::clone(fetched);
            Some(Arc::new(move |token| {
                let (fetched, token) = (Arc::clone(&fetched), token.to_owned());
                Box::pin(async move { fetched.refresh_for(&token).await })
            }))
        }
    };
    let checker = Arc::new(TokenChecker {
        keys,
        revoked_file: revoked_file.clone(),
        revoked: Mutex::new(revoked),
    });
    let own = Arc::clone(&checker);
    Ok(TokenDecision {
        check: Arc::new(move |token| own.check(token)),
        refresh_keys,
        checker: Some(checker),
    })
}

/// Everybody, without a token and for good.
fn direct_user() -> CheckedToken {
    CheckedToken {
        user: DIRECT_USER.to_owned(),
        expires_at: i64::MAX,
        issued_at: None,
        token_id: None,
    }
}

impl TokenChecker {
    fn check(&self, token: &str) -> Result<CheckedToken, TokenRefusal> {
        let now = SystemTime::now();
        let verified = match &self.keys {
            TokenKeys::Fixed(verifier) => verifier.verify(token, now),
            TokenKeys::Fetched(fetched) => fetched.verifier().verify(token, now),
        };
        let verified = verified.map_err(|error| match &self.keys {
            // It may be good: nobody can say.
            TokenKeys::Fetched(fetched)
                if error == TokenError::UnknownKey && fetched.has_failed() =>
            {
                TokenRefusal::KeysUnavailable
            }
            _ => TokenRefusal::Invalid(error.peer_text()),
        })?;
        let is_revoked = self.revoked().check(&verified);
        is_revoked.map_err(|error| TokenRefusal::Invalid(error.peer_text()))?;
        Ok(CheckedToken {
            // As long as it is accepted.
            expires_at: seconds(verified.expires_at).saturating_add(LEEWAY_SECONDS),
            issued_at: verified.issued_at.map(seconds),
            token_id: verified.token_id,
            user: verified.user,
        })
    }

    fn is_good(&self, token: &CheckedToken) -> bool {
        let token = VerifiedToken {
            user: token.user.clone(),
            expires_at: time(token.expires_at),
            issued_at: token.issued_at.map(time),
            token_id: token.token_id.clone(),
            connection_url: None,
        };
        self.revoked().check(&token).is_ok()
    }

    /// Keeps everything up to date that decides about tokens.
    pub fn spawn(self: Arc<Self>, driver: Arc<RelayDriver>) {
        if let TokenKeys::Fetched(fetched) = &self.keys {
            tokio::spawn(Arc::clone(fetched).keep_fresh());
        }
        tokio::spawn(self.follow_revocations(driver));
    }

    /// Reads the file of revoked tokens again when it changes, and closes the sockets whose tokens are in it.
    async fn follow_revocations(self: Arc<Self>, driver: Arc<RelayDriver>) {
        let mut last_problem = None;
        let mut was_changed = false;
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let read = self.revoked().refresh();
            let is_changed = matches!(read, Ok(true));
            let problem = read.err().map(|error| error.to_string());
            if problem != last_problem
                && let Some(error) = &problem
            {
                let path = self.revoked_file.display();
                printer::say(&format!(
                    "mcp-proxy: cannot read {path}: {error}; the tokens that were revoked stay revoked"
                ));
            }
            last_problem = problem;
            // Once more after a change: a socket may have been between the check of its token and the relay.
            if is_changed || was_changed {
                driver.recheck(|token| self.is_good(token));
            }
            was_changed = is_changed;
        }
    }

    fn revoked(&self) -> MutexGuard<'_, RevocationList> {
        self.revoked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Since 1970. Tokens have no times before that.
fn seconds(time: SystemTime) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    i64::try_from(since.unwrap_or_default().as_secs()).unwrap_or(i64::MAX)
}

fn time(seconds: i64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}
