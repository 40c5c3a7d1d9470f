//! The flags of `mock`: a recording plays the server.

use clap::ValueEnum;

use super::ProxyArgs;

const AFTER: &str = "\
Examples:
  mcp-proxy mock LAST                              the last record, for a client's config
  mcp-proxy mock s.jsonl --listen http             the same for HTTP clients
  mcp-proxy mock s.jsonl --match sequential        answers in their recorded order
  mcp-proxy mock s.jsonl --unmatched forward -- python server.py
                                                   what is not in the record goes to a real server

Answers carry the id of the live request and progress its token. `initialize` matches any client.
The run itself is recorded only with --session-file.";

/// Play a recorded server.
#[derive(Debug, clap::Args)]
pub struct MockArgs {
    /// The record: a file, its id from `mcp-proxy sessions`, or LAST
    #[arg(value_name = "RECORD")]
    pub record: String,

    /// Which recorded answer a request gets
    #[arg(long = "match", value_enum, value_name = "HOW", default_value_t = MatchArg::Params)]
    pub matching: MatchArg,

    /// What happens to a request that the record cannot answer
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = UnmatchedArg::Error)]
    pub unmatched: UnmatchedArg,

    /// Play answers in which values were redacted too, with the marks in them
    #[arg(long)]
    pub play_redacted: bool,

    #[command(flatten)]
    pub proxy: ProxyArgs,
}

/// What `mock --help` ends with.
pub const MOCK_AFTER: &str = AFTER;

/// Which recorded answer a request gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MatchArg {
    /// That of the same method and parameters (`_meta` aside); equal requests get theirs in turn
    Params,
    /// That of the next recorded request of the same method and tool, prompt or resource
    Sequential,
    /// That of the next recorded request, which must be equal
    Strict,
}

/// What happens to a request that the record cannot answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum UnmatchedArg {
    /// Answer it with error -31013 (a ping gets a normal answer unless --match strict)
    Error,
    /// Forward it to the given server: a URL, or a command after --
    Forward,
}
