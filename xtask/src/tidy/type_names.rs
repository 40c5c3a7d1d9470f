//! A public type name exists once in the workspace, so that a search for it finds one definition.

use std::collections::BTreeMap;

use super::{Finding, TextFile};

const KEYWORDS: &[&str] = &["struct", "enum", "trait", "type", "union"];

/// Takes all texts at once: the rule is about the workspace, not about a file.
pub fn check(texts: &[TextFile]) -> Vec<Finding> {
    let mut places = BTreeMap::<&str, Vec<String>>::new();
    for text in texts.iter().filter(|text| is_product(text)) {
        for (line, name) in public_types(text) {
            places.entry(name).or_default().push(text.at(line));
        }
    }
    let repeated = places.into_iter().filter(|(_, places)| places.len() > 1);
    repeated
        .map(|(name, places)| {
            let (first, others) = (&places[0], places[1..].join(", "));
            Finding::error(first, format!("`{name}` is also a public type at {others}"))
        })
        .collect()
}

/// Tests and examples may repeat a name: nobody searches the workspace for one of theirs.
fn is_product(text: &TextFile) -> bool {
    let top = ["crates/", "xtask/", "benches/"];
    let inside = top.iter().any(|folder| text.path.starts_with(folder));
    let is_test = text.path.contains("/tests/")
        || text.path.contains("/examples/")
        || text.path.ends_with("/tests.rs");
    inside && !is_test && text.extension() == "rs"
}

/// The types that a file declares `pub`, up to its test module.
fn public_types(text: &TextFile) -> impl Iterator<Item = (usize, &str)> {
    let before_tests = text.lines().take_while(|(_, line)| *line != "#[cfg(test)]");
    before_tests.filter_map(|(number, line)| {
        let (keyword, rest) = line.trim_start().strip_prefix("pub ")?.split_once(' ')?;
        let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
        KEYWORDS
            .contains(&keyword)
            .then(|| (number, &rest[..end.unwrap_or(rest.len())]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(path: &str, content: &str) -> TextFile {
        TextFile {
            path: path.to_owned(),
            content: content.to_owned(),
        }
    }

    #[test]
    fn a_public_type_name_is_found_twice_across_crates() {
        let texts = [
            text("crates/a/src/lib.rs", "pub struct Row;\n"),
            text(
                "crates/b/src/lib.rs",
                "mod inner {\n    pub enum Row<'a> {}\n}\n",
            ),
            text("xtask/src/main.rs", "pub struct Rows;\nstruct Row;\n"),
        ];
        let findings = check(&texts);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].place, "crates/a/src/lib.rs:1");
        assert!(findings[0].what.contains("crates/b/src/lib.rs:2"));
    }

    #[test]
    fn tests_may_repeat_a_name() {
        let texts = [
            text(
                "crates/a/src/lib.rs",
                "pub struct Row;\n#[cfg(test)]\nmod tests {\n    pub struct Row;\n}\n",
            ),
            text("crates/a/tests/it/main.rs", "pub struct Row;\n"),
            text("crates/a/src/rows/tests.rs", "pub struct Row;\n"),
        ];
        assert!(check(&texts).is_empty());
    }
}
