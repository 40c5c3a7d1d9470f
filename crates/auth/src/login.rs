//! A login that waits for its person.

use url::Url;

use crate::{AuthError, SignInFacts};

/// A login in progress: the redirect listener is up and the URL is known. Dropping it ends the login.
#[derive(Debug)]
pub struct PendingLogin {
    url: Url,
}

impl PendingLogin {
    /// What to open in a browser.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Waits for the browser's redirect and stores the sign-in. Can be dropped and called again.
    pub async fn redirected(&mut self) -> Result<SignInFacts, AuthError> {
        std::future::pending().await
    }

    /// Takes the redirect URL that a person pasted. After an error the login still waits.
    pub async fn pasted(&mut self, text: &str) -> Result<SignInFacts, AuthError> {
        let _ = text;
        std::future::pending().await
    }
}
