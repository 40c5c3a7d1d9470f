//! The flags of the commands that read records: `inspect`, `export`, `import`, `sessions` and `prune`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;

use super::size::size;
use super::time::age;

/// The formats a session can be written in: the session crate's list, so that a new exporter is offered at once.
pub fn format_names() -> PossibleValuesParser {
    PossibleValuesParser::new(
        mcp_proxy_session::exporters()
            .iter()
            .map(|exporter| exporter.name()),
    )
}

/// The newest record.
pub const LAST: &str = "LAST";

/// How a record is named, wherever one is asked for.
pub const RECORD: &str = "A record or a JSON export: its path, its id from `sessions` or `ls`, its whole session id, or LAST for the newest";

const INSPECT: &str = "\
Examples:
  mcp-proxy inspect                              the newest record as a table
  mcp-proxy inspect LAST tools/call read_file    the messages that have all these words in them
  mcp-proxy inspect LAST '.status == \"error\"'    answers that are errors, by jq
  mcp-proxy inspect LAST --follow                keep printing new messages until the session ends
  mcp-proxy inspect 5e550001 --seq 7             everything about message 7
  mcp-proxy inspect s.jsonl --seq 7..9 --raw     the exact bytes of messages 7, 8 and 9
  mcp-proxy inspect s.jsonl --all                also stderr, stray lines, connections and the exit
  mcp-proxy inspect LAST --json | jq .method     one JSON object a message
  mcp-proxy inspect LAST --redact-preset all     for a screen that others see

In the table, ► marks messages to the server and ◄ messages to the client; ↩ precedes the request
that a message answers.
Control characters are shown as escapes; --raw prints the original bytes.";

/// Print what a record holds.
#[derive(Debug, Default, clap::Args)]
#[command(after_help = INSPECT)]
pub struct InspectArgs {
    #[arg(value_name = "RECORD", default_value = LAST, help = RECORD)]
    pub record: String,

    /// Which messages: words that must all be in them, a /regex/, or jq like '.tool == "x"'; see `mcp-proxy help filters`
    #[arg(value_name = "FILTER")]
    pub words: Vec<String>,

    /// The same as one argument, as `export` and `replay` take it
    #[arg(long, value_name = "FILTER", conflicts_with = "words")]
    pub filter: Option<String>,

    /// One JSON object a line: each message with all that is known about it
    #[arg(long, conflicts_with = "raw")]
    pub json: bool,

    /// Wait for more, until the session ends or Ctrl-C
    #[arg(short, long)]
    pub follow: bool,

    /// Everything about these messages: N, N..M, N.. or ..M
    #[arg(long, value_name = "N|N..M")]
    pub seq: Option<SequenceRange>,

    /// The exact bytes of the messages, each followed by a newline, and nothing else
    #[arg(long, conflicts_with = "all")]
    pub raw: bool,

    /// Also show what is not a message: stderr, stray lines, connections, exits, notes
    #[arg(short, long, conflicts_with = "seq")]
    pub all: bool,

    #[command(flatten)]
    pub redact: super::redact::RedactArgs,
}

const EXPORT: &str = "\
Examples:
  mcp-proxy export                                       the newest session as JSON, to stdout
  mcp-proxy export LAST --output-format markdown -o s.md a report to read
  mcp-proxy export 5e550001 --output-format har -o s.har  for a browser's network panel
  mcp-proxy export LAST --filter '.tool == \"read_file\"'  the calls of a tool, and their answers
  mcp-proxy export LAST --redact-preset all --redact-key ssn -o shared.json

Message bodies are exported as they are in the record, unless --redact-… hides some of it: treat
the file as sensitive.";

/// Write a record in another format.
#[derive(Debug, clap::Args)]
#[command(after_help = EXPORT)]
pub struct ExportArgs {
    #[arg(value_name = "RECORD", default_value = LAST, help = RECORD)]
    pub record: String,

    /// The format [default: the one that FILE's ending names, else json]
    #[arg(long, value_name = "FORMAT", value_parser = format_names())]
    pub output_format: Option<String>,

    /// Which messages: words, a /regex/ or jq; see `mcp-proxy help filters`
    #[arg(long, value_name = "FILTER")]
    pub filter: Option<String>,

    /// The file to write; without it, or with `-`, stdout
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Overwrite the file if it exists
    #[arg(long, requires = "output")]
    pub force: bool,

    #[command(flatten)]
    pub redact: super::redact::RedactArgs,
}

const IMPORT: &str = "\
Examples:
  mcp-proxy import session.json                          into the state directory
  mcp-proxy import session.json --session-file s.jsonl   into a file
  mcp-proxy inspect $(mcp-proxy import session.json)     prints only the path on stdout

The document is what `mcp-proxy export` writes: an object with started_at and messages.";

/// Make a record from a session in the JSON format.
#[derive(Debug, clap::Args)]
#[command(after_help = IMPORT)]
pub struct ImportArgs {
    /// The JSON document; proxy_id, payload and original_payload are understood as well
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Write the record here instead of the state directory
    #[arg(long, value_name = "FILE")]
    pub session_file: Option<PathBuf>,
}

const SESSIONS: &str = "\
Examples:
  mcp-proxy sessions                        newest first; `live` is still being written
  mcp-proxy sessions --json | jq -r .path   where they are

Any command that takes a record takes the id shown here, or LAST.";

/// List the records.
#[derive(Debug, clap::Args)]
#[command(after_help = SESSIONS)]
pub struct SessionsArgs {
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,

    /// Only the ids, one on a line, and after a tab when the session started and its server; opens no record
    #[arg(long, conflicts_with = "json")]
    pub ids: bool,
}

const PRUNE: &str = "\
Examples:
  mcp-proxy prune --older-than 30d            those that started more than 30 days ago
  mcp-proxy prune --keep-under 1G             the oldest, until the rest is smaller
  mcp-proxy prune 5e550001 5e550002           these
  mcp-proxy prune --all --dry-run             say what would go, remove nothing

Only records in the state directory are removed: never one that is being written, and
never a file that --session-file named elsewhere.";

/// Remove records.
#[derive(Debug, clap::Args)]
#[command(after_help = PRUNE)]
pub struct PruneArgs {
    /// Ids from `mcp-proxy sessions`, or whole session ids; the first letters are enough
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,

    /// Those that started longer ago: 12h, 30d, 8w
    #[arg(long, value_name = "AGE", value_parser = age, conflicts_with_all = ["ids", "all"])]
    pub older_than: Option<Duration>,

    /// The oldest, until the rest is smaller than this: bytes, or with K, M, G
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with_all = ["ids", "all"])]
    pub keep_under: Option<u64>,

    /// All of them
    #[arg(long, conflicts_with = "ids")]
    pub all: bool,

    /// Say what would be removed, and remove nothing
    #[arg(short = 'n', long)]
    pub dry_run: bool,

    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
}

/// An inclusive range of sequence numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceRange {
    /// The first.
    pub first: u64,
    /// The last.
    pub last: u64,
}

impl std::str::FromStr for SequenceRange {
    type Err = String;

    fn from_str(text: &str) -> Result<SequenceRange, String> {
        let number = |word: &str, open: u64| match word {
            "" => Ok(open),
            word => word
                .parse()
                .map_err(|_| format!("{word:?} is not a sequence number")),
        };
        let (first, last) = match text.split_once("..") {
            Some(("", "")) => return Err("a range needs a number: N..M, N.. or ..M".to_owned()),
            Some((first, last)) => (
                number(first, 0)?,
                number(last.trim_start_matches('='), u64::MAX)?,
            ),
            None if text.is_empty() => return Err("a number is needed".to_owned()),
            None => (number(text, 0)?, number(text, 0)?),
        };
        if first > last {
            return Err(format!("{first} comes after {last}"));
        }
        Ok(SequenceRange { first, last })
    }
}

impl std::fmt::Display for SequenceRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.first, self.last) {
            (first, last) if first == last => write!(f, "{first}"),
            (0, last) => write!(f, "up to {last}"),
            (first, u64::MAX) => write!(f, "from {first} on"),
            (first, last) => write!(f, "from {first} to {last}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences() {
        let read = |text: &str| {
            text.parse::<SequenceRange>()
                .map(|seq| (seq.first, seq.last))
        };
        assert_eq!(read("7"), Ok((7, 7)));
        assert_eq!(read("7..9"), Ok((7, 9)));
        assert_eq!(read("7.."), Ok((7, u64::MAX)));
        assert_eq!(read("..9"), Ok((0, 9)));
        let shown = ["7", "7..9", "7..", "..9"].map(|text| {
            let sequence: SequenceRange = text.parse().unwrap();
            format!("{text}: {sequence}")
        });
        insta::assert_snapshot!("sequences", shown.join("\n"));
        for wrong in ["", "..", "x", "9..7", "1..2..3", "-1"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
