//! `info`: one definition for a person, with an example of its use.

use serde_json::Value;

use mcp_proxy_client::CapabilityType;
use mcp_proxy_wire::terminal_text::{sanitize, sanitize_lines};

use crate::catalog::CatalogItem;
use crate::schema::{
    self, JsonType, MOST_LISTS, allowed_types, choices, properties, required, resolve, type_words,
};
use crate::text::indented;

/// What a name stands behind that would be taken for a flag.
pub(crate) const NAME_FLAG: &str = "--name=";

/// How a command is typed: what stands before and after its own words.
#[derive(Clone, Debug, Default)]
pub struct CommandForm {
    /// `mcp-proxy ` on the command line.
    pub before: String,
    /// ` --url …` or ` -- command`.
    pub after: String,
}

impl CommandForm {
    fn line(&self, words: &str) -> String {
        format!("{}{words}{}", self.before, self.after)
    }
}

/// The definition in words.
pub(crate) fn details(kind: CapabilityType, item: &CatalogItem, form: &CommandForm) -> String {
    let mut text = sanitize(&item.name);
    if let Some(title) = item.title() {
        text.push_str(&format!("  ({})", sanitize(title)));
    }
    text.push('\n');
    let about = item.about();
    if !about.is_empty() {
        text.push_str(&format!("{}\n", indented(&sanitize_lines(about.trim()), 2)));
    }
    match kind {
        CapabilityType::Tool => tool(item, form, &mut text),
        CapabilityType::Resource => resource(item, form, &mut text),
        CapabilityType::Prompt => prompt(item, form, &mut text),
    }
    text
}

fn tool(item: &CatalogItem, form: &CommandForm, text: &mut String) {
    let schema = item.input_schema();
    let parameters = parameter_rows(&schema);
    match parameters.is_empty() {
        true => text.push_str("\nIt takes no parameters.\n"),
        false => {
            text.push_str("\nParameters:\n");
            push_parameters(&parameters, text);
        }
    }
    if let Some(output) = item.definition.get("outputSchema") {
        let rows = parameter_rows(output);
        if !rows.is_empty() {
            text.push_str("\nResult:\n");
            push_parameters(&rows, text);
        }
    }
    let hints = hints(item);
    if !hints.is_empty() {
        text.push_str(&format!("\nThe server says: {}.\n", hints.join(", ")));
    }
    let words = example_words(&schema);
    let line = form.line(&format!("call {}{words}", name_word(&item.name)));
    text.push_str(&format!("\nExample:\n  {}\n", sanitize(&line)));
}

fn resource(item: &CatalogItem, form: &CommandForm, text: &mut String) {
    let size = item.definition.get("size").and_then(Value::as_u64);
    let facts = [
        ("name", item.text("name").map(str::to_owned)),
        ("type", item.text("mimeType").map(str::to_owned)),
        ("size", size.map(|size| format!("{size} bytes"))),
    ];
    for (what, fact) in facts {
        if let Some(fact) = fact {
            text.push_str(&format!("  {what}: {}\n", sanitize(&fact)));
        }
    }
    if item.is_template() {
        text.push_str("\nA template: put values in place of {…}.\n");
    }
    let line = form.line(&format!("read {}", quoted(&item.name)));
    text.push_str(&format!("\nExample:\n  {}\n", sanitize(&line)));
}

fn prompt(item: &CatalogItem, form: &CommandForm, text: &mut String) {
    let arguments = item.prompt_arguments();
    let mut words = String::new();
    if arguments.is_empty() {
        text.push_str("\nIt takes no arguments.\n");
    } else {
        text.push_str("\nArguments:\n");
        let rows: Vec<ParameterRow> = arguments
            .iter()
            .map(|(name, about, is_required)| ParameterRow {
                name: (*name).to_owned(),
                kind: "string".to_owned(),
                use_: required_word(*is_required),
                about: (*about).to_owned(),
            })
            .collect();
        push_parameters(&rows, text);
        for (name, _, is_required) in &arguments {
            if *is_required {
                words.push_str(&format!(" {name}=…"));
            }
        }
    }
    let line = form.line(&format!("prompt {}{words}", name_word(&item.name)));
    text.push_str(&format!("\nExample:\n  {}\n", sanitize(&line)));
}

/// A parameter in words.
pub(crate) struct ParameterRow {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) use_: String,
    pub(crate) about: String,
}

fn required_word(is_required: bool) -> String {
    if is_required {
        "required".to_owned()
    } else {
        String::new()
    }
}

/// The parameters of a schema, the required ones first.
pub(crate) fn parameter_rows(schema: &Value) -> Vec<ParameterRow> {
    let (resolved, _) = resolve(schema, schema, &[]);
    let needed = required(resolved);
    let mut rows: Vec<(bool, ParameterRow)> = properties(schema, schema)
        .into_iter()
        .map(|(name, own)| {
            let is_needed = needed.contains(&name);
            (!is_needed, parameter_row(schema, name, own, is_needed))
        })
        .collect();
    rows.sort_by_key(|(is_optional, _)| *is_optional);
    rows.into_iter().map(|(_, row)| row).collect()
}

fn parameter_row(root: &Value, name: &str, own: &Value, is_needed: bool) -> ParameterRow {
    let (resolved, _) = resolve(root, own, &[]);
    let about = own
        .get("description")
        .or_else(|| resolved.get("description"));
    let mut about = about
        .and_then(Value::as_str)
        .unwrap_or_default()
        .trim()
        .to_owned();
    let listed: Vec<String> = choices(root, own).into_iter().map(plain).collect();
    if !listed.is_empty() {
        let gap = if about.is_empty() { "" } else { " " };
        about.push_str(&format!("{gap}One of: {}", listed.join(", ")));
    }
    let default = own.get("default").or_else(|| resolved.get("default"));
    let use_ = match default {
        Some(Value::Null) | None => required_word(is_needed),
        Some(default) => format!("default {}", plain(default)),
    };
    ParameterRow {
        name: name.to_owned(),
        kind: type_words(root, own),
        use_,
        about,
    }
}

fn push_parameters(rows: &[ParameterRow], text: &mut String) {
    let widest = |of: fn(&ParameterRow) -> &String| {
        let widths = rows.iter().map(|row| of(row).chars().count());
        widths.max().unwrap_or_default().min(30)
    };
    let (name, kind, use_) = (
        widest(|row| &row.name),
        widest(|row| &row.kind),
        widest(|row| &row.use_),
    );
    for row in rows {
        let line = format!(
            "  {:<name$}  {:<kind$}  {:<use_$}  {}",
            sanitize(&row.name),
            sanitize(&row.kind),
            sanitize(&row.use_),
            sanitize(&row.about.split_whitespace().collect::<Vec<_>>().join(" "))
        );
        text.push_str(&format!("{}\n", line.trim_end()));
    }
}

fn hints(item: &CatalogItem) -> Vec<&'static str> {
    let says = |key: &str| {
        let hint = item.definition.pointer(&format!("/annotations/{key}"));
        hint.and_then(Value::as_bool)
    };
    let read_only = says("readOnlyHint") == Some(true);
    [
        (read_only, "it changes nothing"),
        (
            !read_only && says("destructiveHint") == Some(true),
            "it may destroy data",
        ),
        (
            !read_only && says("idempotentHint") == Some(true),
            "calling it again changes nothing more",
        ),
        (says("openWorldHint") == Some(true), "it reaches outside"),
    ]
    .into_iter()
    .filter_map(|(holds, words)| holds.then_some(words))
    .collect()
}

/// ` a=1 b=…`: the required parameters, with values that fit.
fn example_words(schema: &Value) -> String {
    let (resolved, _) = resolve(schema, schema, &[]);
    let needed = required(resolved);
    let words = properties(schema, schema).into_iter();
    let words = words.filter(|(name, _)| needed.contains(name));
    words
        .map(|(name, own)| {
            let word = match example(schema, own, 0) {
                Value::String(text) => format!("{name}={text}"),
                value => match value.is_array() || value.is_object() {
                    true => format!("{name}:={value}"),
                    false => format!("{name}={value}"),
                },
            };
            format!(" {}", quoted(&word))
        })
        .collect()
}

fn example(root: &Value, own: &Value, lists: usize) -> Value {
    let (resolved, _) = resolve(root, own, &[]);
    let examples = resolved.get("examples").and_then(Value::as_array);
    if let Some(given) = examples
        .and_then(|examples| examples.first())
        .or_else(|| resolved.get("default"))
    {
        return given.clone();
    }
    if let Some(first) = choices(root, own).first() {
        return (*first).clone();
    }
    match schema::allowed_types(root, own).first() {
        Some(JsonType::Integer | JsonType::Number) => {
            let least = resolved.get("minimum").cloned();
            least.unwrap_or_else(|| Value::from(1))
        }
        Some(JsonType::Boolean) => Value::Bool(true),
        Some(JsonType::Array) => {
            let items = resolved
                .get("items")
                .filter(|items| lists < MOST_LISTS && !allowed_types(root, items).is_empty());
            let item = items.map(|items| example(root, items, lists + 1));
            Value::Array(item.into_iter().collect())
        }
        Some(JsonType::Object) => Value::Object(serde_json::Map::new()),
        Some(JsonType::Null | JsonType::String) | None => Value::String("…".to_owned()),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) if !text.is_empty() => text.clone(),
        value => value.to_string(),
    }
}

/// A name as it would be typed: with a flag, if it looks like one.
pub(crate) fn name_word(name: &str) -> String {
    match name.starts_with('-') {
        true => quoted(&format!("{NAME_FLAG}{name}")),
        false => quoted(name),
    }
}

/// A word as it would be typed.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain =
        |character: char| character.is_alphanumeric() || "_-./:=@%+,…".contains(character);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => {
            shlex::try_quote(word).map_or_else(|_| word.to_owned(), std::borrow::Cow::into_owned)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_example_of_a_list_of_itself_ends() {
        let schema = json!({"required": ["x"], "properties": {
            "x": {"type": "array", "items": {"$ref": "#/properties/x"}}
        }});
        assert!(example_words(&schema).contains("x:=[["));
    }
}
