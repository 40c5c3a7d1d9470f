//! The names in a rule's head: one or several, with `*` for anything.

use std::fmt;

/// Names, of which one must fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamePatterns(Vec<String>);

impl NamePatterns {
    pub(super) fn new(names: Vec<String>) -> NamePatterns {
        NamePatterns(names)
    }

    /// Whether one of them fits `name`.
    pub(super) fn matches(&self, name: &str) -> bool {
        self.0.iter().any(|wanted| fits(wanted, name))
    }
}

impl fmt::Display for NamePatterns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" or "))
    }
}

/// Whether `name` is `wanted`, in which `*` stands for any letters or none.
fn fits(wanted: &str, name: &str) -> bool {
    let Some((first, rest)) = wanted.split_once('*') else {
        return wanted == name;
    };
    let Some(mut name) = name.strip_prefix(first) else {
        return false;
    };
    let mut pieces: Vec<&str> = rest.split('*').collect();
    let last = pieces.pop().unwrap_or_default();
    // The leftmost place for each piece leaves the most room for those after it.
    for piece in pieces {
        match name.find(piece) {
            Some(at) => name = &name[at + piece.len()..],
            None => return false,
        }
    }
    name.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn stars_stand_for_anything() {
        for (wanted, name) in [
            ("a", "a"),
            ("*", ""),
            ("tools/*", "tools/call"),
            ("*_file", "read_file"),
            ("r*_f*e", "read_file"),
            ("a*b*c", "aXbYbZc"),
        ] {
            assert!(fits(wanted, name), "{wanted} {name}");
        }
        for (wanted, name) in [
            ("a", "A"),
            ("a*a", "a"),
            ("tools/*", "tool"),
            ("*b*c", "cb"),
            ("", "a"),
        ] {
            assert!(!fits(wanted, name), "{wanted} {name}");
        }
    }
}
