//! Queries with a slip of the finger: what they found before, they should still find.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::{EvaluationSet, rows};
use crate::SearchIndex;

const SLIPS: &str = include_str!("../../evaluation/slips.jsonl");

/// A query, and the word in it that is mistyped in every way.
#[derive(Debug, Deserialize)]
struct SlipQuery {
    query: String,
    word: String,
}

/// How many mistyped queries still find what the query found first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlipQuality {
    /// All mistyped queries.
    pub total: usize,
    /// Those that no longer have it among the first five hits.
    pub lost: Vec<String>,
}

impl SlipQuality {
    /// The share of queries that still find it.
    pub fn kept(&self) -> f64 {
        1.0 - self.lost.len() as f64 / self.total as f64
    }
}

impl EvaluationSet {
    /// Mistypes a word of each query: a letter left out, but for the first, or two swapped.
    pub fn measure_slips(&self, index: &SearchIndex) -> SlipQuality {
        let mut quality = SlipQuality::default();
        for slip in rows::<SlipQuery>(SLIPS) {
            let wanted = self.best_tools(index, &slip.query).into_iter().next();
            for mistyped in mistyped(&slip.word) {
                let query = slip.query.replace(&slip.word, &mistyped);
                let found = self.best_tools(index, &query);
                quality.total += 1;
                if !found
                    .iter()
                    .take(5)
                    .any(|tool| Some(tool) == wanted.as_ref())
                {
                    quality.lost.push(query);
                }
            }
        }
        quality
    }
}

fn mistyped(word: &str) -> BTreeSet<String> {
    let mut slips = BTreeSet::new();
    for at in 1..word.len() {
        slips.insert(format!("{}{}", &word[..at], &word[at + 1..]));
        let (before, rest) = word.split_at(at - 1);
        slips.insert(format!(
            "{before}{}{}{}",
            &rest[1..2],
            &rest[..1],
            &rest[2..]
        ));
    }
    slips.remove(word);
    slips
}
