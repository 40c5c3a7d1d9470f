//! What a token says about its user and its time (RFC 7519, section 4).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Deserialize;

use crate::TokenError;
use crate::compact::parse_object;

/// How far the clocks of the issuer and the relay may be apart.
const LEEWAY_SECONDS: f64 = 5.0;
/// The end of the year 9999. Later times do not fit everywhere, and nobody means them.
pub(crate) const LAST_SECOND: u64 = 253_402_300_799;
const LONGEST_NAME: usize = 256;
const LONGEST_URL: usize = 2048;

/// A token that was signed by a key of ours and is valid now, unless it was revoked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedToken {
    /// The user: `user_id`, or else `sub`.
    pub user: String,
    /// When it ends (`exp`).
    pub expires_at: SystemTime,
    /// When it was made (`iat`), if it says so.
    pub issued_at: Option<SystemTime>,
    /// Its own name (`jti`), by which it can be revoked.
    pub token_id: Option<String>,
    /// Where the client or the browser is to connect to.
    pub connection_url: Option<String>,
}

/// The claims that are read. One that appears twice is an error; `null` is like a claim that is not there.
#[derive(Deserialize)]
struct ClaimSet {
    user_id: Option<String>,
    sub: Option<String>,
    exp: Option<f64>,
    nbf: Option<f64>,
    iat: Option<f64>,
    jti: Option<String>,
    connection_url: Option<String>,
}

impl VerifiedToken {
    /// Reads and checks claims whose signature was verified.
    pub(crate) fn from_claims(json: &[u8], now: SystemTime) -> Result<VerifiedToken, TokenError> {
        let claims: ClaimSet = parse_object(json).ok_or(TokenError::InvalidClaims)?;
        let expires_at = time(claims.exp, "exp")?.ok_or(TokenError::MissingClaim("exp"))?;
        let issued_at = time(claims.iat, "iat")?;
        time(claims.nbf, "nbf")?;
        let now = seconds(now);
        if claims.exp.is_some_and(|exp| now >= exp + LEEWAY_SECONDS) {
            return Err(TokenError::Expired);
        }
        if claims.nbf.is_some_and(|nbf| now < nbf - LEEWAY_SECONDS) {
            return Err(TokenError::NotYetValid);
        }
        let (user, user_claim) = match (claims.user_id, claims.sub) {
            (Some(user), _) => (user, "user_id"),
            (None, Some(user)) => (user, "sub"),
            (None, None) => return Err(TokenError::MissingClaim("user_id")),
        };
        check_name(&user, user_claim)?;
        if let Some(token_id) = &claims.jti {
            check_name(token_id, "jti")?;
        }
        if claims
            .connection_url
            .as_ref()
            .is_some_and(|url| url.len() > LONGEST_URL)
        {
            return Err(TokenError::InvalidClaim("connection_url"));
        }
        Ok(VerifiedToken {
            user,
            expires_at,
            issued_at,
            token_id: claims.jti,
            connection_url: claims.connection_url,
        })
    }
}

/// Whether a text can be the name of a user or a token. Names are written to logs and, one a line, to the file of revoked
/// tokens, so there are no control characters in them and no spaces around them.
pub(crate) fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.chars().count() <= LONGEST_NAME
        && text.trim() == text
        && !text.contains(char::is_control)
}

/// Seconds since 1970, and 0 before.
pub(crate) fn seconds(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH)
        .map_or(0.0, |since| since.as_secs_f64())
}

fn check_name(text: &str, claim: &'static str) -> Result<(), TokenError> {
    match is_name(text) {
        true => Ok(()),
        false => Err(TokenError::InvalidClaim(claim)),
    }
}

fn time(seconds: Option<f64>, claim: &'static str) -> Result<Option<SystemTime>, TokenError> {
    let Some(seconds) = seconds else {
        return Ok(None);
    };
    match (0.0..=LAST_SECOND as f64).contains(&seconds) {
        true => Ok(Some(UNIX_EPOCH + Duration::from_secs_f64(seconds))),
        false => Err(TokenError::InvalidClaim(claim)),
    }
}
