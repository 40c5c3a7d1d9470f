//! The parameters of one call, by name, and their values as models write them.

use bytes::Bytes;
use mcp_proxy_wire::{Message, Span, string_content};

use crate::dispatch_tool::suggestion::{suggest_action, suggest_parameter, suggest_value};
use crate::dispatch_tool::{
    DispatchAction, DispatchParameter, DispatchToolError, DispatchToolOptions, ReadResultOperation,
};
use crate::json;
use crate::proxy_tool::says_nothing;
use crate::tool_values::{ObjectValue, is_object, object_value, whole_number};

/// Other names that `readresult` takes for its parameters.
const LINE_ALIASES: [(&str, DispatchParameter); 2] = [
    ("start", DispatchParameter::FromLine),
    ("end", DispatchParameter::ToLine),
];

/// What was given, and the action once it is known.
pub(super) struct GivenParameters {
    action: Option<DispatchAction>,
    known: Vec<(DispatchParameter, Bytes)>,
    unknown: Vec<(String, Bytes)>,
    /// The configured default of `limit`.
    default_limit: u32,
}

impl GivenParameters {
    pub(super) fn read(
        message: &Message,
        arguments: Option<Span>,
        options: &DispatchToolOptions,
    ) -> Result<GivenParameters, DispatchToolError> {
        let mut given = GivenParameters {
            action: None,
            known: Vec::new(),
            unknown: Vec::new(),
            default_limit: options.default_search_limit,
        };
        if let Some(arguments) = arguments {
            if !message.is_json() || !is_object(message, arguments) {
                return Err(DispatchToolError::ArgumentsNotAnObject);
            }
            given.add(message, arguments);
        }
        Ok(given)
    }

    /// Adds the members of an object. Of two with the same name the later one counts.
    fn add(&mut self, value: &Message, object: Span) {
        for (key, member) in json::members(value, object) {
            let name = json::key_text(value, key);
            let token = value.raw().slice(member.range());
            match DispatchParameter::named(&name) {
                Some(parameter) => {
                    self.known.retain(|(known, _)| *known != parameter);
                    self.known.push((parameter, token));
                }
                None => self.unknown.push((name.into_owned(), token)),
            }
        }
    }

    pub(super) fn take_action(
        &mut self,
        options: &DispatchToolOptions,
    ) -> Result<DispatchAction, DispatchToolError> {
        let Some(token) = self.get(DispatchParameter::Action) else {
            let suggestion = self.action_of_parameters();
            return Err(DispatchToolError::MissingAction { suggestion });
        };
        let word = text_of(token).ok_or_else(|| self.invalid(DispatchParameter::Action))?;
        let action = DispatchAction::ALL
            .into_iter()
            .find(|action| action.as_str() == word)
            .ok_or_else(|| DispatchToolError::UnsupportedAction {
                tool: options.name.clone(),
                suggestion: suggest_action(&word),
                action: word,
            })?;
        self.action = Some(action);
        Ok(action)
    }

    /// The action that the parameters belong to, if they belong to only one.
    fn action_of_parameters(&self) -> Option<DispatchAction> {
        self.known
            .iter()
            .find_map(|(parameter, _)| match parameter.actions() {
                [action] => Some(*action),
                _ => None,
            })
    }

    /// Takes the parameters of `readresult` out of `arguments`, where some models put them, and calls them by their own
    /// names. What stands outside counts more.
    pub(super) fn flatten_nested(&mut self) -> Result<(), DispatchToolError> {
        if let Some(nested) = self.object(DispatchParameter::Arguments)? {
            let nested = Message::parse(nested);
            let outer = std::mem::take(&mut self.known);
            self.add(&nested, nested.root());
            for (parameter, token) in outer {
                self.known.retain(|(known, _)| *known != parameter);
                self.known.push((parameter, token));
            }
        }
        self.known
            .retain(|(known, _)| *known != DispatchParameter::Arguments);
        for (alias, parameter) in LINE_ALIASES {
            let Some(at) = self.unknown.iter().position(|(name, _)| name == alias) else {
                continue;
            };
            let (_, token) = self.unknown.remove(at);
            if self.get(parameter).is_none() {
                self.known.push((parameter, token));
            }
        }
        Ok(())
    }

    /// The value of a parameter, if it is given.
    pub(super) fn get(&self, parameter: DispatchParameter) -> Option<&Bytes> {
        let (_, token) = self.known.iter().find(|(known, _)| *known == parameter)?;
        (**token != *b"null").then_some(token)
    }

    /// The name of an unknown parameter that was meant to be `parameter`.
    pub(super) fn meant_as(&self, parameter: DispatchParameter) -> Option<String> {
        let (name, _) = self
            .unknown
            .iter()
            .find(|(name, _)| suggest_parameter(name, [parameter].into_iter()).is_some())?;
        Some(name.clone())
    }

    /// The names of all parameters that `action` does not take.
    pub(super) fn names_not_for(&self, action: DispatchAction) -> Vec<String> {
        let misplaced = self
            .misplaced(action)
            .map(|parameter| parameter.as_str().to_owned());
        let unknown = self.unknown.iter().map(|(name, _)| name.clone());
        misplaced.chain(unknown).collect()
    }

    fn misplaced(&self, action: DispatchAction) -> impl Iterator<Item = DispatchParameter> {
        self.known
            .iter()
            .filter(move |(known, token)| {
                !known.actions().contains(&action) && !self.says_nothing(known.as_str(), token)
            })
            .map(|(known, _)| *known)
    }

    fn says_nothing(&self, name: &str, value: &Bytes) -> bool {
        says_nothing(name, value, self.default_limit)
    }

    /// Refuses what the action does not take.
    pub(super) fn refuse_others(&self) -> Result<(), DispatchToolError> {
        let Some(action) = self.action else {
            return Ok(());
        };
        let mut unknown = self.unknown.iter();
        if let Some((name, _)) = unknown.find(|(name, token)| !self.says_nothing(name, token)) {
            let taken = DispatchParameter::ALL
                .into_iter()
                .filter(|parameter| parameter.actions().contains(&action));
            return Err(DispatchToolError::UnknownParameter {
                suggestion: suggest_parameter(name, taken),
                name: name.clone(),
                action,
            });
        }
        match self.misplaced(action).next() {
            Some(parameter) => Err(DispatchToolError::ParameterNotAllowed { parameter, action }),
            None => Ok(()),
        }
    }

    /// Refuses what only other operations on a result take.
    pub(super) fn refuse_of_other_operations(
        &self,
        operation: ReadResultOperation,
    ) -> Result<(), DispatchToolError> {
        let misplaced = self.known.iter().find(|(known, token)| {
            // The size is the same however many lines somebody wants to see.
            let is_harmless =
                operation == ReadResultOperation::Stat && *known == DispatchParameter::Lines;
            !known.operations().contains(&operation)
                && !is_harmless
                && !self.says_nothing(known.as_str(), token)
        });
        match misplaced {
            Some((parameter, _)) => Err(DispatchToolError::ParameterNotForOperation {
                parameter: *parameter,
                operation,
            }),
            None => Ok(()),
        }
    }

    /// A string that is not empty.
    pub(super) fn text(
        &self,
        parameter: DispatchParameter,
    ) -> Result<Option<String>, DispatchToolError> {
        let Some(token) = self.get(parameter) else {
            return Ok(None);
        };
        let text = text_of(token).ok_or_else(|| self.invalid(parameter))?;
        Ok(Some(text).filter(|text| !text.is_empty()))
    }

    /// One of a few words.
    pub(super) fn word<T>(
        &self,
        parameter: DispatchParameter,
        find: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, DispatchToolError> {
        let Some(word) = self.text(parameter)? else {
            return Ok(None);
        };
        match find(&word) {
            Some(found) => Ok(Some(found)),
            None => Err(DispatchToolError::InvalidValue {
                parameter,
                action: self.action,
                suggestion: suggest_value(parameter, &word),
            }),
        }
    }

    /// `true` or `false`, or a string that holds one of them.
    pub(super) fn flag(
        &self,
        parameter: DispatchParameter,
    ) -> Result<Option<bool>, DispatchToolError> {
        let Some(token) = self.get(parameter) else {
            return Ok(None);
        };
        let content = string_content(token).unwrap_or((&**token).into());
        match content.trim_ascii().to_ascii_lowercase().as_slice() {
            b"true" => Ok(Some(true)),
            b"false" => Ok(Some(false)),
            _ => Err(self.invalid(parameter)),
        }
    }

    /// A whole number, or a string that holds one.
    pub(super) fn number(
        &self,
        parameter: DispatchParameter,
        least: u64,
    ) -> Result<Option<u64>, DispatchToolError> {
        let Some(token) = self.get(parameter) else {
            return Ok(None);
        };
        let number = whole_number(token).and_then(|number| u64::try_from(number).ok());
        match number.filter(|number| *number >= least) {
            Some(number) => Ok(Some(number)),
            None => Err(self.invalid(parameter)),
        }
    }

    /// An object, or a string that holds one.
    pub(super) fn object(
        &self,
        parameter: DispatchParameter,
    ) -> Result<Option<Bytes>, DispatchToolError> {
        match self.get(parameter).map(object_value) {
            None | Some(ObjectValue::Nothing) => Ok(None),
            Some(ObjectValue::Object(object)) => Ok(Some(object)),
            Some(ObjectValue::Other) => Err(self.invalid(parameter)),
        }
    }

    fn invalid(&self, parameter: DispatchParameter) -> DispatchToolError {
        DispatchToolError::InvalidValue {
            parameter,
            action: self.action,
            suggestion: None,
        }
    }
}

fn text_of(token: &[u8]) -> Option<String> {
    let content = string_content(token)?;
    Some(String::from_utf8_lossy(&content).into_owned())
}
