//! Which of the three forms a filter has. Decided by how it begins, so that a person sees it too.

use super::view;

/// A filter's form, with what is left to read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FilterForm<'a> {
    Nothing,
    Words(&'a str),
    Pattern {
        pattern: &'a str,
        case: CaseMatching,
    },
    Jq(&'a str),
}

/// Whether it is case-sensitive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CaseMatching {
    Sensitive,
    Insensitive,
}

/// What makes a program of a text that begins like a path but with no known field. Words rarely have one of these.
const OPERATORS: [&str; 9] = ["==", "!=", "<", ">", " | ", " and ", " or ", "//", "("];

impl<'a> FilterForm<'a> {
    /// `text` has no white space around it.
    pub(super) fn detect(text: &'a str) -> FilterForm<'a> {
        if text.is_empty() {
            return FilterForm::Nothing;
        }
        for prefix in ["words:", "word:"] {
            if let Some(words) = text.strip_prefix(prefix) {
                return FilterForm::Words(words);
            }
        }
        if let Some(program) = text.strip_prefix("jq:") {
            return FilterForm::Jq(program);
        }
        if let Some(form) = pattern(text) {
            return form;
        }
        if is_jq(text) {
            return FilterForm::Jq(text);
        }
        FilterForm::Words(text)
    }
}

/// `/…/` and `/…/i`, whole. `/etc/passwd` is a word.
fn pattern(text: &str) -> Option<FilterForm<'_>> {
    let inside = text.strip_prefix('/')?;
    let (pattern, case) = match inside.strip_suffix("/i") {
        Some(pattern) => (pattern, CaseMatching::Insensitive),
        None => (inside.strip_suffix('/')?, CaseMatching::Sensitive),
    };
    (!pattern.is_empty()).then_some(FilterForm::Pattern { pattern, case })
}

fn is_jq(text: &str) -> bool {
    // `[.` cannot begin JSON, which people do search for.
    if text.starts_with('(') || text.starts_with("[.") {
        return true;
    }
    if let Some(rest) = text.strip_prefix('.') {
        let name = name(rest);
        return view::field_names().contains(&name) || OPERATORS.iter().any(|op| text.contains(op));
    }
    // `select(…)`, `any(…)`: a name and a bracket, with nothing between, and its end.
    let name = name(text);
    let call = !name.is_empty() && text[name.len()..].starts_with('(') && text.contains(')');
    call || (text.starts_with("if ") && text.contains(" then "))
        || (text.starts_with("def ") && text.contains(':') && text.contains(';'))
}

/// The name that `text` begins with.
fn name(text: &str) -> &str {
    let end = text.find(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
    &text[..end.unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_told_by_its_beginning() {
        for words in [
            "tools/call",
            "tools/call read_file",
            "/etc/passwd",
            "/",
            "//",
            "/tmp",
            ".md",
            ".env .txt",
            "...",
            "not",
            "any",
            "select",
            "{\"name\":1}",
            "[1]",
            "-32601",
            "\"id\":1",
            "f (x)",
            "a.b == 1",
            "if",
            "def x",
            "é(1)",
        ] {
            assert_eq!(
                FilterForm::detect(words),
                FilterForm::Words(words),
                "{words}"
            );
        }
        for jq in [
            ".method",
            ".tool == \"x\"",
            ".params.name",
            ".params[0]",
            "(.size > 3) and .late",
            "select(.id)",
            "[.id] == [1]",
            "any(.params[]; . == 1)",
            ".. | strings",
            ".nmae == 1",
            "if .id then 1 else 0 end",
            "def f: 1; f",
            ".size>9",
        ] {
            assert_eq!(FilterForm::detect(jq), FilterForm::Jq(jq), "{jq}");
        }
        assert_eq!(FilterForm::detect("jq:[.id]"), FilterForm::Jq("[.id]"));
        assert_eq!(
            FilterForm::detect("words:.method"),
            FilterForm::Words(".method")
        );
        assert_eq!(FilterForm::detect("word:/a/"), FilterForm::Words("/a/"));
        let regex = |pattern, case| FilterForm::Pattern { pattern, case };
        assert_eq!(
            FilterForm::detect("/a b/"),
            regex("a b", CaseMatching::Sensitive)
        );
        assert_eq!(
            FilterForm::detect("/a/b/i"),
            regex("a/b", CaseMatching::Insensitive)
        );
        assert_eq!(FilterForm::detect(""), FilterForm::Nothing);
    }
}
