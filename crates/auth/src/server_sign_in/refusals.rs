//! What to do after the server has refused a request.

use rmcp::transport::auth::WWWAuthenticateParams;

use super::ServerSignIn;
use crate::oauth_error::refuses_scopes;
use crate::{AuthError, BearerToken, Refusal};

/// A server does not make the list of scopes grow for ever.
const MISSING_SCOPES_MAX: usize = 64;
const SCOPE_MAX: usize = 256;

impl ServerSignIn {
    /// What to do after the server has refused a request with 401 or 403. `used` is the token that the request carried, if
    /// it was one of ours; `challenges` are the values of its `WWW-Authenticate` headers.
    pub async fn refused(
        &self,
        used: Option<&BearerToken>,
        status: u16,
        challenges: &[String],
    ) -> Refusal {
        match status {
            401 if wants_another_scheme(challenges) => Refusal::NotOurs,
            401 => self.unauthorized(used).await,
            403 => match self.wanted_scopes(challenges) {
                Some(scopes) => self.lacks_scopes(used, scopes).await,
                None => Refusal::NotOurs,
            },
            _ => Refusal::NotOurs,
        }
    }

    /// The same after the request was sent once more with a new token, which is not old but useless.
    pub async fn refused_again(&self, status: u16, challenges: &[String]) -> Refusal {
        match (status, self.wanted_scopes(challenges)) {
            (401, _) if !wants_another_scheme(challenges) => Refusal::SignIn,
            (403, Some(scopes)) if self.needs_no_person() => Refusal::MissingScope(scopes),
            (403, Some(scopes)) => match self.remember(scopes).await {
                Ok(missing) => Refusal::MissingScope(missing),
                Err(error) => Refusal::Failed(error),
            },
            _ => Refusal::NotOurs,
        }
    }

    async fn unauthorized(&self, used: Option<&BearerToken>) -> Refusal {
        let token = match used {
            // Somebody may have signed in since.
            None => self.token().await,
            Some(used) => self.renewed(Some(used.clone()), &[]).await,
        };
        match token {
            Ok(Some(token)) if Some(&token) != used => Refusal::Retry(token),
            Ok(_) => Refusal::SignIn,
            Err(error) => Refusal::Failed(error),
        }
    }

    async fn lacks_scopes(&self, used: Option<&BearerToken>, scopes: Vec<String>) -> Refusal {
        // A machine asks for them at once, and never again if it may not have them.
        let is_machine = self.needs_no_person();
        let missing = match is_machine {
            true => Ok(scopes),
            false => self.remember(scopes).await,
        };
        let missing = match missing {
            Ok(missing) => missing,
            Err(error) => return Refusal::Failed(error),
        };
        let token = match used {
            Some(used) if is_machine => self.renewed(Some(used.clone()), &missing).await,
            _ => self.token().await,
        };
        match token {
            // Somebody has signed in with more scopes since.
            Ok(Some(token)) if Some(&token) != used => Refusal::Retry(token),
            Ok(_) => Refusal::MissingScope(missing),
            Err(error) if is_machine && refuses_scopes(&error) => Refusal::MissingScope(missing),
            Err(error) => Refusal::Failed(error),
        }
    }

    /// Keeps scopes for the next login. Returns all that are missing.
    async fn remember(&self, scopes: Vec<String>) -> Result<Vec<String>, AuthError> {
        self.with_store(move |sign_ins, key| {
            sign_ins.add_missing_scopes(key, scopes, MISSING_SCOPES_MAX)
        })
        .await
    }

    /// The authorization server refused a login that asked for `asked`: the next one must not fail for the same reason.
    pub(crate) async fn scopes_were_refused(&self, error: &AuthError, asked: &[String]) {
        if refuses_scopes(error) {
            let asked = asked.to_vec();
            // The refusal is the error to tell. Without the store, there was nothing to ask for either.
            let _ = self
                .with_store(move |sign_ins, key| sign_ins.drop_scopes(key, &asked))
                .await;
        }
    }

    /// The scopes of an `insufficient_scope` challenge.
    fn wanted_scopes(&self, challenges: &[String]) -> Option<Vec<String>> {
        let parsed = challenges
            .iter()
            .map(|text| WWWAuthenticateParams::parse(text, &self.shared.server));
        let mut insufficient = parsed.filter(WWWAuthenticateParams::is_insufficient_scope);
        let scope = insufficient.next()?.scope.unwrap_or_default();
        let scopes = scope.split_whitespace().filter(|scope| is_scope(scope));
        Some(scopes.take(MISSING_SCOPES_MAX).map(str::to_owned).collect())
    }
}

/// RFC 6749, appendix A.4, and no longer than anybody's scopes are.
fn is_scope(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
    text.len() <= SCOPE_MAX && text.bytes().all(is_allowed)
}

/// Whether the server wants something else than OAuth's tokens. One that does not say what it wants may want them.
fn wants_another_scheme(challenges: &[String]) -> bool {
    let is_other = |challenge: &String| {
        let scheme = challenge.split_whitespace().next().unwrap_or_default();
        matches!(
            scheme.to_ascii_lowercase().as_str(),
            "basic" | "digest" | "negotiate" | "ntlm"
        )
    };
    !challenges.is_empty() && challenges.iter().all(is_other)
}
