//! The steps between record and write, in one ordered list.
//!
//! A step sees what is about to be written and may change it, drop it or answer it. Its verdict is recorded as
//! an `act` before it has an effect.
//!
//! To add a step:
//! - a file under `step/`, a variant of [`Step`], its arm in [`Step::apply`] and its place in [`Step::for_connection`];
//! - what it has to remember goes into [`Connection`] or [`ProxyRun`](crate::ProxyRun): a step itself is only a name;
//! - a transcript in `core/tests/it/`, and a test of the binary over HTTP: transcripts play links, and HTTP that is passed through has none.
//!
//! It sees whole messages only, after rules and holds: not what those took, not the pieces of a message over 64 KiB, and not what goes
//! through a record-only pipeline (refusals, messages of the proxy's own). To watch or count messages, a step is the wrong
//! place. All of them pass `record_whole` or `record_large` in `message_pipeline/recording.rs`, on every transport.

mod line_breaks;
mod multiplex;

use std::time::Duration;

use mcp_proxy_wire::{Direction, Transport};

use crate::connection::Connection;
use crate::link::LinkEnd;
use crate::message_pipeline::PipelineOutput;

/// Adapts messages to the other side. Rules and holds come before the steps and are not among them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Makes a message fit a transport of another kind: line breaks become spaces.
    FlattenLineBreaks,
    /// On a connection that several clients share: gives messages our ids, and answers their owner's.
    Multiplex,
}

/// Where a step stands: the connection, the way the frames go, and the time.
pub(crate) struct StepContext<'a> {
    /// The connection.
    pub connection: &'a Connection,
    /// The way the frames go.
    pub direction: Direction,
    /// Since the start of the run.
    pub now: Duration,
}

impl Step {
    /// The steps of a connection, in order. None when both sides are of one kind and one client: bytes pass.
    pub(crate) fn for_connection(connection: &Connection) -> &'static [Step] {
        if connection.multiplexer().is_some() {
            &[Step::FlattenLineBreaks, Step::Multiplex]
        } else if connection.client.transport == connection.server()
            || connection.client.transport == Transport::WebSocket
        {
            // A WebSocket message is whole whatever is in it, and so is one of the relay, which is its server.
            &[]
        } else {
            &[Step::FlattenLineBreaks]
        }
    }

    /// Applies the step to everything that is about to be written.
    pub(crate) fn apply(
        self,
        stage: &StepContext<'_>,
        output: &mut PipelineOutput,
    ) -> Result<(), LinkEnd> {
        match self {
            Step::FlattenLineBreaks => line_breaks::flatten_line_breaks(stage, output),
            Step::Multiplex => multiplex::multiplex_ids(stage, output),
        }
    }
}
