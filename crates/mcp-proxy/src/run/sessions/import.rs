//! `import`: a session in the JSON format becomes a record, so that every other command works on it.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use mcp_proxy_session::{RecordLocation, SessionRecord};

use super::{count_of, ignore_broken_pipe};
use crate::cli::sessions::ImportArgs;
use crate::printer;
use mcp_proxy_wire::terminal_text::sanitize;

/// Makes a record and prints its path.
pub fn run(args: &ImportArgs) -> Result<ExitCode> {
    ignore_broken_pipe(import(args))
}

fn import(args: &ImportArgs) -> Result<ExitCode> {
    let place = match &args.session_file {
        Some(path) => RecordLocation::File(
            std::path::absolute(path).context("cannot find the working directory")?,
        ),
        None => RecordLocation::Default,
    };
    let path = mcp_proxy_session::import(&args.file, place)?;
    let messages = SessionRecord::open(&path)?.len() as u64;
    // The path alone on stdout, so that a script can use it.
    let mut out = printer::stdout_writer();
    writeln!(out, "{}", path.display())?;
    out.flush()?;
    let shown = sanitize(&path.display().to_string());
    if args
        .session_file
        .as_ref()
        .is_some_and(|wanted| wanted.file_name() != path.file_name())
    {
        printer::say(&format!(
            "mcp-proxy: the session file exists already; wrote {shown}"
        ));
    }
    printer::say(&format!(
        "mcp-proxy: imported {}; read them with: mcp-proxy inspect {shown}",
        count_of(messages, "message", "messages")
    ));
    Ok(ExitCode::SUCCESS)
}
