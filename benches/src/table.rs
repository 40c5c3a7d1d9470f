//! The one table of a job, as markdown.

use std::fmt::{self, Display, Formatter};

use crate::machine;
use crate::rounds::{CaseResults, Contender, Figure, Variant};

/// One row of a table.
#[derive(Clone, Copy)]
pub struct BenchRow {
    pub name: &'static str,
    pub unit: &'static str,
    pub variant: Variant,
    pub figure: Figure,
}

impl BenchRow {
    pub fn new(
        name: &'static str,
        unit: &'static str,
        variant: Variant,
        figure: Figure,
    ) -> BenchRow {
        BenchRow {
            name,
            unit,
            variant,
            figure,
        }
    }

    fn value(&self, results: &CaseResults, who: Contender) -> Option<f64> {
        if self.figure == Figure::AddedP50 && who != Contender::Direct {
            results.paired(who, Contender::Direct, self.figure, |own, direct| {
                own - direct
            })
        } else {
            results.median(who, self.figure)
        }
    }

    /// Ours divided by another's, as text.
    fn ratio(&self, results: &CaseResults, other: Contender) -> Option<String> {
        let ours = Contender::Ours(self.variant);
        let ratio = match self.figure {
            Figure::AddedP50 => Some(self.value(results, ours)? / self.value(results, other)?),
            _ => results.paired(ours, other, self.figure, |own, other| own / other),
        };
        Some(format!("{:.2}", ratio?))
    }
}

/// The rows of one job.
pub struct BenchTable {
    /// What was measured and how, above the table.
    heading: String,
    lines: Vec<[String; 8]>,
    failures: Vec<String>,
}

impl BenchTable {
    pub fn new(rounds: usize, seconds: f64) -> BenchTable {
        BenchTable {
            heading: format!("{} {rounds} rounds of {seconds} s.", machine::description()),
            lines: Vec::new(),
            failures: Vec::new(),
        }
    }

    /// Adds a row with what its case gave.
    pub fn add(&mut self, row: &BenchRow, results: &CaseResults) {
        let value = |who| row.value(results, who).map(number).unwrap_or_default();
        let before = Contender::Before(row.variant);
        let peers: Vec<Contender> = results.contenders().filter(|who| who.is_peer()).collect();
        let peer_values: Vec<String> = peers
            .iter()
            .filter_map(|who| {
                Some(format!(
                    "{} {}",
                    who.name(),
                    number(row.value(results, *who)?)
                ))
            })
            .collect();
        let reference = match peers.first() {
            Some(peer) => Some(*peer),
            None if row.figure == Figure::AddedP50 => None,
            None => Some(Contender::Direct),
        };
        let ratio = reference
            .and_then(|who| Some(format!("{} × {}", row.ratio(results, who)?, who.name())));
        self.lines.push([
            row.name.to_owned(),
            row.unit.to_owned(),
            value(Contender::Ours(row.variant)),
            value(before),
            row.ratio(results, before).unwrap_or_default(),
            value(Contender::Direct),
            peer_values.join(", "),
            ratio.unwrap_or_default(),
        ]);
        for failure in &results.failures {
            if !self.failures.contains(failure) {
                self.failures.push(failure.clone());
            }
        }
    }
}

impl Display for BenchTable {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        const HEAD: [&str; 8] = [
            "row",
            "unit",
            "ours",
            "before",
            "÷ before",
            "direct",
            "peers",
            "ratio",
        ];
        const BEFORE: [usize; 2] = [3, 4];
        let compares_builds = self.lines.iter().any(|line| !line[BEFORE[0]].is_empty());
        let line = |cells: &[String]| {
            let shown = cells.iter().enumerate();
            let shown = shown.filter(|(at, _)| compares_builds || !BEFORE.contains(at));
            let cells: Vec<&str> = shown.map(|(_, cell)| cell.as_str()).collect();
            format!("| {} |", cells.join(" | "))
        };
        writeln!(f, "{}\n", self.heading)?;
        writeln!(f, "{}", line(&HEAD.map(str::to_owned)))?;
        writeln!(f, "{}", line(&HEAD.map(|_| "---".to_owned())))?;
        for cells in &self.lines {
            writeln!(f, "{}", line(cells))?;
        }
        for failure in &self.failures {
            writeln!(f, "\n- {}", failure.replace('\n', " "))?;
        }
        Ok(())
    }
}

/// Three figures or so, thousands set apart.
pub fn number(value: f64) -> String {
    if value.abs() < 10.0 {
        return format!("{value:.2}");
    }
    if value.abs() < 100.0 {
        return format!("{value:.1}");
    }
    let digits = format!("{:.0}", value.abs());
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .filter_map(|group| str::from_utf8(group).ok())
        .collect();
    let sign = if value < 0.0 { "-" } else { "" };
    format!("{sign}{}", groups.join(","))
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_have_three_figures_and_groups_of_thousands() {
        let shown = [1.234, 45.67, 456.7, 123_456.7].map(number);
        assert_eq!(shown, ["1.23", "45.7", "457", "123,457"]);
    }
}
