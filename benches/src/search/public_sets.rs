//! The sets that others published: how much of them is found, and whether that is less than it was.

use std::fmt::Write as _;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result};
use mcp_proxy_search::testing::{PlainBm25, PublicSet};
use serde::Deserialize;

const SETS: &str = include_str!("../../../fixtures/search/sets.json");
/// Goals have three decimals.
const ROUNDING: f64 = 0.0005;

/// What `fixtures/search/sets.json` says of a set, as far as it matters here.
#[derive(Deserialize)]
struct KnownSet {
    name: String,
    file: String,
    /// The goal: what is found may not become less.
    recall_at_5: f64,
}

/// The figures, and a sentence for each set that missed its goal.
pub struct PublicSetTable {
    pub text: String,
    pub fallen: Vec<String>,
}

/// Measures every set that a folder holds.
pub fn measure(folder: &Path) -> Result<PublicSetTable> {
    let known: Vec<KnownSet> = serde_json::from_str(SETS).context("sets.json is not understood")?;
    let mut table = PublicSetTable {
        text: "| public set, tools, queries | recall@1 | recall@5 | recall@10 | MRR | plain BM25, recall@5 | goal for recall@5 |\n\
               |---|---|---|---|---|---|---|\n"
            .to_owned(),
        fallen: Vec::new(),
    };
    for known in known {
        let path = folder.join(&known.file);
        match PublicSet::load(&path) {
            Ok(set) => table.add(&known, &set)?,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                writeln!(table.text, "| {} | left out | | | | | |", known.name)?;
            }
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", path.display()));
            }
        }
    }
    Ok(table)
}

impl PublicSetTable {
    fn add(&mut self, known: &KnownSet, set: &PublicSet) -> Result<()> {
        let (index, plain) = (set.index(), PlainBm25::new(&set.servers));
        let plain = set.measure(|query| plain.best_tools(query));
        let ours = set.measure(|query| set.best_tools(&index, query));
        writeln!(
            self.text,
            "| {}, {}, {} | {:.3} | {:.3} | {:.3} | {:.3} | {:.3} | {:.3} |",
            known.name,
            set.tool_count(),
            set.queries.len(),
            ours.recall_at_1,
            ours.recall_at_5,
            ours.recall_at_10,
            ours.mean_reciprocal_rank,
            plain.recall_at_5,
            known.recall_at_5
        )?;
        if ours.recall_at_5 < known.recall_at_5 - ROUNDING {
            self.fallen.push(format!(
                "recall@5 of {} fell to {:.3}; its goal is {:.3}",
                known.name, ours.recall_at_5, known.recall_at_5
            ));
        }
        Ok(())
    }
}
