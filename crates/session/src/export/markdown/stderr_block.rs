//! What the server wrote to stderr, in one folded block at the end of a report.

use super::{is_deceiving, longest_run};
use crate::session_record::RecordedLine;
use crate::{Error, SessionRecord};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::collections::BTreeSet;
use std::io::Write;

/// What the server wrote to stderr: counted on the first walk over the record, written on the second.
#[derive(Default)]
pub(super) struct StderrBlock {
    lines: u64,
    /// The longest run of backticks in it.
    longest: usize,
    connections: BTreeSet<String>,
}

impl StderrBlock {
    /// Whether the line is one of stderr.
    pub(super) fn notes(&mut self, record: &RecordedLine) -> bool {
        let Some((connection, text)) = stderr_line(record) else {
            return false;
        };
        self.lines += 1;
        self.longest = self.longest.max(longest_run(&text));
        self.connections.insert(connection);
        true
    }

    pub(super) fn write(&self, session: &SessionRecord, out: &mut dyn Write) -> Result<(), Error> {
        if self.lines == 0 {
            return Ok(());
        }
        let fence = "`".repeat(self.longest.max(2) + 1);
        let count = match self.lines {
            1 => "1 line".to_owned(),
            lines => format!("{lines} lines"),
        };
        write!(
            out,
            "\n## stderr of the server\n\n<details><summary>{count}</summary>\n\n{fence}text\n"
        )
        .map_err(Error::Output)?;
        for record in session.records() {
            if let Some((connection, text)) = stderr_line(&record?) {
                let named = match self.connections.len() {
                    1 => String::new(),
                    _ => format!("{connection}: "),
                };
                writeln!(out, "{named}{text}").map_err(Error::Output)?;
            }
        }
        writeln!(out, "{fence}\n\n</details>").map_err(Error::Output)
    }
}

/// Connection and text of a line of stderr. Between fences only control characters could do harm.
fn stderr_line(record: &RecordedLine) -> Option<(String, String)> {
    if record.kind() != "io" || record.member::<String>("kind")? != "stderr" {
        return None;
    }
    let text = match record.member::<String>("text") {
        Some(text) => text,
        None => {
            let encoded = record.member::<String>("b64")?;
            String::from_utf8_lossy(&STANDARD.decode(encoded).ok()?).into_owned()
        }
    };
    let shown = text.chars().map(|character| match character {
        '\t' => '\t',
        control if control.is_control() || is_deceiving(control) => '\u{fffd}',
        plain => plain,
    });
    let connection = record.member("conn").unwrap_or_default();
    Some((connection, shown.collect()))
}
