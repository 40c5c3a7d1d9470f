//! Whether a value obeys a schema, and which keyword it breaks where.

mod alternatives;
mod containers;
#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use regex::Regex;
use serde_json::{Map, Value};

use super::{JsonType, is_whole, resolve};
use crate::near_names::did_you_mean;

/// Schemas within schemas. Deeper ones are not checked.
const MOST_LEVELS: usize = 64;
/// Schemas that are applied to values in one check. What is left after them is not checked: alternatives that refer to
/// themselves multiply.
const MOST_STEPS: usize = 100_000;
/// Violations that are reported at once.
const MOST_VIOLATIONS: usize = 10;

/// The keywords that are checked, and those that accept every value.
const KNOWN_KEYWORDS: [&str; 45] = [
    "type",
    "enum",
    "const",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "uniqueItems",
    "prefixItems",
    "items",
    "minProperties",
    "maxProperties",
    "required",
    "dependentRequired",
    "properties",
    "patternProperties",
    "additionalProperties",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "$schema",
    "$id",
    "$anchor",
    "$comment",
    "$defs",
    "definitions",
    "title",
    "description",
    "default",
    "example",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "discriminator",
];

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
    let shared = SharedState {
        steps: Cell::new(MOST_STEPS),
        patterns: RefCell::default(),
    };
    let mut check = SchemaCheck {
        root: schema,
        shared: &shared,
        found: Vec::new(),
        is_partial: false,
    };
    check.value(schema, &[], value, "", 0);
    check.found.truncate(MOST_VIOLATIONS);
    check.found
}

/// A keyword, whether a number obeys it, and what it asks for in words.
type NumberLimit = (&'static str, fn(f64, f64) -> bool, &'static str);

/// What a check shares with the checks of alternatives within it.
struct SharedState {
    /// What is left of the steps.
    steps: Cell<usize>,
    /// The patterns so far: compiling one takes far longer than a step. `None`: it is of another dialect (lookaround).
    patterns: RefCell<HashMap<String, Option<Regex>>>,
}

impl SharedState {
    /// Takes a step, if one is left.
    fn step(&self) -> bool {
        let left = self.steps.get();
        self.steps.set(left.saturating_sub(1));
        left > 0
    }

    fn pattern(&self, text: &str) -> Option<Regex> {
        if let Some(known) = self.patterns.borrow().get(text) {
            return known.clone();
        }
        let pattern = Regex::new(text).ok();
        let mut patterns = self.patterns.borrow_mut();
        patterns.insert(text.to_owned(), pattern.clone());
        pattern
    }
}

struct SchemaCheck<'a> {
    root: &'a Value,
    shared: &'a SharedState,
    found: Vec<SchemaViolation>,
    /// Something was not checked, so that no violation does not mean that the value is accepted.
    is_partial: bool,
}

/// What a part of a schema says of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PartVerdict {
    Accepts,
    Refuses,
    /// It has something that is not checked here.
    Unknown,
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
    fn verdict(&self, schema: &'a Value, value: &Value, level: usize) -> PartVerdict {
        let check = self.inner(schema, &[], value, "", level);
        match (check.found.is_empty(), check.is_partial) {
            (false, _) => PartVerdict::Refuses,
            (true, true) => PartVerdict::Unknown,
            (true, false) => PartVerdict::Accepts,
        }
    }

    fn inner(
        &self,
        schema: &'a Value,
        path: &[String],
        value: &Value,
        place: &str,
        level: usize,
    ) -> SchemaCheck<'a> {
        let mut check = SchemaCheck {
            root: self.root,
            shared: self.shared,
            found: Vec::new(),
            is_partial: false,
        };
        check.value(schema, path, value, place, level);
        check
    }

    fn value(
        &mut self,
        schema: &'a Value,
        path: &[String],
        value: &Value,
        place: &str,
        level: usize,
    ) {
        if level > MOST_LEVELS || self.found.len() >= MOST_VIOLATIONS || !self.shared.step() {
            self.is_partial = true;
            return;
        }
        if schema.get("$ref").is_some() && schema.as_object().is_some_and(|all| all.len() > 1) {
            // What stands beside a reference is not checked.
            self.is_partial = true;
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
            Value::Bool(true) => return,
            Value::Object(keywords) => keywords,
            _ => {
                self.is_partial = true;
                return;
            }
        };
        self.is_partial |= keywords
            .keys()
            .any(|keyword| !KNOWN_KEYWORDS.contains(&keyword.as_str()));
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
            Some(_) => {
                self.is_partial = true;
                return true;
            }
            None => return true,
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
        let limits: [NumberLimit; 4] = [
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
        match pattern.map(|text| self.shared.pattern(text)) {
            Some(Some(pattern)) if !pattern.is_match(text) => {
                let problem = format!("{} does not match the pattern {pattern}", shown_text(text));
                self.report(path, "pattern", place, problem);
            }
            // It is left to the server.
            Some(None) => self.is_partial = true,
            Some(Some(_)) | None => {}
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
