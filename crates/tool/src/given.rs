//! The parameters of one call, by name, and their values as models write them: the same for all of our tools.
//!
//! `null` counts as not given. Where the action does not take a parameter, a value that says nothing passes
//! (`parameter_defaults.rs`).

use std::fmt;
use std::ops::RangeInclusive;

use bytes::Bytes;
use mcp_proxy_wire::{Message, Span, string_content};

use crate::json;
use crate::says_nothing;
use crate::tool_values::{ObjectValue, is_object, object_value, whole_number};
use crate::word::ToolWord;
use crate::wording::{enumerate, shorten};

/// A parameter of one of our tools.
pub trait ToolParameter: ToolWord + fmt::Display {
    /// The values of its parameter `action`.
    type Action: ToolWord + fmt::Display;

    /// `action`
    const ACTION: Self;

    /// The actions that take it.
    fn actions(self) -> &'static [Self::Action];

    /// What its value may be, to follow "must be".
    fn allowed(self) -> &'static str;
}

/// Why the arguments of a call are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct ArgumentError {
    /// The word by which programs tell errors apart.
    pub code: &'static str,
    /// What a model reads.
    pub text: String,
    /// The parameter that is wrong.
    pub parameter: Option<&'static str>,
    /// The action, if it is known.
    pub action: Option<&'static str>,
}

impl ArgumentError {
    /// An error that is not about one parameter.
    pub fn new(code: &'static str, text: impl Into<String>) -> ArgumentError {
        ArgumentError {
            code,
            text: text.into(),
            parameter: None,
            action: None,
        }
    }

    /// The error that the arguments are something else than an object.
    pub fn not_an_object() -> ArgumentError {
        ArgumentError::new("invalid-arguments", "The arguments must be a JSON object")
    }

    /// Names the parameter that is wrong.
    #[must_use]
    pub fn about(self, parameter: impl ToolParameter) -> ArgumentError {
        ArgumentError {
            parameter: Some(parameter.as_str()),
            ..self
        }
    }
}

/// What was given, and the action once it is known.
#[derive(Debug)]
pub struct GivenParameters<P: ToolParameter> {
    /// The action.
    pub action: Option<P::Action>,
    known: Vec<(P, Bytes)>,
    unknown: Vec<(String, Bytes)>,
    /// The configured default of `limit`.
    default_limit: u32,
}

impl<P: ToolParameter> GivenParameters<P> {
    /// The members of the object at `object`.
    pub fn read(
        message: &Message,
        object: Span,
        default_limit: u32,
    ) -> Result<GivenParameters<P>, ArgumentError> {
        if !message.is_json() || !is_object(message, object) {
            return Err(ArgumentError::not_an_object());
        }
        let mut given = GivenParameters {
            action: None,
            known: Vec::new(),
            unknown: Vec::new(),
            default_limit,
        };
        given.add(message, object);
        Ok(given)
    }

    /// Adds the members of an object. Of two with the same name the later one counts.
    pub fn add(&mut self, message: &Message, object: Span) {
        for (key, member) in json::members(message, object) {
            let name = json::key_text(message, key);
            let value = message.raw().slice(member.range());
            match P::named(&name) {
                Some(parameter) => self.set(parameter, value),
                None => self.unknown.push((name.into_owned(), value)),
            }
        }
    }

    /// Gives a parameter another value.
    pub fn set(&mut self, parameter: P, value: Bytes) {
        self.remove(parameter);
        self.known.push((parameter, value));
    }

    /// Takes a parameter out.
    pub fn remove(&mut self, parameter: P) {
        self.known.retain(|(known, _)| *known != parameter);
    }

    /// Takes an unknown parameter out.
    pub fn take_unknown(&mut self, name: &str) -> Option<Bytes> {
        let at = self.unknown.iter().position(|(known, _)| known == name)?;
        Some(self.unknown.remove(at).1)
    }

    /// All known parameters with their values.
    pub fn known(&self) -> impl Iterator<Item = (P, &Bytes)> {
        self.known
            .iter()
            .map(|(parameter, value)| (*parameter, value))
    }

    /// The names of unknown parameters.
    pub fn unknown_names(&self) -> impl Iterator<Item = &str> {
        self.unknown.iter().map(|(name, _)| name.as_str())
    }

    /// The value of a parameter, if it is given.
    pub fn get(&self, parameter: P) -> Option<&Bytes> {
        let (_, value) = self.known.iter().find(|(known, _)| *known == parameter)?;
        (**value != *b"null").then_some(value)
    }

    /// Whether the value of a parameter means the same as leaving it out.
    pub fn says_nothing(&self, name: &str, value: &Bytes) -> bool {
        says_nothing(name, value, self.default_limit)
    }

    /// The parameters that `action` does not take.
    pub fn misplaced(&self, action: P::Action) -> impl Iterator<Item = P> {
        self.known()
            .filter(move |(known, value)| {
                !known.actions().contains(&action) && !self.says_nothing(known.as_str(), value)
            })
            .map(|(known, _)| known)
    }

    /// Refuses parameters that there are not.
    pub fn refuse_unknown(&self) -> Result<(), ArgumentError> {
        let mut unknown = self.unknown.iter();
        let (Some(action), Some((name, _))) = (
            self.action,
            unknown.find(|(name, value)| !self.says_nothing(name, value)),
        ) else {
            return Ok(());
        };
        let taken = || {
            let all = P::all().iter().copied();
            all.filter(move |parameter| {
                *parameter != P::ACTION && parameter.actions().contains(&action)
            })
        };
        let instead = match P::meant_among(name, taken()) {
            Some(parameter) => format!("did you mean '{parameter}'?"),
            None => format!("it takes {}", enumerate(taken().map(P::as_str), "and")),
        };
        let name = shorten(name);
        let text = format!("Unknown parameter '{name}' for action '{action}'; {instead}");
        Err(self.error("unknown-parameter", text))
    }

    /// Refuses parameters that are only for other actions.
    pub fn refuse_misplaced(&self) -> Result<(), ArgumentError> {
        let Some((action, parameter)) = self
            .action
            .and_then(|action| Some((action, self.misplaced(action).next()?)))
        else {
            return Ok(());
        };
        let others = parameter.actions().iter().map(|action| action.as_str());
        let text = format!(
            "Parameter '{parameter}' should not be provided for action '{action}'; it is only for {}",
            enumerate(others, "and")
        );
        Err(self.error("parameter-not-allowed", text).about(parameter))
    }

    /// A string that is not empty.
    pub fn text(&self, parameter: P) -> Result<Option<String>, ArgumentError> {
        let Some(value) = self.get(parameter) else {
            return Ok(None);
        };
        let content = string_content(value).ok_or_else(|| self.invalid(parameter))?;
        let text = String::from_utf8_lossy(&content).into_owned();
        Ok(Some(text).filter(|text| !text.is_empty()))
    }

    /// A string that the action needs.
    pub fn required(&self, parameter: P) -> Result<String, ArgumentError> {
        self.text(parameter)?.ok_or_else(|| self.missing(parameter))
    }

    /// One of a few words.
    pub fn word<W: ToolWord>(&self, parameter: P) -> Result<Option<W>, ArgumentError> {
        let Some(word) = self.text(parameter)? else {
            return Ok(None);
        };
        match W::named(&word) {
            Some(found) => Ok(Some(found)),
            None => Err(self.invalid_word::<W>(parameter, &word)),
        }
    }

    /// `true` or `false`, or a string that holds one of them.
    pub fn flag(&self, parameter: P) -> Result<Option<bool>, ArgumentError> {
        let Some(value) = self.get(parameter) else {
            return Ok(None);
        };
        let content = string_content(value).unwrap_or((&**value).into());
        match content.trim_ascii().to_ascii_lowercase().as_slice() {
            b"true" => Ok(Some(true)),
            b"false" => Ok(Some(false)),
            _ => Err(self.invalid(parameter)),
        }
    }

    /// A whole number, or a string that holds one.
    pub fn number(
        &self,
        parameter: P,
        allowed: RangeInclusive<u64>,
    ) -> Result<Option<u64>, ArgumentError> {
        let Some(value) = self.get(parameter) else {
            return Ok(None);
        };
        let number = whole_number(value).and_then(|number| u64::try_from(number).ok());
        match number.filter(|number| allowed.contains(number)) {
            Some(number) => Ok(Some(number)),
            None => Err(self.invalid(parameter)),
        }
    }

    /// An object, or a string that holds one.
    pub fn object(&self, parameter: P) -> Result<Option<Bytes>, ArgumentError> {
        match self.get(parameter).map(object_value) {
            None | Some(ObjectValue::Nothing) => Ok(None),
            Some(ObjectValue::Object(object)) => Ok(Some(object)),
            Some(ObjectValue::Other) => Err(self.invalid(parameter)),
        }
    }

    /// The error that a parameter is missing.
    pub fn missing(&self, parameter: P) -> ArgumentError {
        let action = self.action.map(|action| format!(" for action '{action}'"));
        let text = format!(
            "Parameter '{parameter}' is required{}: {}",
            action.unwrap_or_default(),
            parameter.allowed()
        );
        self.error("missing-parameter", text).about(parameter)
    }

    /// The error that a parameter has a value that it cannot have.
    pub fn invalid(&self, parameter: P) -> ArgumentError {
        let text = format!("Parameter '{parameter}' must be {}", parameter.allowed());
        self.error("invalid-value", text).about(parameter)
    }

    /// The error that a parameter has a word that it cannot have.
    pub fn invalid_word<W: ToolWord>(&self, parameter: P, word: &str) -> ArgumentError {
        let mut error = self.invalid(parameter);
        if let Some(meant) = W::meant_by(word) {
            error.text += &format!("; did you mean '{}'?", meant.as_str());
        }
        error
    }

    /// An error in the action at hand.
    pub fn error(&self, code: &'static str, text: impl Into<String>) -> ArgumentError {
        ArgumentError {
            action: self.action.map(P::Action::as_str),
            ..ArgumentError::new(code, text)
        }
    }
}
