//! What is wrong with a rules file: which rule, which line, what and why.

use std::fmt;

use super::RuleName;

/// A rules file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RulesError {
    /// The rule, if it is one rule's fault.
    pub rule: Option<RuleName>,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong, and why.
    pub why: String,
}

impl fmt::Display for RulesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        if let Some(rule) = &self.rule {
            write!(f, "{rule}: ")?;
        }
        f.write_str(&self.why)
    }
}

impl std::error::Error for RulesError {}
