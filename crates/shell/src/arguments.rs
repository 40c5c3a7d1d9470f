//! The arguments of a call: `key=value` words typed by the tool's schema, or JSON as it is.

use std::path::Path;

use mcp_proxy_client::rmcp::model::JsonObject;
use serde_json::{Map, Value};

use crate::exact_numbers::refuse_changed_numbers;
use crate::failure::CommandFailure;
use crate::near_names::did_you_mean;
use crate::schema::{
    self, JsonType, SchemaViolation, allowed_types, choices, excerpt, property, resolve, violations,
};

/// The largest file that an argument is read from.
const FILE_BYTES: u64 = 64 << 20;

/// One `key=value` word.
struct ArgumentWord<'a> {
    name: &'a str,
    value: WordValue<'a>,
}

/// How the value of a word is written.
#[derive(Clone, Copy)]
enum WordValue<'a> {
    /// `key=text`: the schema says what it is.
    Typed(&'a str),
    /// `key:=json`.
    Json(&'a str),
    /// `key=@file`: the text of a file.
    TextFile(&'a str),
    /// `key:=@file`: the JSON of a file.
    JsonFile(&'a str),
}

/// What words mean as the arguments of something that takes `schema`.
pub(crate) fn typed_arguments(
    words: &[&str],
    schema: &Value,
) -> Result<JsonObject, CommandFailure> {
    let mut arguments = Map::new();
    for word in words {
        let parsed = parse_word(word)?;
        let name = parsed.name;
        let declared = property(schema, schema, name);
        if declared.is_none() {
            refuse_unknown(name, schema, &arguments)?;
        }
        let any = Value::Bool(true);
        let own = declared.unwrap_or(&any);
        let wants_list = allowed_types(schema, own).contains(&JsonType::Array);
        let (value, is_whole_list) = match parsed.value {
            WordValue::Typed(text) => {
                let (value, is_whole_list) = match wants_list {
                    true => list_part(schema, own, text),
                    false => (typed(schema, own, text), false),
                };
                if !value.is_string() {
                    refuse_changed_numbers(text, &format!("argument `{name}`"))?;
                }
                (value, is_whole_list)
            }
            WordValue::TextFile(path) => (Value::String(read_file(path, name)?), false),
            WordValue::Json(text) => (json(text, name)?, true),
            WordValue::JsonFile(path) => (json(&read_file(path, name)?, name)?, true),
        };
        match arguments.get_mut(name) {
            Some(Value::Array(items)) if wants_list && !is_whole_list => items.push(value),
            Some(_) => {
                let hint = match wants_list {
                    true => "a list is given whole once, or item by item",
                    false => "it takes one value",
                };
                let text = format!("argument `{name}` is given twice; {hint}");
                return Err(CommandFailure::Mistake(text));
            }
            None if wants_list && !is_whole_list => {
                arguments.insert(name.to_owned(), Value::Array(vec![value]));
            }
            None => {
                arguments.insert(name.to_owned(), value);
            }
        }
    }
    Ok(arguments)
}

/// The arguments of a prompt: all of them are texts.
pub(crate) fn text_arguments(words: &[&str], names: &[&str]) -> Result<JsonObject, CommandFailure> {
    let mut arguments = Map::new();
    for word in words {
        let parsed = parse_word(word)?;
        let name = parsed.name;
        if !names.contains(&name) {
            let near = did_you_mean(name, names.iter().copied());
            return Err(unknown_argument(name, near, names));
        }
        let text = match parsed.value {
            WordValue::Typed(text) | WordValue::Json(text) => text.to_owned(),
            WordValue::TextFile(path) | WordValue::JsonFile(path) => read_file(path, name)?,
        };
        if arguments
            .insert(name.to_owned(), Value::String(text))
            .is_some()
        {
            let text = format!("argument `{name}` is given twice");
            return Err(CommandFailure::Mistake(text));
        }
    }
    Ok(arguments)
}

/// A JSON object, as `--args`, a file or stdin give it.
pub(crate) fn json_arguments(text: &str, source: &str) -> Result<JsonObject, CommandFailure> {
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(arguments)) => {
            refuse_changed_numbers(text, source)?;
            Ok(arguments)
        }
        Ok(_) => Err(CommandFailure::Mistake(format!(
            "{source}: the arguments must be a JSON object"
        ))),
        Err(error) => Err(CommandFailure::Mistake(format!(
            "{source}: this is not JSON: {error}"
        ))),
    }
}

/// Refuses arguments that break the schema, with the lines that they break.
pub(crate) fn check_arguments(
    tool: &str,
    schema: &Value,
    arguments: &JsonObject,
) -> Result<(), CommandFailure> {
    let found = violations(schema, &Value::Object(arguments.clone()));
    if found.is_empty() {
        return Ok(());
    }
    let texts: Vec<String> = found
        .iter()
        .map(|violation| {
            format!(
                "{}\n{}",
                sentence(violation),
                excerpt(schema, &violation.path)
            )
        })
        .collect();
    Err(CommandFailure::Mistake(format!(
        "the arguments do not fit {tool}; nothing was sent\n{}",
        texts.join("\n")
    )))
}

fn sentence(violation: &SchemaViolation) -> String {
    match violation.place.as_str() {
        "" => format!("arguments: {}", violation.problem),
        place => format!("argument `{place}`: {}", violation.problem),
    }
}

fn parse_word(word: &str) -> Result<ArgumentWord<'_>, CommandFailure> {
    let Some((name, text)) = word
        .split_once('=')
        .filter(|(name, _)| !matches!(*name, "" | ":"))
    else {
        let hint = match word {
            word if word.starts_with('{') => "JSON is given with --args",
            word if word.contains("://") => "the URL of a server is given with --url",
            _ => "write key=value, key:=json or key=@file",
        };
        let text = format!("`{word}` is not an argument; {hint}");
        return Err(CommandFailure::Mistake(text));
    };
    let (name, is_json) = match name.strip_suffix(':') {
        Some(name) => (name, true),
        None => (name, false),
    };
    let value = match (text.strip_prefix('@'), is_json) {
        // `@@` is how a text begins with `@`.
        (Some(rest), false) if rest.starts_with('@') => WordValue::Typed(rest),
        (Some(path), false) => WordValue::TextFile(path),
        (Some(path), true) => WordValue::JsonFile(path),
        (None, false) => WordValue::Typed(text),
        (None, true) => WordValue::Json(text),
    };
    Ok(ArgumentWord { name, value })
}

/// A misspelt name would be ignored by most servers. A schema that wants other names says so.
fn refuse_unknown(name: &str, schema: &Value, given: &JsonObject) -> Result<(), CommandFailure> {
    let (resolved, _) = resolve(schema, schema, &[]);
    let takes_more = match resolved.get("additionalProperties") {
        Some(Value::Bool(allowed)) => *allowed,
        Some(_) => true,
        None => resolved.get("patternProperties").is_some(),
    };
    let known: Vec<&str> = schema::properties(schema, schema)
        .into_iter()
        .map(|(known, _)| known)
        .collect();
    // Without any property a schema says nothing about names.
    if takes_more || (known.is_empty() && resolved.get("properties").is_none()) {
        return Ok(());
    }
    let free = known
        .iter()
        .copied()
        .filter(|known| !given.contains_key(*known));
    Err(unknown_argument(name, did_you_mean(name, free), &known))
}

fn unknown_argument(name: &str, near: Option<String>, known: &[&str]) -> CommandFailure {
    let hint = match (near, known) {
        (Some(near), _) => near,
        (None, []) => "it takes none".to_owned(),
        (None, known) => format!("it takes {}", known.join(", ")),
    };
    CommandFailure::Mistake(format!("there is no argument `{name}`; {hint}"))
}

/// A text as the value that the schema wants. If it wants none of what the text could be, it stays a text, and the check says
/// what is wrong.
pub(crate) fn typed(root: &Value, schema: &Value, text: &str) -> Value {
    let as_text = || Value::String(text.to_owned());
    let parsed = serde_json::from_str::<Value>(text).ok();
    let listed = choices(root, schema);
    if listed.iter().any(|value| value.as_str() == Some(text)) {
        return as_text();
    }
    let types = allowed_types(root, schema);
    let Some(parsed) = parsed else {
        return as_text();
    };
    let parsed = match types.contains(&JsonType::Integer) {
        true => whole_number(parsed),
        false => parsed,
    };
    let own = JsonType::of(&parsed);
    let fits = match own {
        JsonType::String => false,
        JsonType::Integer => {
            types.contains(&JsonType::Integer) || types.contains(&JsonType::Number)
        }
        own => types.contains(&own),
    };
    // A schema that says nothing about types takes what JSON would be; `"3"` in quotes stays a text.
    match fits || (types.is_empty() && own != JsonType::String) {
        true => parsed,
        false => as_text(),
    }
}

/// `1e3` and `1.0` as the integers that they are: many servers take no other spelling for an integer.
fn whole_number(value: Value) -> Value {
    const LARGEST: f64 = 9_007_199_254_740_992.0;
    match value.as_f64().filter(|_| value.is_f64()) {
        Some(number) if number.fract() == 0.0 && number.abs() <= LARGEST => {
            Value::from(number as i64)
        }
        _ => value,
    }
}

/// A whole list if the text is one, otherwise an item of it.
fn list_part(root: &Value, schema: &Value, text: &str) -> (Value, bool) {
    if text.starts_with('[')
        && let Ok(list @ Value::Array(_)) = serde_json::from_str(text)
    {
        return (list, true);
    }
    let types = allowed_types(root, schema);
    if types.contains(&JsonType::Null) && text == "null" {
        return (Value::Null, true);
    }
    let (resolved, _) = resolve(root, schema, &[]);
    let any = Value::Bool(true);
    let items = resolved.get("items").or_else(|| {
        let parts = resolved.get("anyOf").or_else(|| resolved.get("oneOf"));
        let mut parts = parts.and_then(Value::as_array).into_iter().flatten();
        parts.find_map(|part| resolve(root, part, &[]).0.get("items"))
    });
    (typed(root, items.unwrap_or(&any), text), false)
}

fn json(text: &str, name: &str) -> Result<Value, CommandFailure> {
    let value = serde_json::from_str(text).map_err(|error| {
        CommandFailure::Mistake(format!("argument `{name}`: this is not JSON: {error}"))
    })?;
    refuse_changed_numbers(text, &format!("argument `{name}`"))?;
    Ok(value)
}

fn read_file(path: &str, name: &str) -> Result<String, CommandFailure> {
    read_text(Path::new(path))
        .map_err(|why| CommandFailure::Mistake(format!("argument `{name}`: {why}")))
}

/// The text of a file of a reasonable size.
pub(crate) fn read_text(path: &Path) -> Result<String, String> {
    use std::io::Read as _;

    let cannot = |error: std::io::Error| format!("cannot read {}: {error}", path.display());
    let file = std::fs::File::open(path).map_err(cannot)?;
    let mut text = String::new();
    file.take(FILE_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(cannot)?;
    match text.len() as u64 > FILE_BYTES {
        true => Err(format!(
            "{} is larger than {} MiB",
            path.display(),
            FILE_BYTES >> 20
        )),
        false => Ok(text),
    }
}

#[cfg(test)]
mod tests;
