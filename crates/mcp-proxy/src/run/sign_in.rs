//! Signing in to servers: `login`, `logout`, and the tokens of requests.

mod behind_proxy;
pub mod login;
pub mod logout;
mod server;
mod tokens;

use mcp_proxy_auth::{AuthError, SignInFacts};

use crate::run::sessions::formatting::day_and_time;

pub use tokens::{server_sign_in, token_source};

/// Why a login cannot begin, and what may be in its way.
pub fn beginning_failed(error: &AuthError) -> String {
    match error {
        AuthError::Port { port, .. } if *port != 0 => format!(
            "{error}; another login, perhaps one that a hub offers, may be waiting there: finish it or wait until it ends"
        ),
        _ => error.to_string(),
    }
}

/// Until when a sign-in lasts: `until 2026-11-18 14:05:00 UTC, then renewed automatically`.
pub fn until_text(facts: &SignInFacts) -> String {
    let Some(until) = facts.until else {
        return "until it is revoked".to_owned();
    };
    let renewed = match facts.can_refresh {
        true => ", then renewed automatically",
        false => "",
    };
    format!("until {} UTC{renewed}", day_and_time(until))
}
