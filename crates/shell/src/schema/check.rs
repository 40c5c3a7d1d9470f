//! Whether a value obeys a schema, and which keyword it breaks where.

use regex::Regex;
use serde_json::{Map, Value};

use super::{JsonType, is_whole, resolve};
use crate::near_names::did_you_mean;

/// Schemas within schemas. Deeper ones are not checked.
const MOST_LEVELS: usize = 64;
/// Violations that are reported at once.
const MOST_VIOLATIONS: usize = 10;

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

/// Everything that is wrong with `value`, up to a limit.
pub(crate) fn violations(schema: &Value, value: &Value) -> Vec<SchemaViolation> {
    let mut check = SchemaCheck {
        root: schema,
        found: Vec::new(),
    };
    check.value(schema, &[], value, "", 0);
    check.found.truncate(MOST_VIOLATIONS);
    check.found
}

struct SchemaCheck<'a> {
    root: &'a Value,
    found: Vec<SchemaViolation>,
}

impl<'a> SchemaCheck<'a> {
    fn report(&mut self, path: &[String], keyword: &str, place: &str, problem: String) {
        self.found.push(SchemaViolation {
            place: place.to_owned(),
            problem,
            path: joined(path, keyword),
        });
    }

    /// Whether a part of the schema accepts the value.
    fn accepts(&self, schema: &'a Value, value: &Value, level: usize) -> bool {
        self.inner(schema, &[], value, "", level).is_empty()
    }

    fn inner(
        &self,
        schema: &'a Value,
        path: &[String],
        value: &Value,
        place: &str,
        level: usize,
    ) -> Vec<SchemaViolation> {
        let mut check = SchemaCheck {
            root: self.root,
            found: Vec::new(),
        };
        check.value(schema, path, value, place, level);
        check.found
    }

    fn value(
        &mut self,
        schema: &'a Value,
        path: &[String],
        value: &Value,
        place: &str,
        level: usize,
    ) {
        if level > MOST_LEVELS || self.found.len() >= MOST_VIOLATIONS {
            return;
        }
        let (schema, path) = resolve(self.root, schema, path);
        let keywords = match schema {
            Value::Bool(false) => {
                let problem = "is not allowed".to_owned();
                self.found.push(SchemaViolation {
                    place: place.to_owned(),
                    problem,
                    path,
                });
                return;
            }
            Value::Object(keywords) => keywords,
            _ => return,
        };
        if !self.type_fits(keywords, &path, value, place) {
            // What else is wrong follows from it.
            return;
        }
        self.listed_values(keywords, &path, value, place);
        match value {
            Value::Number(number) => self.number(keywords, &path, number, place),
            Value::String(text) => self.string(keywords, &path, text, place),
            Value::Array(items) => self.array(keywords, &path, items, place, level),
            Value::Object(members) => self.object(keywords, &path, members, place, level),
            Value::Null | Value::Bool(_) => {}
        }
        self.combined(keywords, &path, value, place, level);
    }

    fn type_fits(
        &mut self,
        keywords: &Map<String, Value>,
        path: &[String],
        value: &Value,
        place: &str,
    ) -> bool {
        let words: Vec<&str> = match keywords.get("type") {
            Some(Value::String(word)) => vec![word],
            Some(Value::Array(words)) => words.iter().filter_map(Value::as_str).collect(),
            _ => return true,
        };
        let own = JsonType::of(value);
        let fits = words
            .iter()
            .any(|word| *word == own.as_str() || (*word == "number" && own == JsonType::Integer));
        if !fits {
            let problem = format!("expected {}, got {}", words.join(" or "), shown(value));
            self.report(path, "type", place, problem);
        }
        fits
    }

    fn listed_values(
        &mut self,
        keywords: &Map<String, Value>,
        path: &[String],
        value: &Value,
        place: &str,
    ) {
        if let Some(Value::Array(listed)) = keywords.get("enum")
            && !listed.contains(value)
        {
            let texts = listed.iter().filter_map(Value::as_str);
            let near = value.as_str().and_then(|text| did_you_mean(text, texts));
            let all: Vec<String> = listed.iter().take(12).map(Value::to_string).collect();
            let more = if listed.len() > 12 { ", …" } else { "" };
            let problem = format!(
                "{} is not one of {}{more}{}",
                shown(value),
                all.join(", "),
                near.map_or_else(String::new, |near| format!("; {near}"))
            );
            self.report(path, "enum", place, problem);
        }
        if let Some(only) = keywords.get("const")
            && only != value
        {
            self.report(path, "const", place, format!("must be {only}"));
        }
    }

    fn number(
        &mut self,
        keywords: &Map<String, Value>,
        path: &[String],
        number: &serde_json::Number,
        place: &str,
    ) {
        let value = number.as_f64().unwrap_or_default();
        let limits: [(&str, fn(f64, f64) -> bool, &str); 4] = [
            ("minimum", |value, limit| value >= limit, "at least"),
            ("maximum", |value, limit| value <= limit, "at most"),
            (
                "exclusiveMinimum",
                |value, limit| value > limit,
                "more than",
            ),
            (
                "exclusiveMaximum",
                |value, limit| value < limit,
                "less than",
            ),
        ];
        for (keyword, holds, words) in limits {
            if let Some(limit) = keywords.get(keyword).filter(|limit| limit.is_number())
                && !holds(value, limit.as_f64().unwrap_or_default())
            {
                self.report(path, keyword, place, format!("must be {words} {limit}"));
            }
        }
        let step = keywords.get("multipleOf").and_then(Value::as_f64);
        if let Some(step) = step.filter(|step| *step > 0.0) {
            let quotient = value / step;
            let is_multiple = match is_whole(number) && step.fract() == 0.0 {
                true => value % step == 0.0,
                false => (quotient - quotient.round()).abs() < 1e-9,
            };
            if !is_multiple {
                self.report(
                    path,
                    "multipleOf",
                    place,
                    format!("must be a multiple of {step}"),
                );
            }
        }
    }

    fn string(&mut self, keywords: &Map<String, Value>, path: &[String], text: &str, place: &str) {
        let length = text.chars().count() as u64;
        self.count(
            keywords,
            path,
            place,
            length,
            ["minLength", "maxLength"],
            "character",
        );
        let pattern = keywords.get("pattern").and_then(Value::as_str);
        // A pattern of another dialect (lookaround) is left to the server.
        if let Some(Ok(pattern)) = pattern.map(Regex::new)
            && !pattern.is_match(text)
        {
            let problem = format!("{} does not match the pattern {pattern}", shown_text(text));
            self.report(path, "pattern", place, problem);
        }
    }

    fn count(
        &mut self,
        keywords: &Map<String, Value>,
        path: &[String],
        place: &str,
        count: u64,
        [least, most]: [&str; 2],
        what: &str,
    ) {
        let plural = |limit: u64| if limit == 1 { "" } else { "s" };
        if let Some(limit) = keywords.get(least).and_then(Value::as_u64)
            && count < limit
        {
            let problem = format!(
                "needs at least {limit} {what}{}, has {count}",
                plural(limit)
            );
            self.report(path, least, place, problem);
        }
        if let Some(limit) = keywords.get(most).and_then(Value::as_u64)
            && count > limit
        {
            let problem = format!(
                "may have at most {limit} {what}{}, has {count}",
                plural(limit)
            );
            self.report(path, most, place, problem);
        }
    }

    fn array(
        &mut self,
        keywords: &'a Map<String, Value>,
        path: &[String],
        items: &[Value],
        place: &str,
        level: usize,
    ) {
        let length = items.len() as u64;
        self.count(
            keywords,
            path,
            place,
            length,
            ["minItems", "maxItems"],
            "item",
        );
        let is_repeated = |(at, item): (usize, &Value)| items[..at].contains(item);
        if keywords.get("uniqueItems") == Some(&Value::Bool(true))
            && let Some(at) = items.iter().enumerate().position(is_repeated)
        {
            let problem = format!("contains {} twice", shown(&items[at]));
            self.report(path, "uniqueItems", place, problem);
        }
        let first = keywords.get("prefixItems").and_then(Value::as_array);
        let first: &'a [Value] = first.map_or(&[], Vec::as_slice);
        for (at, item) in items.iter().enumerate() {
            let place = format!("{place}[{at}]");
            if let Some(schema) = first.get(at) {
                let path = joined(&joined(path, "prefixItems"), &at.to_string());
                self.value(schema, &path, item, &place, level + 1);
            } else if let Some(schema) = keywords.get("items") {
                self.value(schema, &joined(path, "items"), item, &place, level + 1);
            }
        }
    }

    fn object(
        &mut self,
        keywords: &'a Map<String, Value>,
        path: &[String],
        members: &Map<String, Value>,
        place: &str,
        level: usize,
    ) {
        let count = members.len() as u64;
        let limits = ["minProperties", "maxProperties"];
        self.count(keywords, path, place, count, limits, "member");
        let required = keywords.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            if !members.contains_key(name) {
                let at = member_place(place, name);
                self.report(path, "required", &at, "is required".to_owned());
            }
        }
        let dependent = keywords.get("dependentRequired").and_then(Value::as_object);
        for (name, needed) in dependent.into_iter().flatten() {
            let needed = needed.as_array().into_iter().flatten();
            for other in needed.filter_map(Value::as_str) {
                if members.contains_key(name) && !members.contains_key(other) {
                    let problem = format!("is required with {name}");
                    self.report(
                        path,
                        "dependentRequired",
                        &member_place(place, other),
                        problem,
                    );
                }
            }
        }
        let declared = keywords.get("properties").and_then(Value::as_object);
        let patterns = keywords.get("patternProperties").and_then(Value::as_object);
        let patterns: Vec<(&String, Option<Regex>, &'a Value)> = patterns
            .into_iter()
            .flatten()
            .map(|(text, schema)| (text, Regex::new(text).ok(), schema))
            .collect();
        for (name, member) in members {
            let at = member_place(place, name);
            let mut is_known = false;
            if let Some(schema) = declared.and_then(|declared| declared.get(name)) {
                is_known = true;
                let path = joined(&joined(path, "properties"), name);
                self.value(schema, &path, member, &at, level + 1);
            }
            for (text, pattern, schema) in &patterns {
                // A pattern that cannot be read may match.
                let matches = pattern
                    .as_ref()
                    .is_none_or(|pattern| pattern.is_match(name));
                is_known |= matches;
                if matches && pattern.is_some() {
                    let path = joined(&joined(path, "patternProperties"), text);
                    self.value(schema, &path, member, &at, level + 1);
                }
            }
            match keywords.get("additionalProperties") {
                Some(Value::Bool(false)) if !is_known => {
                    let names = declared
                        .into_iter()
                        .flatten()
                        .map(|(name, _)| name.as_str());
                    let names: Vec<&str> =
                        names.filter(|name| !members.contains_key(*name)).collect();
                    let near = did_you_mean(name, names.iter().copied());
                    let near = near.map_or_else(String::new, |near| format!("; {near}"));
                    let problem = format!("is not a known name{near}");
                    self.report(path, "additionalProperties", &at, problem);
                }
                Some(schema @ Value::Object(_)) if !is_known => {
                    let path = joined(path, "additionalProperties");
                    self.value(schema, &path, member, &at, level + 1);
                }
                _ => {}
            }
        }
    }

    fn combined(
        &mut self,
        keywords: &'a Map<String, Value>,
        path: &[String],
        value: &Value,
        place: &str,
        level: usize,
    ) {
        let parts = |keyword: &str| keywords.get(keyword).and_then(Value::as_array);
        for (at, part) in parts("allOf").into_iter().flatten().enumerate() {
            let path = joined(&joined(path, "allOf"), &at.to_string());
            self.value(part, &path, value, place, level + 1);
        }
        for keyword in ["anyOf", "oneOf"] {
            let Some(parts) = parts(keyword) else {
                continue;
            };
            let accepting = parts
                .iter()
                .filter(|part| self.accepts(part, value, level + 1))
                .count();
            if accepting == 0 {
                self.no_part_accepts(parts, keyword, path, value, place, level);
            } else if keyword == "oneOf" && accepting > 1 {
                let problem = format!("{} fits {accepting} alternatives, not one", shown(value));
                self.report(path, keyword, place, problem);
            }
        }
        if let Some(part) = keywords.get("not")
            && self.accepts(part, value, level + 1)
        {
            self.report(path, "not", place, format!("{} is excluded", shown(value)));
        }
        if let Some(condition) = keywords.get("if") {
            let branch = match self.accepts(condition, value, level + 1) {
                true => "then",
                false => "else",
            };
            if let Some(part) = keywords.get(branch) {
                self.value(part, &joined(path, branch), value, place, level + 1);
            }
        }
    }

    /// If only one alternative is for values of this type, what is wrong there is what is wrong.
    fn no_part_accepts(
        &mut self,
        parts: &'a [Value],
        keyword: &str,
        path: &[String],
        value: &Value,
        place: &str,
        level: usize,
    ) {
        let mut meant = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            let part_path = joined(&joined(path, keyword), &at.to_string());
            let (_, resolved) = resolve(self.root, part, &part_path);
            let found = self.inner(part, &part_path, value, place, level + 1);
            let wrong_type = joined(&resolved, "type");
            if found.iter().all(|violation| violation.path != wrong_type) {
                meant.push(found);
            }
        }
        match meant.len() {
            1 => self.found.extend(meant.into_iter().flatten()),
            _ => {
                let words: Vec<String> = parts
                    .iter()
                    .map(|part| super::type_words(self.root, part))
                    .collect();
                let problem = match words.iter().any(|word| word == "any") || !meant.is_empty() {
                    true => format!("{} fits none of the alternatives", shown(value)),
                    false => format!("expected {}, got {}", words.join(" or "), shown(value)),
                };
                self.report(path, keyword, place, problem);
            }
        }
    }
}

fn joined(path: &[String], token: &str) -> Vec<String> {
    let mut path = path.to_vec();
    path.push(token.to_owned());
    path
}

fn member_place(place: &str, name: &str) -> String {
    match place.is_empty() {
        true => name.to_owned(),
        false => format!("{place}.{name}"),
    }
}

/// A value with its type, cut to a length that a line can have.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => format!("the string {}", shown_text(text)),
        Value::Array(items) => format!("an array of {}", items.len()),
        Value::Object(_) => "an object".to_owned(),
    }
}

fn shown_text(text: &str) -> String {
    let cut: String = text.chars().take(40).collect();
    let more = if cut.len() < text.len() { "…" } else { "" };
    format!("{}{more}", Value::String(cut))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_keyword_is_checked() {
        let odd = json!({"type": "integer", "multipleOf": 2});
        for (schema, good, bad) in [
            (json!({"type": ["string", "null"]}), json!(null), json!(1)),
            (json!({"type": "number"}), json!(1), json!("1")),
            (json!({"type": "integer"}), json!(2.0), json!(2.5)),
            (json!({"enum": [1, "a"]}), json!("a"), json!("b")),
            (json!({"const": {"a": 1}}), json!({"a": 1}), json!({})),
            (json!({"minimum": 1.5}), json!(1.5), json!(1)),
            (json!({"maximum": 2}), json!(2), json!(3)),
            (json!({"exclusiveMinimum": 1}), json!(1.1), json!(1)),
            (json!({"exclusiveMaximum": 1}), json!(0), json!(1)),
            (odd, json!(4), json!(5)),
            (json!({"multipleOf": 0.1}), json!(0.3), json!(0.35)),
            (json!({"minLength": 2}), json!("né"), json!("n")),
            (json!({"maxLength": 2}), json!("né"), json!("abc")),
            (json!({"pattern": "^a+$"}), json!("aa"), json!("ab")),
            (json!({"minItems": 1}), json!([1]), json!([])),
            (json!({"maxItems": 1}), json!([1]), json!([1, 2])),
            (json!({"uniqueItems": true}), json!([1, 2]), json!([1, 1])),
            (
                json!({"items": {"type": "string"}}),
                json!(["a"]),
                json!(["a", 1]),
            ),
            (
                json!({"prefixItems": [{"type": "string"}], "items": false}),
                json!(["a"]),
                json!(["a", 1]),
            ),
            (json!({"required": ["a"]}), json!({"a": 1}), json!({})),
            (
                json!({"properties": {"a": {"type": "string"}}}),
                json!({"b": 1}),
                json!({"a": 1}),
            ),
            (
                json!({"properties": {"a": false}}),
                json!({}),
                json!({"a": 1}),
            ),
            (
                json!({"patternProperties": {"^x": {"type": "string"}}}),
                json!({"y": 1}),
                json!({"x1": 1}),
            ),
            (
                json!({"additionalProperties": false, "patternProperties": {"^x": {}}}),
                json!({"x": 1}),
                json!({"y": 1}),
            ),
            (
                json!({"additionalProperties": {"type": "string"}}),
                json!({"a": "b"}),
                json!({"a": 1}),
            ),
            (json!({"minProperties": 1}), json!({"a": 1}), json!({})),
            (
                json!({"maxProperties": 1}),
                json!({"a": 1}),
                json!({"a": 1, "b": 2}),
            ),
            (
                json!({"dependentRequired": {"a": ["b"]}}),
                json!({"b": 1}),
                json!({"a": 1}),
            ),
            (
                json!({"allOf": [{"minimum": 1}, {"maximum": 2}]}),
                json!(2),
                json!(3),
            ),
            (
                json!({"anyOf": [{"type": "string"}, {"minimum": 3}]}),
                json!(4),
                json!(2),
            ),
            (
                json!({"oneOf": [{"minimum": 1}, {"minimum": 3}]}),
                json!(2),
                json!(4),
            ),
            (json!({"not": {"type": "string"}}), json!(1), json!("a")),
            (
                json!({"if": {"minimum": 5}, "then": {"multipleOf": 5}, "else": {"maximum": 3}}),
                json!(10),
                json!(6),
            ),
            (
                json!({"if": {"minimum": 5}, "then": {"multipleOf": 5}, "else": {"maximum": 3}}),
                json!(3),
                json!(4),
            ),
            (
                json!({"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}}),
                json!(1),
                json!("a"),
            ),
        ] {
            assert_eq!(violations(&schema, &good), [], "{schema} {good}");
            let found = violations(&schema, &bad);
            assert!(!found.is_empty(), "{schema} {bad}");
            // The keyword that is named exists, so that its line can be shown.
            let place = super::super::pointer(&found[0].path);
            assert!(schema.pointer(&place).is_some(), "{schema}: {place}");
        }
    }

    #[test]
    fn what_is_not_understood_is_left_to_the_server() {
        for schema in [
            json!(true),
            json!({"type": 3}),
            json!({"pattern": "(?<!a)b"}),
            json!({"$ref": "https://example.com/schema"}),
            json!({"format": "email", "contentEncoding": "base64"}),
        ] {
            assert_eq!(violations(&schema, &json!("x")), [], "{schema}");
        }
    }

    #[test]
    fn a_deep_value_ends_the_check_and_not_the_program() {
        let tree = json!({"items": {"$ref": "#"}});
        let deep = (0..200).fold(json!([]), |inner, _| json!([inner]));
        assert_eq!(violations(&tree, &deep), []);
    }
}
