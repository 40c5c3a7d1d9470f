//! The canned MCP server, over HTTP and over stdio: the other end of every measurement.
//!
//! It does the least that a real server does (reads the envelope, keeps sessions, copies the id), so that what is
//! measured is the way to it.

mod http;
mod stdio;

use anyhow::Result;
use clap::{Args, ValueEnum};

use crate::canned::CannedAnswers;
use crate::process;

/// Answers longer than this are sent straight from the canned bytes.
const COPY_BELOW: usize = 16 * 1024;

#[derive(Args)]
pub struct CannedServerArgs {
    transport: CannedTransport,
    /// How many tools it lists
    #[arg(long, default_value_t = 10)]
    tools: usize,
    /// What their names begin with
    #[arg(long, default_value = "")]
    prefix: String,
}

#[derive(Clone, Copy, ValueEnum)]
enum CannedTransport {
    /// Listen on a free loopback port and print `listening on URL` to stderr
    Http,
    /// Answer on stdin and stdout
    Stdio,
}

pub fn run(args: &CannedServerArgs) -> Result<()> {
    let answers = CannedAnswers::new(args.tools, &args.prefix);
    match args.transport {
        CannedTransport::Http => {
            process::end_with_parent();
            http::serve(answers)
        }
        CannedTransport::Stdio => stdio::serve(&answers),
    }
}
