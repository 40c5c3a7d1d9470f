//! What to do after a server has refused a request.

use crate::{AuthError, BearerToken};

/// What a refused request needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// There is another token: send the request once more, with this one.
    Retry(BearerToken),
    /// A person must sign in.
    SignIn,
    /// The token lacks these scopes. The next login asks for them too.
    MissingScope(Vec<String>),
    /// The token could not be renewed for now. Try again later.
    Failed(AuthError),
    /// A sign-in would not help.
    NotOurs,
}
