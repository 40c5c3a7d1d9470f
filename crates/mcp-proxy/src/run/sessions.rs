//! The commands that work on records, and what they share: naming a record, words for amounts, harmless text.

pub mod export;
pub mod formatting;
pub mod import;
pub mod inspect;
pub mod list;
pub mod prune;
pub mod record_lookup;
pub mod rules;
pub mod table;

use std::io::ErrorKind;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Error, Result};
use mcp_proxy_session::{Filter, Redaction, SessionRecord, repair};

use crate::cli::redact::RedactArgs;
use crate::printer;
use crate::run::UsageError;
use mcp_proxy_wire::terminal_text::sanitize;

/// A filter from the command line.
fn filter(text: &str) -> Result<Filter> {
    Filter::parse(text).map_err(|error| UsageError(format!("filter {error}")).into())
}

/// What the command line says is to be hidden.
fn redaction(args: &RedactArgs) -> Result<Option<Redaction>> {
    let compiled = args.compile();
    compiled.map_err(|error| UsageError(format!("{error:#}")).into())
}

/// A reader that went away, as `head` does, has what it wanted: that is not a failure.
pub fn ignore_broken_pipe(outcome: Result<ExitCode>) -> Result<ExitCode> {
    match outcome {
        Err(error) if is_broken_pipe(&error) => Ok(ExitCode::SUCCESS),
        other => other,
    }
}

fn is_broken_pipe(error: &Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
    })
}

/// Cuts off the torn last line of a record that nobody is writing, and says so on stderr. What cannot be fixed is
/// reported by the command that reads the record: [`report_damage`].
fn repair_torn_end(path: &Path) {
    if let Ok(Some(cut)) = repair(path) {
        printer::say(&sanitize(&format!(
            "mcp-proxy: {}: the last line was torn: {} after the last whole line cut off and kept in {}",
            path.display(),
            count_of(cut.bytes, "byte", "bytes"),
            cut.kept.display()
        )));
    }
}

/// Says on stderr what of a record could not be read.
pub fn report_damage(session: &SessionRecord) {
    let path = session.path().display().to_string();
    if session.damaged() > 0 {
        printer::say(&sanitize(&format!(
            "mcp-proxy: {path}: {} could not be read, skipped",
            count_of(session.damaged(), "line", "lines")
        )));
    }
    // A live record's last line is being written, not torn.
    if session.torn() > 0 && !session.is_live() {
        printer::say(&sanitize(&format!(
            "mcp-proxy: {path}: the last line is torn: {} after the last whole line were ignored",
            count_of(session.torn(), "byte", "bytes")
        )));
    }
}

/// `1 record`, `2 records`.
pub fn count_of(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}
