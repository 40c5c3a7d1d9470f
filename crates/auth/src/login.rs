//! A login that waits for its person.

mod beginning;
mod redirect_answer;
mod redirect_listener;
mod registration;

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use url::Url;

use crate::server_sign_in::ServerSignIn;
use crate::{AuthError, SignInFacts};
use beginning::Begun;
use redirect_answer::{RedirectAnswer, Verdict};
use redirect_listener::{Page, RedirectListener};

/// How long a browser may take to fetch its last page.
const PAGE_DEADLINE: Duration = Duration::from_secs(2);

/// A login in progress: the redirect listener is up and the URL is known. Dropping it ends the login.
#[derive(Debug)]
pub struct PendingLogin {
    url: Url,
    begun: Arc<Begun>,
    listener: RedirectListener,
    /// The exchange of the code, which continues while nobody awaits it.
    exchange: Option<JoinHandle<Result<SignInFacts, AuthError>>>,
    is_over: bool,
}

impl PendingLogin {
    pub(crate) async fn begin(
        sign_in: &ServerSignIn,
        extra_scopes: &[String],
    ) -> Result<PendingLogin, AuthError> {
        let listener = RedirectListener::bind(sign_in.settings().redirect_port).await?;
        let redirect_uri = listener.redirect_uri();
        let (url, begun) = Begun::new(sign_in.clone(), redirect_uri, extra_scopes).await?;
        Ok(PendingLogin {
            url,
            begun: Arc::new(begun),
            listener,
            exchange: None,
            is_over: false,
        })
    }

    /// What to open in a browser.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Waits for the browser's redirect and stores the sign-in. Can be dropped and called again.
    pub async fn redirected(&mut self) -> Result<SignInFacts, AuthError> {
        while self.exchange.is_none() {
            if self.is_over {
                return Err(AuthError::Ended);
            }
            let Some(redirect) = self.listener.next().await else {
                return Err(AuthError::Ended);
            };
            let answer = RedirectAnswer::read(&redirect.url);
            match self.begun.judge(&answer) {
                Verdict::NotOurs => {
                    // The browser may have gone.
                    let _ = redirect.page.send(Page {
                        status: StatusCode::BAD_REQUEST,
                        text: "This is not the answer to the sign-in that is waiting. The sign-in still waits for its own."
                            .to_owned(),
                        written: None,
                    });
                }
                Verdict::Refused(error) => {
                    self.is_over = true;
                    self.begun.refused(&error).await;
                    show(redirect.page, &Err(error.clone()), self.begun.server()).await;
                    return Err(error);
                }
                Verdict::Code(code) => {
                    let begun = Arc::clone(&self.begun);
                    self.exchange = Some(tokio::spawn(async move {
                        let facts = begun.exchange(&code, answer.issuer.as_deref()).await;
                        show(redirect.page, &facts, begun.server()).await;
                        facts
                    }));
                }
            }
        }
        self.exchanged().await
    }

    /// Takes the redirect URL that a person pasted. After [`AuthError::NotTheRedirect`] the login still waits.
    pub async fn pasted(&mut self, text: &str) -> Result<SignInFacts, AuthError> {
        if self.exchange.is_none() {
            if self.is_over {
                return Err(AuthError::Ended);
            }
            let wrong = || AuthError::NotTheRedirect {
                redirect: self.listener.redirect_uri(),
            };
            let url = Url::parse(text.trim()).map_err(|_| wrong())?;
            let answer = RedirectAnswer::read(&url);
            match self.begun.judge(&answer) {
                Verdict::NotOurs => return Err(wrong()),
                Verdict::Refused(error) => {
                    self.is_over = true;
                    self.begun.refused(&error).await;
                    return Err(error);
                }
                Verdict::Code(code) => {
                    let begun = Arc::clone(&self.begun);
                    self.exchange = Some(tokio::spawn(async move {
                        begun.exchange(&code, answer.issuer.as_deref()).await
                    }));
                }
            }
        }
        self.exchanged().await
    }

    /// The end of the exchange. A code and its state are used once, so nothing comes after it.
    async fn exchanged(&mut self) -> Result<SignInFacts, AuthError> {
        let Some(exchange) = &mut self.exchange else {
            return Err(AuthError::Ended);
        };
        let facts = exchange.await.unwrap_or(Err(AuthError::Ended));
        self.exchange = None;
        self.is_over = true;
        facts
    }
}

impl Drop for PendingLogin {
    fn drop(&mut self) {
        if let Some(exchange) = &self.exchange {
            exchange.abort();
        }
    }
}

/// Shows how the login went, and waits until the browser has the page: the process may end next.
async fn show(page: oneshot::Sender<Page>, facts: &Result<SignInFacts, AuthError>, server: &str) {
    let (status, text) = match facts {
        Ok(_) => (
            StatusCode::OK,
            format!("You are signed in to {server}. You can close this page."),
        ),
        Err(error) => (
            StatusCode::BAD_REQUEST,
            format!("You are not signed in to {server}: {error}."),
        ),
    };
    let (sender, written) = oneshot::channel();
    let page_sent = page.send(Page {
        status,
        text,
        written: Some(sender),
    });
    if page_sent.is_ok() {
        // Slow browsers lose the page, not the sign-in.
        let _ = timeout(PAGE_DEADLINE, written).await;
    }
}
