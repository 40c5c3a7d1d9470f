//! The two files of the store as types.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::{BearerToken, Secret, SignInFacts, SignInState};

/// `sign-ins.json`: everything that is not secret.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct SignInsDocument {
    #[serde(default)]
    pub(crate) sign_ins: BTreeMap<String, SignIn>,
}

/// `tokens.json`: the secrets of those sign-ins that are not in a keychain.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct TokensDocument {
    #[serde(default)]
    pub(crate) tokens: BTreeMap<String, SignInSecrets>,
}

/// One sign-in without its secrets. A server that asked for scopes before anybody signed in has one too.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct SignIn {
    /// Grows with every change of the tokens, so that the file never looks unchanged.
    pub(crate) changes: u64,
    /// When the person signed in, in nanoseconds of Unix time: no two logins have the same.
    pub(crate) login: u64,
    /// Whether there are tokens, and where.
    pub(crate) secrets: SecretsPlace,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) account: Option<String>,
    /// Unix time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) expires_at: Option<u64>,
    /// Unix time from which on the tokens are renewed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) renew_at: Option<u64>,
    pub(crate) can_refresh: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) scopes: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) missing_scopes: Vec<String>,
    /// The RFC 8707 resource that the tokens are for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resource: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) client_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) authorization_server: Option<AuthorizationServer>,
}

/// Where the tokens of a sign-in are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SecretsPlace {
    /// There are none: nobody has signed in, or the sign-in has ended.
    #[default]
    None,
    File,
    Keychain,
}

/// What renewing and revoking tokens needs of the authorization server's metadata.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct AuthorizationServer {
    pub(crate) issuer: String,
    pub(crate) token_endpoint: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) revocation_endpoint: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) userinfo_endpoint: Option<String>,
    /// `token_endpoint_auth_methods_supported`
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) auth_methods: Vec<String>,
}

/// The secrets of one sign-in.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct SignInSecrets {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) access_token: Option<Secret>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) refresh_token: Option<Secret>,
    /// Of a registration. A secret of the config is not stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) client_secret: Option<Secret>,
}

/// All that is kept about one server.
#[derive(Debug, Clone, Default)]
pub(crate) struct StoredSignIn {
    pub(crate) sign_in: SignIn,
    pub(crate) secrets: SignInSecrets,
}

impl StoredSignIn {
    pub(crate) fn token(&self) -> Option<BearerToken> {
        self.secrets.access_token.clone().map(BearerToken::new)
    }

    /// Whether the token is to be renewed before it is used again.
    pub(crate) fn is_due(&self) -> bool {
        self.sign_in
            .renew_at
            .and_then(time_of)
            .is_some_and(has_come)
    }

    pub(crate) fn has_expired(&self) -> bool {
        self.sign_in.until().is_some_and(has_come)
    }
}

impl SignIn {
    pub(crate) fn until(&self) -> Option<SystemTime> {
        time_of(self.expires_at?)
    }

    /// Whether the tokens are still those of an earlier `old`.
    pub(crate) fn has_tokens_of(&self, old: &SignIn) -> bool {
        (self.changes, self.login) == (old.changes, old.login)
    }

    pub(crate) fn state(&self) -> SignInState {
        let is_over = !self.can_refresh && self.until().is_some_and(has_come);
        match self.secrets == SecretsPlace::None || is_over {
            true => SignInState::SignedOut,
            false => SignInState::SignedIn(self.facts()),
        }
    }

    pub(crate) fn facts(&self) -> SignInFacts {
        let server = self.authorization_server.as_ref();
        SignInFacts {
            issuer: server.map_or(String::new(), |server| server.issuer.clone()),
            account: self.account.clone(),
            until: self.until(),
            can_refresh: self.can_refresh,
            scopes: self.scopes.clone(),
            missing_scopes: self.missing_scopes.clone(),
            login: self.login,
        }
    }
}

fn time_of(unix_seconds: u64) -> Option<SystemTime> {
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(unix_seconds))
}

fn has_come(time: SystemTime) -> bool {
    time <= SystemTime::now()
}
