//! What a person has to do before a server answers, as the link to the server says it.

use mcp_proxy_wire::{ErrorCode, Message, Span, json_string};

/// A server wants to know who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignInNeed {
    /// `needs sign-in`, with the command to run. It names no path of this machine.
    text: String,
    /// The server's URL, as JSON.
    server: Option<String>,
    /// The scopes that the sign-in lacks, as a JSON array. Without them there is no sign-in, or it has ended.
    missing_scopes: Option<String>,
}

impl SignInNeed {
    /// What the link's own failure says, if it is this one.
    pub(crate) fn of_failure(
        code: ErrorCode,
        text: &str,
        data: Option<&str>,
    ) -> Option<SignInNeed> {
        if code != ErrorCode::NEEDS_SIGN_IN {
            return None;
        }
        let data = Message::parse(data.unwrap_or("{}").to_owned());
        let sign_in = data.member(Span::new(0, data.len()), "signIn");
        let member = |name: &str| sign_in.and_then(|span| data.member(span, name));
        let json = |span: Span| String::from_utf8_lossy(data.slice(span)).into_owned();
        Some(SignInNeed {
            text: text.to_owned(),
            server: member("server").map(json),
            missing_scopes: member("missingScopes").map(json),
        })
    }

    /// What an answer of the link itself says, if it is this. A server may answer with the same code, for a server of its own or to
    /// have its text taken for ours.
    pub(crate) fn of_answer(answer: &Message) -> Option<SignInNeed> {
        let code = answer.error_code().map(ErrorCode)?;
        let error = answer.error()?;
        let text = answer.text_at(answer.member(error, "message")?)?;
        let data = answer.member(error, "data");
        let data = data.map(|span| String::from_utf8_lossy(answer.slice(span)));
        SignInNeed::of_failure(code, &text, data.as_deref())
    }

    /// `needs sign-in`, with the command to run.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The sentence for clients.
    pub(crate) fn sentence(&self, name: &str) -> String {
        format!("server {name} {}", self.text)
    }

    /// Whether there is a sign-in, and it is enough for other requests.
    pub(crate) fn lacks_scopes_only(&self) -> bool {
        self.missing_scopes.is_some()
    }

    /// `error.data` for clients.
    pub(crate) fn data(&self, name: &str) -> String {
        let server = self.server.as_ref();
        let scopes = self.missing_scopes.as_ref();
        let members = [
            Some(format!(r#""name":{}"#, json_string(name))),
            server.map(|server| format!(r#""server":{server}"#)),
            scopes.map(|scopes| format!(r#""missingScopes":{scopes}"#)),
        ];
        let members: Vec<String> = members.into_iter().flatten().collect();
        format!(r#"{{"signIn":{{{}}}}}"#, members.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn need(data: &str) -> Option<SignInNeed> {
        SignInNeed::of_failure(ErrorCode::NEEDS_SIGN_IN, "needs sign-in", Some(data))
    }

    #[test]
    fn what_the_link_says_reaches_clients_with_the_servers_name() {
        let scopes = r#"{"signIn":{"server":"https://a.example/mcp","missingScopes":["a b"]}}"#;
        let need = need(scopes).unwrap();
        assert!(need.lacks_scopes_only());
        assert_eq!(
            need.data("a"),
            r#"{"signIn":{"name":"a","server":"https://a.example/mcp","missingScopes":["a b"]}}"#
        );
    }

    #[test]
    fn other_failures_are_no_need() {
        assert!(need("{}").is_some());
        let other = SignInNeed::of_failure(ErrorCode::SERVER_HTTP, "401", None);
        assert!(other.is_none());
    }
}
