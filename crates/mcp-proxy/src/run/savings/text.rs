//! The tables for people.

use std::io::Write;

use anyhow::Result;
use mcp_proxy_hub::config::ExposeMode;
use mcp_proxy_hub::savings::{
    CHARS_PER_TOKEN, EXAMPLE_QUESTION, ExposureCost, ExposureReport, LookupAnswer, LookupCost,
    QUERY_WORDS, TextSize,
};
use mcp_proxy_wire::terminal_text::sanitize;

use super::record::{AnswerTotal, RecordFigures, SpillFigures};
use super::servers::{AskedServer, ServerAnswer};
use super::{DefinitionSource, SavingsReport, verdict};
use crate::run::control;
use crate::run::sessions::formatting::grouped;

/// Columns of text on the left, columns of numbers on the right.
struct NumberTable {
    head: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

pub(super) fn write(report: &SavingsReport, out: &mut impl Write) -> Result<()> {
    write_servers(&report.servers, out)?;
    match (&report.exposures, report.source) {
        (Some(exposures), _) => write_exposures(exposures, out)?,
        (None, DefinitionSource::Servers) => writeln!(out, "No tools to compare.")?,
        (None, DefinitionSource::Record) => writeln!(
            out,
            "The record has no tools/list answer with tools, so there is nothing to compare."
        )?,
    }
    if let Some(record) = &report.record {
        writeln!(out)?;
        write_record(record, out)?;
    }
    let is_counted = |record: &RecordFigures| record.lists.count + record.results.count > 0;
    if report.exposures.is_some() || report.record.as_ref().is_some_and(is_counted) {
        writeln!(
            out,
            "\nTokens are estimates: characters divided by {CHARS_PER_TOKEN}, rounded up. Models count differently."
        )?;
    }
    Ok(())
}

fn write_servers(servers: &[AskedServer], out: &mut impl Write) -> Result<()> {
    if servers.is_empty() {
        return Ok(());
    }
    for server in servers {
        let name = sanitize(&server.name);
        match &server.answer {
            ServerAnswer::Ready { tools } => {
                writeln!(out, "{name}: {}", count_of(*tools as u64, "tool"))?;
            }
            ServerAnswer::Failed(reason) => {
                writeln!(out, "{name}: failed: {}", sanitize(reason))?;
            }
        }
    }
    writeln!(out)?;
    Ok(())
}

fn write_exposures(report: &ExposureReport, out: &mut impl Write) -> Result<()> {
    let direct = report.cost_of(ExposeMode::All);
    let rows = report.exposures.iter().map(|cost| {
        vec![
            exposure_words(cost),
            grouped(cost.tools as u64),
            grouped(cost.size.bytes),
            grouped(cost.size.tokens()),
            difference(cost.size, direct),
        ]
    });
    let table = NumberTable {
        head: vec!["--expose", "listed tools", "bytes", "tokens", "against all"],
        rows: rows.collect(),
    };
    table.write(out)?;
    let rows = report.lookups.iter().map(|cost| {
        vec![
            lookup_words(report, cost),
            grouped(cost.size.bytes),
            grouped(cost.size.tokens()),
        ]
    });
    let table = NumberTable {
        head: vec!["to find a tool", "bytes", "tokens"],
        rows: rows.collect(),
    };
    writeln!(out)?;
    table.write(out)?;
    writeln!(
        out,
        "A search is for the first {QUERY_WORDS} words of a tool's description.\n"
    )?;
    if let Some(example) = report.example {
        writeln!(
            out,
            "\"{EXAMPLE_QUESTION}\" costs {} tokens with `proxy`: the list, a search and a call, without the tool's own answer.",
            grouped(example.tokens())
        )?;
    }
    for sentence in verdict::sentences(report) {
        writeln!(out, "{sentence}")?;
    }
    Ok(())
}

fn exposure_words(cost: &ExposureCost) -> String {
    let words: Vec<&str> = cost.expose.iter().map(|mode| mode.as_str()).collect();
    match cost.pinned {
        0 => words.join(","),
        pinned => format!("{} + {} pinned", words.join(","), grouped(pinned as u64)),
    }
}

fn lookup_words(report: &ExposureReport, cost: &LookupCost) -> String {
    let samples = cost.samples as u64;
    let how = match cost.answer {
        LookupAnswer::ProxyList if report.page_tools < report.tools => format!(
            "a page of {} of {} tools",
            grouped(report.page_tools as u64),
            grouped(report.tools as u64)
        ),
        LookupAnswer::ProxyList => "all tools".to_owned(),
        LookupAnswer::ProxyInfo => format!("average of {}", count_of(samples, "tool")),
        LookupAnswer::DispatchList => "all tools".to_owned(),
        LookupAnswer::ProxySearch | LookupAnswer::DispatchSearch if samples == 1 => {
            "1 search".to_owned()
        }
        LookupAnswer::ProxySearch | LookupAnswer::DispatchSearch => {
            format!("average of {} searches", grouped(samples))
        }
    };
    let (mode, action) = (cost.answer.mode().as_str(), cost.answer.action());
    format!("{mode} {action} ({how})")
}

fn difference(size: TextSize, direct: TextSize) -> String {
    let (size, direct) = (size.tokens(), direct.tokens());
    let percent = |part: u64| part * 100 / direct.max(1);
    match size.cmp(&direct) {
        std::cmp::Ordering::Equal => "-".to_owned(),
        std::cmp::Ordering::Less => {
            let less = direct - size;
            format!("-{} ({}%)", grouped(less), percent(less))
        }
        std::cmp::Ordering::Greater => {
            let more = size - direct;
            format!("+{} ({}%)", grouped(more), percent(more))
        }
    }
}

fn write_record(record: &RecordFigures, out: &mut impl Write) -> Result<()> {
    let id = control::short_id(&record.id);
    match record.calls {
        0 => writeln!(out, "Record {id}: no tool was called.")?,
        calls => writeln!(
            out,
            "Record {id}: {} to {}.",
            count_of(calls, "call"),
            count_of(record.tools_used as u64, "tool")
        )?,
    }
    if record.lists.count == 0 {
        writeln!(out, "It has no tools/list answer.")?;
    }
    let totals = [
        ("tools/list answers", record.lists),
        ("tools/call results", record.results),
    ];
    let rows = totals.iter().filter(|(_, total)| total.count > 0);
    let rows = rows.map(|(what, total)| {
        vec![
            (*what).to_owned(),
            grouped(total.count),
            grouped(total.size.bytes),
            grouped(total.size.tokens()),
        ]
    });
    let table = NumberTable {
        head: vec!["sent to clients", "number", "bytes", "tokens"],
        rows: rows.collect(),
    };
    if !table.rows.is_empty() {
        writeln!(out)?;
        table.write(out)?;
    }
    if record.exposed.iter().any(|(_, total)| total.count > 0) {
        writeln!(out)?;
        call_table(&record.exposed).write(out)?;
    }
    if record.results.count > 0 {
        writeln!(out)?;
        spill_table(&record.spills).write(out)?;
        writeln!(
            out,
            "The previews that take the place of large results are already subtracted."
        )?;
    }
    if record.missing > 0 {
        let (them, are) = match record.missing {
            1 => ("1 message".to_owned(), "is"),
            many => (format!("{} messages", grouped(many)), "are"),
        };
        writeln!(out, "{them} could not be read and {are} not counted.")?;
    }
    Ok(())
}

/// What models write and read for the same calls.
fn call_table(exposed: &[(ExposeMode, AnswerTotal)]) -> NumberTable {
    let direct = exposed
        .first()
        .map_or(TextSize::default(), |(_, total)| total.size);
    let rows = exposed.iter().map(|(mode, total)| {
        vec![
            mode.as_str().to_owned(),
            grouped(total.count),
            grouped(total.size.bytes),
            grouped(total.size.tokens()),
            difference(total.size, direct),
        ]
    });
    NumberTable {
        head: vec!["its calls with", "number", "bytes", "tokens", "against all"],
        rows: rows.collect(),
    }
}

fn spill_table(spills: &[SpillFigures]) -> NumberTable {
    let rows = spills.iter().map(|spill| {
        vec![
            format!("{}K", spill.threshold >> 10),
            grouped(spill.results),
            grouped(spill.kept_out.bytes),
            grouped(spill.kept_out.tokens()),
        ]
    });
    NumberTable {
        head: vec![
            "--spill-threshold",
            "results above",
            "bytes kept out",
            "tokens kept out",
        ],
        rows: rows.collect(),
    }
}

/// `1 tool`, `1,200 tools`.
pub(super) fn count_of(number: u64, what: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{} {what}{ending}", grouped(number))
}

impl NumberTable {
    fn write(&self, out: &mut impl Write) -> Result<()> {
        let head: Vec<String> = self.head.iter().map(|word| (*word).to_owned()).collect();
        let lines = || std::iter::once(&head).chain(&self.rows);
        let width = |column: usize| {
            let cells = lines().map(|line| line[column].chars().count());
            cells.max().unwrap_or_default()
        };
        let widths: Vec<usize> = (0..head.len()).map(width).collect();
        for line in lines() {
            let cells = line.iter().zip(&widths).enumerate();
            let cells: Vec<String> = cells
                .map(|(column, (cell, width))| match column {
                    0 => format!("{cell:<width$}"),
                    _ => format!("{cell:>width$}"),
                })
                .collect();
            writeln!(out, "{}", cells.join("  ").trim_end())?;
        }
        Ok(())
    }
}
