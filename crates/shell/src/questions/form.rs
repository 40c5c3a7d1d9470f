//! A form, filled in field by field.

use mcp_proxy_client::rmcp::model::JsonObject;
use mcp_proxy_wire::terminal_text::sanitize;
use serde_json::Value;

use crate::arguments::typed;
use crate::exact_numbers::changed_number;
use crate::schema::{
    JsonType, allowed_types, choices, properties, required, type_words, violations,
};

/// What the person decided.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum FormAnswer {
    Accept(JsonObject),
    Decline,
    Cancel,
}

/// Asks for each property of `schema` until it has a value that fits. `ask` returns `None` when there is nobody to ask.
pub(super) fn fill_form(
    schema: &Value,
    ask: &mut dyn FnMut(&str) -> Option<String>,
    say: &mut dyn FnMut(&str),
) -> FormAnswer {
    let needed = required(schema);
    let fields = properties(schema, schema);
    let mut content = JsonObject::new();
    if fields.is_empty() {
        return match ask("Accept? [Enter] ").as_deref().map(str::trim) {
            None | Some("!cancel") => FormAnswer::Cancel,
            Some("!decline" | "n" | "no") => FormAnswer::Decline,
            Some(_) => FormAnswer::Accept(content),
        };
    }
    for (name, field) in fields {
        let is_needed = needed.contains(&name);
        say(&about(name, field));
        let prompt = prompt(name, field, schema, is_needed);
        loop {
            let Some(line) = ask(&prompt) else {
                return FormAnswer::Cancel;
            };
            let value = match (line.trim(), field.get("default")) {
                ("!decline", _) => return FormAnswer::Decline,
                ("!cancel", _) => return FormAnswer::Cancel,
                ("", Some(default)) => default.clone(),
                ("", None) if !is_needed => break,
                ("", None) => {
                    say("  a value is required");
                    continue;
                }
                (text, _) => parse(schema, field, text),
            };
            if let Some((typed, sent)) = changed_number(&line).filter(|_| has_number(&value)) {
                say(&format!(
                    "  {typed} cannot be sent exactly, it would become {sent}"
                ));
                continue;
            }
            let found = violations(field, &value);
            match found.first() {
                None => {
                    content.insert(name.to_owned(), value);
                    break;
                }
                Some(violation) => say(&format!("  {}", sanitize(&violation.problem))),
            }
        }
    }
    FormAnswer::Accept(content)
}

fn has_number(value: &Value) -> bool {
    let items = value.as_array().into_iter().flatten();
    value.is_number() || items.into_iter().any(Value::is_number)
}

fn parse(root: &Value, field: &Value, text: &str) -> Value {
    let types = allowed_types(root, field);
    if types.contains(&JsonType::Array) {
        let items = field.get("items").unwrap_or(&Value::Null);
        let parts = text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty());
        return parts.map(|part| typed(root, items, part)).collect();
    }
    match (
        types.contains(&JsonType::Boolean),
        text.to_lowercase().as_str(),
    ) {
        (true, "y" | "yes") => Value::Bool(true),
        (true, "n" | "no") => Value::Bool(false),
        _ => typed(root, field, text),
    }
}

fn about(name: &str, field: &Value) -> String {
    let text = |key: &str| field.get(key).and_then(Value::as_str);
    let words = [text("title"), text("description")];
    let words: Vec<&str> = words
        .into_iter()
        .flatten()
        .filter(|word| *word != name)
        .collect();
    match words.is_empty() {
        true => String::new(),
        false => sanitize(&words.join(": ")),
    }
}

fn prompt(name: &str, field: &Value, root: &Value, is_needed: bool) -> String {
    let items = field
        .get("items")
        .filter(|_| allowed_types(root, field).contains(&JsonType::Array));
    let listed = choices(root, items.unwrap_or(field));
    let words: Vec<String> = listed.iter().map(|value| shown(value)).collect();
    let kind = match (words.is_empty(), items) {
        (true, _) => type_words(root, field),
        (false, None) => words.join("|"),
        (false, Some(_)) => format!("several of {}, with commas", words.join("|")),
    };
    let default = field.get("default").map(shown);
    let rest = match (default, is_needed) {
        (Some(default), _) => format!(" [{default}]"),
        (None, true) => String::new(),
        (None, false) => " [skip]".to_owned(),
    };
    sanitize(&format!("  {name} ({kind}){rest}: "))
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fill(schema: &Value, answers: &[&str]) -> (FormAnswer, Vec<String>) {
        let mut answers = answers.iter();
        let mut said = Vec::new();
        let answer = fill_form(
            schema,
            &mut |_| answers.next().map(|answer| (*answer).to_owned()),
            &mut |text| said.push(text.to_owned()),
        );
        (answer, said)
    }

    #[test]
    fn fields_are_typed_and_wrong_answers_asked_again() {
        let schema = json!({"type": "object", "required": ["name", "age"], "properties": {
            "name": {"type": "string", "minLength": 2},
            "age": {"type": "integer", "minimum": 0},
            "sure": {"type": "boolean"},
            "colour": {"type": "string", "enum": ["red", "blue"], "default": "blue"},
            "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
            "note": {"type": "string"}
        }});
        let answers = [
            "",
            "x",
            "Ann",
            "old",
            "99999999999999999999999",
            "7",
            "y",
            "",
            "a, b",
            "",
        ];
        let (answer, said) = fill(&schema, &answers);
        let expected =
            json!({"name": "Ann", "age": 7, "sure": true, "colour": "blue", "tags": ["a", "b"]});
        assert_eq!(
            answer,
            FormAnswer::Accept(expected.as_object().cloned().unwrap())
        );
        let complaints = said.iter().filter(|line| line.starts_with("  ")).count();
        assert_eq!(complaints, 4);
    }

    #[test]
    fn a_form_can_be_declined_and_cancelled() {
        let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
        assert_eq!(fill(&schema, &["!decline"]).0, FormAnswer::Decline);
        assert_eq!(fill(&schema, &["!cancel"]).0, FormAnswer::Cancel);
        assert_eq!(fill(&schema, &[]).0, FormAnswer::Cancel);
        let empty = json!({"type": "object", "properties": {}});
        assert_eq!(fill(&empty, &["n"]).0, FormAnswer::Decline);
        assert_eq!(fill(&empty, &[""]).0, FormAnswer::Accept(JsonObject::new()));
    }
}
