//! The arguments of a call, checked against the tool's own schema.
//!
//! Names are checked here for all tools at once. Types are checked when a tool asks for a value, so that the message
//! can say what is allowed.

use serde_json::{Map, Value};

use crate::tool::{ToolDefinition, ToolFailure, clip};

/// Arguments with known names, and with all that are required.
pub(crate) struct Arguments<'a>(&'a Map<String, Value>);

impl<'a> Arguments<'a> {
    pub(crate) fn check(
        tool: &ToolDefinition,
        values: &'a Map<String, Value>,
    ) -> Result<Arguments<'a>, ToolFailure> {
        let known = tool.input["properties"].as_object();
        let is_known = |name: &str| known.is_some_and(|known| known.contains_key(name));
        if let Some(unknown) = values.keys().find(|name| !is_known(name)) {
            let names = known.into_iter().flatten().map(|(name, _)| name.as_str());
            let names: Vec<&str> = names.collect();
            return Err(ToolFailure::new(format!(
                "`{}` is not a parameter of {}: it takes {}",
                clip(unknown, 64),
                tool.name,
                names.join(", ")
            )));
        }
        let arguments = Arguments(values);
        for name in tool.input["required"].as_array().into_iter().flatten() {
            let name = name.as_str().unwrap_or_default();
            if arguments.value(name).is_none() {
                return Err(missing(name));
            }
        }
        Ok(arguments)
    }

    pub(crate) fn text(&self, name: &str) -> Result<&'a str, ToolFailure> {
        self.optional_text(name)?.ok_or_else(|| missing(name))
    }

    pub(crate) fn optional_text(&self, name: &str) -> Result<Option<&'a str>, ToolFailure> {
        let Some(value) = self.value(name) else {
            return Ok(None);
        };
        let text = value.as_str();
        text.map(Some)
            .ok_or_else(|| ToolFailure::new(format!("`{name}` must be a string")))
    }

    /// A whole number from 1. Some models write `3.0`.
    pub(crate) fn optional_count(&self, name: &str) -> Result<Option<u64>, ToolFailure> {
        let Some(value) = self.value(name) else {
            return Ok(None);
        };
        let float = || value.as_f64().filter(|number| number.fract() == 0.0);
        let number = value
            .as_u64()
            .or_else(|| float().map(|number| number as u64));
        number
            .filter(|number| *number >= 1)
            .map(Some)
            .ok_or_else(|| ToolFailure::new(format!("`{name}` must be a whole number from 1")))
    }

    /// An optional argument may also be written as `null`.
    fn value(&self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }
}

fn missing(name: &str) -> ToolFailure {
    ToolFailure::new(format!("`{name}` is required"))
}
