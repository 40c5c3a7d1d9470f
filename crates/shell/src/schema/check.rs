//! Whether a value obeys a schema, and which keyword it breaks where.

#[cfg(test)]
mod tests;

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use serde_json::Value;

use super::{type_words, unescape};
use crate::near_names::did_you_mean;

/// Violations that are reported at once.
const MOST_VIOLATIONS: usize = 10;
/// Values of an `enum` that are shown.
const MOST_CHOICES: usize = 12;

/// A keyword that a value breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SchemaViolation {
    /// The part of the value: `size`, `items[2].name`; empty for all of it.
    pub(crate) place: String,
    /// What is wrong, in words.
    pub(crate) problem: String,
    /// The path of the broken keyword in the schema.
    pub(crate) path: Vec<String>,
}

/// Everything that is wrong with `value`, up to a limit. A schema that cannot be read is left to the server, which has the last
/// word.
pub(crate) fn violations(schema: &Value, value: &Value) -> Vec<SchemaViolation> {
    let options = jsonschema::options().should_validate_formats(false);
    let Ok(validator) = options.build(schema) else {
        return Vec::new();
    };
    let errors = validator.iter_errors(value).take(MOST_VIOLATIONS);
    let mut found: Vec<_> = errors
        .flat_map(|error| violations_of(schema, &error))
        .collect();
    found.truncate(MOST_VIOLATIONS);
    found
}

/// What an error of the library comes to. Its own words are used for keywords about which there is nothing more to say.
fn violations_of(root: &Value, error: &ValidationError<'_>) -> Vec<SchemaViolation> {
    let keyword = root.pointer(error.schema_path().as_str());
    let (member, problem) = match error.kind() {
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            if let Some(meant) = meant_alternative(error, context) {
                let all = meant.iter();
                return all.flat_map(|error| violations_of(root, error)).collect();
            }
            (None, no_alternative(root, keyword, error.instance()))
        }
        ValidationErrorKind::Type { .. } => {
            let words = match keyword {
                Some(Value::Array(words)) => words.iter().filter_map(Value::as_str).collect(),
                word => Vec::from_iter(word.and_then(Value::as_str)),
            };
            let words = words.join(" or ");
            (
                None,
                format!("expected {words}, got {}", shown(error.instance())),
            )
        }
        ValidationErrorKind::Enum { options } => (None, not_listed(options, error.instance())),
        ValidationErrorKind::Required { property } => (property.as_str(), "is required".to_owned()),
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let found = unexpected.iter().map(|name| SchemaViolation {
                place: place(error, Some(name)),
                problem: unknown_name(root, error, name),
                path: path(error),
            });
            return found.collect();
        }
        _ => (None, error.to_string()),
    };
    vec![SchemaViolation {
        place: place(error, member),
        problem,
        path: path(error),
    }]
}

/// If only one alternative is for values of this type, what is wrong there is what is wrong.
fn meant_alternative<'a>(
    error: &ValidationError<'_>,
    alternatives: &'a [Vec<ValidationError<'a>>],
) -> Option<&'a [ValidationError<'a>]> {
    let is_wrong_type = |inner: &ValidationError<'_>| {
        matches!(inner.kind(), ValidationErrorKind::Type { .. })
            && inner.instance_path() == error.instance_path()
    };
    let mut meant = alternatives
        .iter()
        .filter(|errors| !errors.iter().any(is_wrong_type));
    let only = meant.next()?;
    meant.next().is_none().then_some(only)
}

fn no_alternative(root: &Value, keyword: Option<&Value>, value: &Value) -> String {
    let parts = keyword.and_then(Value::as_array).into_iter().flatten();
    let words: Vec<String> = parts.map(|part| type_words(root, part)).collect();
    let has_all_types = !words.is_empty() && words.iter().all(|word| word != "any");
    match has_all_types {
        true => format!("expected {}, got {}", words.join(" or "), shown(value)),
        false => format!("{} fits none of the alternatives", shown(value)),
    }
}

fn not_listed(listed: &Value, value: &Value) -> String {
    let listed = listed.as_array().map_or(&[][..], Vec::as_slice);
    let texts = listed.iter().filter_map(Value::as_str);
    let near = value.as_str().and_then(|text| did_you_mean(text, texts));
    let near = near.map_or_else(String::new, |near| format!("; {near}"));
    let all = listed.iter().take(MOST_CHOICES).map(Value::to_string);
    let all = all.collect::<Vec<_>>().join(", ");
    let more = if listed.len() > MOST_CHOICES {
        ", …"
    } else {
        ""
    };
    format!("{} is not one of {all}{more}{near}", shown(value))
}

fn unknown_name(root: &Value, error: &ValidationError<'_>, name: &str) -> String {
    let pointer = error.schema_path().as_str();
    let declared = pointer
        .rsplit_once('/')
        .and_then(|(schema, _)| root.pointer(schema)?.get("properties")?.as_object());
    let known = declared.into_iter().flatten().map(|(known, _)| known);
    let free = known.filter(|known| error.instance().get(known.as_str()).is_none());
    match did_you_mean(name, free.map(String::as_str)) {
        Some(near) => format!("is not a known name; {near}"),
        None => "is not a known name".to_owned(),
    }
}

/// The part of the value that an error is about, or a member of it.
fn place(error: &ValidationError<'_>, member: Option<&str>) -> String {
    let mut place = String::new();
    let tokens = error.instance_path().as_str().split('/').skip(1);
    for token in tokens.map(unescape).chain(member.map(str::to_owned)) {
        match token.parse::<usize>() {
            Ok(index) => place.push_str(&format!("[{index}]")),
            Err(_) if place.is_empty() => place.push_str(&token),
            Err(_) => place.push_str(&format!(".{token}")),
        }
    }
    place
}

/// The path of the broken keyword in the schema.
fn path(error: &ValidationError<'_>) -> Vec<String> {
    let tokens = error.schema_path().as_str().split('/').skip(1);
    tokens.map(unescape).collect()
}

/// A value with its type, cut to a length that a line can have.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => {
            let cut: String = text.chars().take(40).collect();
            let more = if cut.len() < text.len() { "…" } else { "" };
            format!("the string {}{more}", Value::String(cut))
        }
        Value::Array(items) => format!("an array of {}", items.len()),
        Value::Object(_) => "an object".to_owned(),
    }
}
