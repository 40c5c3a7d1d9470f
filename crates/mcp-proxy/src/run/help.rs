//! `help TOPIC`: pages about what several commands share.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Result;
use mcp_proxy_session::filter;

use crate::cli::HelpTopic;
use crate::printer;

/// As wide as clap makes its own help.
const WIDTH: usize = 100;

/// Prints a page.
pub fn run(topic: HelpTopic) -> Result<ExitCode> {
    let page = match topic {
        HelpTopic::Filters => filter::help::page(WIDTH),
    };
    let mut out = printer::stdout_writer();
    out.write_all(page.as_bytes()).and_then(|()| out.flush())?;
    Ok(ExitCode::SUCCESS)
}
