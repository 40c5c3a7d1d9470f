//! Schemas that are made of others: `allOf`, `anyOf`, `oneOf`, `not`, `if`.

use serde_json::{Map, Value};

use super::{SchemaCheck, joined, shown};
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
