//! Values that no log and no error may show.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A value that `Debug` does not show and that has no `Display`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Hides `value`.
    pub fn new(value: impl Into<String>) -> Secret {
        Secret(value.into())
    }

    /// The value itself, for the request that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// An access token for one server.
#[derive(Clone, PartialEq, Eq)]
pub struct BearerToken(Secret);

impl BearerToken {
    pub(crate) fn new(token: Secret) -> BearerToken {
        BearerToken(token)
    }

    /// The token in the value of an `Authorization` header.
    pub fn from_authorization(header: &str) -> Option<BearerToken> {
        let (scheme, token) = header.split_once(' ')?;
        let is_bearer = scheme.eq_ignore_ascii_case("bearer");
        is_bearer.then(|| BearerToken(Secret::new(token.trim())))
    }

    /// The value of the `Authorization` header.
    pub fn authorization(&self) -> String {
        format!("Bearer {}", self.0.expose())
    }

    /// Whether an `Authorization` header has this token.
    pub fn is_in(&self, authorization: &str) -> bool {
        let Some((scheme, token)) = authorization.split_once(' ') else {
            return false;
        };
        scheme.eq_ignore_ascii_case("bearer") && token.trim() == self.0.expose()
    }
}

impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BearerToken(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::{BearerToken, Secret};

    #[test]
    fn debug_shows_no_secret() {
        let token = BearerToken::new(Secret::new("canary"));
        assert!(!format!("{token:?} {:?}", Secret::new("canary")).contains("canary"));
    }

    #[test]
    fn a_token_is_found_in_its_header() {
        let token = BearerToken::new(Secret::new("abc"));
        assert!(token.is_in(&token.authorization()));
        assert!(token.is_in("bearer abc"));
        assert!(!token.is_in("Basic abc"));
        assert!(!token.is_in("Bearer abcd"));
    }
}
