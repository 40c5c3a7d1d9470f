//! Sets that others published. They are not part of the program: `fixtures/search` says where they come from.

use std::io;
use std::path::Path;

use serde::Deserialize;

use super::{EvaluationTool, best_tools, index};
use crate::SearchIndex;

/// Tools of a published set, and its queries.
#[derive(Debug, Deserialize)]
pub struct PublicSet {
    /// The tools of each server.
    pub servers: Vec<Vec<EvaluationTool>>,
    /// The queries, which mostly need several tools.
    pub queries: Vec<PublicQuery>,
}

/// A query and all the tools that it needs.
#[derive(Debug, Deserialize)]
pub struct PublicQuery {
    /// What somebody asks for.
    pub query: String,
    /// For each tool that is needed, the tools that will do, as `server/name`.
    pub tools: Vec<Vec<String>>,
}

/// How many of the tools that queries need are found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PublicQuality {
    /// The mean share of a query's tools that is the first hit.
    pub recall_at_1: f64,
    /// The mean share of a query's tools among the first five hits.
    pub recall_at_5: f64,
    /// The mean share of a query's tools among the first ten hits.
    pub recall_at_10: f64,
    /// The mean of one divided by the rank of the first right hit, of ten.
    pub mean_reciprocal_rank: f64,
}

impl PublicSet {
    /// Reads a file that `fixtures/search/collect.py` wrote.
    pub fn load(path: &Path) -> io::Result<PublicSet> {
        let content = std::fs::read(path)?;
        serde_json::from_slice(&content).map_err(io::Error::from)
    }

    /// The number of tools of all servers.
    pub fn tool_count(&self) -> usize {
        self.servers.iter().map(Vec::len).sum()
    }

    /// An index with one segment for each server.
    pub fn index(&self) -> SearchIndex {
        index(&self.servers)
    }

    /// The best ten tools of an index that [`PublicSet::index`] made.
    pub fn best_tools(&self, index: &SearchIndex, text: &str) -> Vec<String> {
        best_tools(&self.servers, index, text)
    }

    /// Measures a function from a query to the best ten tools, as `server/name`.
    pub fn measure(&self, mut search: impl FnMut(&str) -> Vec<String>) -> PublicQuality {
        let mut sum = PublicQuality::default();
        for query in &self.queries {
            let found = search(&query.query);
            sum.recall_at_1 += query.recall(&found, 1);
            sum.recall_at_5 += query.recall(&found, 5);
            sum.recall_at_10 += query.recall(&found, 10);
            let first = found
                .iter()
                .position(|tool| query.tools.iter().any(|will_do| will_do.contains(tool)));
            sum.mean_reciprocal_rank += first.map_or(0.0, |rank| 1.0 / (rank + 1) as f64);
        }
        let count = self.queries.len() as f64;
        PublicQuality {
            recall_at_1: sum.recall_at_1 / count,
            recall_at_5: sum.recall_at_5 / count,
            recall_at_10: sum.recall_at_10 / count,
            mean_reciprocal_rank: sum.mean_reciprocal_rank / count,
        }
    }
}

impl PublicQuery {
    /// The share of the tools that are among the first hits.
    fn recall(&self, found: &[String], first: usize) -> f64 {
        let first = &found[..first.min(found.len())];
        let is_there = |will_do: &&Vec<String>| will_do.iter().any(|tool| first.contains(tool));
        self.tools.iter().filter(is_there).count() as f64 / self.tools.len() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recall_is_the_share_of_the_tools_that_are_needed() {
        let needed = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        let set = PublicSet {
            servers: Vec::new(),
            queries: vec![PublicQuery {
                query: "q".to_owned(),
                tools: vec![needed(&["a/x", "b/x"]), needed(&["c/y"])],
            }],
        };
        let quality = set.measure(|_| needed(&["a/z", "b/x", "d/1", "d/2", "d/3", "c/y"]));
        let expected = PublicQuality {
            recall_at_1: 0.0,
            recall_at_5: 0.5,
            recall_at_10: 1.0,
            mean_reciprocal_rank: 0.5,
        };
        assert_eq!(quality, expected);
    }
}
