//! A scripted client: a short, friendly session with the demo server, for something to look at.
//!
//! It speaks over any pair of byte streams, so what stands between it and the server is the caller's choice.
//! Each step either gets the answer it expects or ends the script with an error that names it; two steps are
//! there to fail, so that a viewer has failures to show.

mod client;
mod player;

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::{BoxedFuture, BoxedReader, BoxedWriter, DemoError};
use player::ScriptPlayer;

/// Which of MCP's two eras the scripted client speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScriptEra {
    /// Revision 2025-11-25: a session that begins with `initialize`.
    #[default]
    Legacy,
    /// Revision 2026-07-28: every request stands for itself.
    Modern,
}

/// One step of the script, after it was done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScriptStep {
    /// What the client did, in the imperative.
    pub title: &'static str,
    /// What came of it, in one line.
    pub outcome: String,
}

/// Plays the script over `reader` and `writer`, waiting `pause` before each step but the first.
///
/// `on_step` hears of each step when it is done. The session is closed at the end, and so is the writer.
pub fn run_script<'a>(
    reader: impl AsyncRead + Send + Unpin + 'static,
    writer: impl AsyncWrite + Send + Unpin + 'static,
    era: ScriptEra,
    pause: Duration,
    on_step: impl FnMut(&ScriptStep) + Send + 'a,
) -> impl Future<Output = Result<(), DemoError>> + Send + 'a {
    let streams = (
        Box::new(reader) as BoxedReader,
        Box::new(writer) as BoxedWriter,
    );
    run_boxed(streams, era, pause, Box::new(on_step))
}

/// What hears of each step.
type OnStep<'a> = Box<dyn FnMut(&ScriptStep) + Send + 'a>;

fn run_boxed(
    streams: (BoxedReader, BoxedWriter),
    era: ScriptEra,
    pause: Duration,
    on_step: OnStep<'_>,
) -> BoxedFuture<'_> {
    Box::pin(play(streams, era, pause, on_step))
}

async fn play(
    streams: (BoxedReader, BoxedWriter),
    era: ScriptEra,
    pause: Duration,
    on_step: OnStep<'_>,
) -> Result<(), DemoError> {
    let mut player = ScriptPlayer::open(streams, era, pause, on_step).await?;
    if era == ScriptEra::Legacy {
        player.ask_for_log_lines().await?;
    }
    player.list_tools().await?;
    player.call_tools().await?;
    player.count_down(era).await?;
    player.be_asked().await?;
    player.read_resources().await?;
    player.complete_and_get_prompt().await?;
    player.fail_twice().await?;
    player.close().await
}
