//! What is known about a sign-in without its secrets.

use std::time::SystemTime;

/// Whether there is a sign-in for a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignInState {
    /// There is none, or it has ended.
    SignedOut,
    /// There are tokens, which may have expired.
    SignedIn(SignInFacts),
}

/// A sign-in, as people are told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignInFacts {
    /// The authorization server.
    pub issuer: String,
    /// As whom, if the authorization server says so.
    pub account: Option<String>,
    /// When the access token expires; `None`: the authorization server does not say.
    pub until: Option<SystemTime>,
    /// Whether the token is renewed without a person when it expires.
    pub can_refresh: bool,
    /// The scopes that were granted.
    pub scopes: Vec<String>,
    /// The scopes that the server has asked for since. The next login asks for them too.
    pub missing_scopes: Vec<String>,
    /// Another number for every login of a person. Renewals keep it.
    pub login: u64,
}
