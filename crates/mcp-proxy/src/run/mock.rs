//! `mock`: the proxy before a recording instead of a server.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use mcp_proxy_core::mock::{Match, Recording, RedactedAnswers};
use mcp_proxy_session::Session;

use super::sessions::{named, report_damage};
use super::{Usage, proxy};
use crate::cli::mock::{Matching, MockArgs};
use crate::config::{Config, Played};

/// Plays the server until the client ends.
pub fn run(args: &MockArgs) -> Result<ExitCode> {
    let path = named::find(&args.record)?;
    let session = Session::open(&path).with_context(|| format!("cannot read {}", args.record))?;
    report_damage(&session);
    let recording =
        Recording::read(session).with_context(|| format!("cannot read {}", args.record))?;
    if recording.is_empty() {
        anyhow::bail!("{} holds no request that was answered", path.display());
    }
    let played = Played {
        shown: path.display().to_string(),
        recording: Arc::new(recording),
        matching: match args.matching {
            Matching::Params => Match::Params,
            Matching::Sequential => Match::Sequential,
            Matching::Strict => Match::Strict,
        },
        redacted: match args.play_redacted {
            true => RedactedAnswers::Play,
            false => RedactedAnswers::Refuse,
        },
        beyond: None,
    };
    let config = Config::mock(args, played).map_err(|error| Usage(format!("{error:#}")))?;
    proxy::run_with(&config)
}
