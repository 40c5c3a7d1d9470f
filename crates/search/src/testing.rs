//! The evaluation set: tools of real servers, and queries with the tools that answer them.
//!
//! Behind the feature `testing`, for the crate's own tests and for `cargo xtask bench search`. `evaluation/README.md` says where
//! the data comes from.

#![allow(
    clippy::unwrap_used,
    reason = "only tests and benchmarks use it, and its data is part of the program"
)]

mod plain_bm25;
mod public_set;
mod slips;

pub use plain_bm25::PlainBm25;
pub use public_set::{PublicQuality, PublicQuery, PublicSet};
pub use slips::SlipQuality;

use std::sync::Arc;

use serde::Deserialize;

use crate::{SearchDocument, SearchIndex, SearchQuery, SearchSegment};

const TOOLS: &str = include_str!("../evaluation/tools.jsonl");
const QUERIES: &str = include_str!("../evaluation/queries.jsonl");

/// Tools of real servers, and queries for them.
#[derive(Debug)]
pub struct EvaluationSet {
    /// The tools of each server, in the order of the file.
    pub servers: Vec<Vec<EvaluationTool>>,
    /// The queries of both parts.
    pub queries: Vec<EvaluationQuery>,
}

/// A tool as its server describes it.
#[derive(Clone, Debug, Deserialize)]
pub struct EvaluationTool {
    /// A short name for the server.
    pub server: String,
    /// The name of the tool.
    pub name: String,
    /// Its name for people, if it has one.
    #[serde(default)]
    pub title: Option<String>,
    /// What it does, shortened if it is very long.
    pub description: String,
    /// Names and descriptions of its parameters.
    pub parameters: Vec<(String, String)>,
    /// Names of what it answers with.
    #[serde(default)]
    pub outputs: Vec<String>,
}

/// A query and what it should find.
#[derive(Clone, Debug, Deserialize)]
pub struct EvaluationQuery {
    /// Which part of the set it belongs to.
    pub part: EvaluationPart,
    /// What somebody asks for.
    pub query: String,
    /// Tools that answer it, as `server/name`. The first one's server decides the part.
    pub tools: Vec<String>,
}

/// The set is split by server, so that nothing tuned on one part can know the tools of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvaluationPart {
    /// For the choice of weights and words.
    Tuning,
    /// For measuring only.
    HeldOut,
    /// For measuring only, over the tools of all servers: written by authors who knew neither the search nor its thesaurus.
    Blind,
    /// Over the tools of all servers: written by a person who had not seen the search. What the search missed was looked at
    /// once, and the thesaurus made broader.
    Outside,
}

/// How well queries find their tools.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankingQuality {
    /// The share of queries whose first hit is right.
    pub recall_at_1: f64,
    /// The share of queries with a right tool among the first five hits.
    pub recall_at_5: f64,
    /// The mean of one divided by the rank of the first right hit, of ten.
    pub mean_reciprocal_rank: f64,
}

impl EvaluationPart {
    /// Every part, with the word for it.
    pub const ALL: [(EvaluationPart, &'static str); 4] = [
        (EvaluationPart::Tuning, "tuning"),
        (EvaluationPart::HeldOut, "held-out"),
        (EvaluationPart::Blind, "blind"),
        (EvaluationPart::Outside, "outside"),
    ];
}

impl EvaluationSet {
    /// Reads the set that is part of the program.
    pub fn load() -> EvaluationSet {
        let tools: Vec<EvaluationTool> = rows(TOOLS);
        let servers = tools.chunk_by(|a, b| a.server == b.server);
        EvaluationSet {
            servers: servers.map(<[EvaluationTool]>::to_vec).collect(),
            queries: rows(QUERIES),
        }
    }

    /// An index with one segment for each server.
    pub fn index(&self) -> SearchIndex {
        index(&self.servers)
    }

    /// Measures one part with a function from a query to the best ten tools, as `server/name`.
    pub fn measure(
        &self,
        part: EvaluationPart,
        mut search: impl FnMut(&str) -> Vec<String>,
    ) -> RankingQuality {
        let (mut first, mut five, mut reciprocal, mut count) = (0.0, 0.0, 0.0, 0.0);
        for query in self.queries.iter().filter(|query| query.part == part) {
            let found = search(&query.query);
            let rank = found.iter().position(|tool| query.tools.contains(tool));
            count += 1.0;
            if let Some(rank) = rank {
                first += f64::from(rank == 0);
                five += f64::from(rank < 5);
                reciprocal += 1.0 / (rank + 1) as f64;
            }
        }
        RankingQuality {
            recall_at_1: first / count,
            recall_at_5: five / count,
            mean_reciprocal_rank: reciprocal / count,
        }
    }

    /// The best ten tools of an index that [`EvaluationSet::index`] made.
    pub fn best_tools(&self, index: &SearchIndex, text: &str) -> Vec<String> {
        best_tools(&self.servers, index, text)
    }
}

impl EvaluationTool {
    /// The tool as it is indexed.
    pub fn document(&self) -> SearchDocument<'_> {
        let parameters = self.parameters.iter();
        SearchDocument {
            name: &self.name,
            title: self.title.as_deref(),
            server: &self.server,
            description: &self.description,
            parameters: parameters
                .map(|(name, description)| (&**name, &**description))
                .collect(),
            other: self.outputs.iter().map(String::as_str).collect(),
        }
    }

    /// `server/name`, as queries name it.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.server, self.name)
    }
}

fn index(servers: &[Vec<EvaluationTool>]) -> SearchIndex {
    let segment = |tools: &Vec<EvaluationTool>| {
        let documents = tools.iter().map(EvaluationTool::document);
        Arc::new(SearchSegment::new(documents))
    };
    SearchIndex::new(servers.iter().map(segment).collect())
}

fn best_tools(servers: &[Vec<EvaluationTool>], index: &SearchIndex, text: &str) -> Vec<String> {
    let results = index.search(&SearchQuery { text, limit: 10 }, &|_, _| true);
    let hits = results.hits.iter();
    hits.map(|hit| servers[hit.segment][hit.document].full_name())
        .collect()
}

fn rows<T: for<'a> Deserialize<'a>>(text: &str) -> Vec<T> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}
