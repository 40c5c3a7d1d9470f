//! Which arguments of a tool travel as headers.

use http::HeaderName;
use serde_json::Value;

use super::MCP_PARAM_PREFIX;

/// An argument that a tool wants in a header (`x-mcp-header` in its input schema).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParamHeader {
    /// What follows `Mcp-Param-`.
    pub name: String,
    /// Where in `params.arguments` the value is, key by key.
    pub path: Vec<String>,
}

/// The header arguments of an input schema. An annotation that breaks the rules (a name that is no token or is used
/// twice, a value that is no string, integer or boolean) is left out; a client must not call such a tool anyway.
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

/// The specification allows string, integer and boolean; its conformance suite also annotates a `number`.
fn is_scalar(property: &Value) -> bool {
    matches!(
        property.get("type").and_then(Value::as_str),
        Some("string" | "integer" | "boolean" | "number")
    )
}
