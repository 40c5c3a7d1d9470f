//! `hold.resolve`: the decision about a held message.
//!
//! On the wire it is one flat object, in which each action takes parameters of its own. Here each action is a variant
//! that has its parameters, so that a decision that makes no sense cannot be written, and one that was sent is refused.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::HeaderPatch;

/// `hold.resolve`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "Fields", into = "Fields")]
pub struct HoldResolveRequest {
    /// The hold.
    pub hold: u64,
    /// What becomes of the message.
    pub action: HoldAction,
    /// Changes to its HTTP head, if it is forwarded.
    pub headers: HeaderPatch,
}

impl HoldResolveRequest {
    /// A decision that leaves the head as it is.
    pub fn new(hold: u64, action: HoldAction) -> HoldResolveRequest {
        HoldResolveRequest {
            hold,
            action,
            headers: HeaderPatch::default(),
        }
    }
}

/// What becomes of a held message.
#[derive(Clone, Debug)]
pub enum HoldAction {
    /// It is forwarded as it is.
    Forward,
    /// Another message is sent in its place.
    Modify {
        /// The other message.
        message: Replacement,
        /// It is sent even if it is not JSON.
        as_is: bool,
    },
    /// It is not forwarded.
    Drop,
    /// It is not forwarded, and a request is answered with this error.
    Error {
        /// The error's code, unless it is the proxy's own.
        code: Option<i64>,
        /// The error's text, unless it is the proxy's own.
        message: Option<String>,
    },
}

/// A message that is sent in the place of another.
#[derive(Clone, Debug)]
pub enum Replacement {
    /// JSON, of which every byte is kept.
    Json(Box<RawValue>),
    /// A text, which need not be JSON.
    Text(String),
    /// Bytes in base64, which need not be text.
    Base64(String),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Word {
    #[default]
    Forward,
    Modify,
    Drop,
    Error,
}

impl Word {
    fn as_str(self) -> &'static str {
        match self {
            Word::Forward => "forward",
            Word::Modify => "modify",
            Word::Drop => "drop",
            Word::Error => "error",
        }
    }
}

/// The object on the wire.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    hold: u64,
    action: Word,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    raw: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    raw_text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    raw_b64: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    as_is: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    code: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(default, skip_serializing_if = "HeaderPatch::is_empty")]
    headers: HeaderPatch,
}

impl TryFrom<Fields> for HoldResolveRequest {
    type Error = String;

    fn try_from(fields: Fields) -> Result<HoldResolveRequest, String> {
        let as_is = fields.as_is.unwrap_or(false);
        let replaced = [
            fields.raw.map(Replacement::Json),
            fields.raw_text.map(Replacement::Text),
            fields.raw_b64.map(Replacement::Base64),
        ];
        let mut replaced = replaced.into_iter().flatten();
        let (message, another) = (replaced.next(), replaced.next());
        let modifies = message.is_some() || as_is;
        let answers = fields.code.is_some() || fields.message.is_some();
        let foreign = match fields.action {
            Word::Modify => answers.then_some("error"),
            Word::Error => modifies.then_some("modify"),
            Word::Forward | Word::Drop if modifies => Some("modify"),
            Word::Forward | Word::Drop => answers.then_some("error"),
        };
        if let Some(owner) = foreign {
            let action = fields.action.as_str();
            return Err(format!(
                "`{action}` takes none of the parameters of {owner}"
            ));
        }
        if !fields.headers.is_empty() && matches!(fields.action, Word::Drop | Word::Error) {
            return Err("headers: only a message that is forwarded has some".to_owned());
        }
        let action = match (fields.action, message, another) {
            (Word::Forward, ..) => HoldAction::Forward,
            (Word::Drop, ..) => HoldAction::Drop,
            (Word::Error, ..) => HoldAction::Error {
                code: fields.code,
                message: fields.message,
            },
            (Word::Modify, Some(message), None) => HoldAction::Modify { message, as_is },
            (Word::Modify, ..) => {
                let text = "modify needs the new message: one of raw, raw_text, raw_b64";
                return Err(text.to_owned());
            }
        };
        Ok(HoldResolveRequest {
            hold: fields.hold,
            action,
            headers: fields.headers,
        })
    }
}

impl From<HoldResolveRequest> for Fields {
    fn from(request: HoldResolveRequest) -> Fields {
        let mut fields = Fields {
            hold: request.hold,
            headers: request.headers,
            ..Fields::default()
        };
        match request.action {
            HoldAction::Forward => {}
            HoldAction::Drop => fields.action = Word::Drop,
            HoldAction::Error { code, message } => {
                fields.action = Word::Error;
                fields.code = code;
                fields.message = message;
            }
            HoldAction::Modify { message, as_is } => {
                fields.action = Word::Modify;
                fields.as_is = Some(as_is);
                match message {
                    Replacement::Json(raw) => fields.raw = Some(raw),
                    Replacement::Text(text) => fields.raw_text = Some(text),
                    Replacement::Base64(text) => fields.raw_b64 = Some(text),
                }
            }
        }
        fields
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read_params;

    fn parsed(text: &str) -> Result<HoldAction, String> {
        let read = read_params::<HoldResolveRequest>(Some(text.as_bytes()));
        read.map(|request| request.action)
            .map_err(|fault| fault.text)
    }

    #[test]
    fn a_replacement_keeps_its_bytes() {
        let text = r#"{"hold":1,"action":"modify","raw":{"b":1.0,  "a":2},"as_is":false}"#;
        let given = parsed(text);
        let Ok(HoldAction::Modify {
            message: Replacement::Json(raw),
            as_is: false,
        }) = given
        else {
            panic!("{given:?}")
        };
        assert_eq!(raw.get(), r#"{"b":1.0,  "a":2}"#);
        let request: HoldResolveRequest = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&request).unwrap(), text);
        let given = parsed(r#"{"hold":1,"action":"modify","raw_text":"no\njson","as_is":true}"#);
        let Ok(HoldAction::Modify {
            message: Replacement::Text(text),
            as_is: true,
        }) = given
        else {
            panic!("{given:?}")
        };
        assert_eq!(text, "no\njson");
    }

    #[test]
    fn actions_that_make_no_sense_are_named() {
        let texts = [
            r#"{"hold":1,"action":"explode"}"#,
            r#"{"hold":1,"action":"modify"}"#,
            r#"{"hold":1,"action":"modify","raw":1,"raw_text":"1"}"#,
            r#"{"hold":1,"action":"forward","raw":1}"#,
            r#"{"hold":1,"action":"drop","code":1}"#,
            r#"{"hold":1,"action":"error","as_is":true}"#,
        ];
        let said = texts.map(|text| parsed(text).unwrap_err());
        assert!(
            said[0].contains("action: unknown variant `explode`"),
            "{said:?}"
        );
        assert!(said[1].contains("raw_text"), "{said:?}");
        assert!(said[2].contains("one of"), "{said:?}");
        assert!(said[3].contains("modify"), "{said:?}");
        assert!(said[4].contains("error"), "{said:?}");
        assert!(said[5].contains("modify"), "{said:?}");
    }
}
