//! `import`: a session in the JSON format becomes a record, so that every other command works on it.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use mcp_proxy_session::{Place, Session};

use super::{counted, quiet_pipe};
use crate::cli::sessions::ImportArgs;
use crate::printer;
use mcp_proxy_wire::visible::visible;

/// Makes a record and prints its path.
pub fn run(args: &ImportArgs) -> Result<ExitCode> {
    quiet_pipe(import(args))
}

fn import(args: &ImportArgs) -> Result<ExitCode> {
    let place = match &args.session_file {
        Some(path) => {
            Place::File(std::path::absolute(path).context("cannot find the working directory")?)
        }
        None => Place::Default,
    };
    let path = mcp_proxy_session::import(&args.file, place)?;
    let messages = Session::open(&path)?.len() as u64;
    // The path alone on stdout, so that a script can use it.
    let mut out = printer::out();
    writeln!(out, "{}", path.display())?;
    out.flush()?;
    let shown = visible(&path.display().to_string());
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
        counted(messages, "message", "messages")
    ));
    Ok(ExitCode::SUCCESS)
}
