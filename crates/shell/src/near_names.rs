//! The names that a misspelt one may have been meant to be, in words.

use mcp_proxy_tool::near_names;

/// `did you mean a or b?`, if anything is near.
pub(crate) fn did_you_mean<'a>(
    given: &str,
    names: impl Iterator<Item = &'a str>,
) -> Option<String> {
    let near = near_names(given, names);
    match near.as_slice() {
        [] => None,
        [one] => Some(format!("did you mean `{one}`?")),
        [rest @ .., last] => Some(format!("did you mean `{}` or `{last}`?", rest.join("`, `"))),
    }
}
