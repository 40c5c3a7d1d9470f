//! The flags of `replay`: a record plays its client.

use std::time::Duration;

use super::ProxyArgs;

/// What `replay --help` ends with.
pub const REPLAY_AFTER: &str = "\
Examples:
  mcp-proxy replay LAST -- python server.py              the same session again; says what is answered differently
  mcp-proxy replay s.jsonl http://localhost:8080/mcp --filter tools/call
  mcp-proxy replay s.jsonl --ignore '$.result.content[*].text' --ignore '$.result.time' -- ./server
  mcp-proxy replay s.jsonl --concurrency 8 --json -- ./server | jq .differences

Ids and progress tokens are new; what the server asks is answered as the recorded client did.
Exit code: 0 all answers are the same, 1 some differ, 2 it could not be played.";

/// Play the client of a record.
#[derive(Debug, clap::Args)]
pub struct ReplayArgs {
    /// The record: a file, the beginning of a session's id, or LAST
    #[arg(value_name = "RECORD")]
    pub record: String,

    /// Only these messages (and those that open the session)
    #[arg(long, value_name = "FILTER")]
    pub filter: Option<String>,

    /// The connection to play, as the record numbers it; the first by default
    #[arg(long, value_name = "N")]
    pub connection: Option<u32>,

    /// Keep the recorded pauses, so many times shorter (1 is as recorded); without it there are none
    #[arg(long, value_name = "TIMES")]
    pub speed: Option<f64>,

    /// Requests that may be open at once
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub concurrency: usize,

    /// Differences at this place do not count; `*` stands for any member or index; may be repeated
    #[arg(long, value_name = "PATH")]
    pub ignore: Vec<String>,

    /// How long an answer may take
    #[arg(long, value_name = "TIME", value_parser = super::time::time, default_value = "60s")]
    pub answer_timeout: Duration,

    /// One JSON object a request instead of text
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub proxy: ProxyArgs,
}
