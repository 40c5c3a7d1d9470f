//! Places in a message, as they are printed and typed: `$.result.content[0].text`, `$.result['a.b']`.
//!
//! A name that is not a plain word stands in quotes, so that no two places look the same. What is typed may have `*` for any
//! member or index.

use std::fmt;

/// One step from a value into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DiffPathStep {
    Member(String),
    Index(usize),
    /// Any member or index; only in what is typed.
    Any,
}

impl DiffPathStep {
    /// Whether this step, as typed, is the other.
    pub(super) fn covers(&self, other: &DiffPathStep) -> bool {
        *self == DiffPathStep::Any || self == other
    }
}

impl fmt::Display for DiffPathStep {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DiffPathStep::Member(name) if is_word(name) => write!(out, ".{name}"),
            DiffPathStep::Member(name) => {
                let name = name.replace('\\', r"\\").replace('\'', r"\'");
                write!(out, "['{name}']")
            }
            DiffPathStep::Index(index) => write!(out, "[{index}]"),
            DiffPathStep::Any => out.write_str("[*]"),
        }
    }
}

fn is_word(name: &str) -> bool {
    let is_plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '$');
    !name.is_empty() && name.chars().all(is_plain)
}

/// A place as it is printed.
pub(super) fn shown(steps: &[DiffPathStep]) -> String {
    let steps: String = steps.iter().map(DiffPathStep::to_string).collect();
    format!("${steps}")
}

/// Reads what was typed; the `$` or `$.` at the beginning may be missing. Or what is wrong with it.
pub(super) fn parse(text: &str) -> Result<Vec<DiffPathStep>, &'static str> {
    if text.is_empty() {
        return Err("it is empty");
    }
    // `$schema` is a name.
    let root = text.strip_prefix('$');
    let root = root.filter(|rest| rest.is_empty() || rest.starts_with(['.', '[']));
    let mut rest = root.unwrap_or(text);
    let mut steps = Vec::new();
    while !rest.is_empty() {
        let step;
        (step, rest) = if let Some(inside) = rest.strip_prefix('[') {
            bracket(inside)?
        } else if let Some(name) = rest.strip_prefix('.') {
            member(name)?
        } else if steps.is_empty() {
            member(rest)?
        } else {
            return Err("after a ] stands a . or a [");
        };
        steps.push(step);
    }
    Ok(steps)
}

fn member(rest: &str) -> Result<(DiffPathStep, &str), &'static str> {
    let (name, rest) = rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len()));
    match name {
        "" => Err("a name is missing after a dot"),
        "*" => Ok((DiffPathStep::Any, rest)),
        name if name.contains(']') => Err("a ] has no ["),
        name => Ok((DiffPathStep::Member(name.to_owned()), rest)),
    }
}

fn bracket(inside: &str) -> Result<(DiffPathStep, &str), &'static str> {
    if let Some(quote @ ('\'' | '"')) = inside.chars().next() {
        let (name, rest) = quoted(&inside[1..], quote).ok_or("a quote is not closed")?;
        let rest = rest.strip_prefix(']').ok_or("a [ is not closed")?;
        return Ok((DiffPathStep::Member(name), rest));
    }
    let (inside, rest) = inside.split_once(']').ok_or("a [ is not closed")?;
    if inside == "*" {
        return Ok((DiffPathStep::Any, rest));
    }
    let digits = Some(inside).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    match digits.and_then(|digits| digits.parse().ok()) {
        Some(index) => Ok((DiffPathStep::Index(index), rest)),
        None => Err("between [ and ] there must be a number, * or a quoted name"),
    }
}

/// Up to the quote, and what follows it. A backslash stands before a quote or another backslash; elsewhere it is itself.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        if letter == quote {
            return Some((name, &text[at + 1..]));
        }
        let escaped = (letter == '\\')
            .then(|| letters.next_if(|(_, next)| matches!(next, '\\' | '\'' | '"')))
            .flatten();
        name.push(escaped.map_or(letter, |(_, next)| next));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_path_is_told() {
        for right in ["$", "$.a", "a.*[0][*].b", "[0].id", "$[1]", "_meta.io/x"] {
            assert!(parse(right).is_ok(), "{right}");
        }
        let wrong = [
            "", "bad[", "a[0]b", "a]", "a[x]", "a[]", "a[+1]", "a['b]", "a['b'", "a['b'c]", "$..a",
            "$.[0]", "a.", "$.",
        ];
        let told = wrong.map(|path| format!("{path}  {}", parse(path).unwrap_err()));
        insta::assert_snapshot!("path_errors", told.join("\n"));
    }

    #[test]
    fn what_is_shown_can_be_typed() {
        for (name, as_shown) in [
            ("a", "$.a"),
            ("$schema", "$.$schema"),
            ("größe-2", "$.größe-2"),
            ("a.b", "$['a.b']"),
            ("io/x", "$['io/x']"),
            ("", "$['']"),
            ("*", "$['*']"),
            ("a]b", "$['a]b']"),
            (r"it's a \", r"$['it\'s a \\']"),
            (r#"say "x""#, r#"$['say "x"']"#),
        ] {
            let steps = [
                DiffPathStep::Member(name.to_owned()),
                DiffPathStep::Index(3),
            ];
            assert_eq!(shown(&steps), format!("{as_shown}[3]"));
            assert_eq!(parse(&shown(&steps)).unwrap(), steps, "{name}");
        }
        let double = [DiffPathStep::Member("a.b".to_owned()), DiffPathStep::Any];
        assert_eq!(parse(r#"["a.b"].*"#).unwrap(), double);
        assert_eq!(
            parse("$schema").unwrap(),
            [DiffPathStep::Member("$schema".to_owned())]
        );
    }
}
