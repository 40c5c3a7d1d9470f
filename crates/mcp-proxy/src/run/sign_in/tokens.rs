//! The tokens of requests to a server, and what is said when there is none.

use std::sync::Arc;

use http::{HeaderValue, Uri, header};
use mcp_proxy_auth::{AuthError, AuthSettings, BearerToken, Refusal, ServerSignIn, SignInState};
use mcp_proxy_core::BoxFuture;
use mcp_proxy_transport::http::{AfterRefusal, RefusedRequest, SignInNeeded, TokenSource};
use serde_json::json;

use super::server::login_command;
use crate::config::{Config, SignInStore, Target, environment_proxies, url_of};

/// Where requests to a URL get their tokens. `None`: they carry credentials already, or could not carry tokens safely.
pub fn token_source(
    config: &Config,
    target: &Target,
    name: Option<&str>,
) -> Option<Arc<dyn TokenSource>> {
    let Target::Url { url, .. } = target else {
        return None;
    };
    let sign_in = server_sign_in(config, target)?;
    let command = login_command(&config.masks, sign_in.server(), name);
    let shown = config.masks.url(sign_in.server()).into_owned();
    Some(Arc::new(SignInTokens {
        shown,
        sign_in,
        command,
        server: url.clone(),
        store: config.sign_ins.clone(),
        is_named: name.is_some(),
        tells: name.is_none() && !config.quiet,
    }))
}

/// The sign-in to a server. `None` as above.
pub fn server_sign_in(config: &Config, target: &Target) -> Option<ServerSignIn> {
    let Target::Url {
        url,
        headers,
        ca_file,
        auth,
        ..
    } = target
    else {
        return None;
    };
    if headers
        .iter()
        .any(|(name, _)| *name == header::AUTHORIZATION)
    {
        return None;
    }
    let settings = AuthSettings {
        ca_file: ca_file.clone(),
        proxies: environment_proxies(),
        ..auth.as_deref().cloned().unwrap_or_default()
    };
    sign_in(config, url, settings)
}

fn sign_in(config: &Config, url: &Uri, settings: AuthSettings) -> Option<ServerSignIn> {
    let server = url_of(url).ok()?;
    let store = match config.sign_ins.open() {
        Ok(store) => store,
        Err(error) => {
            let text = format!("sign-ins cannot be used: {error:#}");
            config.sign_ins.tell_once(text);
            return None;
        }
    };
    // Over plain HTTP to another machine no token is sent.
    ServerSignIn::new(store, server, settings).ok()
}

/// The tokens for one server.
struct SignInTokens {
    sign_in: ServerSignIn,
    /// The server's URL without what may be a secret.
    shown: String,
    /// What a person types to sign in.
    command: String,
    server: Uri,
    store: SignInStore,
    /// It is one of several.
    is_named: bool,
    /// In front of one server, people are told once what is done with their requests. A hub has `status` for that.
    tells: bool,
}

impl SignInTokens {
    fn host(&self) -> &str {
        self.server
            .authority()
            .map_or("", |authority| authority.as_str())
    }

    fn note_use(&self) {
        self.store.note_use(self.sign_in.server());
        if !self.tells {
            return;
        }
        let account = match self.sign_in.state() {
            SignInState::SignedIn(facts) => facts.account,
            SignInState::SignedOut => None,
        };
        let account = account
            .map(|account| format!(" as {account}"))
            .unwrap_or_default();
        self.store.tell_once(format!(
            "requests without credentials get the token of your sign-in to {}{account}",
            self.host()
        ));
    }

    /// There is no sign-in, or it has ended. A server without `challenges` does not say that it wants one: it may want a key.
    fn need_sign_in(&self, challenges: &[String]) -> SignInNeeded {
        let command = &self.command;
        let key = match (challenges.is_empty(), self.is_named) {
            (false, _) => "",
            (true, true) => "; or, if it wants a key, put that under `headers` in its entry",
            (true, false) => "; or, if it wants a key, give that with --header",
        };
        let text = format!("needs sign-in: run `{command}`, then try again{key}");
        self.need(text, None)
    }

    /// There is a sign-in, which is not enough.
    fn need_scopes(&self, scopes: &[String]) -> SignInNeeded {
        let command = &self.command;
        let named = match scopes {
            [] => String::new(),
            scopes => format!(" ({})", scopes.join(" ")),
        };
        let text =
            format!("needs sign-in with more scopes{named}: run `{command}`, then try again");
        self.need(text, Some(scopes))
    }

    fn need(&self, text: String, missing_scopes: Option<&[String]>) -> SignInNeeded {
        if self.tells {
            self.store.tell_once(format!("{} {text}", self.host()));
        }
        let mut server = json!({"server": self.shown});
        if let Some(scopes) = missing_scopes {
            server["missingScopes"] = json!(scopes);
        }
        SignInNeeded {
            text,
            data: json!({"signIn": server}).to_string(),
        }
    }

    async fn after(&self, refused: RefusedRequest<'_>) -> Result<AfterRefusal, String> {
        let used = refused.token.and_then(|header| header.to_str().ok());
        let used = used.and_then(BearerToken::from_authorization);
        let status = refused.status.as_u16();
        let refusal = match refused.is_repeated {
            true => {
                self.sign_in
                    .refused_again(status, &refused.challenges)
                    .await
            }
            false => {
                self.sign_in
                    .refused(used.as_ref(), status, &refused.challenges)
                    .await
            }
        };
        Ok(match refusal {
            Refusal::Retry(token) => {
                self.note_use();
                AfterRefusal::SendAgain(header_of(&token)?)
            }
            Refusal::SignIn => AfterRefusal::SignInNeeded(self.need_sign_in(&refused.challenges)),
            Refusal::MissingScope(scopes) => AfterRefusal::SignInNeeded(self.need_scopes(&scopes)),
            Refusal::Failed(error) => return Err(error.to_string()),
            Refusal::NotOurs => AfterRefusal::PassOn,
        })
    }
}

impl TokenSource for SignInTokens {
    fn token(&self) -> BoxFuture<'_, Result<Option<HeaderValue>, String>> {
        Box::pin(async move {
            let token = match self.sign_in.token().await {
                // It may be a server that nobody has to sign in to. If it refuses the request, the error is told then.
                Err(error) if is_of_store(&error) => {
                    self.store
                        .tell_once(format!("sign-ins cannot be used: {error}"));
                    None
                }
                token => token.map_err(|error| error.to_string())?,
            };
            let Some(token) = token else {
                return Ok(None);
            };
            self.note_use();
            header_of(&token).map(Some)
        })
    }

    fn refused<'a>(
        &'a self,
        refused: RefusedRequest<'a>,
    ) -> BoxFuture<'a, Result<AfterRefusal, String>> {
        Box::pin(self.after(refused))
    }
}

/// Whether nothing is known of any server's sign-in.
fn is_of_store(error: &AuthError) -> bool {
    matches!(
        error,
        AuthError::Folder { .. } | AuthError::File { .. } | AuthError::Damaged { .. }
    )
}

fn header_of(token: &BearerToken) -> Result<HeaderValue, String> {
    let header = HeaderValue::from_str(&token.authorization());
    let mut header = header.map_err(|_| "the token has characters that a header cannot have")?;
    header.set_sensitive(true);
    Ok(header)
}
