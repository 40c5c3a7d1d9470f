//! What `replay` says about each request, and how many there are of each kind.

use std::io::Write;

use mcp_proxy_core::replay::Difference;
use mcp_proxy_core::replay::{AnswerComparison, ReplayOutcome};
use mcp_proxy_session::SessionRecord;
use mcp_proxy_wire::terminal_text::sanitize;

/// Texts in the list of differences are cut here.
const SHOWN: usize = 60;

/// How outcomes are shown.
#[derive(Clone, Copy)]
pub enum ReportFormat {
    /// An object a request.
    Json,
    /// A line a request that is not as it was.
    Text,
    /// With the connection of each.
    TextWithConnection,
}

/// How many there are of each.
#[derive(Default)]
pub struct ReplayReport {
    /// Answered as they were.
    pub same: usize,
    /// Answered in another way, or for the first time.
    pub different: usize,
    /// Not answered in time.
    pub unanswered: usize,
}

impl ReplayReport {
    /// Counts and shows one.
    pub fn add(
        &mut self,
        outcome: &ReplayOutcome,
        session: &SessionRecord,
        form: ReportFormat,
        sink: &mut impl Write,
    ) -> std::io::Result<()> {
        let count = match outcome.comparison {
            AnswerComparison::Same => &mut self.same,
            AnswerComparison::Different(_) | AnswerComparison::New => &mut self.different,
            AnswerComparison::Unanswered => &mut self.unanswered,
        };
        *count += 1;
        let row = session.row(outcome.row);
        let about = RequestTitle {
            method: row.and_then(|row| session.method(row)).unwrap_or_default(),
            name: row.and_then(|row| session.name(row)),
        };
        match form {
            ReportFormat::Json => writeln!(sink, "{}", object(outcome, &about)),
            _ if outcome.comparison == AnswerComparison::Same => Ok(()),
            ReportFormat::Text => print(outcome, "", &about, sink),
            ReportFormat::TextWithConnection => {
                let on = format!("c{} ", outcome.connection);
                print(outcome, &on, &about, sink)
            }
        }
    }
}

/// What a request was about.
struct RequestTitle<'a> {
    method: &'a str,
    name: Option<&'a str>,
}

/// A verdict in a word, and what is different.
fn told(verdict: &AnswerComparison) -> (&'static str, &[Difference]) {
    match verdict {
        AnswerComparison::Same => ("same", &[]),
        AnswerComparison::Different(differences) => ("different", differences),
        AnswerComparison::New => ("new", &[]),
        AnswerComparison::Unanswered => ("unanswered", &[]),
    }
}

fn print(
    outcome: &ReplayOutcome,
    on: &str,
    about: &RequestTitle<'_>,
    sink: &mut impl Write,
) -> std::io::Result<()> {
    let name = about
        .name
        .map_or(String::new(), |name| format!(" [{name}]"));
    let (sequence, method) = (outcome.sequence, about.method);
    let (verdict, differences) = told(&outcome.comparison);
    let text = match outcome.comparison {
        AnswerComparison::New => "answered now, no answer in the record",
        _ => verdict,
    };
    let text = format!("#{sequence} {on}{method}{name}: {text}");
    writeln!(sink, "{}", sanitize(&text))?;
    for difference in differences {
        let side = |side: &Option<String>| match side {
            Some(text) => sanitize(&text.chars().take(SHOWN).collect::<String>()),
            None => "nothing".to_owned(),
        };
        let path = sanitize(&difference.path);
        let (then, now) = (side(&difference.recorded), side(&difference.current));
        writeln!(sink, "    {path}: {then} != {now}")?;
    }
    Ok(())
}

fn object(outcome: &ReplayOutcome, about: &RequestTitle<'_>) -> serde_json::Value {
    let (verdict, differences) = told(&outcome.comparison);
    let differences: Vec<_> = differences
        .iter()
        .map(|it| serde_json::json!({"path": it.path, "then": it.recorded, "now": it.current}))
        .collect();
    serde_json::json!({
        "sequence": outcome.sequence,
        "conn": format!("c{}", outcome.connection),
        "method": about.method,
        "name": about.name,
        "verdict": verdict,
        "differences": differences,
    })
}
