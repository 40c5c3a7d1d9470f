//! `mock`: the proxy before a recording instead of a server.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use mcp_proxy_core::mock::{MatchMode, MockRecording, RedactedAnswers};
use mcp_proxy_session::SessionRecord;

use super::sessions::{record_lookup, report_damage};
use super::{UsageError, proxy};
use crate::cli::mock::{MatchArg, MockArgs};
use crate::config::{Config, MockTarget};

/// Plays the server until the client ends.
pub fn run(args: &MockArgs) -> Result<ExitCode> {
    let path = record_lookup::find(&args.record)?;
    let session =
        SessionRecord::open(&path).with_context(|| format!("cannot read {}", args.record))?;
    report_damage(&session);
    let recording =
        MockRecording::read(session).with_context(|| format!("cannot read {}", args.record))?;
    if recording.is_empty() {
        anyhow::bail!("{} holds no request that was answered", path.display());
    }
    let played = MockTarget {
        shown: path.display().to_string(),
        recording: Arc::new(recording),
        matching: match args.matching {
            MatchArg::Params => MatchMode::Params,
            MatchArg::Sequential => MatchMode::Sequential,
            MatchArg::Strict => MatchMode::Strict,
        },
        redacted: match args.play_redacted {
            true => RedactedAnswers::Play,
            false => RedactedAnswers::Refuse,
        },
        fallback: None,
    };
    let config = Config::mock(args, played).map_err(|error| UsageError(format!("{error:#}")))?;
    proxy::run_with(&config)
}
