//! Lists and objects: what they may hold, and how much.

use regex::Regex;
use serde_json::{Map, Value};

use super::{SchemaCheck, joined, member_place, shown};
use crate::near_names::did_you_mean;

impl<'a> SchemaCheck<'a> {
    pub(super) fn array(
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

    pub(super) fn object(
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
            .map(|(text, schema)| (text, self.shared.pattern(text), schema))
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
                self.is_partial |= pattern.is_none();
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
}
