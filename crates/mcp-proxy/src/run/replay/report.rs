//! What `replay` says about each request, and how many there are of each kind.

use std::io::Write;

use mcp_proxy_core::replay::diff::Difference;
use mcp_proxy_core::replay::{Outcome, Verdict};
use mcp_proxy_session::Session;
use mcp_proxy_wire::visible::visible;

/// Texts in the list of differences are cut here.
const SHOWN: usize = 60;

/// How outcomes are shown.
#[derive(Clone, Copy)]
pub enum Form {
    /// An object a request.
    Json,
    /// A line a request that is not as it was.
    Text,
    /// With the connection of each.
    TextOfSeveral,
}

/// How many there are of each.
#[derive(Default)]
pub struct Report {
    /// Answered as they were.
    pub same: usize,
    /// Answered in another way, or for the first time.
    pub different: usize,
    /// Not answered in time.
    pub unanswered: usize,
}

impl Report {
    /// Counts and shows one.
    pub fn add(
        &mut self,
        outcome: &Outcome,
        session: &Session,
        form: Form,
        sink: &mut impl Write,
    ) -> std::io::Result<()> {
        let count = match outcome.verdict {
            Verdict::Same => &mut self.same,
            Verdict::Different(_) | Verdict::New => &mut self.different,
            Verdict::Unanswered => &mut self.unanswered,
        };
        *count += 1;
        let row = session.row(outcome.row);
        let about = About {
            method: row.and_then(|row| session.method(row)).unwrap_or_default(),
            name: row.and_then(|row| session.name(row)),
        };
        match form {
            Form::Json => writeln!(sink, "{}", object(outcome, &about)),
            _ if outcome.verdict == Verdict::Same => Ok(()),
            Form::Text => print(outcome, "", &about, sink),
            Form::TextOfSeveral => {
                let on = format!("c{} ", outcome.connection);
                print(outcome, &on, &about, sink)
            }
        }
    }
}

/// What a request was about.
struct About<'a> {
    method: &'a str,
    name: Option<&'a str>,
}

/// A verdict in a word, and what is different.
fn told(verdict: &Verdict) -> (&'static str, &[Difference]) {
    match verdict {
        Verdict::Same => ("same", &[]),
        Verdict::Different(differences) => ("different", differences),
        Verdict::New => ("new", &[]),
        Verdict::Unanswered => ("unanswered", &[]),
    }
}

fn print(
    outcome: &Outcome,
    on: &str,
    about: &About<'_>,
    sink: &mut impl Write,
) -> std::io::Result<()> {
    let name = about
        .name
        .map_or(String::new(), |name| format!(" [{name}]"));
    let (sequence, method) = (outcome.sequence, about.method);
    let (verdict, differences) = told(&outcome.verdict);
    let text = match outcome.verdict {
        Verdict::New => "answered now, no answer in the record",
        _ => verdict,
    };
    let text = format!("#{sequence} {on}{method}{name}: {text}");
    writeln!(sink, "{}", visible(&text))?;
    for difference in differences {
        let side = |side: &Option<String>| match side {
            Some(text) => visible(&text.chars().take(SHOWN).collect::<String>()),
            None => "nothing".to_owned(),
        };
        let path = visible(&difference.path);
        let (then, now) = (side(&difference.then), side(&difference.now));
        writeln!(sink, "    {path}: {then} != {now}")?;
    }
    Ok(())
}

fn object(outcome: &Outcome, about: &About<'_>) -> serde_json::Value {
    let (verdict, differences) = told(&outcome.verdict);
    let differences: Vec<_> = differences
        .iter()
        .map(|it| serde_json::json!({"path": it.path, "then": it.then, "now": it.now}))
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
