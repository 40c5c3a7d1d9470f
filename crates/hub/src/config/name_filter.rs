//! Which names pass: patterns of tools, resources and prompts.

/// Which names pass. Without patterns, all do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NameFilter {
    /// Only these, if there is a list at all.
    pub allow: Option<Vec<NameGlob>>,
    /// Never these, even if they are allowed.
    pub deny: Vec<NameGlob>,
}

/// A name in which `*` matches any characters and `?` one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameGlob(String);

impl NameFilter {
    /// Whether a name passes.
    pub fn permits(&self, name: &str) -> bool {
        let is_allowed = match &self.allow {
            Some(globs) => globs.iter().any(|glob| glob.matches(name)),
            None => true,
        };
        is_allowed && !self.deny.iter().any(|glob| glob.matches(name))
    }
}

impl NameGlob {
    /// Takes a pattern.
    pub fn new(pattern: impl Into<String>) -> NameGlob {
        NameGlob(pattern.into())
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it matches the whole of a name, case-sensitively.
    pub fn matches(&self, name: &str) -> bool {
        let mut pattern = self.0.as_str();
        let mut name = name;
        // Where to continue if what follows the last star does not fit: the star takes one character more.
        let mut retry: Option<(&str, &str)> = None;
        loop {
            let mut rest = pattern.chars();
            let mut name_rest = name.chars();
            match (rest.next(), name_rest.next()) {
                (None, None) => return true,
                (Some('*'), _) => {
                    pattern = rest.as_str();
                    retry = Some((pattern, name));
                    continue;
                }
                (Some(wanted), Some(letter)) if wanted == '?' || wanted == letter => {
                    pattern = rest.as_str();
                    name = name_rest.as_str();
                    continue;
                }
                _ => {}
            }
            let Some((after_star, from)) = retry else {
                return false;
            };
            let mut from = from.chars();
            if from.next().is_none() {
                return false;
            }
            pattern = after_star;
            name = from.as_str();
            retry = Some((after_star, name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks() {
        for (pattern, name) in [
            ("read", "read"),
            ("*", ""),
            ("read_*", "read_file"),
            ("*_file", "read_file"),
            ("r*_f*e", "read_file"),
            ("a*b*c", "aXbYbZc"),
            ("?ead", "read"),
            ("**", "é"),
            ("?", "é"),
        ] {
            assert!(NameGlob::new(pattern).matches(name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("read", "Read"),
            ("a*a", "a"),
            ("", "a"),
            ("?", ""),
            ("*b*c", "cb"),
            ("read_*", "read"),
        ] {
            assert!(!NameGlob::new(pattern).matches(name), "{pattern} {name}");
        }
    }

    #[test]
    fn deny_wins_over_allow() {
        let globs = |patterns: &[&str]| patterns.iter().map(|text| NameGlob::new(*text)).collect();
        let filter = NameFilter {
            allow: Some(globs(&["read_*"])),
            deny: globs(&["*_secret"]),
        };
        assert!(filter.permits("read_file"));
        assert!(!filter.permits("read_secret"));
        assert!(!filter.permits("write_file"));
        assert!(NameFilter::default().permits("anything"));
        let nothing = NameFilter {
            allow: Some(Vec::new()),
            ..NameFilter::default()
        };
        assert!(!nothing.permits("anything"));
    }
}
