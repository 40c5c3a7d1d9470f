//! The table for people.

use std::cmp::Ordering;
use std::io::Write;

use anyhow::Result;
use mcp_proxy_hub::config::ExposeMode;
use mcp_proxy_hub::savings::{CHARS_PER_TOKEN, ExposureCost, ExposureReport, TextSize};
use mcp_proxy_wire::terminal_text::sanitize;

use super::servers::{AskedServer, ServerAnswer};
use crate::run::sessions::formatting::grouped;

const HEAD: [&str; 5] = ["--expose", "listed tools", "bytes", "tokens", "against all"];

pub(super) fn write(
    servers: &[AskedServer],
    report: &ExposureReport,
    out: &mut impl Write,
) -> Result<()> {
    for server in servers {
        let name = sanitize(&server.name);
        match &server.answer {
            ServerAnswer::Ready { tools: 1 } => writeln!(out, "{name}: 1 tool")?,
            ServerAnswer::Ready { tools } => {
                writeln!(out, "{name}: {} tools", grouped(*tools as u64))?;
            }
            ServerAnswer::Failed(reason) => {
                writeln!(out, "{name}: failed: {}", sanitize(reason))?;
            }
        }
    }
    writeln!(out)?;
    if report.tools == 0 {
        writeln!(out, "No tools to compare.")?;
        return Ok(());
    }
    let direct = report.cost_of(ExposeMode::All);
    let rows = report.exposures.iter().map(|cost| row(cost, direct));
    let lines: Vec<[String; 5]> = [HEAD.map(str::to_owned)].into_iter().chain(rows).collect();
    let width = |column: usize| {
        let cells = lines.iter().map(|line| line[column].chars().count());
        cells.max().unwrap_or_default()
    };
    let widths = [0, 1, 2, 3, 4].map(width);
    for [expose, tools, bytes, tokens, difference] in &lines {
        let [a, b, c, d, e] = widths;
        writeln!(
            out,
            "{expose:<a$}  {tools:>b$}  {bytes:>c$}  {tokens:>d$}  {difference:>e$}"
        )?;
    }
    writeln!(
        out,
        "\nTokens are estimates: characters divided by {CHARS_PER_TOKEN}, rounded up. Models count differently."
    )?;
    Ok(())
}

fn row(cost: &ExposureCost, direct: TextSize) -> [String; 5] {
    let words: Vec<&str> = cost.expose.iter().map(|mode| mode.as_str()).collect();
    let expose = match cost.pinned {
        0 => words.join(","),
        pinned => format!("{} + {} pinned", words.join(","), grouped(pinned as u64)),
    };
    [
        expose,
        grouped(cost.tools as u64),
        grouped(cost.size.bytes),
        grouped(cost.size.tokens()),
        difference(cost.size.tokens(), direct.tokens()),
    ]
}

fn difference(tokens: u64, direct: u64) -> String {
    let apart = tokens.abs_diff(direct);
    let percent = apart * 100 / direct.max(1);
    match tokens.cmp(&direct) {
        Ordering::Equal => "-".to_owned(),
        Ordering::Less => format!("-{} ({percent}%)", grouped(apart)),
        Ordering::Greater => format!("+{} ({percent}%)", grouped(apart)),
    }
}
