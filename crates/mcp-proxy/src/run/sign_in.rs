//! Signing in to servers: `login`, `logout`, and the tokens of requests.

pub mod login;
pub mod logout;
mod server;
mod tokens;

use mcp_proxy_auth::SignInFacts;

use crate::run::sessions::formatting::day_and_time;

pub use tokens::{server_sign_in, token_source};

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
