//! The words of our tools: their actions, their parameters and the values of those. Each enum is its own list.

use std::fmt;

use strum::VariantArray;

use crate::wording::{self, enumerate};

/// A word of one of our tools.
///
/// ```
/// use mcp_proxy_tool::{ProxyAction, ToolWord};
///
/// assert_eq!(ProxyAction::named("info"), Some(ProxyAction::Info));
/// assert_eq!(ProxyAction::meant_by("describe"), Some(ProxyAction::Info));
/// ```
pub trait ToolWord: VariantArray + Copy + Eq + fmt::Debug + Into<&'static str> {
    /// What models write instead of it.
    const SYNONYMS: &'static [(&'static str, Self)] = &[];

    /// The word itself.
    fn as_str(self) -> &'static str {
        self.into()
    }

    /// All words of its kind, as they are listed to users.
    fn all() -> &'static [Self] {
        Self::VARIANTS
    }

    /// The texts of [`ToolWord::all`].
    fn texts() -> Vec<&'static str> {
        Self::all().iter().map(|word| word.as_str()).collect()
    }

    /// `'a', 'b' or 'c'`
    fn alternatives() -> String {
        enumerate(Self::texts().into_iter(), "or")
    }

    /// The word that is written so.
    fn named(text: &str) -> Option<Self> {
        Self::all()
            .iter()
            .copied()
            .find(|word| word.as_str() == text)
    }

    /// What `given`, which is not a word, was meant to be.
    fn meant_by(given: &str) -> Option<Self> {
        Self::meant_among(given, Self::all().iter().copied())
    }

    /// Which of these words `given` was meant to be.
    fn meant_among(given: &str, words: impl Iterator<Item = Self>) -> Option<Self> {
        let words: Vec<Self> = words.collect();
        let texts: Vec<_> = words.iter().map(|word| word.as_str()).collect();
        let synonyms: Vec<_> = Self::SYNONYMS
            .iter()
            .map(|(synonym, word)| (*synonym, word.as_str()))
            .collect();
        let meant = wording::suggest(given, &texts, &synonyms)?;
        words.into_iter().find(|word| word.as_str() == meant)
    }
}
