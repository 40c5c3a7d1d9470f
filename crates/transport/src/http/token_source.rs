//! Signing in to a server: where the token of a request comes from, and what follows if the server refuses it.
//!
//! The transport knows no OAuth. It asks a [`TokenSource`] for requests that carry no `Authorization` header, and sends a refused
//! request once more if the source has a better token by then: a request that was answered with 401 or 403 was not carried out.

use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use mcp_proxy_core::{BoxFuture, LinkEnd, LinkFailure};
use mcp_proxy_wire::{ErrorCode, Side};

/// Where the tokens for one server come from. Errors are sentences for people and peers.
pub trait TokenSource: Send + Sync {
    /// The `Authorization` header for the next request. `None`: nobody has signed in.
    fn token(&self) -> BoxFuture<'_, Result<Option<HeaderValue>, String>>;

    /// What to do about a refused request.
    fn refused<'a>(
        &'a self,
        refused: RefusedRequest<'a>,
    ) -> BoxFuture<'a, Result<AfterRefusal, String>>;
}

/// A request that the server answered with 401 or 403.
#[derive(Debug)]
pub struct RefusedRequest<'a> {
    /// The token that it carried.
    pub token: Option<&'a HeaderValue>,
    /// 401 or 403.
    pub status: StatusCode,
    /// The values of `WWW-Authenticate`.
    pub challenges: Vec<String>,
}

/// What follows a refusal.
#[derive(Debug)]
pub enum AfterRefusal {
    /// There is another token: send the request again with this header.
    SendAgain(HeaderValue),
    /// A person has to sign in.
    SignInNeeded(SignInNeeded),
    /// It has nothing to do with signing in.
    PassOn,
}

/// What a person has to do before the server answers. It travels with the refusal, in the extensions of the response.
#[derive(Clone, Debug)]
pub struct SignInNeeded {
    /// One sentence with the command to run.
    pub text: String,
    /// `error.data` for clients, as JSON.
    pub data: String,
}

impl SignInNeeded {
    /// How a request ends that the server refused for this reason.
    pub(crate) fn into_end(self) -> LinkEnd {
        LinkEnd::Failed(LinkFailure {
            side: Side::Server,
            code: ErrorCode::NEEDS_SIGN_IN,
            text: self.text,
            orderly: false,
            data: Some(self.data),
        })
    }

    /// Whether this is what a response says.
    pub(crate) fn of<B>(response: &Response<B>) -> Option<SignInNeeded> {
        response.extensions().get().cloned()
    }
}

/// Whether a source may add its token: the request carries none of its client's, nor of the configuration.
pub(super) fn is_without_token(headers: &HeaderMap) -> bool {
    !headers.contains_key(AUTHORIZATION)
}

/// Whether an answer is about who asks, and what it says about that.
pub(super) fn challenges<B>(response: &Response<B>) -> Option<Vec<String>> {
    if !matches!(
        response.status(),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN
    ) {
        return None;
    }
    let values = response.headers().get_all(WWW_AUTHENTICATE).iter();
    let texts = values.filter_map(|value| value.to_str().ok());
    Some(texts.map(str::to_owned).collect())
}
