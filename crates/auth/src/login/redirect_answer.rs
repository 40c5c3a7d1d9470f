//! What the authorization server says by way of the browser (RFC 6749, section 4.1.2, and RFC 9207).

use url::Url;

use crate::{AuthError, Secret};

/// The parameters of a redirect. Anybody who can reach the listener may have sent them.
#[derive(Debug, Default)]
pub(super) struct RedirectAnswer {
    pub(super) state: Option<Secret>,
    pub(super) code: Option<Secret>,
    pub(super) error: Option<String>,
    pub(super) issuer: Option<String>,
}

/// What to do with an answer.
#[derive(Debug)]
pub(super) enum Verdict {
    /// It belongs to another login, or to nothing.
    NotOurs,
    /// It is the answer, and it ends the login.
    Refused(AuthError),
    /// The code to exchange.
    Code(Secret),
}

impl RedirectAnswer {
    /// Reads the query. A parameter that is there twice makes the answer nobody's.
    pub(super) fn read(url: &Url) -> RedirectAnswer {
        let mut answer = RedirectAnswer::default();
        for (name, value) in url.query_pairs() {
            let value = value.into_owned();
            let is_first = match name.as_ref() {
                "state" => answer.state.replace(Secret::new(value)).is_none(),
                "code" => answer.code.replace(Secret::new(value)).is_none(),
                "error" => answer.error.replace(value).is_none(),
                "iss" => answer.issuer.replace(value).is_none(),
                _ => true,
            };
            if !is_first {
                return RedirectAnswer::default();
            }
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::RedirectAnswer;

    #[test]
    fn an_answer_with_two_states_is_nobodys() {
        let url = Url::parse("http://127.0.0.1:1/callback?state=a&code=c&state=b").unwrap();
        let answer = RedirectAnswer::read(&url);
        assert!(answer.state.is_none() && answer.code.is_none());
    }
}
