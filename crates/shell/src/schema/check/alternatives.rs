//! Schemas that are made of others: `allOf`, `anyOf`, `oneOf`, `not`, `if`.

use serde_json::{Map, Value};

use super::{PartVerdict, SchemaCheck, joined, shown};
use crate::schema::{resolve, type_words};

impl<'a> SchemaCheck<'a> {
    pub(super) fn combined(
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
            let verdicts: Vec<PartVerdict> = parts
                .iter()
                .map(|part| self.verdict(part, value, level + 1))
                .collect();
            let count = |wanted: PartVerdict| verdicts.iter().filter(|one| **one == wanted).count();
            let accepting = count(PartVerdict::Accepts);
            let unknown = count(PartVerdict::Unknown);
            if accepting + unknown == 0 {
                self.no_part_accepts(parts, keyword, path, value, place, level);
            } else if keyword == "oneOf" && accepting > 1 {
                let problem = format!("{} fits {accepting} alternatives, not one", shown(value));
                self.report(path, keyword, place, problem);
            } else {
                self.is_partial |= unknown > 0 && (keyword == "oneOf" || accepting == 0);
            }
        }
        if let Some(part) = keywords.get("not") {
            match self.verdict(part, value, level + 1) {
                PartVerdict::Accepts => {
                    self.report(path, "not", place, format!("{} is excluded", shown(value)));
                }
                PartVerdict::Refuses => {}
                PartVerdict::Unknown => self.is_partial = true,
            }
        }
        if let Some(condition) = keywords.get("if") {
            let branch = match self.verdict(condition, value, level + 1) {
                PartVerdict::Accepts => Some("then"),
                PartVerdict::Refuses => Some("else"),
                PartVerdict::Unknown => {
                    self.is_partial = true;
                    None
                }
            };
            if let Some(branch) = branch
                && let Some(part) = keywords.get(branch)
            {
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
            let found = self.inner(part, &part_path, value, place, level + 1).found;
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
                    .map(|part| type_words(self.root, part))
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
