//! OpenCode's `tools`, next to its servers: `{"git_*": false}` turns tools off by the name of their server, `_` and their own. Of several
//! patterns that match a tool, the longest counts.

use std::collections::BTreeSet;

use super::super::tree::Tree;

/// The patterns of a file, the shortest first.
#[derive(Default)]
pub(super) struct ToolSwitches<'a>(Vec<ToolSwitch<'a>>);

struct ToolSwitch<'a> {
    pattern: &'a str,
    is_on: bool,
}

/// What the patterns mean for the tools of one server.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ServerSwitches<'a> {
    /// Patterns of the server's own names that are denied.
    pub(super) denied: Vec<&'a str>,
    /// A pattern that makes an exception to these, which the hub cannot make.
    pub(super) exception: Option<&'a str>,
}

impl<'a> ToolSwitches<'a> {
    pub(super) fn find(root: &'a Tree) -> ToolSwitches<'a> {
        let members = root.get("tools").and_then(Tree::members);
        let switches = members.unwrap_or_default().iter();
        let switches = switches.filter_map(|member| match member.value {
            Tree::Boolean(is_on) => Some(ToolSwitch {
                pattern: &member.key,
                is_on,
            }),
            _ => None,
        });
        let mut switches: Vec<ToolSwitch<'_>> = switches.collect();
        switches.sort_by_key(|switch| switch.pattern.len());
        ToolSwitches(switches)
    }

    pub(super) fn of_server(&self, name: &str) -> ServerSwitches<'a> {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
        let prefix = name.replace(|letter| !is_plain(letter), "_") + "_";
        let mut found = ServerSwitches::default();
        for switch in &self.0 {
            let rests = rests(switch.pattern, &prefix);
            match (switch.is_on, rests.contains("*")) {
                (false, _) => found.denied.extend(rests),
                (true, true) => found = ServerSwitches::default(),
                (true, false) if !rests.is_empty() && !found.denied.is_empty() => {
                    found.exception = Some(switch.pattern);
                }
                (true, false) => {}
            }
        }
        found
    }
}

/// The patterns that the rest of a text has to match if the text begins with `prefix` and matches `pattern`.
fn rests<'p>(pattern: &'p str, prefix: &str) -> BTreeSet<&'p str> {
    let mut open = BTreeSet::from([pattern]);
    for letter in prefix.chars() {
        let mut next = BTreeSet::new();
        for mut pattern in open {
            while let Some(behind) = pattern.strip_prefix('*') {
                next.insert(pattern);
                pattern = behind;
            }
            let behind = pattern.strip_prefix('?');
            next.extend(behind.or_else(|| pattern.strip_prefix(letter)));
        }
        open = next;
    }
    open
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_a_pattern_behind_the_name_of_a_server() {
        for (pattern, expected) in [
            ("loc_*", &["*"][..]),
            ("loc*", &["*"]),
            ("loc_read", &["read"]),
            ("l?c_read", &["read"]),
            ("*", &["*"]),
            ("*_read", &["*_read", "read"]),
            ("**d", &["**d", "*d"]),
            ("other_*", &[]),
            ("loc", &[]),
        ] {
            let found = rests(pattern, "loc_").into_iter();
            assert_eq!(found.collect::<Vec<_>>(), expected, "{pattern}");
        }
    }
}
