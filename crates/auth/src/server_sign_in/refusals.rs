//! What to do after the server has refused a request.

use std::sync::PoisonError;
use std::time::Duration;

use rmcp::transport::auth::WWWAuthenticateParams;
use tokio::time::Instant;

use super::ServerSignIn;
use crate::{BearerToken, Refusal};

/// A token that replaced a refused one and is refused within this time was refused because it is useless, not because it is old.
const REPLACEMENT_IS_NEW: Duration = Duration::from_secs(30);
/// A server does not make the list of scopes grow for ever.
const MISSING_SCOPES_MAX: usize = 64;

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

    async fn unauthorized(&self, used: Option<&BearerToken>) -> Refusal {
        let token = match used {
            // Somebody may have signed in since.
            None => self.token().await,
            Some(used) if self.is_new_replacement(used) => return Refusal::SignIn,
            Some(used) => self.renewed(Some(used.clone())).await,
        };
        match token {
            Ok(Some(token)) if Some(&token) != used => self.replace_with(token),
            Ok(_) => Refusal::SignIn,
            Err(error) => Refusal::Failed(error),
        }
    }

    async fn lacks_scopes(&self, used: Option<&BearerToken>, scopes: Vec<String>) -> Refusal {
        let added = self
            .with_store(move |sign_ins, key| {
                sign_ins.add_missing_scopes(key, scopes, MISSING_SCOPES_MAX)
            })
            .await;
        let missing = match added {
            Ok(missing) => missing,
            Err(error) => return Refusal::Failed(error),
        };
        let token = match used {
            Some(used) if self.is_new_replacement(used) => Ok(None),
            Some(used) if self.needs_no_person() => self.renewed(Some(used.clone())).await,
            _ => self.token().await,
        };
        match token {
            // Somebody has signed in with more scopes since.
            Ok(Some(token)) if Some(&token) != used => self.replace_with(token),
            Ok(_) => Refusal::MissingScope(missing),
            Err(error) => Refusal::Failed(error),
        }
    }

    /// The scopes of an `insufficient_scope` challenge.
    fn wanted_scopes(&self, challenges: &[String]) -> Option<Vec<String>> {
        let parsed = challenges
            .iter()
            .map(|text| WWWAuthenticateParams::parse(text, &self.shared.server));
        let mut insufficient = parsed.filter(WWWAuthenticateParams::is_insufficient_scope);
        let scope = insufficient.next()?.scope.unwrap_or_default();
        Some(scope.split_whitespace().map(str::to_owned).collect())
    }

    fn replace_with(&self, token: BearerToken) -> Refusal {
        let replacement = Some((token.clone(), Instant::now()));
        let last = self.shared.replacement.lock();
        *last.unwrap_or_else(PoisonError::into_inner) = replacement;
        Refusal::Retry(token)
    }

    fn is_new_replacement(&self, used: &BearerToken) -> bool {
        let last = self.shared.replacement.lock();
        let last = last.unwrap_or_else(PoisonError::into_inner);
        last.as_ref()
            .is_some_and(|(token, since)| token == used && since.elapsed() < REPLACEMENT_IS_NEW)
    }
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
