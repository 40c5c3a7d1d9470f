//! The report: goals with verdicts, then all figures; as text, markdown and JSON.

use serde::Serialize;

use crate::load::Measurement;
use crate::machine::Machine;

#[derive(Serialize)]
pub struct BenchReport {
    pub machine: Machine,
    pub rows: Vec<GoalRow>,
    pub figures: Vec<ContenderFigures>,
}

/// One goal.
#[derive(Default, Serialize)]
pub struct GoalRow {
    pub case: String,
    pub what: String,
    pub unit: &'static str,
    pub value: Option<f64>,
    pub reference: String,
    pub reference_value: Option<f64>,
    pub ratio: Option<f64>,
    pub goal: String,
    /// What the bare copy reached, in the terms of this goal.
    pub floor: Option<String>,
    pub verdict: GoalVerdict,
    /// Why there is no value.
    pub note: Option<String>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub enum GoalVerdict {
    #[serde(rename = "ok")]
    Ok,
    #[serde(rename = "ok by floor")]
    ByFloor,
    #[default]
    #[serde(rename = "MISS")]
    Miss,
    /// Stated for comparison.
    #[serde(rename = "")]
    NoGoal,
}

impl From<bool> for GoalVerdict {
    fn from(reached: bool) -> GoalVerdict {
        if reached {
            GoalVerdict::Ok
        } else {
            GoalVerdict::Miss
        }
    }
}

impl GoalVerdict {
    fn name(self) -> &'static str {
        match self {
            GoalVerdict::Ok => "ok",
            GoalVerdict::ByFloor => "ok by floor",
            GoalVerdict::Miss => "MISS",
            GoalVerdict::NoGoal => "",
        }
    }
}

/// One contender in one case.
#[derive(Default, Serialize)]
pub struct ContenderFigures {
    pub case: String,
    pub who: &'static str,
    /// Median over the rounds of the share of direct's throughput.
    pub of_direct: Option<f64>,
    pub median: Measurement,
    pub samples: Vec<Measurement>,
    pub failure: Option<String>,
}

impl BenchReport {
    pub fn new(machine: Machine) -> BenchReport {
        BenchReport {
            machine,
            rows: Vec::new(),
            figures: Vec::new(),
        }
    }

    pub fn text(&self) -> String {
        let failures: String = self
            .failures()
            .iter()
            .map(|text| format!("\n{text}"))
            .collect();
        format!(
            "{}\n\n{}\n{}{failures}",
            self.machine.text(),
            aligned(&self.goals()),
            aligned(&self.all())
        )
    }

    pub fn markdown(&self) -> String {
        let failures: String = self
            .failures()
            .iter()
            .map(|text| format!("\n- {}", text.replace('\n', " ")))
            .collect();
        format!(
            "{}\n\n{}\n{}{failures}",
            self.machine.text(),
            piped(&self.goals()),
            piped(&self.all())
        )
    }

    fn goals(&self) -> Vec<Vec<String>> {
        let mut table = vec![words(&[
            "case",
            "figure",
            "value",
            "compared with",
            "its value",
            "ratio",
            "goal",
            "bare copy",
            "verdict",
        ])];
        table.extend(self.rows.iter().map(|row| {
            vec![
                row.case.clone(),
                row.what.clone(),
                number(row.value, row.unit),
                row.reference.clone(),
                number(row.reference_value, row.unit),
                row.ratio
                    .map(|ratio| format!("{ratio:.2}"))
                    .unwrap_or_default(),
                row.goal.clone(),
                row.floor.clone().unwrap_or_default(),
                row.verdict.name().to_owned(),
            ]
        }));
        table
    }

    fn all(&self) -> Vec<Vec<String>> {
        let mut table = vec![words(&[
            "case",
            "who",
            "req/s",
            "MB/s",
            "of direct",
            "p50 µs",
            "p99 µs",
            "CPU µs",
            "guard CPU µs",
            "load CPU µs",
            "idle MB",
            "peak MB",
            "guard private MB",
            "start ms",
            "session KB",
        ])];
        table.extend(self.figures.iter().map(|figure| {
            let Measurement {
                megabytes_per_second,
                per_second,
                ..
            } = figure.median;
            // A hundred bytes a request make no rate worth reading.
            let rate = megabytes_per_second
                .filter(|rate| per_second.is_some_and(|count| rate / count > 0.5));
            let mut line = words(&[&figure.case, figure.who]);
            let median = &figure.median;
            line.push(number(per_second, ""));
            line.push(number(rate, ""));
            line.push(
                figure
                    .of_direct
                    .map(|share| format!("{share:.3}"))
                    .unwrap_or_default(),
            );
            let rest = [
                median.p50_us,
                median.p99_us,
                median.cpu_us,
                median.guard_cpu_us,
                median.driver_cpu_us,
                median.idle_mb,
                median.peak_mb,
                median.guard_private_mb,
                median.start_ms,
                median.session_kb,
            ];
            line.extend(rest.map(|value| number(value, "")));
            line
        }));
        table
    }

    fn failures(&self) -> Vec<String> {
        let failed = self.figures.iter().filter_map(|figure| {
            let failure = figure.failure.as_ref()?;
            Some(format!("{} {}: {failure}", figure.case, figure.who))
        });
        failed.collect()
    }
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|word| (*word).to_owned()).collect()
}

/// Three figures or so, thousands set apart.
fn number(value: Option<f64>, unit: &str) -> String {
    let Some(value) = value else {
        return String::new();
    };
    let text = if value.abs() >= 1000.0 {
        let digits = format!("{:.0}", value.abs());
        let groups: Vec<&str> = digits
            .as_bytes()
            .rchunks(3)
            .rev()
            .filter_map(|group| str::from_utf8(group).ok())
            .collect();
        format!("{}{}", if value < 0.0 { "-" } else { "" }, groups.join(","))
    } else if value.abs() >= 100.0 {
        format!("{value:.0}")
    } else if value.abs() >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    };
    format!("{text} {unit}").trim_end().to_owned()
}

fn aligned(table: &[Vec<String>]) -> String {
    let columns = table.first().map_or(0, Vec::len);
    let width = |column: usize| {
        table
            .iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}  "));
        format!("{}\n", cells.collect::<String>().trim_end())
    };
    table.iter().map(line).collect()
}

fn piped(table: &[Vec<String>]) -> String {
    let line = |row: &[String]| format!("| {} |\n", row.join(" | "));
    let Some((head, rows)) = table.split_first() else {
        return String::new();
    };
    let rule = vec!["---".to_owned(); head.len()];
    let rows: String = rows.iter().map(|row| line(row)).collect();
    format!("{}{}{rows}", line(head), line(&rule))
}
