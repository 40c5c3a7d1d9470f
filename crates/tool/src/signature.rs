//! How a tool is called, on one line: `read_file(path: string, head?: integer)`.

use mcp_proxy_wire::{Message, Span};

use crate::json;
use crate::wording::cut;
use mcp_proxy_wire::json::push_compact;

/// The most characters of a signature.
const MAX_SIGNATURE: usize = 200;

/// How many properties of a schema are read. A signature has room for far fewer.
const MAX_PROPERTIES: usize = 200;

/// The most values of an enum, or types of a union, that are shown.
const MAX_ALTERNATIVES: usize = 4;

/// JSON Schema has seven types.
const MAX_TYPE_NAMES: usize = 7;

/// How deep types are followed. Deeper ones are `any`.
const MAX_TYPE_DEPTH: usize = 3;

/// The signature of the tool `name`.
pub fn tool_signature(name: &str, definition: &Message) -> String {
    let value = definition;
    let schema = value.member(value.root(), "inputSchema");
    let member = |name| schema.and_then(|schema| value.member(schema, name));
    let properties = member("properties").map_or_else(Vec::new, |span| json::members(value, span));
    let required: Vec<String> = member("required")
        .map_or_else(Vec::new, |span| json::elements(value, span))
        .into_iter()
        .take(MAX_PROPERTIES)
        .filter_map(|name| Some(value.text_at(name)?.into_owned()))
        .collect();
    let (mut first, mut last) = (Vec::new(), Vec::new());
    for (key, property) in properties.into_iter().take(MAX_PROPERTIES) {
        let key = json::key_text(value, key);
        let kind = type_text(value, property, 0);
        if required.iter().any(|required| *required == key) {
            first.push(format!("{key}: {kind}"));
        } else {
            last.push(format!("{key}?: {kind}"));
        }
    }
    first.append(&mut last);
    signature(name, &first)
}

/// The signature of the prompt `name`, whose arguments are all strings.
pub fn prompt_signature(name: &str, definition: &Message) -> String {
    let value = definition;
    let arguments = value.member(value.root(), "arguments");
    let arguments = arguments.map_or_else(Vec::new, |span| json::elements(value, span));
    let (mut first, mut last) = (Vec::new(), Vec::new());
    for argument in arguments {
        let Some(name) = value.member(argument, "name") else {
            continue;
        };
        let name = value.text_at(name).unwrap_or_default();
        let required = value.member(argument, "required");
        if required.is_some_and(|required| value.slice(required) == b"true") {
            first.push(name.into_owned());
        } else {
            last.push(format!("{name}?"));
        }
    }
    first.append(&mut last);
    signature(name, &first)
}

/// As many parameters as there is room for.
fn signature(name: &str, parameters: &[String]) -> String {
    const REST: &str = ", …)";
    let mut signature = format!("{name}(");
    let mut length = signature.chars().count();
    for (place, parameter) in parameters.iter().enumerate() {
        let comma = if place == 0 { "" } else { ", " };
        length += comma.len() + parameter.chars().count();
        let is_last = place + 1 == parameters.len();
        let room = MAX_SIGNATURE - if is_last { 1 } else { REST.chars().count() };
        if length > room {
            signature.push_str(comma);
            signature.push('…');
            break;
        }
        signature.push_str(comma);
        signature.push_str(parameter);
    }
    signature.push(')');
    cut(signature, MAX_SIGNATURE)
}

fn type_text(value: &Message, schema: Span, depth: usize) -> String {
    const ANY: &str = "any";
    if depth > MAX_TYPE_DEPTH {
        return ANY.to_owned();
    }
    if let Some(values) = value.member(schema, "enum") {
        return union(
            json::elements(value, values)
                .into_iter()
                .map(|span| literal(value, span)),
        );
    }
    if let Some(constant) = value.member(schema, "const") {
        return literal(value, constant);
    }
    for name in ["anyOf", "oneOf"] {
        if let Some(variants) = value.member(schema, name) {
            let variants = json::elements(value, variants).into_iter();
            return union(variants.map(|variant| type_text(value, variant, depth + 1)));
        }
    }
    let Some(kind) = value.member(schema, "type") else {
        return ANY.to_owned();
    };
    match value.text_at(kind) {
        Some(name) => named_type(value, schema, &name, depth),
        None => {
            let mut names = Vec::new();
            for name in json::elements(value, kind).into_iter().take(MAX_TYPE_NAMES) {
                let name = value.text_at(name).unwrap_or_default();
                // Each once: a type that names `array` a thousand times must not be read a thousand times.
                if !name.is_empty() && !names.contains(&name) {
                    names.push(name);
                }
            }
            let names = names.iter();
            union(names.map(|name| named_type(value, schema, name, depth)))
        }
    }
}

fn named_type(value: &Message, schema: Span, name: &str, depth: usize) -> String {
    if name != "array" {
        return name.to_owned();
    }
    match value.member(schema, "items") {
        None => "any[]".to_owned(),
        Some(items) => match type_text(value, items, depth + 1) {
            union if union.contains('|') => format!("({union})[]"),
            kind => format!("{kind}[]"),
        },
    }
}

/// `"a"|"b"`, each once. That something may be `null` is left out.
fn union(alternatives: impl Iterator<Item = String>) -> String {
    let mut shown: Vec<String> = Vec::new();
    for alternative in alternatives {
        if alternative == "null" || shown.contains(&alternative) {
            continue;
        }
        if shown.len() == MAX_ALTERNATIVES {
            shown.push("…".to_owned());
            break;
        }
        shown.push(alternative);
    }
    if shown.is_empty() {
        return "any".to_owned();
    }
    shown.join("|")
}

/// A value of an enum as it is written in JSON.
fn literal(value: &Message, span: Span) -> String {
    const LONGEST: usize = 40;
    let mut json = Vec::new();
    push_compact(&mut json, value.slice(span));
    cut(String::from_utf8_lossy(&json).into_owned(), LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(schema: &str) -> String {
        let definition = format!(r#"{{"name":"x","inputSchema":{schema}}}"#);
        tool_signature("f", &Message::parse(definition))
    }

    #[test]
    fn signatures_are_short() {
        let cases = [
            (
                r#"{"type":"object","properties":{"head":{"type":"integer"},"path":{"type":"string"}},"required":["path"]}"#,
                "f(path: string, head?: integer)",
            ),
            (
                r#"{"properties":{"a":{"enum":["x","y"]},"b":{"enum":[1,2,3,4,5]},"c":{"const":true},"d":{"enum":[]}}}"#,
                r#"f(a?: "x"|"y", b?: 1|2|3|4|…, c?: true, d?: any)"#,
            ),
            (
                r#"{"properties":{"a":{"type":"array","items":{"type":"string"}},"b":{"type":"array"},"c":{"type":"array","items":{"enum":["p","q"]}},"d":{"type":"array","items":{"type":"array","items":{"type":"object","properties":{}}}}}}"#,
                r#"f(a?: string[], b?: any[], c?: ("p"|"q")[], d?: object[][])"#,
            ),
            (
                r##"{"properties":{"a":{"type":["string","null"]},"b":{"anyOf":[{"type":"integer"},{"type":"null"},{"type":"integer"}]},"c":{"$ref":"#/$defs/X"},"d":true,"e":{}}}"##,
                "f(a?: string, b?: integer, c?: any, d?: any, e?: any)",
            ),
            ("{}", "f()"),
            ("null", "f()"),
            ("7", "f()"),
            (r#"{"properties":[1],"required":"a"}"#, "f()"),
        ];
        for (schema, expected) in cases {
            assert_eq!(of(schema), expected, "{schema}");
        }
    }

    #[test]
    fn what_does_not_fit_is_left_out() {
        let many: Vec<_> = (0..50)
            .map(|at| format!(r#""parameter{at}":{{"type":"string"}}"#))
            .collect();
        let signature = of(&format!(r#"{{"properties":{{{}}}}}"#, many.join(",")));
        assert!(signature.chars().count() <= MAX_SIGNATURE);
        assert!(signature.ends_with(": string, …)"), "{signature}");

        let long = format!(r#"{{"properties":{{"{}":{{}}}}}}"#, "é".repeat(500));
        assert_eq!(of(&long), "f(…)");
        let name = "n".repeat(500);
        let signature = tool_signature(&name, &Message::parse("{}"));
        assert_eq!(signature.chars().count(), MAX_SIGNATURE);
    }

    #[test]
    fn prompts_have_arguments() {
        let definition = Message::parse(
            r#"{"arguments":[{"name":"style"},{"name":"who","required":true},7,{}]}"#,
        );
        let signature = prompt_signature("greet", &definition);
        assert_eq!(signature, "greet(who, style?)");
    }
}
