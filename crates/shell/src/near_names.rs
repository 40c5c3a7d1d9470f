//! The names that a misspelt one may have been meant to be, in words.

use mcp_proxy_tool::near_names;

/// `did you mean a or b?`, if anything is near.
pub(crate) fn did_you_mean<'a>(
    given: &str,
    names: impl Iterator<Item = &'a str>,
) -> Option<String> {
    let near = near_names(given, names);
    (!near.is_empty()).then(|| format!("did you mean {}?", quoted(&near, "or")))
}

/// Names as in a sentence: `a`, `b` or `c`.
pub(crate) fn quoted(names: &[String], last_word: &str) -> String {
    match names {
        [] => String::new(),
        [one] => format!("`{one}`"),
        [rest @ .., last] => format!("`{}` {last_word} `{last}`", rest.join("`, `")),
    }
}
