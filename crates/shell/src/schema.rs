//! JSON Schema as tools use it: which types a schema allows, whether a value obeys it, and the line that it breaks.

mod check;
mod excerpt;

use std::collections::HashSet;

use serde_json::Value;

pub(crate) use check::{SchemaViolation, violations};
pub(crate) use excerpt::excerpt;

/// References that are followed one after the other. A longer chain is a circle.
const MOST_REFERENCES: usize = 32;

/// Lists within lists that are described. Deeper ones are just lists: their schema may be a circle.
pub(crate) const MOST_LISTS: usize = 4;

/// The types that JSON Schema knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsonType {
    Null,
    Boolean,
    Integer,
    Number,
    String,
    Array,
    Object,
}

impl JsonType {
    const ALL: [JsonType; 7] = [
        JsonType::Null,
        JsonType::Boolean,
        JsonType::Integer,
        JsonType::Number,
        JsonType::String,
        JsonType::Array,
        JsonType::Object,
    ];

    /// Its word in schemas.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            JsonType::Null => "null",
            JsonType::Boolean => "boolean",
            JsonType::Integer => "integer",
            JsonType::Number => "number",
            JsonType::String => "string",
            JsonType::Array => "array",
            JsonType::Object => "object",
        }
    }

    fn from_word(word: &str) -> Option<JsonType> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    /// The narrowest type of a value.
    pub(crate) fn of(value: &Value) -> JsonType {
        match value {
            Value::Null => JsonType::Null,
            Value::Bool(_) => JsonType::Boolean,
            Value::Number(number) if is_whole(number) => JsonType::Integer,
            Value::Number(_) => JsonType::Number,
            Value::String(_) => JsonType::String,
            Value::Array(_) => JsonType::Array,
            Value::Object(_) => JsonType::Object,
        }
    }
}

/// `1.0` is an integer too, says JSON Schema.
fn is_whole(number: &serde_json::Number) -> bool {
    number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|value| value.fract() == 0.0)
}

/// The schema that `schema` stands for, with its path, when references within `root` are followed.
pub(crate) fn resolve<'a>(
    root: &'a Value,
    schema: &'a Value,
    path: &[String],
) -> (&'a Value, Vec<String>) {
    let (mut schema, mut path) = (schema, path.to_vec());
    for _ in 0..MOST_REFERENCES {
        let reference = schema.get("$ref").and_then(Value::as_str);
        let Some(pointer) = reference.and_then(|text| text.strip_prefix('#')) else {
            break;
        };
        let Some(found) = root.pointer(pointer) else {
            break;
        };
        schema = found;
        path = pointer.split('/').skip(1).map(unescape).collect();
    }
    (schema, path)
}

fn unescape(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

/// A path in a schema as a JSON pointer.
pub(crate) fn pointer(path: &[String]) -> String {
    path.iter()
        .map(|token| format!("/{}", token.replace('~', "~0").replace('/', "~1")))
        .collect()
}

/// The types that a schema allows, as far as it says. Empty: it does not say.
pub(crate) fn allowed_types(root: &Value, schema: &Value) -> Vec<JsonType> {
    let mut types = Vec::new();
    collect_types(root, schema, &mut types, &mut HashSet::new(), 0);
    types
}

fn collect_types(
    root: &Value,
    schema: &Value,
    types: &mut Vec<JsonType>,
    seen: &mut HashSet<*const Value>,
    depth: usize,
) {
    let (schema, _) = resolve(root, schema, &[]);
    if depth > MOST_REFERENCES || !seen.insert(std::ptr::from_ref(schema)) {
        return;
    }
    let words: Vec<&str> = match schema.get("type") {
        Some(Value::String(word)) => vec![word],
        Some(Value::Array(words)) => words.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let mut add = |kind: JsonType| {
        if !types.contains(&kind) {
            types.push(kind);
        }
    };
    words
        .iter()
        .filter_map(|word| JsonType::from_word(word))
        .for_each(&mut add);
    if !words.is_empty() {
        return;
    }
    let listed = schema.get("enum").and_then(Value::as_array);
    let values = listed.into_iter().flatten().chain(schema.get("const"));
    values.map(JsonType::of).for_each(&mut add);
    if schema.get("properties").is_some() {
        add(JsonType::Object);
    }
    if schema.get("items").is_some() {
        add(JsonType::Array);
    }
    for keyword in ["anyOf", "oneOf", "allOf"] {
        let parts = schema.get(keyword).and_then(Value::as_array);
        for part in parts.into_iter().flatten() {
            collect_types(root, part, types, seen, depth + 1);
        }
    }
}

/// The schema of a property, and its path, wherever in `schema` it is declared.
pub(crate) fn property<'a>(root: &'a Value, schema: &'a Value, name: &str) -> Option<&'a Value> {
    properties(root, schema)
        .into_iter()
        .find_map(|(key, property)| (key == name).then_some(property))
}

/// The properties that a schema declares, in order, those of `allOf` included.
pub(crate) fn properties<'a>(root: &'a Value, schema: &'a Value) -> Vec<(&'a str, &'a Value)> {
    let mut found = Vec::new();
    collect_properties(root, schema, &mut found, &mut HashSet::new(), 0);
    found
}

fn collect_properties<'a>(
    root: &'a Value,
    schema: &'a Value,
    found: &mut Vec<(&'a str, &'a Value)>,
    seen: &mut HashSet<*const Value>,
    depth: usize,
) {
    let (schema, _) = resolve(root, schema, &[]);
    if depth > MOST_REFERENCES || !seen.insert(std::ptr::from_ref(schema)) {
        return;
    }
    let declared = schema.get("properties").and_then(Value::as_object);
    for (name, property) in declared.into_iter().flatten() {
        if found.iter().all(|(known, _)| known != name) {
            found.push((name, property));
        }
    }
    let parts = schema.get("allOf").and_then(Value::as_array);
    for part in parts.into_iter().flatten() {
        collect_properties(root, part, found, seen, depth + 1);
    }
}

/// The names of required properties.
pub(crate) fn required(schema: &Value) -> Vec<&str> {
    let names = schema.get("required").and_then(Value::as_array);
    names
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

/// The values that a schema lists, if it does, also behind `anyOf` and `oneOf` with constants.
pub(crate) fn choices<'a>(root: &'a Value, schema: &'a Value) -> Vec<&'a Value> {
    let (schema, _) = resolve(root, schema, &[]);
    if let Some(listed) = schema.get("enum").and_then(Value::as_array) {
        return listed.iter().collect();
    }
    let parts = schema.get("oneOf").or_else(|| schema.get("anyOf"));
    let parts = parts.and_then(Value::as_array).into_iter().flatten();
    parts
        .filter_map(|part| resolve(root, part, &[]).0.get("const"))
        .collect()
}

/// The type of a schema in words: `integer`, `string or null`, `array of string`.
pub(crate) fn type_words(root: &Value, schema: &Value) -> String {
    nested_type_words(root, schema, 0)
}

fn nested_type_words(root: &Value, schema: &Value, lists: usize) -> String {
    let (resolved, _) = resolve(root, schema, &[]);
    let types = allowed_types(root, schema);
    let words: Vec<String> = types
        .iter()
        .map(|kind| match (kind, resolved.get("items")) {
            (JsonType::Array, Some(items)) if lists < MOST_LISTS => {
                let items = nested_type_words(root, items, lists + 1);
                match items.as_str() {
                    "any" => "array".to_owned(),
                    items => format!("array of {items}"),
                }
            }
            (kind, _) => kind.as_str().to_owned(),
        })
        .collect();
    match words.is_empty() {
        true => "any".to_owned(),
        false => words.join(" or "),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_of_itself_is_described() {
        let root =
            json!({"properties": {"x": {"type": "array", "items": {"$ref": "#/properties/x"}}}});
        let words = type_words(&root, &root["properties"]["x"]);
        assert!(words.starts_with("array of array"), "{words}");
    }

    #[test]
    fn a_schema_that_refers_to_itself_twice_is_read_once() {
        let twice = json!([{"$ref": "#"}, {"$ref": "#"}, {"type": "string"}]);
        let any = json!({"anyOf": twice, "oneOf": twice});
        assert_eq!(allowed_types(&any, &any), [JsonType::String]);
        let all = json!({"properties": {"a": {}}, "allOf": twice});
        assert_eq!(properties(&all, &all).len(), 1);
    }
}
