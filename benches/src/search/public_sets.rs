//! The sets that others published: how much of them is found, and whether that is less than it was.

use std::fmt::Write as _;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use mcp_proxy_search::testing::{PlainBm25, PublicQuality, PublicSet};
use serde::Deserialize;

const SETS: &str = include_str!("../../../fixtures/search/sets.json");
/// Goals have three decimals.
const ROUNDING: f64 = 0.0005;

/// What `fixtures/search/sets.json` says of a set, as far as it matters here.
#[derive(Deserialize)]
struct KnownSet {
    name: String,
    file: String,
    tools: usize,
    queries: usize,
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
        text: "| public set, tools, queries | search | recall@1 | recall@5 | recall@10 | MRR | goal for recall@5 |\n\
               |---|---|---|---|---|---|---|\n"
            .to_owned(),
        fallen: Vec::new(),
    };
    for known in known {
        let path = folder.join(&known.file);
        match PublicSet::load(&path) {
            Ok(set) => table.add(&known, &set)?,
            Err(error) if error.kind() == ErrorKind::NotFound => table.leave_out(&known)?,
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", path.display()));
            }
        }
    }
    Ok(table)
}

impl PublicSetTable {
    fn add(&mut self, known: &KnownSet, set: &PublicSet) -> Result<()> {
        let size = (set.tool_count(), set.queries.len());
        ensure!(
            size == (known.tools, known.queries),
            "{} has {} tools and {} queries, but its goal is for {} and {}",
            known.file,
            size.0,
            size.1,
            known.tools,
            known.queries
        );
        let (index, plain) = (set.index(), PlainBm25::new(&set.servers));
        let ours = set.measure(|query| set.best_tools(&index, query));
        let goal = format!("{:.3}", known.recall_at_5);
        self.row(
            known,
            "plain BM25",
            &set.measure(|query| plain.best_tools(query)),
            "",
        )?;
        self.row(known, "ours", &ours, &goal)?;
        if ours.recall_at_5 < known.recall_at_5 - ROUNDING {
            self.fallen.push(format!(
                "recall@5 of {} fell to {:.3}; its goal is {goal}",
                known.name, ours.recall_at_5
            ));
        }
        Ok(())
    }

    fn leave_out(&mut self, known: &KnownSet) -> Result<()> {
        writeln!(self.text, "| {} | left out | | | | | |", known.name)?;
        Ok(())
    }

    fn row(
        &mut self,
        known: &KnownSet,
        search: &str,
        quality: &PublicQuality,
        goal: &str,
    ) -> Result<()> {
        writeln!(
            self.text,
            "| {}, {}, {} | {search} | {:.3} | {:.3} | {:.3} | {:.3} | {goal} |",
            known.name,
            known.tools,
            known.queries,
            quality.recall_at_1,
            quality.recall_at_5,
            quality.recall_at_10,
            quality.mean_reciprocal_rank
        )?;
        Ok(())
    }
}
