//! `savings`: what each exposure costs, from the definitions of real servers.

mod servers;
mod table;

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use mcp_proxy_hub::savings::{CHARS_PER_TOKEN, ExposureReport};
use serde_json::{Value, json};

use super::sessions::ignore_broken_pipe;
use super::sessions::inspect::write_json;
use crate::cli::savings::SavingsArgs;
use crate::printer;
use servers::{AskedServer, ServerAnswer};

/// Asks the servers and shows what their tools cost.
pub fn run(args: &SavingsArgs) -> Result<ExitCode> {
    ignore_broken_pipe(show(args))
}

fn show(args: &SavingsArgs) -> Result<ExitCode> {
    let (servers, measured) = servers::ask(&args.source, args.timeout)?;
    let report = ExposureReport::measure(&measured);
    let mut out = printer::stdout_writer();
    match args.json {
        true => write_json(&mut out, json_of(&servers, &report).to_string().as_bytes())?,
        false => table::write(&servers, &report, &mut out)?,
    }
    out.flush()?;
    let is_answered = |server: &AskedServer| matches!(server.answer, ServerAnswer::Ready { .. });
    Ok(match servers.iter().any(is_answered) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

fn json_of(servers: &[AskedServer], report: &ExposureReport) -> Value {
    let servers = servers.iter().map(|server| match &server.answer {
        ServerAnswer::Ready { tools } => {
            json!({"name": server.name, "state": "ready", "tools": tools})
        }
        ServerAnswer::Failed(reason) => {
            json!({"name": server.name, "state": "failed", "error": reason})
        }
    });
    let exposures = report.exposures.iter().map(|cost| {
        let expose: Vec<&str> = cost.expose.iter().map(|mode| mode.as_str()).collect();
        json!({
            "expose": expose,
            "pinned": cost.pinned,
            "tools": cost.tools,
            "bytes": cost.size.bytes,
            "tokens": cost.size.tokens(),
        })
    });
    json!({
        "chars_per_token": CHARS_PER_TOKEN,
        "servers": servers.collect::<Vec<_>>(),
        "tools": report.tools,
        "exposures": exposures.collect::<Vec<_>>(),
    })
}
