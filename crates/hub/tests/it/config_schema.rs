//! `docs/config.schema.json` accepts and refuses what the parser accepts and refuses.
//!
//! The schema uses few keywords, so a checker of a page does, and it fails on keywords that it does not know.

use serde_json::{Map, Value};

use crate::config::{ALL_OPTIONS, try_read};
use crate::config_clients::{CLAUDE_CODE, CLAUDE_DESKTOP, CURSOR, VS_CODE, WINDSURF};
use crate::config_errors::{BROKEN_ENTRIES, INVALID_FILES};

/// Mistakes that no schema sees: the text is not JSON, or what is wrong is inside a string or between two values.
const BEYOND_SCHEMA: &[&str] = &[
    "same server twice",
    "same server in both tables",
    "same table twice",
    "word for expose",
    "name of a tool",
    "option twice",
    "variable of the hub",
    "duration",
    "no duration",
    "very long",
    "both names of an option",
    "same new name",
    "root of another machine",
    "both",
    "two URLs",
    "key twice",
    "variable's name",
    "NUL",
    "not a URL",
    "other scheme",
    "header's name",
    "header's value",
    "type of a command",
    "type of a URL",
    "missing variable",
    "missing variable in an option",
    "input",
    "workspace",
    "file of an editor",
    "shell syntax",
    "variable not closed",
    "nested default",
    "built-in with a command",
    "files that sees nothing",
    "write without files",
    "environment of a URL",
];

struct SchemaChecker {
    root: Value,
}

impl SchemaChecker {
    fn new() -> SchemaChecker {
        let text = include_str!("../../../../docs/config.schema.json");
        SchemaChecker {
            root: serde_json::from_str(text).unwrap(),
        }
    }

    fn accepts(&self, value: &Value) -> bool {
        self.fits(&self.root, value)
    }

    fn fits(&self, schema: &Value, value: &Value) -> bool {
        let Value::Object(keywords) = schema else {
            return schema.as_bool().unwrap();
        };
        keywords
            .iter()
            .all(|(keyword, wanted)| self.keyword_fits(keyword, wanted, keywords, value))
    }

    fn keyword_fits(
        &self,
        keyword: &str,
        wanted: &Value,
        schema: &Map<String, Value>,
        value: &Value,
    ) -> bool {
        match keyword {
            "$schema" | "$defs" | "title" | "description" | "pattern" => true,
            "$ref" => {
                let pointer = wanted.as_str().unwrap().strip_prefix('#').unwrap();
                self.fits(self.root.pointer(pointer).unwrap(), value)
            }
            "type" => match wanted {
                Value::Array(types) => types.iter().any(|wanted| is_type(wanted, value)),
                wanted => is_type(wanted, value),
            },
            "enum" => wanted.as_array().unwrap().contains(value),
            "const" => wanted == value,
            "anyOf" => wanted
                .as_array()
                .unwrap()
                .iter()
                .any(|schema| self.fits(schema, value)),
            "required" => value.as_object().is_none_or(|object| {
                let mut keys = wanted.as_array().unwrap().iter();
                keys.all(|key| object.contains_key(key.as_str().unwrap()))
            }),
            "properties" => value.as_object().is_none_or(|object| {
                let mut known = object
                    .iter()
                    .filter_map(|(key, value)| Some((wanted.get(key)?, value)));
                known.all(|(schema, value)| self.fits(schema, value))
            }),
            "additionalProperties" => value.as_object().is_none_or(|object| {
                let known = schema.get("properties");
                let is_known = |key: &str| known.is_some_and(|known| known.get(key).is_some());
                let mut others = object.iter().filter(|(key, _)| !is_known(key));
                others.all(|(_, value)| self.fits(wanted, value))
            }),
            "items" => value
                .as_array()
                .is_none_or(|items| items.iter().all(|item| self.fits(wanted, item))),
            "minItems" => value
                .as_array()
                .is_none_or(|items| items.len() as u64 >= wanted.as_u64().unwrap()),
            "minLength" => value
                .as_str()
                .is_none_or(|text| text.chars().count() as u64 >= wanted.as_u64().unwrap()),
            "maxLength" => value
                .as_str()
                .is_none_or(|text| text.chars().count() as u64 <= wanted.as_u64().unwrap()),
            "minimum" => value
                .as_f64()
                .is_none_or(|number| number >= wanted.as_f64().unwrap()),
            "maximum" => value
                .as_f64()
                .is_none_or(|number| number <= wanted.as_f64().unwrap()),
            other => panic!("the checker does not know `{other}`"),
        }
    }
}

fn is_type(wanted: &Value, value: &Value) -> bool {
    match wanted.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("the checker does not know the type `{other}`"),
    }
}

/// JSON without the comments and trailing commas of the examples.
fn plain_json(text: &str) -> Option<Value> {
    let lines = text
        .lines()
        .filter(|line| !line.trim().starts_with("//") && !line.trim().starts_with("/*"));
    let mut plain: String = lines.map(str::trim).collect();
    for (with, without) in [(",}", "}"), (",]", "]"), (", }", "}"), (", ]", "]")] {
        plain = plain.replace(with, without);
    }
    serde_json::from_str(&plain).ok()
}

#[test]
fn files_that_work_are_accepted() {
    let checker = SchemaChecker::new();
    for text in [
        CLAUDE_DESKTOP,
        CLAUDE_CODE,
        CURSOR,
        VS_CODE,
        WINDSURF,
        ALL_OPTIONS,
        r#"{"mcpServers": {}}"#,
    ] {
        assert!(try_read(text).is_ok());
        assert!(checker.accepts(&plain_json(text).unwrap()), "{text}");
    }
}

#[test]
fn files_that_do_not_work_are_refused() {
    let checker = SchemaChecker::new();
    let entries = BROKEN_ENTRIES
        .iter()
        .map(|(case, entry)| (*case, format!(r#"{{"mcpServers": {{"a": {entry}}}}}"#)));
    let files = INVALID_FILES
        .iter()
        .map(|(case, text)| (*case, (*text).to_owned()));
    for (case, text) in files.chain(entries) {
        let Some(value) = plain_json(&text) else {
            continue;
        };
        assert_eq!(
            checker.accepts(&value),
            BEYOND_SCHEMA.contains(&case),
            "{case}"
        );
    }
}
