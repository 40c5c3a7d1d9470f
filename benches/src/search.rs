//! `search`: how well and how fast the hub's search finds tools.
//!
//! Quality is that of the evaluation set and of sets that others published, next to plain BM25. Speed is over the tools of the
//! evaluation set, repeated under varied names until there are as many as in a large hub.

mod public_sets;

use std::fmt::Write as _;
use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use clap::Args;
use mcp_proxy_search::testing::{
    EvaluationPart, EvaluationSet, EvaluationTool, PlainBm25, RankingQuality,
};
use mcp_proxy_search::{SearchIndex, SearchQuery, SearchSegment};

const SERVERS: usize = 100;
const TOOLS: usize = 10_000;
/// Words put into names and descriptions, so that repeated tools differ.
const VARIATIONS: &[&str] = &[
    "alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india", "juliett",
];

#[derive(Args)]
pub struct SearchArgs {
    /// How often each query is measured
    #[arg(long, default_value_t = 20)]
    rounds: usize,
    /// The folder into which fixtures/search/collect.py put the public sets; without it they are left out
    #[arg(long)]
    sets: Option<PathBuf>,
}

pub fn run(args: &SearchArgs) -> Result<()> {
    let set = EvaluationSet::load();
    println!("{}", quality(&set)?);
    let mut fallen = Vec::new();
    if let Some(folder) = &args.sets {
        let table = public_sets::measure(folder)?;
        println!("{}", table.text);
        fallen = table.fallen;
    }
    println!("{}", speed(&set, args.rounds)?);
    ensure!(fallen.is_empty(), "{}", fallen.join("\n"));
    Ok(())
}

fn quality(set: &EvaluationSet) -> Result<String> {
    let (index, plain) = (set.index(), PlainBm25::new(&set.servers));
    let mut table = format!(
        "{} tools of {} servers\n\n| queries | search | recall@1 | recall@5 | MRR |\n|---|---|---|---|---|\n",
        index.len(),
        set.servers.len()
    );
    for (part, name) in EvaluationPart::ALL {
        let count = set
            .queries
            .iter()
            .filter(|query| query.part == part)
            .count();
        let mut row = |search: &str, quality: RankingQuality| {
            writeln!(
                table,
                "| {name}, {count} | {search} | {:.3} | {:.3} | {:.3} |",
                quality.recall_at_1, quality.recall_at_5, quality.mean_reciprocal_rank
            )
        };
        row(
            "plain BM25",
            set.measure(part, |query| plain.best_tools(query)),
        )?;
        row(
            "ours",
            set.measure(part, |query| set.best_tools(&index, query)),
        )?;
    }
    let slips = set.measure_slips(&index);
    let (kept, total) = (slips.total - slips.lost.len(), slips.total);
    writeln!(
        table,
        "\n{kept} of {total} mistyped queries find what they found before, {:.3}",
        slips.kept()
    )?;
    Ok(table)
}

/// What searches and updates of a large index cost. Of each query the fastest run counts, which leaves out other work on
/// the machine.
fn speed(set: &EvaluationSet, rounds: usize) -> Result<String> {
    let servers = many_servers(set);
    let start = Instant::now();
    let segments: Vec<_> = servers.iter().map(|tools| segment(tools)).collect();
    let index = SearchIndex::new(segments.clone());
    let build = start.elapsed();

    let start = Instant::now();
    let mut changed = segments;
    changed[0] = segment(&servers[0]);
    black_box(index.updated(changed));
    let replace = start.elapsed();

    let fastest_run = |text: &str| {
        let runs = (0..rounds.max(1)).map(|_| {
            let start = Instant::now();
            black_box(index.search(&SearchQuery { text, limit: 10 }, &|_, _| true));
            start.elapsed()
        });
        runs.min().unwrap_or_default()
    };
    let queries = set.queries.iter();
    let mut times: Vec<Duration> = queries.map(|query| fastest_run(&query.query)).collect();
    let mut table =
        format!("{TOOLS} tools of {SERVERS} servers\n\n| figure | value |\n|---|---|\n");
    for (what, time) in [
        ("search, p50", percentile(&mut times, 0.5)),
        ("search, p99", percentile(&mut times, 0.99)),
        ("build the index", build),
        ("replace one server", replace),
    ] {
        writeln!(table, "| {what} | {:.3} ms |", time.as_secs_f64() * 1e3)?;
    }
    let megabytes = index.memory_bytes() as f64 / 1e6;
    writeln!(table, "| memory | {megabytes:.1} MB |")?;
    Ok(table)
}

/// The time that this share of the times does not exceed.
fn percentile(times: &mut [Duration], share: f64) -> Duration {
    times.sort_unstable();
    let last = times.len().saturating_sub(1);
    let at = (last as f64 * share) as usize;
    times.get(at).copied().unwrap_or_default()
}

fn segment(tools: &[EvaluationTool]) -> Arc<SearchSegment> {
    Arc::new(SearchSegment::new(
        tools.iter().map(EvaluationTool::document),
    ))
}

/// The set's tools again and again, each time with another word in names and descriptions.
fn many_servers(set: &EvaluationSet) -> Vec<Vec<EvaluationTool>> {
    let tools: Vec<&EvaluationTool> = set.servers.iter().flatten().collect();
    let varied: Vec<EvaluationTool> = (0..TOOLS)
        .map(|at| {
            let mut tool = tools[at % tools.len()].clone();
            let round = at / tools.len();
            let word = VARIATIONS[round % VARIATIONS.len()];
            tool.name = format!("{}_{word}{round}", tool.name);
            tool.description = format!("{} For {word}.", tool.description);
            tool
        })
        .collect();
    let size = TOOLS / SERVERS;
    varied
        .chunks(size)
        .map(<[EvaluationTool]>::to_vec)
        .collect()
}
