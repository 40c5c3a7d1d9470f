//! Which arguments of a tool travel as headers.

use http::{HeaderMap, HeaderName};
use serde_json::Value;

use super::modern::argument;
use super::{MCP_PARAM_PREFIX, decode_value};
use crate::{Field, Message};

/// How many arguments are searched for a header that no schema describes.
const ARGUMENTS: usize = 256;

/// An argument that a tool wants in a header (`x-mcp-header` in its input schema).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParamHeader {
    /// What follows `Mcp-Param-`.
    pub name: String,
    /// Where in `params.arguments` the value is, key by key.
    pub path: Vec<String>,
}

/// The header arguments of an input schema. An annotation that breaks the rules (a name that is not a token or is used
/// twice, a value that is not a string, integer or boolean) is left out; a client must not call such a tool anyway.
pub fn param_headers(input_schema: &[u8]) -> Vec<ParamHeader> {
    let mut found = Vec::new();
    if let Ok(schema) = serde_json::from_slice::<Value>(input_schema) {
        // The parser stops at 128 levels, so this recursion does too.
        collect(&schema, &mut Vec::new(), &mut found);
    }
    found
}

fn collect(schema: &Value, path: &mut Vec<String>, found: &mut Vec<ParamHeader>) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return;
    };
    for (key, property) in properties {
        path.push(key.clone());
        if let Some(name) = property.get("x-mcp-header").and_then(Value::as_str)
            && is_scalar(property)
            && HeaderName::from_bytes(format!("{MCP_PARAM_PREFIX}{name}").as_bytes()).is_ok()
            && !name.is_empty()
            && !found
                .iter()
                .any(|header| header.name.eq_ignore_ascii_case(name))
        {
            found.push(ParamHeader {
                name: name.to_owned(),
                path: path.clone(),
            });
        }
        collect(property, path, found);
        path.pop();
    }
}

/// The header arguments of a call, as far as its own headers show them: for each the argument that says the same. Where
/// several do, the one with the header's name. For those who have not seen the tool's schema.
pub fn infer_param_headers(headers: &HeaderMap, call: &Message) -> Vec<ParamHeader> {
    let mut shown = headers
        .iter()
        .filter_map(|(name, value)| {
            let name = name.as_str().strip_prefix(MCP_PARAM_PREFIX)?;
            Some((name, decode_value(value.as_bytes().trim_ascii())?))
        })
        .peekable();
    if shown.peek().is_none() {
        return Vec::new();
    }
    let Some(span) = call.span(Field::Param("arguments")) else {
        return Vec::new();
    };
    let mut paths = Vec::new();
    if let Ok(arguments) = serde_json::from_slice::<Value>(call.slice(span)) {
        scalars(&arguments, &mut Vec::new(), &mut paths);
    }
    let found = shown.filter_map(|(name, value)| {
        let says_it = |path: &&Vec<String>| argument(call, span, path).as_ref() == Some(&value);
        let alike: Vec<_> = paths.iter().filter(says_it).collect();
        let named = |path: &&&Vec<String>| path.last().is_some_and(|key| is_same_name(key, name));
        let path = alike.iter().find(named).or(alike.first())?;
        Some(ParamHeader {
            name: name.to_owned(),
            path: path.to_vec(),
        })
    });
    found.collect()
}

/// The paths to all strings, numbers and booleans that are in objects only.
fn scalars(value: &Value, path: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                path.push(key.clone());
                scalars(member, path, found);
                path.pop();
            }
        }
        Value::String(_) | Value::Number(_) | Value::Bool(_) if found.len() < ARGUMENTS => {
            found.push(path.clone());
        }
        _ => {}
    }
}

/// `userId`, `user_id` and `User-Id` are one name.
fn is_same_name(key: &str, header: &str) -> bool {
    let letters = |text: &str| -> Vec<u8> {
        let letters = text.bytes().filter(u8::is_ascii_alphanumeric);
        letters.map(|byte| byte.to_ascii_lowercase()).collect()
    };
    letters(key) == letters(header)
}

/// The specification allows string, integer and boolean; its conformance suite also annotates a `number`.
fn is_scalar(property: &Value) -> bool {
    matches!(
        property.get("type").and_then(Value::as_str),
        Some("string" | "integer" | "boolean" | "number")
    )
}
