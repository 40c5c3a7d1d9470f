//! A change of a message: jq over one member, whose bytes are replaced; all others stay.

use std::fmt;
use std::sync::Arc;

use mcp_proxy_wire::{Message, Span};

use crate::filter::FilterError;
use crate::jq::{self, JqError, JqProgram};
use crate::program_thread::{ProgramThread, WaitingCaller};

/// A compiled change.
#[derive(Debug, Clone)]
pub struct Change {
    text: String,
    program: Arc<JqProgram>,
    thread: Arc<ProgramThread>,
}

/// Which member of a message is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChangePart {
    /// `params` of a request or notification.
    Params,
    /// `result` of an answer.
    Result,
    /// `error` of an answer.
    Error,
}

/// Why a message was not changed. It is to be treated as if there had been no change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// It has no such member, or is not JSON.
    #[error("the message has no {0}")]
    Missing(ChangePart),
    /// The member is nested deeper than a program can take.
    #[error("{0} is nested too deep")]
    TooDeep(ChangePart),
    /// The program gave nothing.
    #[error("the program gives no value")]
    NoValue,
    /// The program gave more than one value.
    #[error("the program gives more than one value")]
    SeveralValues,
    /// The program failed, or was stopped.
    #[error(transparent)]
    Program(#[from] JqError),
    /// The value cannot be written as JSON: it has a NaN, bytes, or keys that are not strings.
    #[error("what the program makes of {0} is not JSON: {1}")]
    NotJson(ChangePart, String),
}

impl Change {
    /// Compiles a jq program, which is given the member and says what it becomes.
    pub fn parse(program: &str) -> Result<Change, FilterError> {
        Ok(Change {
            text: program.trim().to_owned(),
            program: Arc::new(JqProgram::compile(program.trim(), &[])?),
            thread: Arc::default(),
        })
    }

    /// The program as it was typed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The message with `part` changed. If the program leaves the value as it is, so are the bytes.
    ///
    /// # Errors
    /// When it cannot be changed, or that takes too long, or did so before.
    pub fn apply(&self, message: &Message, part: ChangePart) -> Result<Message, ChangeError> {
        let span = part.span(message).filter(|_| message.is_json());
        let span = span.ok_or(ChangeError::Missing(part))?;
        let (program, whole) = (Arc::clone(&self.program), message.clone());
        let changed = self.thread.run(span.len(), move |caller| {
            changed_member(&program, &whole, span, part, caller)
        })??;
        match changed {
            None => Ok(message.clone()),
            // The span is the message's own, so it lies within it.
            Some(after) => message
                .splice(&[(span, after.as_bytes())])
                .map_err(|_| ChangeError::Missing(part)),
        }
    }
}

/// What the program makes of the member at `span`; `None` if it leaves it as it is.
fn changed_member(
    program: &JqProgram,
    message: &Message,
    span: Span,
    part: ChangePart,
    caller: &WaitingCaller,
) -> Result<Option<String>, ChangeError> {
    let before = jq::json(message, span).ok_or(ChangeError::TooDeep(part))?;
    let unchanged = before.to_string();
    let after = match program.first_two(before, caller)?.as_slice() {
        [] => return Err(ChangeError::NoValue),
        [only] => only.to_string(),
        _ => return Err(ChangeError::SeveralValues),
    };
    if after == unchanged {
        return Ok(None);
    }
    if !Message::parse(after.clone()).is_json() {
        let shown = after.chars().take(80).collect();
        return Err(ChangeError::NotJson(part, shown));
    }
    Ok(Some(after))
}

impl ChangePart {
    /// The part of a message that a change without one means: what its kind has.
    pub fn of(message: &Message) -> Option<ChangePart> {
        use mcp_proxy_wire::Kind;
        match message.kind() {
            Kind::Request | Kind::Notification => Some(ChangePart::Params),
            Kind::Response => Some(ChangePart::Result),
            Kind::Error => Some(ChangePart::Error),
            Kind::Batch | Kind::Other | Kind::Malformed => None,
        }
    }

    /// Whether a message has it.
    pub fn is_in(self, message: &Message) -> bool {
        message.is_json() && self.span(message).is_some()
    }

    fn span(self, message: &Message) -> Option<Span> {
        match self {
            ChangePart::Params => message.params(),
            ChangePart::Result => message.result(),
            ChangePart::Error => message.error(),
        }
    }
}

impl fmt::Display for ChangePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            ChangePart::Params => "params",
            ChangePart::Result => "result",
            ChangePart::Error => "error",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: &str = r#" {"id" :1.0,"params":{"name":"x","n":1.50,"big":123456789012345678901234567890,"u":"é\u00e9"}, "method":"tools/call" }"#;

    fn changed(program: &str, message: &str, part: ChangePart) -> String {
        let change = Change::parse(program).unwrap();
        let message = Message::parse(message.to_owned());
        match change.apply(&message, part) {
            Ok(message) => String::from_utf8(message.into_raw().to_vec()).unwrap(),
            Err(error) => format!("! {error}"),
        }
    }

    #[test]
    fn only_the_member_changes() {
        assert_eq!(
            changed(r#".name = "y""#, CALL, ChangePart::Params),
            r#" {"id" :1.0,"params":{"name":"y","n":1.50,"big":123456789012345678901234567890,"u":"éé"}, "method":"tools/call" }"#
        );
        assert_eq!(changed(".", CALL, ChangePart::Params), CALL);
        assert_eq!(changed("del(.none)", CALL, ChangePart::Params), CALL);
        assert_eq!(
            changed(
                "{code, message: \"no\"}",
                r#"{"id":1,"error":{"code":-1,"message":"x"}}"#,
                ChangePart::Error
            ),
            r#"{"id":1,"error":{"code":-1,"message":"no"}}"#
        );
    }

    #[test]
    fn what_cannot_be_changed_says_why() {
        let failure = |program: &str, message: &str, part| {
            let change = Change::parse(program).unwrap();
            let message = Message::parse(message.to_owned());
            change.apply(&message, part).unwrap_err()
        };
        let (params, result) = (ChangePart::Params, ChangePart::Result);
        let deep = format!(
            "{{\"id\":1,\"result\":{}{}}}",
            "[".repeat(400),
            "]".repeat(400)
        );
        let not_json = |text: &str| ChangeError::NotJson(params, text.to_owned());
        let wrong = [
            (
                ".",
                r#"{"id":1,"method":"ping"}"#,
                ChangeError::Missing(params),
            ),
            (".", "{\"params\":", ChangeError::Missing(params)),
            ("empty", CALL, ChangeError::NoValue),
            (".name, .n", CALL, ChangeError::SeveralValues),
            ("nan", CALL, not_json("NaN")),
            ("{(\"a\"|tobytes): 1}", CALL, not_json("{b\"a\":1}")),
            ("[repeat(1)]", CALL, JqError::TooSlow.into()),
        ];
        let mut told = Vec::new();
        for (program, message, expected) in wrong {
            let error = failure(program, message, params);
            assert_eq!(error, expected, "{program}");
            told.push(error);
        }
        let error = failure(".name.x", CALL, params);
        let is_failure = matches!(error, ChangeError::Program(JqError::Failed(_)));
        assert!(is_failure, "{error}");
        told.push(error);
        assert_eq!(failure(".", &deep, result), ChangeError::TooDeep(result));
        told.push(ChangeError::TooDeep(result));
        let told: Vec<String> = told.iter().map(ToString::to_string).collect();
        insta::assert_snapshot!("change_errors", told.join("\n"));
    }
}
