//! The flags of `replay`: a record plays its clients.

use std::time::Duration;

use serde_json::Value;

use super::ProxyArgs;

/// What `replay --help` ends with.
pub const REPLAY_AFTER: &str = "\
Examples:
  mcp-proxy replay LAST -- python server.py              report the answers that differ
  mcp-proxy replay s.jsonl http://localhost:8080/mcp --filter tools/call
  mcp-proxy replay s.jsonl --ignore '$.result.content[*].text' --ignore '$.result.time' -- ./server
  mcp-proxy replay s.jsonl --connection c2 http://localhost:8080/mcp
  mcp-proxy replay s.jsonl --concurrency 8 --json -- ./server | jq .differences

Every connection of the record is a session of its own, and all of them speak in the recorded order.
A message with redacted values can only be replayed if you supply them: --fill 7:1=secret.
Ids and progress tokens are new. Requests from the server are answered as the recorded client did.
Exit code: 0 all answers are the same, 1 some differ, 2 the replay failed, 130 stopped by Ctrl-C
(partial results are printed).";

/// A player has no client before it: flags about one are taken and do nothing, so they are not shown.
pub fn hide_client_flags(arg: clap::Arg) -> clap::Arg {
    match arg.get_help_heading() {
        Some("Client side" | "Holding messages" | "Changing messages" | "Terminal UI") => {
            arg.hide(true)
        }
        // It is about clients that have no other way to hear of a lost session.
        _ if arg.get_id() == "no_reconnect" => arg.hide(true),
        _ => arg,
    }
}

/// A value for a mark of redaction.
#[derive(Clone, Debug, PartialEq)]
pub struct FillArg {
    /// The message's number.
    pub sequence: u64,
    /// The mark's number in it.
    pub mark: u32,
    /// What stood there.
    pub value: Value,
}

fn fill(text: &str) -> Result<FillArg, String> {
    let wrong = || "write MESSAGE:MARK=VALUE, as 7:1=secret".to_owned();
    let (place, value) = text.split_once('=').ok_or_else(wrong)?;
    let (sequence, mark) = place.split_once(':').ok_or_else(wrong)?;
    Ok(FillArg {
        sequence: sequence.parse().map_err(|_| wrong())?,
        mark: mark.parse().map_err(|_| wrong())?,
        value: serde_json::from_str(value).unwrap_or_else(|_| value.into()),
    })
}

/// `c2` as `inspect` shows it, or `2`.
fn connection(text: &str) -> Result<u32, String> {
    let number = text.strip_prefix('c').unwrap_or(text).parse();
    number.map_err(|_| "write c1, c2 and so on, as `mcp-proxy inspect` shows them".to_owned())
}

/// How many times faster pauses may be kept. Slower than this nobody waits, and faster there are none.
const SPEEDS: std::ops::RangeInclusive<f64> = 0.01..=1000.0;

fn speed(text: &str) -> Result<f64, String> {
    let wrong = || {
        let (least, most) = (SPEEDS.start(), SPEEDS.end());
        format!("write a number from {least} to {most}; without --speed nothing pauses")
    };
    let speed: f64 = text.parse().map_err(|_| wrong())?;
    match SPEEDS.contains(&speed) {
        true => Ok(speed),
        false => Err(wrong()),
    }
}

/// Play the clients of a record.
#[derive(Debug, clap::Args)]
pub struct ReplayArgs {
    /// The record: a file, its id from `mcp-proxy sessions`, or LAST
    #[arg(value_name = "RECORD")]
    pub record: String,

    /// Only these messages (and those that open the session)
    #[arg(long, value_name = "FILTER")]
    pub filter: Option<String>,

    /// Only this connection, as the record numbers it (repeatable); without it, all of them
    #[arg(long, value_name = "cN", value_parser = connection)]
    pub connection: Vec<u32>,

    /// The value of a redacted place, message 7, mark 1; JSON, or else text (repeatable)
    #[arg(long, value_name = "7:1=VALUE", value_parser = fill)]
    pub fill: Vec<FillArg>,

    /// Keep the recorded pauses, divided by this factor (1 = as recorded; 0.01 to 1000) [default: no pauses]
    #[arg(long, value_name = "TIMES", value_parser = speed, allow_negative_numbers = true)]
    pub speed: Option<f64>,

    /// Requests that may be open at once, on all connections together
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub concurrency: usize,

    /// Ignore differences at this path; `*` matches any member or index, `['a.b']` the member a.b (repeatable)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds() {
        for (text, meant) in [("1", 1.0), ("0.01", 0.01), ("1e3", 1000.0), ("2.5", 2.5)] {
            assert_eq!(speed(text), Ok(meant));
        }
        for wrong in ["0", "-1", "nan", "inf", "1e-300", "1001", "", "fast"] {
            assert!(speed(wrong).is_err(), "{wrong}");
        }
    }
}
